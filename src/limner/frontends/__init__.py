"""Doors: each translates between one way in and a `Limner`."""
