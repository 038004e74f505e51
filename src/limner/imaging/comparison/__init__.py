"""Two pictures -> the areas in which they differ. The host imports only the values."""

from limner.imaging.comparison.record import ChangedArea, PixelComparison

__all__ = ["ChangedArea", "PixelComparison"]
