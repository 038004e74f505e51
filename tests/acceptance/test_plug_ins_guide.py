"""The guide to plug-ins: its files are the example, and they are tested, installed and used."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.acceptance.conftest import Studio
from tests.acceptance.hardship import limner
from tests.testing.test_testing_contract import FAILURES

from limner.testing import HttpStage
from limner.testing.sample_pictures import make_png

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guides" / "plug-ins.md"
EXAMPLE = ROOT / "examples" / "plug_in"
PUBLIC = {"limner", "limner.plugins", "limner.testing"}


def test_the_files_of_the_guide_are_the_files_of_the_example() -> None:
    blocks = re.findall(r"^```\w+ (\S+)\n(.*?)^```", GUIDE.read_text(), re.DOTALL | re.MULTILINE)
    assert dict(blocks) == {
        file.name: file.read_text() for file in EXAMPLE.iterdir() if file.is_file()
    }


def test_the_failure_in_the_guide_is_one_that_the_suite_shows() -> None:
    (shown,) = re.findall(r"^```text\n(.*?)\n```", GUIDE.read_text(), re.DOTALL | re.MULTILINE)
    assert f"AssertionError: {shown}" == FAILURES["Hasty"]


@pytest.mark.parametrize("file", sorted(EXAMPLE.glob("*.py")), ids=lambda file: file.stem)
def test_a_plug_in_imports_only_what_is_public(file: Path) -> None:
    ours = {path.stem for path in EXAMPLE.glob("*.py")}
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    foreign = {name for name in names if name.partition(".")[0] not in sys.stdlib_module_names}
    assert foreign - ours <= PUBLIC


@pytest.mark.slow
def test_the_contract_tests_of_the_guide_pass(tmp_path: Path) -> None:
    for file in EXAMPLE.glob("*.py"):
        shutil.copy(file, tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        env={"HOME": str(tmp_path), "PATH": ""},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "24 passed" in done.stdout


@pytest.fixture
def installed(studio: Studio, tmp_path: Path) -> Studio:
    """A studio in whose Python the package is installed, as an installer leaves it."""
    packages = tmp_path / "packages"
    info = packages / "atelier-1.0.dist-info"
    info.mkdir(parents=True)
    for file in EXAMPLE.glob("*.py"):
        shutil.copy(file, packages)
    groups = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]["entry-points"]
    lines = [
        line
        for group, entries in groups.items()
        for line in (f"[{group}]", *(f"{name} = {target}" for name, target in entries.items()))
    ]
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: atelier\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("\n".join(lines))
    studio.env |= {"PYTHONPATH": str(packages)}
    return studio


@pytest.mark.slow
async def test_the_doctor_names_the_plug_ins_of_the_guide(installed: Studio) -> None:
    status, said = await limner("doctor", env=installed.env, cwd=installed.cwd)
    details = {check["name"]: check["detail"] for check in said["checks"]}
    assert (status, details["plug-ins"]) == (0, "atelier, easel, contrast")


@pytest.mark.slow
async def test_the_provider_of_the_guide_draws(installed: Studio) -> None:
    words = ("generate", "a fox", "--provider", "atelier", "--size", "512x256")
    stage = HttpStage(
        "POST /draw",
        good=lambda picture: {"image": picture.base64, "revised_prompt": "a red fox"},
    )
    with stage:
        stage.draw(make_png(512, 256, pixel=b"\xe6\x5c\x00\xff"))
        installed.env |= {"ATELIER_API_KEY": "key-0123456789", "ATELIER_BASE_URL": stage.base_url}
        status, drawn = await limner(*words, env=installed.env, cwd=installed.cwd)
    assert status == 0
    assert (drawn["provider"], drawn["cost_usd"], drawn["prompt_used"], drawn["dimensions"]) == (
        "atelier",
        0.02,
        "a red fox",
        {"width": 512, "height": 256},
    )


async def test_the_tool_of_the_guide_measures_contrast(
    installed: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(installed.env["PYTHONPATH"])
    async with installed.open() as lim:
        (tool,) = [tool for tool in lim.tools() if tool.name == "contrast"]
    assert tool.description.startswith("Measure the contrast of two colours, from 1")
    assert tool(first="000000", second="ffffff") == 21.0  # pyright: ignore[reportCallIssue]
