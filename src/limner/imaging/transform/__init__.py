"""A picture -> the same picture cropped, turned, scaled, marked or smaller in bytes."""

from limner.imaging.transform.request import Flip, Mark, Transformed, TransformRequest

__all__ = ["Flip", "Mark", "TransformRequest", "Transformed"]
