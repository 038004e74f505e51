"""`limner keys`: values go in and are never shown again."""

from __future__ import annotations

import stat

import pytest
from tests.acceptance.conftest import OPENAI_KEY
from tests.frontends.cli_process import CommandLine, Done

from limner.storage.keys import Keys
from limner.testing.servers.openai_server import OpenAIServer

STORED = Done(status=0, err="OPENAI_API_KEY is stored for this user.\n")


@pytest.mark.slow
def test_a_key_from_a_pipe_is_stored_for_its_owner_alone_and_used(
    cli: CommandLine, openai: OpenAIServer
) -> None:
    stored = cli.run("keys", "set", "OPENAI_API_KEY", stdin=f"{OPENAI_KEY}\n".encode())
    assert stored == STORED
    assert stat.S_IMODE((cli.studio.home / "keys.toml").stat().st_mode) == 0o600
    drawn = cli.run(
        "generate",
        "a fox",
        "--provider",
        "openai-image",
        env={"OPENAI_BASE_URL": openai.base_url},
    )
    assert drawn.status == 0
    assert openai.requests[0].headers["authorization"] == f"Bearer {OPENAI_KEY}"


def test_a_key_that_is_typed_does_not_appear_on_the_screen(cli: CommandLine) -> None:
    terminal = cli.in_terminal("keys", "set", "OPENAI_API_KEY")
    terminal.wait_until("OPENAI_API_KEY: ")
    terminal.type(f"{OPENAI_KEY}\n")
    assert terminal.end() == Done(status=0, err=f"OPENAI_API_KEY: \n{STORED.err}")
    assert OPENAI_KEY not in terminal.sent
    assert OPENAI_KEY in (cli.studio.home / "keys.toml").read_text()


@pytest.mark.slow
def test_a_key_that_is_not_typed_is_not_stored(cli: CommandLine) -> None:
    terminal = cli.in_terminal("keys", "set", "OPENAI_API_KEY", "--json")
    terminal.wait_until("OPENAI_API_KEY: ")
    terminal.type("\x04")
    done = terminal.end()
    assert (done.status, done.error["code"]) == (2, "INPUT_INVALID")
    asked = cli.in_terminal("keys", "set", "OPENAI_API_KEY")
    asked.wait_until("OPENAI_API_KEY: ")
    asked.interrupt()
    assert asked.end().status == 130
    assert cli.run("keys", "list", "--json").json == {"keys": []}


def test_the_listing_masks_every_value_and_says_where_it_is_from(cli: CommandLine) -> None:
    stored = Keys(cli.studio.home / "keys.toml", env={})
    stored.set("OPENAI_API_KEY", OPENAI_KEY)
    stored.set("SHORT_KEY", "hush")
    from_environment = {"REPLICATE_API_TOKEN": "r8_0123456789abcdefghijk"}
    listed = cli.run("keys", "list", env=from_environment)
    assert listed == Done(
        status=0,
        out="OPENAI_API_KEY       sk-…6789  file\n"
        "REPLICATE_API_TOKEN  r8_…hijk  environment\n"
        "SHORT_KEY            …         file\n",
    )
    assert cli.run("keys", "list", "--json", env=from_environment).json == {
        "keys": [
            {"name": "OPENAI_API_KEY", "source": "file", "masked": "sk-…6789"},
            {"name": "REPLICATE_API_TOKEN", "source": "environment", "masked": "r8_…hijk"},
            {"name": "SHORT_KEY", "source": "file", "masked": "…"},
        ]
    }


def test_a_removed_key_is_gone(cli: CommandLine) -> None:
    Keys(cli.studio.home / "keys.toml", env={}).set("OPENAI_API_KEY", OPENAI_KEY)
    removed = cli.run("keys", "remove", "OPENAI_API_KEY", "--json")
    assert removed.json == {"name": "OPENAI_API_KEY", "action": "remove"}
    assert cli.run("keys", "list") == Done(
        status=0, err="No key is set. limner keys set OPENAI_API_KEY stores one.\n"
    )
    assert OPENAI_KEY not in (cli.studio.home / "keys.toml").read_text()


@pytest.mark.parametrize("value", [b" \n", b"caf\xe9"])
def test_a_value_that_is_no_key_is_refused_unseen(cli: CommandLine, value: bytes) -> None:
    assert cli.run("keys", "set", "OPENAI_API_KEY", stdin=value) == Done(
        status=2,
        err="limner: The value given for OPENAI_API_KEY is empty or holds characters that do not "
        "print.\n  Paste the key as one line of text.\n",
    )


@pytest.mark.slow
def test_what_is_missing_or_too_much_is_named(cli: CommandLine) -> None:
    ended = cli.run_all(
        ["keys", "set"],
        ["keys", "remove"],
        ["keys", "remove", "NOBODYS"],
        ["keys", "list", "OPENAI_API_KEY"],
    )
    assert [(done.status, done.err) for done in ended] == [
        (2, "limner: say which key to set\n  limner keys list shows them\n"),
        (2, "limner: say which key to remove\n  limner keys list shows them\n"),
        (2, "limner: no key 'NOBODYS' is stored\n  limner keys list shows them\n"),
        (2, "limner: keys list takes no name: it lists every key\n"),
    ]
