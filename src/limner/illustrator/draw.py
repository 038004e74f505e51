"""A prompt, or an SVG document that names pictures -> a drawing that can be rendered, and facts.

No model is behind this. Words that are known become ready-made pictures in a drawn scene; a
prompt of which too little is known is refused rather than answered with something else.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

import msgspec

from limner.errors import InputInvalid, NoProvider
from limner.illustrator import assets
from limner.illustrator.compose import compose, used_assets
from limner.illustrator.prompt_parser import ParsedPrompt, read
from limner.imaging.svg import Asset, mentioned_assets

MIN_EDGE, MAX_EDGE = 16, 4096
MAX_ASSETS = 200
NOTE = (
    "Drawn offline by limner's illustrator from ready-made vector pictures. "
    "For a model that paints anything, set OPENAI_API_KEY."
)
_LISTED_WORDS = 12


class Illustration(msgspec.Struct, frozen=True, kw_only=True):
    """An SVG document, the pictures its ``asset`` elements name, and facts about it in JSON."""

    svg: str
    assets: Mapping[str, Asset]
    facts: Mapping[str, Any]


def draw(
    *, prompt: str, svg: str | None, width: int, height: int, seed: int | None
) -> Illustration:
    """Draw a prompt, or prepare the document that the caller wrote instead.

    The same arguments give the same drawing; another seed gives another arrangement.

    Raises:
        InputInvalid: the size is out of range, or ``svg`` names a picture that does not exist.
        NoProvider: too little of the prompt is known to draw it honestly.
    """
    if not (MIN_EDGE <= width <= MAX_EDGE and MIN_EDGE <= height <= MAX_EDGE):
        raise InputInvalid(
            f"{width}x{height}: the illustrator draws {MIN_EDGE} to {MAX_EDGE} pixels a side.",
            field="size",
        )
    return _from_prompt(prompt, width, height, seed) if svg is None else _from_svg(svg)


def _from_svg(svg: str) -> Illustration:
    names = sorted(mentioned_assets(svg))
    if missing := sorted(set(names) - set(assets.names())):
        raise assets.unknown(missing)
    if len(names) > MAX_ASSETS:
        raise InputInvalid(
            f"The document names {len(names)} different pictures; at most {MAX_ASSETS} fit in one.",
            field="svg",
        )
    matched = [{"words": name, "asset": name, "count": None, "colour": None} for name in names]
    return _drawing(svg, names, matched=matched, background=None)


def _from_prompt(prompt: str, width: int, height: int, seed: int | None) -> Illustration:
    reading = read(prompt)
    if not reading.is_enough:
        raise _refusal(reading)
    # A prompt may hold lone surrogates, which a seed of text could not.
    start = f"{prompt}\n{seed}".encode(errors="surrogatepass")
    random = Random(start)  # noqa: S311 - arranges pictures, the same way every time
    document, scene = compose(reading, width=width, height=height, random=random)
    matched = [
        {
            "words": thing.words,
            "asset": thing.asset,
            "count": thing.count,
            "colour": thing.colour,
        }
        for thing in reading.things
    ]
    return _drawing(
        document,
        used_assets(document),
        matched=matched,
        background=scene.name,
        reading=reading,
    )


def _drawing(
    document: str,
    names: list[str],
    *,
    matched: list[dict[str, Any]],
    background: str | None,
    reading: ParsedPrompt | None = None,
) -> Illustration:
    facts: dict[str, Any] = {
        "matched": matched,
        "unmatched": list(reading.unmatched) if reading else [],
        "background": background,
        "style_ignored": list(reading.style) if reading else [],
        "left_out": list(reading.left_out) if reading else [],
        "text": list(reading.texts) if reading else [],
        "note": NOTE,
    }
    return Illustration(
        svg=document, assets={name: assets.get(name) for name in names}, facts=facts
    )


def _refusal(reading: ParsedPrompt) -> NoProvider:
    known = [thing.words for thing in reading.things]
    known += [*reading.scene.places, *sorted(reading.scene.weather)]
    known += [reading.scene.hour] if reading.scene.hour else []
    return NoProvider(
        "The embedded illustrator knows too little of this prompt "
        f"(knows: {_listed(known)}; does not know: {_listed(reading.unmatched)}).",
        hint=(
            "Set OPENAI_API_KEY or REPLICATE_API_TOKEN for a model that paints anything, or pass "
            'svg=… with <asset name="…"/> pictures (`limner assets search WORD` lists them).'
        ),
        extras={"matched": known, "unmatched": list(reading.unmatched)},
    )


def _listed(words: list[str] | tuple[str, ...]) -> str:
    if not words:
        return "nothing"
    more = len(words) - _LISTED_WORDS
    return ", ".join(words[:_LISTED_WORDS]) + (f" and {more} more" if more > 0 else "")
