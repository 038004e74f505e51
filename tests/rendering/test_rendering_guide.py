"""Every document of the guide is rendered as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import limner
from limner import Limner

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "rendering.md"
TEXT = GUIDE.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(json|mermaid|svg)\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
FORMATS = {"json": "limner", "mermaid": "mermaid", "svg": "svg"}


def test_the_guide_shows_documents_of_three_formats() -> None:
    assert {kind for kind, _ in BLOCKS} == {*FORMATS}


@pytest.mark.parametrize(("kind", "source"), BLOCKS)
async def test_a_document_of_the_guide_is_rendered(kind: str, source: str, tmp_path: Path) -> None:
    async with Limner(env={"HOME": str(tmp_path)}, cwd=tmp_path) as lim:
        drawn = await lim.render(source)
    font = ["Georgia is not bundled; the text is set in Lora."] if kind == "svg" else []
    assert drawn.extras == {"source_format": FORMATS[kind], "notes": font}


def test_the_python_of_the_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIMNER_HOME", str(tmp_path))
    [code] = re.findall(r"^```python\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
    names: dict[str, object] = {}
    exec(code, names)
    drawn = names["drawn"]
    assert isinstance(drawn, limner.GeneratedImage)
    assert str(drawn.dimensions) == "800x600"
