"""Pixels -> measurements: size, colours, texture, codes, camera data and text.

The host imports only the values of ``record``; all else runs inside a worker.
"""

from limner.imaging.evidence.record import (
    Box,
    Code,
    Colour,
    GpsPosition,
    Measurements,
    Origin,
    TextLine,
    Texture,
)

__all__ = [
    "Box",
    "Code",
    "Colour",
    "GpsPosition",
    "Measurements",
    "Origin",
    "TextLine",
    "Texture",
]
