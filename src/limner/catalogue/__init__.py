"""What models can do and what they cost, as dated data and pure formulas."""
