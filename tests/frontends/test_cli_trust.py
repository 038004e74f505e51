"""`limner trust`: a person accepts the settings of a folder, as they are now."""

from __future__ import annotations

import hashlib
import stat

import pytest
from tests.frontends.cli_process import CommandLine, Done

TABLE = '[images]\nprovider = "bfl-flux"\n'


def test_a_folder_is_trusted_until_its_file_changes(cli: CommandLine) -> None:
    folder = cli.studio.cwd
    (folder / "limner.toml").write_text(TABLE)
    assert cli.run("trust") == Done(
        status=0,
        out=f"{folder}: trusted (limner.toml)\n",
        err="It now sets images.provider.\n",
    )
    [record] = (cli.studio.home / "trusted").iterdir()
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    planned = cli.run("generate", "a fox", "--dry-run")
    assert "ignores" not in planned.err
    assert "BFL_API_KEY is not set" in planned.err
    (folder / "limner.toml").write_text(TABLE + "\n")
    planned = cli.run("generate", "a fox", "--dry-run", "--json")
    assert planned.status == 0
    assert planned.err == (
        f"limner ignores images.provider in {folder}/limner.toml; "
        "run `limner trust` there if you trust this folder.\n"
    )


@pytest.mark.slow
def test_the_listing_and_the_removal_have_the_same_facts(cli: CommandLine) -> None:
    folder = cli.studio.cwd / "project"
    folder.mkdir()
    assert cli.run("trust", "--list") == Done(status=0, err="You trust no folder.\n")
    (folder / "limner.toml").write_text(TABLE)
    facts = {
        "folder": str(folder),
        "files": {"limner.toml": hashlib.sha256(TABLE.encode()).hexdigest()},
    }
    added = cli.run("trust", str(folder), "--json")
    assert added.json == {"trusted": True, "accepted": ["images.provider"], **facts}
    assert cli.run("trust", "--list", "--json").json == {"folders": [{"changed": [], **facts}]}
    (folder / "limner.toml").unlink()
    assert cli.run("trust", "--list") == Done(
        status=0, out=f"{folder}  (closed, because it changed: limner.toml)\n"
    )
    removed = cli.run("trust", "--remove", "project", "--json")
    assert removed.json == {"trusted": False, **facts}
    assert cli.run("trust", "--remove", "project") == Done(
        status=2,
        err=f"limner: {str(folder)!r} is not trusted\n  limner trust --list shows what is.\n",
    )


@pytest.mark.slow
def test_what_cannot_be_trusted_is_refused(cli: CommandLine) -> None:
    ended = cli.run_all(
        ["trust", "nowhere"], ["trust", "--list", "x"], ["trust", "--list", "--remove"]
    )
    nowhere = str(cli.studio.cwd / "nowhere")
    assert [(done.status, done.err.splitlines()[0]) for done in ended] == [
        (2, f"limner: {nowhere!r} is not a folder"),
        (2, "limner: trust --list takes no folder: it lists every folder"),
        (2, "limner: argument --remove: not allowed with argument --list"),
    ]
    (cli.studio.cwd / "limner.toml").write_text("[images]\nprovidr = 1\n")
    assert cli.run("trust").status == 2
    assert not (cli.studio.home / "trusted").exists()
