"""The fixture `picture` in a project of its own: it passes, fails, and writes references."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from PIL import Image, ImageDraw

from limner.testing.pictures import PictureFixture

ROOT = Path(__file__).parents[2]
TEST = """
from pathlib import Path

HERE = Path(__file__).parent

def test_the_screen_looks_as_it_did(picture):
    picture(HERE / "screen.png").matches("references/screen.png", ignore=[(200, 0, 40, 30)])

def test_the_screen_has_its_size(picture):
    picture((HERE / "screen.png").read_bytes())
    picture.meets("is 240 x 120", "is not blank")
"""


def draw(file: Path, *, clock: str, button: str) -> None:
    screen = Image.new("RGB", (240, 120), "white")
    pen = ImageDraw.Draw(screen)
    pen.text((205, 8), clock, fill="black")
    pen.rectangle((20, 60, 99, 89), fill=button)
    screen.save(file)


def environment(folder: Path) -> Path:
    """A Python that has limner and pytest, with the plug-in as an installer declares it."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    packages = next((folder / "lib").glob("python*/site-packages"))
    info = packages / "limner_here-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: limner-here\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        "[pytest11]\nlimner_here = limner.testing.pytest_plugin\n"
    )
    shared = [ROOT / "src", *map(Path, sys.path), Path(sysconfig.get_paths()["purelib"])]
    known = dict.fromkeys(str(path) for path in shared if path.is_dir() and path != ROOT)
    (packages / "shared.pth").write_text("\n".join(known))
    return folder / "bin" / "python"


@pytest.mark.slow
def test_a_project_checks_its_screens_and_updates_their_references(tmp_path: Path) -> None:
    python, project = environment(tmp_path / "venv"), tmp_path / "project"
    project.mkdir()
    (project / "test_screen.py").write_text(TEST)
    # The plug-in of the checkout may be declared a second time.
    words = ["-m", "pytest", "-q", "-p", "no:limner", f"--basetemp={tmp_path / 'base'}"]
    env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}

    def run(*more: str) -> tuple[int, str]:
        done = subprocess.run(
            [python, *words, *more], cwd=project, env=env, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    draw(project / "screen.png", clock="12:00", button="#2563eb")
    status, said = run()
    assert (status, "Write it with: pytest --limner-update" in said) == (1, True), said
    status, said = run("--limner-update")
    assert (status, (project / "references" / "screen.png").exists()) == (0, True), said
    draw(project / "screen.png", clock="12:01", button="#2563eb")
    status, said = run()
    assert (status, "2 passed" in said) == (0, True), said
    draw(project / "screen.png", clock="12:02", button="#16a34a")
    status, said = run()
    assert (status, "1 failed, 1 passed" in said) == (1, True), said
    assert "fail: 1 difference from the reference" in said
    assert "blue #2563eb -> green #16a34a at 20,60,80,30" in said
    (line,) = {line for line in said.splitlines() if "sheet: " in line}
    sheet = Path(line.partition("sheet: ")[2])
    with Image.open(sheet) as shown:
        assert shown.width > 2 * 240


def test_a_check_without_a_picture_says_how_to_give_one(tmp_path: Path) -> None:
    picture = PictureFixture(folder=tmp_path, sheets=tmp_path, update=False)
    with pytest.raises(TypeError, match=r"say which picture: picture\(path_or_bytes\)"):
        picture.meets("is square")
