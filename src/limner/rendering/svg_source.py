"""An SVG document -> itself with its size, and notes about fonts that are not bundled."""

from __future__ import annotations

import re

from limner.imaging.fonts import font_for, replaced_family
from limner.imaging.limits import WorkerLimits
from limner.imaging.svg.renderer import SvgFacts, measure_svg
from limner.rendering.canvas import RenderedDocument
from limner.rendering.text import missing_note

_MAX_LISTED = 12


def measure_source(
    source: str, size: tuple[int, int] | None, limits: WorkerLimits, *, min_edge: int = 1
) -> RenderedDocument:
    """Measure a document. Without a size its own counts, enlarged to ``min_edge``.

    Raises:
        ImageError: it cannot be drawn.
    """
    facts = measure_svg(source, limits)
    scale = max(1.0, min_edge / max(facts.width, facts.height))
    width, height = size or (round(facts.width * scale), round(facts.height * scale))
    return RenderedDocument(
        svg=source, width=width, height=height, notes=tuple(dict.fromkeys(_font_notes(facts)))
    )


def _font_notes(facts: SvgFacts) -> list[str]:
    notes = [
        f"{name} is not bundled; the text is set in {font_for(families).family}."
        for families in facts.families[:_MAX_LISTED]
        if (name := replaced_family(families))
    ]
    return notes + missing_note(re.sub(r"\s", "", facts.text))
