"""A picture -> the bytes a model should get: scaled, upright, in sRGB, under a byte limit."""

from limner.imaging.fit.request import FitRequest, Fitted, Region

__all__ = ["FitRequest", "Fitted", "Region"]
