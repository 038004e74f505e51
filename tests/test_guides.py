"""The Python blocks of guides run as they stand, all blocks of a guide in one module."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

GUIDES = Path(__file__).parent.parent / "docs" / "guides"
# A notebook waits at the outermost level of its cells.
NOTEBOOK = """\
import ast, asyncio, sys
code = compile(sys.stdin.read(), "notebook", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
asyncio.run(eval(code, {}))
"""
WEB_SERVICE = """
import asyncio


async def main():
    app = Starlette()
    async with lifespan(app):
        lim = app.state.lim
        drawn = await lim.generate("a fox", size="64x64")
        data, mime = await load(lim, drawn.image.handle)
        print(await describe(lim, data))
        told = [json.loads(one[6:]) async for one in events(lim, "Hello.", None)]
        print(mime, told[0]["type"], told[-1]["type"], told[-1]["status"])


asyncio.run(main())
"""


def sections_of(guide: str) -> dict[str, str]:
    """The Python of each section, by its heading; a reader copies a section, not the page."""
    text = (GUIDES / f"{guide}.md").read_text(encoding="utf-8")
    parts = (part.partition("\n") for part in re.split(r"^#+ ", text, flags=re.MULTILINE))
    blocks = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
    found = {title: "\n\n".join(blocks.findall(body)) for title, _, body in parts}
    return {title: code for title, code in found.items() if code}


def code_of(guide: str) -> str:
    return "\n".join(sections_of(guide).values())


def test_the_batch_of_the_guide_runs_as_it_stands(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code_of("batches")],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.stdout, done.stderr) == ("2 0 0\n", "")
    assert len((tmp_path / "results.jsonl").read_text().splitlines()) == 2


def test_the_function_for_blocks_runs_as_it_stands(tmp_path: Path) -> None:
    code = sections_of("engines")["Any engine that calls a function for each block"]
    env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.stdout, done.stderr) == ("owl-1 done None\n", "")


def test_every_section_imports_the_names_that_it_uses(tmp_path: Path) -> None:
    for guide in GUIDES.glob("*.md"):
        for number, code in enumerate(sections_of(guide.stem).values()):
            # A notebook goes on from cell to cell. A line may call the reader's own code.
            if guide.stem != "notebooks":
                lines = [line for line in code.splitlines() if "your code" not in line]
                (tmp_path / f"{guide.stem}-{number}.py").write_text("\n".join(lines))
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F821", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "All checks passed!\n")


@pytest.mark.slow
def test_the_guide_to_testing_has_a_program_that_runs_without_pytest(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", sections_of("testing")["Without pytest"]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    first, second, third = (done.stdout + done.stderr).splitlines()
    assert first == "IMAGE_GEN_PROVIDER_UNAVAILABLE"
    assert (".png 0." in second, third.startswith("2 requests, 0.")) == (True, True)


@pytest.mark.slow
def test_the_guide_to_testing_is_a_test_module_that_passes(tmp_path: Path) -> None:
    (tmp_path / "test_guide.py").write_text(sections_of("testing")["With pytest"])
    # The plug-in of a checkout may not be installed.
    fixture = "from limner.testing.pytest_plugin import limner_fake as limner_fake\n"
    (tmp_path / "conftest.py").write_text(fixture)
    options = ["-o", "asyncio_mode=auto"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *options, str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "4 passed" in done.stdout) == (0, True), done.stdout + done.stderr


def test_the_guide_to_logging_sets_up_a_log(tmp_path: Path) -> None:
    program = f"{code_of('logging')}\nlogging.getLogger('limner.money').info('made a fox')\n"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stderr == "INFO limner.money made a fox\n"


@pytest.mark.slow
def test_the_guide_to_notebooks_runs_as_one_notebook(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", NOTEBOOK],
        input=code_of("notebooks"),
        env={"HOME": str(tmp_path), "PATH": ""},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("Spent $0.00.\nimage/webp\n")


@pytest.mark.slow
def test_the_guide_to_web_services_has_parts_that_work(tmp_path: Path) -> None:
    program = f"{code_of('web-services')}\n{WEB_SERVICE}"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env={"HOME": str(tmp_path), "PATH": ""},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "image/png turn_started turn_ended completed"


@pytest.mark.slow
def test_the_guide_to_inspecting_reads_the_table_that_it_draws(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code_of("inspecting")],
        env={"HOME": str(tmp_path), "PATH": ""},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(
        "Order,Customer,Total\n1042,Maria Lopez,$120.00\n1043,John Smith,$89.50\nOrder "
    )


@pytest.mark.slow
def test_the_guide_to_checking_checks_the_page_that_it_draws(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code_of("checking")],
        env={"HOME": str(tmp_path), "PATH": ""},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "True ['pass', 'pass']\n", "")


@pytest.mark.slow
def test_the_commands_that_back_up_and_restore_a_home_run_as_they_stand(tmp_path: Path) -> None:
    text = (GUIDES / "storage.md").read_text(encoding="utf-8")
    part = text.partition("## Back up and restore")[2].partition("\n## ")[0]
    commands = re.findall(r"^\$ (.+)$", part, re.MULTILINE)
    assert len(commands) == 4
    script = "\n".join(["set -e", "limner generate 'a fox'", *commands])
    bin_folder = Path(sys.executable).parent
    env = {"PATH": f"{bin_folder}:/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run(
        ["sh", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "pictures    1 stored; all checked, 1 files are as they came" in done.stdout
