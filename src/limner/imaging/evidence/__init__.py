"""Pixels -> measurements: size, colours, texture, codes, camera data, text and layout.

The host imports only the values of ``record``; all else runs inside a worker.
"""

from limner.imaging.evidence.record import (
    Box,
    Code,
    Colour,
    Control,
    DetectedObject,
    GpsPosition,
    LabelledValue,
    Measurements,
    Origin,
    PageReading,
    Panel,
    Shape,
    Table,
    TextLine,
    Texture,
)

__all__ = [
    "Box",
    "Code",
    "Colour",
    "Control",
    "DetectedObject",
    "GpsPosition",
    "LabelledValue",
    "Measurements",
    "Origin",
    "PageReading",
    "Panel",
    "Shape",
    "Table",
    "TextLine",
    "Texture",
]
