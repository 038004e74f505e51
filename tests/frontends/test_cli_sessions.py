"""`limner sessions` and `limner gc`."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from backports import zstd
from tests.agent.agent_pictures import data_url, encoded
from tests.agent.rollout_samples import STARTED_MS, THREAD, screenshot_session, write
from tests.frontends.cli_process import CommandLine, Done

OTHER = THREAD.replace("01a1", "02b2")
PICTURE = encoded(1)


@pytest.fixture
def rollout(cli: CommandLine) -> Path:
    return write(cli.studio.cwd, screenshot_session(PICTURE))


@pytest.fixture
def talk(cli: CommandLine, rollout: Path) -> CommandLine:
    """A home with one imported session."""
    assert cli.run("sessions", "import", rollout.name).status == 0
    return cli


def make_old(cli: CommandLine) -> None:
    moment = time.time() - 3600
    for file in (cli.studio.home / "blobs").rglob("*"):
        if file.is_file():
            os.utime(file, (moment, moment))


def test_an_empty_home_says_where_sessions_come_from(cli: CommandLine) -> None:
    assert cli.run("sessions", "list") == Done(
        status=0,
        err="No session is stored here. limner sessions import imports those of Codex.\n",
    )


@pytest.mark.slow
def test_files_are_imported_and_listed(cli: CommandLine, rollout: Path) -> None:
    packed = b"".join(screenshot_session(PICTURE)).replace(THREAD.encode(), OTHER.encode())
    write(cli.studio.cwd, [zstd.compress(packed)], "other.jsonl.zst")
    assert cli.run("sessions", "import", "rollout.jsonl", "other.jsonl.zst") == Done(
        status=0,
        out=f"{THREAD}\n{OTHER}\n",
        err="rollout.jsonl: 6 items, 1 picture\nother.jsonl.zst: 6 items, 1 picture\n",
    )
    assert cli.run("sessions", "list", "--limit", "1") == Done(
        status=0,
        out=f"{OTHER}  2026-11-15 00:59     6 items  What is on my screen?\n",
        err="There are more: --limit 2 shows them.\n",
    )
    listed = cli.run("sessions", "list", "--json").json
    assert [one["id"] for one in listed["sessions"]] == [OTHER, THREAD]
    assert listed["more"] is False


def test_what_could_not_be_imported_is_reported(cli: CommandLine) -> None:
    picture = b"data:image/png;base64,AAAA"
    lines = [
        text.replace(b"data:image/png;base64,", picture) for text in screenshot_session(PICTURE)
    ]
    write(cli.studio.cwd, [*lines, b"{broken\n"])
    write(cli.studio.cwd, [b"hello"], "letter.txt")
    done = cli.run("sessions", "import", "rollout.jsonl", "letter.txt")
    assert (done.status, done.out) == (2, f"{THREAD}\n")
    items, lost, words, why, *error = done.err.splitlines()
    assert (items, lost) == (
        "rollout.jsonl: 6 items, 0 pictures",
        "  1 line could not be read: left out.",
    )
    assert words == "  1 picture could not be stored; a note says why:"
    assert why.startswith("    Picture 1 of 1 from imported history was left out: ")
    assert error == [
        f"limner: {str(cli.studio.cwd / 'letter.txt')!r} is not a rollout: "
        "none of its lines is one of a session.",
        "  Codex keeps them in ~/.codex/sessions, as rollout-….jsonl or .jsonl.zst.",
    ]


@pytest.mark.slow
def test_the_json_of_an_import_tells_of_each_file(talk: CommandLine) -> None:
    done = talk.run("sessions", "import", "rollout.jsonl", "missing.jsonl", "--json")
    again, missing = done.json["imports"]
    assert (again["file"], again["error"]["code"]) == ("rollout.jsonl", "SESSION_EXISTS")
    assert (missing["file"], missing["error"]["code"]) == ("missing.jsonl", "FILE_NOT_FOUND")
    assert done.status == 2


@pytest.mark.slow
def test_a_session_is_shown_item_by_item(talk: CommandLine) -> None:
    assert talk.run("sessions", "show", THREAD[:8]) == Done(
        status=0,
        out=f"""\
{THREAD}
  started     2026-11-15 00:59 UTC in /home/user/work
  last used   2026-11-15 00:59 UTC
  items       6
  spent       $0.00
    0  user                  <environment_context> <cwd>/home/user/work</cwd>
    1  user                  What is on my screen?
    2  reasoning
    3  function_call         take_screenshot
    4  function_call_output  Here: [1 picture]
    5  assistant             A red rectangle.
