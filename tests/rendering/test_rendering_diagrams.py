"""Diagrams, sequences and timelines as SVG: every word is there, and nothing is outside."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import msgspec
import pytest

from limner.errors import InputInvalid
from limner.rendering.canvas import RenderedDocument
from limner.rendering.document import draw_document, parse_document
from limner.rendering.dot import parse_dot

FLOW = {
    "type": "diagram",
    "title": "Login",
    "nodes": [
        {"id": "a", "label": "Start", "shape": "round"},
        {"id": "v", "label": "Valid?", "shape": "diamond"},
        {"id": "db", "label": "Users", "shape": "cylinder", "color": "teal"},
        {"id": "n", "label": "A note", "shape": "note"},
        {"id": "c", "label": "End", "shape": "circle"},
        {"id": "User", "rows": ["+name", "+save()"]},
    ],
    "edges": [
        ["a", "v"],
        ["v", "db", "yes"],
        ["v", "a", "no"],
        ["db", "db", "vacuum"],
        {"from": "db", "to": "c", "dashed": True, "arrow": "both"},
        {"from": "User", "to": "n", "arrow": "triangle"},
    ],
    "groups": [{"label": "Storage", "nodes": ["db", "c"]}],
}
SEQUENCE = {
    "type": "sequence",
    "messages": [
        ["Browser", "API", "asks for the page"],
        ["API", "API", "thinks"],
        {"from": "API", "to": "Browser", "text": "answers", "dashed": True},
        {"from": "Browser", "to": "API", "text": "closed", "note": True},
    ],
}
TIMELINE = {
    "type": "timeline",
    "events": [[1969, "Moon landing"], [1990, "Hubble"], [2012, "Curiosity"], ["2021", "Webb"]],
}


def draw(document: dict[str, Any], size: tuple[int, int] | None = None) -> RenderedDocument:
    return draw_document(parse_document(msgspec.json.encode(document).decode())[0], size)


def words(drawn: RenderedDocument) -> str:
    return " ".join(unescape(text) for text in re.findall(r"<text[^>]*>([^<]*)</text>", drawn.svg))


def starts(drawn: RenderedDocument) -> list[tuple[float, float]]:
    """The first point of each shape and text."""
    pairs = re.findall(r' x="(-?[\d.]+)" y="(-?[\d.]+)"| d="M(-?[\d.]+) (-?[\d.]+)', drawn.svg)
    return [(float(a or c), float(b or d)) for a, b, c, d in pairs]


@pytest.mark.parametrize("size", [None, (1024, 1024), (1792, 1024), (200, 150)])
@pytest.mark.parametrize("document", [FLOW, SEQUENCE, TIMELINE])
def test_every_word_is_drawn_within_the_picture(
    document: dict[str, Any], size: tuple[int, int] | None
) -> None:
    drawn = draw(document, size)
    expected = {
        "diagram": "Login Start Valid? Users A note End User +name +save() yes no vacuum Storage",
        "sequence": "Browser API asks for the page thinks answers closed",
        "timeline": "1969 Moon landing 1990 Hubble 2012 Curiosity 2021 Webb",
    }[document["type"]]
    assert sorted(words(drawn).split()) == sorted(expected.split())
    assert [
        (x, y) for x, y in starts(drawn) if not (0 <= x <= drawn.width and 0 <= y <= drawn.height)
    ] == []


def test_a_diagram_has_a_size_of_its_own() -> None:
    small = draw({"type": "diagram", "edges": [["A", "B"]]})
    chain = [[str(place), str(place + 1)] for place in range(40)]
    large = draw({"type": "diagram", "edges": chain, "direction": "right"})
    assert small.width < 400
    assert small.height < 500
    assert large.width > 4 * large.height


@pytest.mark.parametrize(
    ("direction", "axis", "sign"), [("down", 1, 1), ("up", 1, -1), ("right", 0, 1), ("left", 0, -1)]
)
def test_a_diagram_goes_in_its_direction(direction: str, axis: int, sign: int) -> None:
    svg = draw({"type": "diagram", "edges": [["A", "B"]], "direction": direction}).svg
    found = re.findall(r'<text x="([\d.]+)" y="([\d.]+)"[^>]*>([AB])<', svg)
    place = {name: (float(x), float(y)) for x, y, name in found}
    assert (place["B"][axis] - place["A"][axis]) * sign > 20


def test_a_wide_timeline_goes_across_and_a_tall_one_down() -> None:
    found: list[bool] = []
    for size in ((1792, 700), (700, 1792)):
        svg = draw(TIMELINE, size).svg
        dots = re.findall(r'<ellipse cx="([\d.]+)" cy="([\d.]+)"', svg)
        found.append(len({y for _, y in dots}) == 1)
    assert found == [True, False]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"type": "diagram"}, "a diagram needs nodes"),
        ({"type": "sequence", "messages": []}, "a sequence needs actors"),
        (
            {"type": "diagram", "edges": [[str(n), str(n + 400)] for n in range(400)]},
            "the diagram has 800 nodes; 300 are allowed",
        ),
    ],
)
def test_a_diagram_without_content_or_with_too_much_is_refused(
    document: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputInvalid, match=message):
        draw(document)


@pytest.mark.slow
def test_the_largest_diagram_is_drawn() -> None:
    edges = [[str(n * n * 7 % 300), str((n * 31 + n // 7) % 300)] for n in range(1_200)]
    drawn = draw({"type": "diagram", "edges": edges})
    assert drawn.notes == ()
    assert drawn.svg.count("<text") == 300


def test_a_drawing_of_dot_has_its_words() -> None:
    diagram, notes = parse_dot('digraph { "a & b" -> c [label="<go>"] }')
    assert notes == []
    assert words(draw_document(diagram)) == "a & b c <go>"


def test_frames_are_drawn_around_their_messages_with_the_inner_inside_the_outer() -> None:
    frames = [
        {"label": "alt [paid]", "first": 0, "last": 2, "parts": [[2, "else"]]},
        {"label": "loop [daily]", "first": 0, "last": 1},
        {"label": "nothing", "first": 7, "last": 9},
    ]
    messages = [["A", "B", f"message {place}"] for place in range(4)]
    drawn = draw({"type": "sequence", "messages": messages, "frames": frames})
    assert re.findall(r"alt \[paid\]|loop \[daily\]|else|message \d|nothing", words(drawn)) == [
        *("alt [paid]", "else", "loop [daily]"),
        *("message 0", "message 1", "message 2", "message 3"),
    ]
    boxes = [
        tuple(float(number) for number in found)
        for found in re.findall(
            r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)" fill="none"',
            drawn.svg,
        )
    ]
    (outer, inner) = boxes
    assert outer[0] < inner[0]
    assert outer[1] < inner[1]
    assert inner[0] + inner[2] < outer[0] + outer[2]
    assert inner[1] + inner[3] < outer[1] + outer[3]
