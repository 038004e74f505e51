"""What a model can call, and the one way to call it."""
