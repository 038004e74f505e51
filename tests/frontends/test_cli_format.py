"""`limner generate --format`: what a picture is saved as, by word or by name."""

from __future__ import annotations

import pytest
from PIL import Image
from tests.frontends.cli_process import CommandLine, Done

pytestmark = pytest.mark.slow

RED = '<svg xmlns="http://www.w3.org/2000/svg"><rect width="9" height="9" fill="red"/></svg>'


@pytest.fixture
def red(cli: CommandLine) -> list[str]:
    (cli.studio.cwd / "red.svg").write_text(RED)
    return ["generate", "--svg", "red.svg", "--size", "64x64"]


@pytest.mark.parametrize(
    ("words", "name", "kind"),
    [
        (["--out", "a.webp"], "a.webp", "WEBP"),
        (["--out", "a.JPG"], "a.JPG", "JPEG"),
        (["--out", "a.png"], "a.png", "PNG"),
        (["--out", "a"], "a", "PNG"),
        (["--out", "a.bin", "--format", "jpeg"], "a.bin", "JPEG"),
        (["--out", "a.jpeg", "--format", "jpeg"], "a.jpeg", "JPEG"),
    ],
)
def test_the_format_is_what_was_said_or_else_what_the_name_says(
    cli: CommandLine, red: list[str], words: list[str], name: str, kind: str
) -> None:
    path = cli.studio.cwd / name
    assert cli.run(*red, *words).out == f"{path}\n"
    with Image.open(path) as image:
        assert (image.format, image.size) == (kind, (64, 64))


def test_a_name_of_its_own_ends_as_the_format_does(cli: CommandLine, red: list[str]) -> None:
    assert cli.run(*red, "--format", "webp").status == 0
    (path,) = cli.studio.files
    assert path.suffix == ".webp"


def test_a_name_that_contradicts_the_format_is_refused_before_drawing(
    cli: CommandLine, red: list[str]
) -> None:
    assert cli.run(*red, "--out", "a.png", "--format", "webp") == Done(
        status=2,
        err="limner: --format says webp, and the name a.png says png\n"
        "  Leave out --format, or give the file another name.\n",
    )
    assert not (cli.studio.cwd / "a.png").exists()
