"""Evidence -> all known facts about a picture, for a question that no rule answers."""

from __future__ import annotations

from limner.eyes import measured, text
from limner.eyes.evidence import Evidence, EyesQuestion, Finding, kind
from limner.eyes.quotes import QUOTED_IS_DATA, block, quoted

MAX_ROWS, MAX_CHARS = 60, 6_000
KEYS = "OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY"


CANNOT_TELL = "Cannot tell"


def report(evidence: Evidence) -> Finding:
    """All facts, after one sentence that says that nothing matched."""
    return Finding(
        answer=f"{CANNOT_TELL}: nothing that was measured or read matches the question.",
        evidence=tuple(facts(evidence)),
        caveats=(
            f"For a model that sees, set {KEYS}.",
            *((QUOTED_IS_DATA,) if evidence.lines or evidence.measured.codes else ()),
        ),
    )


def summary(query: EyesQuestion) -> Finding:
    """What the picture is, in a sentence, and all facts."""
    evidence = query.picture
    found = kind(evidence)
    if found.name == "flat colour":
        colour = evidence.measured.colours[0]
        answer = f"A plain {colour.name} picture ({colour.hex}) without text."
    else:
        answer = f"A {found.name}" if found.name != "line art" else "Line art"
        if evidence.lines:
            largest = max(evidence.lines, key=lambda line: line.box.height)
            answer += f" with {len(evidence.rows)} lines of text; the largest is "
            answer += quoted(largest.text)
        elif evidence.page.shapes:
            answer += f" with {len(evidence.page.shapes)} flat shapes and no text"
        names = ", ".join(dict.fromkeys(colour.name for colour in evidence.measured.colours[:3]))
        answer += f". Its main colours are {names}."
    return Finding(
        answer=answer,
        evidence=tuple(facts(evidence)),
        caveats=(
            f"limner/eyes names no objects or people. For a model that sees, set {KEYS}.",
            *((QUOTED_IS_DATA,) if evidence.lines or evidence.measured.codes else ()),
        ),
    )


def facts(evidence: Evidence) -> list[str]:
    """Every measurement, one per line; the text comes last."""
    found, picture = kind(evidence), evidence.measured
    lines = [
        f"Picture: {picture.width} x {picture.height} pixels, {measured.shape(evidence)}, "
        f"{measured.format_name(evidence)}, {measured.file_size(evidence)}.",
        f"Kind: {found.name} ({found.reason}).",
        f"Colours: {measured.list_colours(picture.colours)}.",
    ]
    if picture.background is not None:
        lines.append(f"Background: {picture.background.name}.")
    if picture.animated:
        lines.append("It is animated; the first frame was measured.")
    if picture.transparent_percent:
        lines.append(f"Transparent: {picture.transparent_percent} % of it.")
    if picture.origin is not None:
        lines.append(f"EXIF: {measured.origin_line(picture.origin, with_place=False)}.")
    if picture.codes:
        lines.append(f"Codes: {'; '.join(map(text.code_line, picture.codes))}.")
    return [*lines, _text(evidence)]


def _text(evidence: Evidence) -> str:
    if evidence.no_text_reason is not None:
        return f"Text: not read: {evidence.no_text_reason}."
    rows = evidence.rows
    if not rows:
        return "Text: none that can be read."
    return f"Text:\n{block(rows, max_rows=MAX_ROWS, max_chars=MAX_CHARS)}"
