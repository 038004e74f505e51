"""The catalogue is the same from the JSON of a wheel and from its TOML files."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from limner.catalogue import batch_prices, images, vision
from limner.catalogue.data_file import read_rows

ROOT = Path(__file__).parents[2]
CATALOGUE = Path(images.__file__).parent
FILES = sorted(file.relative_to(CATALOGUE) for file in CATALOGUE.rglob("*.toml"))
KINDS: dict[str, type[Any]] = {
    "batch_prices.toml": batch_prices.PriceFile,
    "vision.toml": vision.VisionFile,
}


@pytest.fixture(scope="module")
def build_hook() -> ModuleType:
    pytest.importorskip("hatchling")
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_file_has_the_same_rows_as_json(build_hook: ModuleType, tmp_path: Path) -> None:
    for place in ("plain", "compiled"):
        for file in FILES:
            (tmp_path / place / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(CATALOGUE / file, tmp_path / place / file)
    written = build_hook.compile_catalogue(tmp_path / "compiled", tmp_path / "compiled")
    assert len(written) == len(FILES) > 10
    for file in FILES:
        kind = KINDS.get(file.name, images.ProviderFile)
        rows = read_rows(tmp_path / "plain" / file, kind)
        assert read_rows(tmp_path / "compiled" / file, kind) == rows


def test_a_changed_file_is_read_itself(build_hook: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    file.write_text("usd = 1.10")
    (compiled,) = build_hook.compile_catalogue(tmp_path, tmp_path)
    compiled.write_text('{"usd": "2.20"}')
    assert read_rows(file, dict[str, str]) == {"usd": "2.20"}
    file.write_text('usd = "3.30"')
    assert read_rows(file, dict[str, str]) == {"usd": "3.30"}
    (renewed,) = build_hook.compile_catalogue(tmp_path, tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([file, renewed])
