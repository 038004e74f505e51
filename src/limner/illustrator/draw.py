"""A prompt, or an SVG document that names pictures -> a drawing that can be rendered, and facts.

No model is used. Known words become ready-made pictures in a drawn scene, and the facts account
for every word. A prompt of which nothing is known becomes a card with its words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from limner.display_text import clean_line
from limner.errors import InputInvalid
from limner.illustrator import assets
from limner.illustrator.backdrop import draw_backdrop, draw_foreground
from limner.illustrator.compose import complete_scene, compose, used_assets
from limner.illustrator.grammar import named_genres
from limner.illustrator.layout import KeptDrawing
from limner.illustrator.parsed_prompt import STATES, ParsedPrompt
from limner.illustrator.prompt_parser import parse_prompt
from limner.illustrator.scenes import HOURS, PLACES, Scene
from limner.illustrator.styles import SQUARES
from limner.illustrator.vocabulary import find_asset
from limner.imaging.svg import Asset, mentioned_assets, mentioned_scenes, scene_key
from limner.rendering.canvas import Canvas, number

if TYPE_CHECKING:
    from limner.rendering.canvas import RenderedDocument
    from limner.rendering.elements import Document

MIN_EDGE, MAX_EDGE = 16, 4096
MAX_ASSETS = 200
MAX_SCENES = 8
NOTE = (
    "Drawn offline by limner's illustrator from ready-made vector pictures. "
    "For a model that paints anything, set OPENAI_API_KEY."
)


LayOut = Callable[["Document", tuple[int, int], float], "RenderedDocument"]
"""Draws a document at a size, with its text enlarged at most so many times."""


def lay_out_here(
    document: Document, size: tuple[int, int], largest_text: float
) -> RenderedDocument:
    """Draw a document in this process."""
    from limner.rendering.document import draw_document  # noqa: PLC0415 - loaded on first use

    return draw_document(document, size, largest_text=largest_text)


class Illustration(msgspec.Struct, frozen=True, kw_only=True):
    """An SVG document, the pictures its ``asset`` elements name, and facts about it in JSON.

    ``squares`` is the number of squares along the shorter side of pixel art. ``kept`` is what an
    edit of the picture starts from; None if it was drawn from a document.
    """

    svg: str
    assets: Mapping[str, Asset]
    facts: Mapping[str, Any]
    squares: int | None = None
    kept: KeptDrawing | None = None


def draw(
    *,
    prompt: str,
    svg: str | None,
    width: int,
    height: int,
    seed: int | None,
    lay_out: LayOut = lay_out_here,
) -> Illustration:
    """Draw a prompt, or prepare the SVG document of the caller.

    The same arguments give the same drawing; another seed gives another arrangement. ``lay_out``
    draws the document of a prompt that names a genre, as a chart; limner passes one that uses a
    worker.

    Raises:
        InputInvalid: the size is out of range, or ``svg`` names too many pictures.
    """
    if not (MIN_EDGE <= width <= MAX_EDGE and MIN_EDGE <= height <= MAX_EDGE):
        raise InputInvalid(
            f"{width}x{height}: the illustrator draws {MIN_EDGE} to {MAX_EDGE} pixels a side.",
            field="size",
        )
    if svg is not None:
        return _from_svg(svg, width, height)
    return _from_genre(prompt, width, height, lay_out) or _from_prompt(prompt, width, height, seed)


def _from_svg(svg: str, width: int, height: int) -> Illustration:
    scenes = {name: _find_scene(name) for name in _at_most(MAX_SCENES, mentioned_scenes(svg))}
    drawings = {
        scene_key(name): _background(name, scene, width, height) for name, scene in scenes.items()
    }
    # The background of a room has pictures on its walls.
    texts = (svg, *(background.body for background in drawings.values()))
    names = frozenset[str]().union(*map(mentioned_assets, texts))
    found = {name: find_asset(name) for name in _at_most(MAX_ASSETS, names)}
    matched = [
        {"words": clean_line(name), "asset": known, "count": None, "colour": None}
        for name, known in found.items()
        if known is not None
    ]
    missing = [
        {"name": clean_line(name), "nearest": assets.nearest(name)}
        for name, known in found.items()
        if known is None
    ]
    drawings |= {
        name: assets.placeholder(name) if known is None else assets.get(known)
        for name, known in found.items()
    }
    background = "; ".join(scene.name for scene in scenes.values() if scene) or None
    facts = {
        **_facts(matched=matched, background=background),
        "missing_assets": missing,
        "missing_scenes": [clean_line(name) for name, scene in scenes.items() if scene is None],
    }
    return Illustration(svg=svg, assets=drawings, facts=facts)


def _at_most(limit: int, names: frozenset[str]) -> list[str]:
    if len(names) > limit:
        raise InputInvalid(
            f"The document names {len(names)} different pictures; at most {limit} fit in one.",
            field="svg",
        )
    return sorted(names)


def _find_scene(name: str) -> Scene | None:
    """The scene that a name means, as "beach sunset"; None if no word of it is known."""
    named = parse_prompt(name).scene
    plain = name.strip().lower()
    places = named.places or ((plain,) if plain in PLACES else ())
    if not places and not named.hour and not named.weather and plain not in HOURS:
        return None
    return complete_scene(replace(named, places=places or ("sky",), paper=None), [])


def _background(name: str, scene: Scene | None, width: int, height: int) -> Asset:
    """A scene without things in it; plain paper if it is unknown."""
    shown = scene or Scene()
    seed = Random(name.encode(errors="surrogatepass"))  # noqa: S311 - arranges clouds and trees
    canvas = Canvas(width, height, seed)
    draw_backdrop(canvas, shown, orb=True, standing=False)
    draw_foreground(canvas, shown)
    body = f"<defs>{''.join(canvas.definitions)}</defs>{''.join(canvas.shapes)}"
    return Asset(f"0 0 {width} {height}", body)


def _from_prompt(prompt: str, width: int, height: int, seed: int | None) -> Illustration:
    parsed = parse_prompt(prompt)
    if not parsed.is_known:
        return _card(prompt, parsed, width, height)
    return draw_parsed(parsed, KeptDrawing(prompt=prompt, seed=seed), width=width, height=height)


def draw_parsed(
    parsed: ParsedPrompt, kept: KeptDrawing, *, width: int, height: int
) -> Illustration:
    """Draw a parsed prompt; with the layout of ``kept``, what was there keeps its place."""
    # A prompt may contain lone surrogates, which a seed as text cannot.
    start = f"{kept.prompt}\n{kept.seed}".encode(errors="surrogatepass")
    random = Random(start)  # noqa: S311 - arranges pictures, the same way every time
    made = compose(parsed, width=width, height=height, random=random, kept=kept.layout)
    matched = [
        {
            "words": thing.words,
            "asset": thing.asset,
            "count": thing.count,
            "colour": thing.colour,
        }
        for thing in parsed.things
    ]
    ready = [name for name in used_assets(made.document) if name not in made.drawings]
    return Illustration(
        svg=made.document,
        assets={**made.drawings, **{name: assets.get(name) for name in ready}},
        facts=_facts(
            matched=matched,
            background=made.scene.name,
            parsed=parsed,
            notes=_missing_characters(parsed.texts),
        ),
        squares=SQUARES if parsed.style == "pixel" else None,
        kept=replace(kept, layout=made.layout, texts=parsed.texts, style=parsed.style),
    )


def redraw(kept: KeptDrawing, words: str, *, width: int, height: int) -> Illustration:
    """Draw a kept drawing again, changed by words; everything else stays as it was.

    Raises:
        InputInvalid: the words name something that is not in the picture, or no known change.
    """
    from limner.illustrator.scene_edits import edit_drawing  # noqa: PLC0415 - loaded on first use

    edited = edit_drawing(kept, words)
    drawn = draw_parsed(edited.parsed, edited.kept, width=width, height=height)
    facts = {**drawn.facts, "changes": list(edited.changes)}
    return replace(drawn, facts=facts)


def _from_genre(prompt: str, width: int, height: int, lay_out: LayOut) -> Illustration | None:
    """A prompt that names a genre, as a chart, drawn as a document of ``rendering``."""
    if not any(named_genres(prompt)):
        return None
    # Most prompts are scenes, which need none of this.
    from limner.illustrator.genre_pages import find_genre  # noqa: PLC0415 - loaded on first use

    genre = find_genre(prompt, width=width, height=height)
    if genre is None:
        return None
    svg, notes, source = genre.document, (), ""
    if not isinstance(svg, str):
        source = msgspec.json.encode(svg).decode()
        drawn = lay_out(svg, (width, height), genre.largest_text)
        svg, notes = drawn.svg, drawn.notes
    names = sorted(mentioned_assets(svg))
    matched = [{"words": name, "asset": name, "count": None, "colour": None} for name in names]
    facts = _facts(matched=matched, background=None, notes=notes)
    return Illustration(
        svg=svg,
        assets={name: assets.get(name) for name in names},
        facts={**facts, "genre": genre.name},
        kept=KeptDrawing(prompt=prompt, source=source),
    )


def _card(prompt: str, parsed: ParsedPrompt, width: int, height: int) -> Illustration:
    """A prompt of which nothing is known, as a card that says so."""
    from limner.illustrator.other_backdrops import draw_plain_paper  # noqa: PLC0415 - on first use
    from limner.rendering.text import wrap  # noqa: PLC0415 - loaded on first use

    canvas = Canvas(width, height)
    unit = canvas.unit
    draw_plain_paper(canvas, "#eef1f6")
    edge = {"stroke": "#c3cad8", "stroke_width": number(max(unit * 0.004, 0.5))}
    canvas.rect(width * 0.08, height * 0.2, width * 0.84, height * 0.6, "#ffffff", **edge)
    title = wrap(clean_line(prompt)[:160], unit * 0.06, width * 0.74).lines[:5]
    top = height * 0.47 - (len(title) - 1) * unit * 0.04
    for row, line in enumerate(title):
        canvas.text(width / 2, top + row * unit * 0.08, unit * 0.06, "#2b3550", line)
    foot = "no picture is known for these words"
    canvas.text(width / 2, height * 0.75, unit * 0.028, "#7d879b", foot, bold=False)
    return Illustration(
        svg=canvas.document(),
        assets={},
        facts=_facts(
            matched=[], background="card", parsed=parsed, notes=_missing_characters(title)
        ),
        kept=KeptDrawing(prompt=prompt),
    )


def _missing_characters(texts: Sequence[str]) -> list[str]:
    """What the caller should know about characters that no font has."""
    words = "".join(texts)
    if words.isascii():
        return []
    from limner.rendering.text import missing_note  # noqa: PLC0415 - loaded on first use

    return missing_note(words)


def _facts(
    *,
    matched: list[dict[str, Any]],
    background: str | None,
    parsed: ParsedPrompt | None = None,
    notes: Sequence[str] = (),
) -> dict[str, Any]:
    return {
        "account": " ".join((*([parsed.account] if parsed and parsed.account else ()), *notes)),
        "matched": matched,
        **{state.replace(" ", "_"): parsed.words(state) if parsed else [] for state in STATES},
        "background": background,
        "text": list(parsed.texts) if parsed else [],
        "note": NOTE,
    }
