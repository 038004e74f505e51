"""`limner show`: what is known of a picture, for a person and for a program."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest
from PIL import Image, PngImagePlugin
from tests.acceptance.conftest import picture
from tests.frontends.cli_process import CommandLine, Done
from tests.servers.c2pa_signer import signed

import limner
from limner.testing.servers.openai_server import OpenAIServer

PAID = ["generate", "a fox", "--provider", "openai-image", "--seed", "7"]
NOTHING_KNOWN = {
    "handle": None,
    "kept_at": None,
    "created_ms": None,
    "lineage": None,
    "ancestors": [],
    "offspring": [],
    "cost_usd": None,
    "cost_source": None,
    "calls": [],
}


@pytest.mark.slow
def test_a_picture_that_was_bought_tells_its_whole_story(
    cli: CommandLine, openai: OpenAIServer
) -> None:
    cli.studio.connect(openai)
    drawn = cli.run(*PAID, "--out", "fox.jpg", "--json").json
    said = cli.run("show", "fox.jpg", "--json").json
    master = sha256(openai.picture).hexdigest()
    (call,) = said.pop("calls")
    assert (call["picture"], call["path"], call["cost_usd"]) == (master, drawn["path"], 0.01342)
    created_ms = said.pop("created_ms")
    (ancestor,) = said.pop("ancestors")
    assert ancestor["created_ms"] <= created_ms
    assert {**ancestor, "created_ms": 0} == {
        "handle": master,
        "mime": "image/png",
        "dimensions": {"width": 1024, "height": 1024},
        "bytes": len(openai.picture),
        "parent": None,
        "lineage": {
            "provider": "openai-image",
            "model": "gpt-image-2.5-flare",
            "prompt": "a fox",
            "seed": None,
            "parents": [],
        },
        "created_ms": 0,
    }
    handle = drawn["image"]
    assert said == {
        "path": str(cli.studio.cwd / "fox.jpg"),
        "handle": handle,
        "mime": "image/jpeg",
        "dimensions": {"width": 1024, "height": 1024},
        "bytes": (cli.studio.cwd / "fox.jpg").stat().st_size,
        "kept_at": str(cli.studio.home / "blobs" / handle[:2] / handle),
        "lineage": {"made": "jpeg"},
        "offspring": [],
        "cost_usd": 0.01342,
        "cost_source": "computed",
        "metadata": [],
        "provenance": None,
    }


@pytest.mark.slow
def test_a_person_reads_the_same_in_lines(cli: CommandLine, openai: OpenAIServer) -> None:
    cli.studio.connect(openai)
    handle = cli.run(*PAID, "--json").json["image"]
    cli.run("fit", str(cli.studio.files[0]), "--for", "anthropic/claude-sonnet-5-5")
    done = cli.run("show", handle)
    kept = cli.studio.home / "blobs" / handle[:2] / handle
    moment = datetime.now(UTC).strftime("%Y-%m-%d")
    lines = done.out.splitlines()
    assert lines[3].startswith(f"  came        {moment} ")
    assert lines[:3] + lines[4:6] == [
        f"image/png  1024x1024  {len(openai.picture) / 1024:.1f}KB",
        f"  handle      {handle}",
        f"  kept at     {kept}",
        "  prompt      a fox",
        "  cost        $0.01342 (computed), image_generate",
    ]
    assert lines[3].endswith("UTC · drawn by openai-image (gpt-image-2.5-flare)")
    assert (done.status, done.err) == (0, "")


@pytest.mark.slow
def test_a_file_nobody_has_seen_is_described_and_not_stored(cli: CommandLine) -> None:
    info = PngImagePlugin.PngInfo()
    info.add_text("parameters", "a fox\nSteps: 20")
    path = cli.studio.cwd / "other.png"
    Image.new("RGB", (64, 48), "orange").save(path, pnginfo=info)
    before = path.read_bytes()
    assert cli.run("show", "other.png", "--json").json == {
        **NOTHING_KNOWN,
        "path": str(path),
        "mime": "image/png",
        "dimensions": {"width": 64, "height": 48},
        "bytes": len(before),
        "metadata": [{"keyword": "parameters", "text": "a fox\nSteps: 20"}],
        "provenance": None,
    }
    assert cli.run("show", "other.png") == Done(
        status=0,
        out=f"image/png  64x48  {len(before)}B\n"
        "  stored      no: limner has not seen this picture\n"
        "  says        parameters: a fox Steps: 20\n",
    )
    assert path.read_bytes() == before
    assert not (cli.studio.home / "blobs").exists()


@pytest.mark.slow
def test_a_file_that_was_looked_at_before_is_known(cli: CommandLine) -> None:
    path = cli.studio.cwd / "cat.png"
    Image.new("RGB", (64, 48), "orange").save(path)
    cli.run("fit", "cat.png")
    said = cli.run("show", "cat.png", "--json").json
    assert (said["handle"], said["lineage"]) == (
        sha256(path.read_bytes()).hexdigest(),
        {"file": str(path)},
    )


def test_a_manifest_is_told_in_words(cli: CommandLine) -> None:
    path = cli.studio.cwd / "signed.png"
    path.write_bytes(signed(picture(64, 48), made_from=picture(8, 8)))
    assert cli.run("show", "signed.png").out.splitlines()[2:] == [
        "  C2PA        valid: unchanged since it was signed",
        "  claimed by  painting-service 2.5",
        "  signed by   Painting Service · Painters Ltd",
        "  made from   sketch.png (componentOf)",
    ]


def test_a_manifest_that_cannot_be_read_is_no_failure(cli: CommandLine) -> None:
    info = PngImagePlugin.PngInfo()
    info.add(b"caBX", b"nonsense")
    Image.new("RGB", (64, 48), "orange").save(cli.studio.cwd / "odd.png", pnginfo=info)
    done = cli.run("show", "odd.png", "--json")
    provenance = done.json["provenance"]
    reason = provenance.pop("reason")
    assert (done.status, provenance) == (
        0,
        {"kind": "c2pa", "of_original": False, "state": "unread", "hint": None},
    )
    assert reason.startswith("the C2PA manifest cannot be read: ")


@pytest.mark.parametrize(
    ("name", "status", "code"),
    [
        ("0" * 64, 2, "NO_SUCH_PICTURE"),
        ("gone.png", 2, "FILE_NOT_FOUND"),
        ("text.png", 4, "IMAGE_UNRECOGNIZED"),
        ("/etc/passwd", 5, "PATH_DENIED"),
    ],
)
def test_what_is_no_picture_is_told_as_every_failure_is(
    cli: CommandLine, name: str, status: int, code: str
) -> None:
    (cli.studio.cwd / "text.png").write_text("no picture")
    done = cli.run("show", name, "--json")
    assert (done.status, done.error["code"], done.err) == (status, code, "")


def test_a_terminal_shows_the_picture_first(cli: CommandLine) -> None:
    Image.new("RGB", (8, 4), "red").save(cli.studio.cwd / "red.jpg")
    done = cli.in_terminal("show", "red.jpg").end()
    assert done.err.count("▀") == 16
    assert done.out.startswith("image/jpeg  8x4")


def test_kitty_is_sent_a_png_whatever_the_file_is(cli: CommandLine) -> None:
    Image.new("RGB", (8, 4), "red").save(cli.studio.cwd / "red.jpg")
    terminal = cli.in_terminal("show", "red.jpg", env={"TERM": "xterm-kitty"})
    assert terminal.end().status == 0
    assert "\x1b_Ga=T,f=100,c=60,m=0;iVBORw0KGgo" in terminal.sent


@pytest.mark.skipif(os.name == "nt", reason="links to packages need rights on Windows")
def test_without_the_extra_a_manifest_is_said_to_be_there(cli: CommandLine, tmp_path: Path) -> None:
    (cli.studio.cwd / "signed.png").write_bytes(signed(picture(64, 48)))
    # A Python that has every package of this one but that of the extra.
    packages = tmp_path / "packages"
    packages.mkdir()
    for site in {Path(entry) for entry in sys.path if entry.endswith("site-packages")}:
        for package in site.iterdir():
            if not package.name.startswith("c2pa") and not (packages / package.name).exists():
                (packages / package.name).symlink_to(package)
    source = Path(limner.__file__).parent.parent
    base: str = vars(sys)["_base_executable"]
    done = subprocess.run(
        [base, "-m", "limner", "show", "signed.png"],
        capture_output=True,
        cwd=cli.studio.cwd,
        env={**cli.studio.env, "PYTHONPATH": f"{packages}{os.pathsep}{source}"},
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode().splitlines()[2:] == [
        "  C2PA        a manifest is present; reading a C2PA manifest needs limner[c2pa]",
        "              pip install 'limner[c2pa]'",
    ]
