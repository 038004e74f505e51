"""Chinese, Japanese and Korean: drawn if the font is installed, and an honest note if not."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Iterator

import pytest
from tests.servers.components import needs

from limner.illustrator.draw import draw
from limner.imaging.fonts import CJK_PACKAGE, cjk_family, cjk_font
from limner.imaging.limits import DEFAULT_LIMITS
from limner.imaging.pool import Imaging
from limner.imaging.process import RENDERING_WORKER
from limner.imaging.svg.renderer import resolve
from limner.rendering import text
from limner.rendering.sources import compile_source

installed = needs(CJK_PACKAGE)
NOTE = (
    "No bundled font has these characters: 売上; pip install 'limner[cjk]' adds Chinese, Japanese "
    "and Korean."
)
CHART = json.dumps({"type": "bar", "title": "売上", "labels": ["Q1"], "values": [12]})
# Noto Sans CJK 2.004, as Debian's package fonts-noto-cjk has it.
SHA256 = "b76b0433203017ca80401b2ee0dd69350349871c4b19d504c34dbdd80541690a"


@pytest.fixture
def without_font(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, CJK_PACKAGE, None)  # as if it could not be found
    for cached in (cjk_font, text._cjk_metrics):
        cached.cache_clear()
    yield
    for cached in (cjk_font, text._cjk_metrics):
        cached.cache_clear()


@pytest.mark.usefixtures("without_font")
def test_without_the_font_a_note_names_the_extra() -> None:
    assert text.missing_note("売上 Q1") == [NOTE]
    sign = draw(prompt='a sign that says "売上"', svg=None, width=512, height=512, seed=None)
    assert sign.facts["account"] == NOTE
    assert text.missing_note("ไ") == ["No bundled font has these characters: ไ"]


@pytest.mark.parametrize(
    ("words", "document", "family"),
    [
        ("直接", "", "Noto Sans CJK SC"),
        ("直接", "直接 です", "Noto Sans CJK JP"),
        ("カ", "김치", "Noto Sans CJK JP"),
        ("김치", "です", "Noto Sans CJK KR"),
        ("ㄅ", "", "Noto Sans CJK TC"),
    ],
)
def test_characters_tell_the_language(words: str, document: str, family: str) -> None:
    assert cjk_family(words, document) == family


@installed
def test_the_font_is_the_one_that_was_compared() -> None:
    path = cjk_font()
    assert path is not None
    assert hashlib.sha256(path.read_bytes()).hexdigest() == SHA256


@installed
def test_characters_are_measured_and_none_is_missing() -> None:
    assert text.width("日本", 10) == 20
    assert text.width("한", 10) == pytest.approx(9.2)
    assert text.missing_note("日本語 한국어 中文 𠮷") == []
    assert text.wrap("日本語日本語", 10, 35).lines == ("日本語", "日本語")


@installed
def test_each_part_of_a_text_names_its_font() -> None:
    document = (
        '<svg xmlns="http://www.w3.org/2000/svg"><text>Menu 김치 5</text><text>中文</text></svg>'
    )
    made = resolve(document, width=99, height=99, assets={}, limits=DEFAULT_LIMITS)
    parts = re.findall(r"<text>.*?</text>", made)
    assert parts == [
        "<text>Menu <tspan font-family=\"'Noto Sans CJK KR', sans-serif\">김치</tspan> 5</text>",
        "<text><tspan font-family=\"'Noto Sans CJK KR', sans-serif\">中文</tspan></text>",
    ]


@installed
async def test_the_sandboxed_worker_draws_the_characters() -> None:
    async with Imaging(workers=1, program=RENDERING_WORKER) as imaging:
        compiled = await compile_source(CHART, kind=None, size=None, imaging=imaging)
        assert compiled.notes == ()
        drawn: set[bytes] = set()
        # A character that no font has, two characters, and one of them as Japanese writes it.
        for words in ("\U0003fffd", "直", "売", "直の"):
            document = (
                '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 40">'
                f'<text y="30" font-size="40">{words}</text></svg>'
            )
            drawn.add(await imaging.render_svg(document, width=40, height=40, assets={}))
        assert len(drawn) == 4
