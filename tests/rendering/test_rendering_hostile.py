"""Documents that were written to hang or crash the renderer -> a picture or a refusal, soon."""

from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest

from limner.errors import InputInvalid
from limner.rendering.document import draw_document, parse_document
from limner.rendering.sources import detect_format

LONG_WORD = "W" * 3_990


def nested(depth: int, kind: str = "column", children: int = 1) -> str:
    """Containers in each other."""
    inner = '{"type":"text","text":"x"}'
    for _ in range(depth):
        inner = f'{{"type":"{kind}","children":[{",".join([inner] * children)}]}}'
    return inner


def as_json(document: object) -> str:
    return msgspec.json.encode(document).decode()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        pytest.param(
            '{"type":"column","children":[' * 30_000,
            "rows, columns and cards are more than 24 deep",
            id="deeper than the parser can go",
        ),
        pytest.param(
            nested(26), "rows, columns and cards are more than 24 deep", id="too deep to read"
        ),
        pytest.param(
            nested(10, children=2), "the document has more than 2,000 elements", id="a tree"
        ),
        pytest.param(
            as_json({"type": "table", "rows": [[LONG_WORD]] * 100}),
            "the document has more than 100,000 characters of text",
            id="a book",
        ),
        pytest.param(
            '{"type":"bar","values":[1e308,-1e308]}',
            "Expected `float` <= 1e+100 - at `$.values[0]`",
            id="a span that is no number",
        ),
        pytest.param(
            '{"type":"bar","values":[1' + "0" * 400 + "]}",
            "Expected `int` <= 1000000000000000000 - at `$.values[0]`",
            id="a huge integer",
        ),
    ],
)
def test_a_document_that_no_picture_can_hold_is_refused(source: str, message: str) -> None:
    with pytest.raises(InputInvalid) as caught:
        draw_document(parse_document(source))
    assert (caught.value.field, caught.value.message) == ("source", message)


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(nested(24, "row"), id="rows in rows"),
        pytest.param(nested(24, "card"), id="cards in cards"),
        pytest.param(nested(8, "row", 2), id="a tree of rows"),
        pytest.param(
            as_json({"type": "page", "children": [{"type": "text", "text": LONG_WORD}] * 20}),
            id="words without a blank",
        ),
        pytest.param(
            as_json({"type": "bar", "labels": ["ab " * 1_000] * 20, "values": [1] * 20}),
            id="labels that are texts",
        ),
        pytest.param(
            as_json({"type": "table", "columns": ["c"] * 40, "rows": [[1] * 40] * 100}),
            id="a large table",
        ),
        pytest.param(
            as_json(
                {
                    "type": "page",
                    "children": [{"type": "text", "text": LONG_WORD, "width": 0.0001}] * 2,
                }
            ),
            id="a column without width",
        ),
    ],
)
def test_a_document_at_the_limits_is_drawn(document: str) -> None:
    drawn = draw_document(parse_document(document))
    assert drawn.svg.startswith("<svg")
    assert max(drawn.width, drawn.height) <= 4096


@pytest.mark.parametrize(
    "source",
    ["\n" * 1_000_000, "strict " * 100_000, "#\n" * 500_000],
    ids=["line ends", "a word again and again", "comments"],
)
def test_a_long_source_of_no_format_is_refused(source: str) -> None:
    with pytest.raises(InputInvalid) as caught:
        detect_format(source)
    assert caught.value.field == "source"


def test_a_list_of_tools_loads_no_module_that_draws_documents() -> None:
    code = "import limner.rendering.sources, sys; print(*sorted(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()
    assert [name for name in loaded if name.startswith("limner.rendering.")] == [
        "limner.rendering.sources"
    ]
