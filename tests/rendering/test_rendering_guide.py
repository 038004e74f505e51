"""Every document of the guide is rendered as it stands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.servers.components import needs

from limner import Limner

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "rendering.md"
TEXT = GUIDE.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```([\w-]+)\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
OTHERS = ("console", "python")
DOCUMENTS = [
    pytest.param(kind, source, marks=[needs("typst", "vl_convert"), pytest.mark.slow])
    if kind in ("typst", "vega-lite")
    else (kind, source)
    for kind, source in BLOCKS
    if kind not in OTHERS
]


def test_the_guide_shows_documents_of_five_formats() -> None:
    kinds = {kind for kind, _ in BLOCKS}
    assert kinds == {"json", "mermaid", "svg", "typst", "vega-lite", *OTHERS}


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "source"), DOCUMENTS)
async def test_a_document_of_the_guide_is_rendered(kind: str, source: str, tmp_path: Path) -> None:
    async with Limner(env={"HOME": str(tmp_path)}, cwd=tmp_path) as lim:
        drawn = await lim.render(source)
    assert drawn.extras == {"source_format": "limner" if kind == "json" else kind, "notes": []}


@pytest.mark.slow
def test_the_python_of_the_guide_runs(tmp_path: Path) -> None:
    [code] = re.findall(r"^```python\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    path, _, notes = done.stdout.strip().partition(" ")
    assert (Path(path).is_file(), notes) == (True, "[]")