""",
    )
    part = talk.run("sessions", "show", THREAD, "--from", "1", "--limit", "2", "--json").json
    assert [one["seq"] for one in part["items"]] == [1, 2]
    assert part["items"][0]["at_ms"] == STARTED_MS + 2000
    assert part["next"] == 3
    assert part["session"]["id"] == THREAD


@pytest.mark.slow
def test_a_session_is_exported_with_its_pictures_inside(talk: CommandLine) -> None:
    done = talk.run("sessions", "export", THREAD, "--out", "talk.jsonl")
    written = talk.studio.cwd / "talk.jsonl"
    assert done == Done(status=0, out=f"{written}\n", err="6 items, 1 picture\n")
    taken = talk.run("sessions", "export", THREAD, "--out", "talk.jsonl", "--json")
    assert (taken.status, taken.error["code"]) == (2, "OUTPUT_EXISTS")
    talk.run("sessions", "export", THREAD, "--out", "talk.jsonl", "--overwrite")
    text = written.read_text()
    assert data_url(PICTURE) in text
    assert "limner://" not in text
    assert json.loads(text.splitlines()[0])["payload"]["id"] == THREAD


@pytest.mark.slow
def test_without_a_path_an_export_is_named_after_its_session(talk: CommandLine) -> None:
    done = talk.run("sessions", "export", THREAD)
    assert done.out == f"{talk.studio.cwd / THREAD}.jsonl\n"


@pytest.mark.slow
def test_a_fork_ends_where_it_is_told_to(talk: CommandLine) -> None:
    done = talk.run("sessions", "fork", THREAD, "--before", "2")
    assert (done.status, done.err) == (0, f"2 items of {THREAD}\n")
    shown = talk.run("sessions", "show", done.out.strip(), "--json").json
    assert [one["seq"] for one in shown["items"]] == [0, 1]
    assert shown["session"]["forked_from"] == THREAD


@pytest.mark.slow
def test_an_archived_session_is_listed_apart_and_can_come_back(talk: CommandLine) -> None:
    done = talk.run("sessions", "archive", THREAD[:4])
    assert done.err == f"{THREAD} is archived; --undo brings it back.\n"
    assert talk.run("sessions", "list", "--json").json["sessions"] == []
    assert THREAD in talk.run("sessions", "list", "--archived").out
    talk.run("sessions", "archive", THREAD, "--undo")
    assert THREAD in talk.run("sessions", "list").out


@pytest.mark.slow
def test_deleting_a_session_says_what_it_freed(talk: CommandLine) -> None:
    done = talk.run("sessions", "delete", THREAD, "--json")
    assert done.json == {"deleted": THREAD, "pictures": 0, "bytes": 0, "young": 1}
    assert talk.run("sessions", "delete", THREAD, "--json").error["code"] == "NO_SUCH_SESSION"
    assert talk.run("gc") == Done(
        status=0,
        out="0 pictures removed: 0 files, 0B\n",
        err="1 more is referred to by nothing, "
        "but came in within the last day: --all removes them too.\n",
    )


@pytest.mark.slow
def test_gc_removes_what_nothing_refers_to(talk: CommandLine) -> None:
    make_old(talk)
    would = talk.run("gc", "--all", "--dry-run", "--json")
    nothing = {"pictures": 0, "files": 0, "bytes": 0, "young": 0, "owed": 0, "dry_run": True}
    assert would.json == nothing
    stray = talk.studio.home / "blobs" / "00" / ("00" * 32)
    stray.parent.mkdir(exist_ok=True)
    stray.write_bytes(b"stray")
    make_old(talk)
    assert talk.run("gc", "--all").out == "0 pictures removed: 1 file, 5B\n"
    assert not stray.exists()
    strays = [stray.with_name("00" * 31 + f"{number:02}") for number in range(2)]
    for file in strays:
        file.write_bytes(b"stray")
    make_old(talk)
    done = talk.run("gc")
    assert (done.status, done.out) == (1, "".join(f"{file}\n" for file in strays))
    assert "The database does not know 2 of 3 stored files: nothing was removed." in done.err
    refused = talk.run("gc", "--json")
    assert refused.error["code"] == "TOO_MANY_STRAYS"
    assert refused.error["strays"] == [str(file) for file in strays]
    assert talk.run("gc", "--all", "--strays").out == "0 pictures removed: 2 files, 10B\n"
    assert talk.run("sessions", "export", THREAD, "--json").json["omitted"] == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["show"], "give the id of the session to show"),
        (["delete", "a", "b"], "give the id of the session to delete"),
        (["list", "a"], "sessions list takes no 'a'"),
        (["import"], "give the files to import"),
        (["list", "--overwrite"], "sessions list takes no --overwrite"),
        (["show", "a", "--before", "0"], "sessions show takes no --before"),
        (["fork", "a", "--from", "0"], "sessions fork takes no --from"),
        (["show", "zzz"], "There is no session 'zzz'."),
    ],
)
def test_a_mistake_is_told_for_what_it_is(cli: CommandLine, words: list[str], message: str) -> None:
    done = cli.run("sessions", *words)
    assert (done.status, done.out) == (2, "")
    assert done.err.splitlines()[0] == f"limner: {message}"
