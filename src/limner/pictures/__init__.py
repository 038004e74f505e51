"""The only road in and out for pictures, and the values that providers share."""
