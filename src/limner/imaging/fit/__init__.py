"""A picture -> the bytes a model should get: scaled, upright, in sRGB, under a byte limit."""

from limner.imaging.fit.request import FitRequest, Fitted, Region

# Counts up when the same request would give other pixels, so that nothing kept from before is used.
FIT_VERSION = 1

__all__ = ["FIT_VERSION", "FitRequest", "Fitted", "Region"]
