"""The default evidence of the tests: a dialog on white."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from limner.eyes.evidence import Evidence
from limner.imaging.evidence import Box, Colour, Measurements, PageReading, TextLine, Texture

WHITE = Colour(name="white", hex="#ffffff", percent=70)
BLUE = Colour(name="blue", hex="#0969da", percent=25)
BLACK = Colour(name="black", hex="#1f2328", percent=5)

DIALOG = Measurements(
    mime="image/png",
    size_bytes=9032,
    width=1280,
    height=720,
    turned=False,
    animated=False,
    transparent_percent=0,
    brightness_percent=83,
    colours=(WHITE, BLUE, BLACK),
    background=replace(WHITE, percent=100),
    texture=Texture(equal=92, sharp=5, two_colours=93, grey=75),
    origin=None,
    codes=(),
)
LINES = (
    TextLine(
        text="Delete 3 files?",
        box=Box(x=100, y=40, width=200, height=40),
        confidence=99,
        row=0,
    ),
    TextLine(
        text="This cannot be undone.",
        box=Box(x=100, y=100, width=220, height=20),
        confidence=97,
        row=1,
    ),
    TextLine(text="Cancel", box=Box(x=100, y=160, width=60, height=20), confidence=98, row=2),
    TextLine(text="Delete", box=Box(x=180, y=160, width=60, height=20), confidence=98, row=2),
)


def evidence(
    *, lines: tuple[TextLine, ...] = LINES, no_text_reason: str | None = None, **measured: Any
) -> Evidence:
    return Evidence(
        measured=replace(DIALOG, **measured),
        page=PageReading(lines=lines),
        no_text_reason=no_text_reason,
    )
