"""The picture pack: a name -> its drawing, and words -> the names that match them.

The index has one line for each picture and is loaded whole. The drawings are in compressed streams;
only the stream of a wanted picture is decompressed. ``scripts/build_assets.py`` describes both
files.
"""

from __future__ import annotations

import difflib
import lzma
from functools import cache, lru_cache
from pathlib import Path

import msgspec

from limner.errors import InputInvalid
from limner.illustrator.synonyms import SYNONYMS
from limner.illustrator.words import singular, split
from limner.imaging.svg import Asset
from limner.rendering.canvas import Canvas

_DATA = Path(__file__).with_name("data")
_FULL_NAME, _SYNONYM, _NAME_WORD, _TAG, _PREFIX, _TAG_PREFIX = 100, 80, 12, 5, 3, 1
_MIN_PREFIX_CHARS = 3
_JOINING_WORDS = frozenset({"a", "an", "and", "in", "of", "on", "the", "with"})


class AssetInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What the index says about a picture.

    ``box`` is the drawn part of the square, as fractions: left, top, right, bottom. ``colours``
    are its main colours in basic words.
    """

    name: str
    title: str
    group: str
    tags: tuple[str, ...]
    box: tuple[float, float, float, float]
    colours: tuple[str, ...]


def names() -> list[str]:
    """All names, in alphabetical order."""
    return sorted(_index())


def all_infos() -> list[AssetInfo]:
    """All pictures, in the order of the pack."""
    return [entry.info for entry in _index().values()]


def info(name: str) -> AssetInfo:
    """What the index says about a picture.

    Raises:
        InputInvalid: no picture has that name; the hint suggests similar ones.
    """
    return _find(name).info


@lru_cache(maxsize=64)
def get(name: str) -> Asset:
    """A picture, ready to be placed in a document.

    Raises:
        InputInvalid: no picture has that name; the hint suggests similar ones.
    """
    entry = _find(name)
    with (_DATA / "pictures.xz").open("rb") as pack:
        pack.seek(entry.offset)
        stream = pack.read(entry.length)
    body = lzma.decompress(stream).split(b"\n")[entry.line]
    return Asset(view_box=entry.view_box, body=body.decode())


def placeholder(name: str) -> Asset:
    """A frame with the name in it, for a picture that does not exist."""
    from limner.rendering.text import wrap  # noqa: PLC0415 - loaded on first use

    canvas = Canvas(100, 100)
    dashes = {"stroke": "#8a93a5", "stroke_width": "2", "stroke_dasharray": "6 4"}
    canvas.rect(3, 3, 94, 94, "#eef1f6", rx="8", **dashes)
    lines = wrap(name[:40], 13, 84)
    top = 50 - (len(lines.lines) - 1) * 8
    for place, line in enumerate(lines.lines[:5]):
        canvas.text(50, top + place * 16 + 4, 13, "#5b6577", line, bold=False)
    return Asset(view_box="0 0 100 100", body="".join(canvas.shapes))


def nearest(name: str, *, limit: int = 3) -> list[str]:
    """Names similar to an unknown one: those with the same words first, then by spelling."""
    found = [hit.name for hit in search(name, limit=limit)]
    found += difflib.get_close_matches(name[:60].lower(), list(_index()), n=limit, cutoff=0.6)
    return list(dict.fromkeys(found))[:limit]


def search(words: str, limit: int = 20) -> list[AssetInfo]:
    """Pictures for some words, best first: full names, words of a name, tags, then prefixes.

    A plural finds a singular. Pictures that match more of the words come first.
    """
    wanted = list(dict.fromkeys(word for word in split(words).words if word[0].isalnum()))
    if not wanted:
        return []
    forms = [{word, singular(word)} for word in wanted if word not in _JOINING_WORDS]
    wholes = {" ".join(wanted), " ".join([*wanted[:-1], singular(wanted[-1])])}
    ranked: list[tuple[int, int, int, str]] = []
    for name, entry in _index().items():
        scores = [_score(entry.info, form) for form in forms]
        whole = _whole_score(name, wholes)
        fitting = len(forms) if whole else sum(score > 0 for score in scores)
        if fitting:
            ranked.append((-fitting, -sum(scores) - whole, len(name), name))
    return [_index()[name].info for *_, name in sorted(ranked)[:limit]]


def _whole_score(name: str, wholes: set[str]) -> int:
    if name.replace("-", " ") in wholes:
        return _FULL_NAME
    synonyms = SYNONYMS.get(name)
    return (
        _SYNONYM if synonyms and not wholes.isdisjoint(synonyms.replace("~", "").split(", ")) else 0
    )


def _score(info: AssetInfo, forms: set[str]) -> int:
    parts = info.name.split("-")
    if not forms.isdisjoint(parts):
        # The last word counts more: a fire engine is an engine, not a fire.
        return _NAME_WORD + (2 if parts[-1] in forms else 0)
    if not forms.isdisjoint(info.tags):
        return _TAG
    prefixes = tuple(form for form in forms if len(form) >= _MIN_PREFIX_CHARS)
    if prefixes and any(part.startswith(prefixes) for part in parts):
        return _PREFIX
    if prefixes and any(tag.startswith(prefixes) for tag in info.tags):
        return _TAG_PREFIX
    return 0


def licences() -> str:
    """The sources and licences of the pictures."""
    return (_DATA / "LICENSES.md").read_text(encoding="utf-8")


class _Entry(msgspec.Struct, frozen=True):
    info: AssetInfo
    offset: int
    length: int
    line: int
    view_box: str


@cache
def _index() -> dict[str, _Entry]:
    lines = (_DATA / "index.tsv").read_text(encoding="utf-8").splitlines()
    return {entry.info.name: entry for entry in map(_entry, lines)}


def _entry(line: str) -> _Entry:
    name, title, group, box, colours, place, view_box, tags = line.split("\t")
    left, top, right, bottom = (int(part) / 100 for part in box.split())
    offset, length, row = map(int, place.split())
    info = AssetInfo(
        name=name,
        title=title,
        group=group,
        tags=tuple(tags.split(",")),
        box=(left, top, right, bottom),
        colours=tuple(colours.split()),
    )
    return _Entry(info, offset, length, row, view_box)


def _find(name: str) -> _Entry:
    entry = _index().get(name)
    if entry is None:
        near = ", ".join(nearest(name))
        raise InputInvalid(
            f"No picture is named {name[:60]!r}.",
            field="name",
            hint=(f"The nearest names: {near}. " if near else "")
            + "`limner assets search WORD` finds pictures.",
        )
    return entry
