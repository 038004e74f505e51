"""Configuration files as people and programs leave them: odd, commented, and valid."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

ENTRY = {"type": "stdio", "command": "/opt/limner/bin/limner", "args": ["mcp"], "timeout": 600000}
OURS = "limner"
COMMENT = st.text(st.characters(codec="utf-8", exclude_characters="\r\n*/"), max_size=8)
NAMES = st.text("abcß\"\\/ ,{}[]#'é", min_size=1, max_size=5)


@dataclass(frozen=True)
class Style:
    """How one file is written, throughout."""

    newline: str
    unit: str
    has_comments: bool


STYLES = st.builds(
    Style,
    newline=st.sampled_from(["\n", "\r\n"]),
    unit=st.sampled_from(["  ", "    ", "\t", " ", ""]),
    has_comments=st.booleans(),
)


@st.composite
def json_values(draw: st.DrawFn, style: Style, depth: int = 0) -> str:
    kind = draw(st.sampled_from(["leaf", "leaf", "object", "array"] if depth < 3 else ["leaf"]))
    if kind == "object":
        names = draw(st.lists(NAMES, unique=True, max_size=3))
        return draw(json_objects(style, {n: draw(json_values(style, depth + 1)) for n in names}))
    if kind == "array":
        items = draw(st.lists(json_values(style, depth + 1), max_size=3))
        return _joined(draw, style, "[", items, "]")
    leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
    leaf = draw(leaves.filter(lambda value: value not in (float("inf"), float("-inf"))))
    return json.dumps(leaf, ensure_ascii=draw(st.booleans()))


@st.composite
def json_objects(draw: st.DrawFn, style: Style, members: dict[str, str]) -> str:
    """An object of members that are text already, with anything between them that may be there."""
    spelled = [
        f"{json.dumps(n)}{_gap(draw, style)}:{_gap(draw, style)}{v}" for n, v in members.items()
    ]
    return _joined(draw, style, "{", spelled, "}")


@st.composite
def json_files(draw: st.DrawFn, table: str, *, servers: dict[str, str] | None = None) -> str:
    """A whole file; with ``servers`` it has those among others of its table."""
    style = draw(STYLES)
    members = {n: draw(json_values(style)) for n in draw(st.lists(NAMES, unique=True, max_size=3))}
    if servers is not None or draw(st.booleans()):
        others = {
            n: draw(json_values(style)) for n in draw(st.lists(NAMES, unique=True, max_size=3))
        }
        names = draw(st.permutations([*others, *(servers or {})]))
        held = {**others, **(servers or {})}
        members[table] = draw(json_objects(style, {n: held[n] for n in names}))
    names = draw(st.permutations(list(members)))
    body = draw(json_objects(style, {n: members[n] for n in names}))
    mark = draw(st.sampled_from(["", "", "\ufeff"]))
    return mark + _gap(draw, style) + body + _gap(draw, style)


def _joined(draw: st.DrawFn, style: Style, start: str, items: list[str], end: str) -> str:
    pieces = [start]
    for at, item in enumerate(items):
        is_last = at == len(items) - 1
        comma = "," if not is_last or draw(st.booleans()) else ""
        pieces += [_gap(draw, style), item, _gap(draw, style) if comma else "", comma]
    return "".join([*pieces, _gap(draw, style), end])


def _gap(draw: st.DrawFn, style: Style) -> str:
    """What may stand between two tokens."""
    parts = ["", "", " ", "\t", style.newline, style.newline + style.unit * 2]
    if style.has_comments:
        note = draw(COMMENT)
        parts += [f"// {note}{style.newline}", f"/*{note}*/", f" /* a{style.newline} b */ "]
    return "".join(draw(st.lists(st.sampled_from(parts), max_size=2)))


TOML_LEAVES = [
    '"a"',
    "'C:\\x'",
    "12",
    "1.5",
    "nan",
    "true",
    "1979-05-27T07:32:00Z",
    '"""\n[mcp_servers.limner]\n"""',
    "'''\n# no comment\n'''",
    "[1,\n  # two\n 2,\n]",
    '{ a = 1, "b]" = "#" }',
    '["mcp"]',
    '""',
    '"""a"""""',
]


@st.composite
def toml_files(draw: st.DrawFn, *, entry: list[str] | None = None) -> str:
    """A whole file; ``entry`` are tables of its own to stand among the others."""
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    blank = st.sampled_from(["", "", "", newline, f"# note{newline}", f"  # [x]{newline}{newline}"])
    pair = st.builds(
        lambda key, gap, leaf, end: (key, f"{key}{gap}={gap}{leaf}{end}{newline}"),
        st.sampled_from(["a", '"b c"', "'d'", "e.f", 'g."h.i"']),
        st.sampled_from(["", " ", "\t"]),
        st.sampled_from(TOML_LEAVES),
        st.sampled_from(["", " ", "  # mcp_servers"]),
    )
    pairs = st.lists(st.tuples(blank, pair), max_size=3, unique_by=lambda both: both[1][0])
    names = [
        "other",
        "mcp_servers.one",
        "mcp_servers.'two'",
        "mcp_servers.limner2",
        "t.limner",
        "z",
    ]
    headers = draw(st.lists(st.sampled_from(names), unique=True, max_size=4))
    tables = [f"[{h}]{newline}{_pairs(draw(pairs))}" for h in headers]
    if draw(st.booleans()):
        tables.append(f"[[many]]{newline}[[many]]{newline}{_pairs(draw(pairs))}")
    tables = [draw(blank) + table for table in draw(st.permutations([*tables, *(entry or [])]))]
    text = _pairs(draw(pairs)) + "".join(tables) + draw(blank)
    text = text.replace("\r\n", "\n").replace("\n", newline)
    if draw(st.booleans()):
        text = text.removesuffix(newline)
    return draw(st.sampled_from(["", "", "\ufeff"])) + text


def _pairs(drawn: list[tuple[str, tuple[str, str]]]) -> str:
    return "".join(before + pair for before, (_, pair) in drawn)


def without_blanks(text: str) -> str:
    return "".join(text.split())


def as_json(value: Any) -> str:
    return json.dumps(value)
