"""A picture -> the bytes a model should get: scaled, upright, in sRGB, under a byte limit."""

from limner.imaging.fit.request import FitRequest, Fitted, Region

# Part of the cache key. Increase it if the same request gives other bytes than before.
FIT_VERSION = 7

__all__ = ["FIT_VERSION", "FitRequest", "Fitted", "Region"]
