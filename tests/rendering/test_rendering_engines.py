"""Vega-Lite and Typst: what they draw, what they tell the author, and that they may be missing."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from typing import get_args

import pytest
import pytest_asyncio
from tests.servers.components import needs

from limner.errors import InputInvalid, MissingExtra
from limner.imaging.pool import Imaging
from limner.imaging.process import RENDERING_WORKER
from limner.rendering.help import help_text
from limner.rendering.sources import (
    FORMATS,
    CompiledSource,
    Size,
    SourceFormat,
    compile_source,
    detect_format,
)

POINTS = {
    "data": {"values": [{"a": 1, "b": 2}, {"a": 3, "b": 4}]},
    "mark": "point",
    "encoding": {
        "x": {"field": "a", "type": "quantitative", "title": "Dose"},
        "y": {"field": "b", "type": "quantitative"},
    },
}
engines = [needs("typst", "vl_convert"), pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def imaging() -> AsyncIterator[Imaging]:
    async with Imaging(workers=1, program=RENDERING_WORKER) as pool:
        yield pool


async def drawn(source: object, imaging: Imaging, size: Size | None = None) -> CompiledSource:
    text = source if isinstance(source, str) else json.dumps(source)
    return await compile_source(text, kind=None, size=size, imaging=imaging)


def test_the_table_has_every_format_and_the_help_lists_it() -> None:
    assert {*FORMATS} == {*get_args(SourceFormat)}
    lines = help_text("formats").splitlines()
    assert [line.partition(":")[0] for line in lines[:-1]] == [*FORMATS]
    assert "vega-lite" in help_text("charts").lower()
    assert "Typst" in help_text("pages")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('{"$schema": "https://vega.github.io/schema/vega-lite/v6.json"}', "vega-lite"),
        (json.dumps(POINTS), "vega-lite"),
        ('{"layer": [{"mark": "bar"}], "data": {}}', "vega-lite"),
        ('{"type": "bar", "mark": "bar", "encoding": {}}', "limner"),
        ('{"mark": "bar", "encoding": ', "limner"),
        ("= Title\n\nWords", "typst"),
        ("#set page(width: 9cm)\ngraph TD", "typst"),
        ("# a comment\ndigraph { a -> b }", "dot"),
        ("%% a comment\nflowchart LR\n a-->b", "mermaid"),
        ("\ufeff <svg/>", "svg"),
    ],
)
def test_the_start_of_a_source_tells_its_format(source: str, expected: SourceFormat) -> None:
    assert detect_format(source) == expected


@pytest.mark.parametrize(
    ("module", "source", "extra"),
    [("vl_convert", json.dumps(POINTS), "charts"), ("typst", "= Title", "typst")],
)
async def test_a_missing_engine_is_an_error_with_the_command(
    module: str, source: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    async with Imaging(workers=1, program=RENDERING_WORKER) as imaging:
        with pytest.raises(MissingExtra) as caught:
            await drawn(source, imaging)
    assert caught.value.hint == f"pip install 'limner[{extra}]'"


class TestVegaLite:
    pytestmark = engines

    async def test_a_chart_fills_the_picture_with_text_in_a_bundled_font(
        self, imaging: Imaging
    ) -> None:
        chart = await drawn(POINTS, imaging)
        assert (chart.width, chart.height, chart.notes) == (1024, 768, ())
        assert ('font-family="Inter"' in chart.svg, ">Dose<" in chart.svg) == (True, True)
        wide = await drawn(POINTS, imaging, (1600, 400))
        assert (wide.width, wide.height) == (1600, 400)
        assert 'viewBox="0 0 512 128"' in wide.svg

    async def test_a_chart_with_a_size_of_its_own_keeps_its_shape(self, imaging: Imaging) -> None:
        chart = await drawn({**POINTS, "width": 100, "height": 300}, imaging)
        assert (chart.height, chart.width < 500) == (1024, True)

    async def test_a_field_that_no_row_has_is_reported(self, imaging: Imaging) -> None:
        chart = await drawn({**POINTS, "encoding": {"x": {"field": "dose"}}}, imaging)
        assert chart.notes == ("No row has the field 'dose' of x; the rows have a, b.",)

    @pytest.mark.parametrize(
        ("change", "message", "hint"),
        [
            ({"mark": "baar"}, "$.mark is 'baar'", "Did you mean bar?"),
            ({"data": {"url": "a.csv"}}, "$.data.url is 'a.csv'", "Write the rows into"),
            (
                {"transform": [{"calculate": "1 +", "as": "z"}]},
                "Vega-Lite cannot draw it: ",
                "Check that each mark",
            ),
        ],
    )
    async def test_an_error_says_what_to_change(
        self, change: dict[str, object], message: str, hint: str, imaging: Imaging
    ) -> None:
        with pytest.raises(InputInvalid) as caught:
            await drawn({**POINTS, **change}, imaging)
        assert caught.value.message.startswith(message)
        assert (caught.value.hint or "").startswith(hint)
        assert caught.value.field == "source"


class TestTypst:
    pytestmark = engines

    async def test_a_page_is_as_high_as_its_content_and_has_no_links(
        self, imaging: Imaging
    ) -> None:
        page = await drawn('= Title\n#link("https://a.b")[Words] $x^2$', imaging)
        assert (page.format, page.width, page.notes) == ("typst", 1024, ())
        assert (page.height < 300, "<a" in page.svg) == (True, False)

    async def test_a_size_is_the_size_of_the_page(self, imaging: Imaging) -> None:
        page = await drawn("= Title", imaging, (1000, 500))
        assert (page.width, page.height) == (1000, 500)
        assert 'viewBox="0 0 480 240"' in page.svg

    @needs("noto_cjk_sans_otc")
    async def test_chinese_japanese_and_korean_are_drawn(self, imaging: Imaging) -> None:
        page = await drawn("= 日本語 한국어 中文", imaging)
        chart = await drawn(json.dumps({**POINTS, "title": "日本語 한국어 中文"}), imaging)
        assert (page.notes, chart.notes) == ((), ())

    async def test_further_pages_fonts_and_characters_are_reported(self, imaging: Imaging) -> None:
        page = await drawn('#set text(font: "Nope")\nไ #pagebreak() b', imaging)
        assert page.notes == (
            "Typst: unknown font family: nope",
            "The document has 2 pages, and the picture shows the first. "
            "`#set page(height: auto)` makes one long page.",
            "No bundled font has these characters: ไ",
        )

    @pytest.mark.parametrize(
        ("source", "message", "hint"),
        [
            ("= A\n\n#undefined(2)", "line 3: unknown variable: undefined", None),
            ("= A\n#text(siz: 3pt)[b]", "line 2: unexpected argument: siz", None),
            (
                '= A\n#read("a.txt")',
                "line 2: files cannot be read",
                "Write the data into the document; draw pictures with shapes.",
            ),
            (
                '#import "@preview/cetz:0.3.0"',
                "line 1: packages cannot be loaded",
                "Write what you need into the document; it must not import @preview.",
            ),
        ],
    )
    async def test_an_error_says_the_line(
        self, source: str, message: str, hint: str | None, imaging: Imaging
    ) -> None:
        with pytest.raises(InputInvalid) as caught:
            await drawn(source, imaging)
        assert (caught.value.message, caught.value.hint) == (message, hint)
