"""Every command that a text of limner names is one that the command line takes."""

from __future__ import annotations

import ast
import re
import shlex
from argparse import ArgumentParser
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from tests.frontends.cli_process import CommandLine

import limner
from limner.frontends.cli.main import COMMANDS
from limner.testing.servers.http_server import Reply, json_reply
from limner.testing.servers.openai_server import OpenAIServer

SOURCE = Path(limner.__file__).parent
QUOTED = re.compile(r"`limner ([a-z][^`]*)`")
# In running text a command may end after its name, or after the action or option that follows it.
UNQUOTED = re.compile(rf"(?<!`)\blimner ((?:{'|'.join(COMMANDS)})(?: (?:--)?[a-z-]+)?)\b")


class Parser(ArgumentParser):
    def error(self, message: str) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        raise ValueError(message)


def texts(path: Path) -> Iterator[str]:
    """The texts of a module; a value in a text is ``x``."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "x" for part in node.values)
            yield "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@cache
def all_texts() -> tuple[str, ...]:
    """The texts that name limner, of all modules."""
    return tuple(text for path in SOURCE.rglob("*.py") for text in texts(path) if "limner " in text)


def named_commands(form: re.Pattern[str]) -> list[str]:
    found = {" ".join(command.split()) for text in all_texts() for command in form.findall(text)}
    return sorted(found)


def parser_of(name: str) -> Parser:
    module = import_module(f"limner.frontends.cli.{name.replace('-', '_')}")
    parser = Parser(exit_on_error=False)
    module.configure(parser)
    parser.add_argument("--json", action="store_true")
    return parser


def parse(command: str) -> None:
    name, *words = shlex.split(command.partition(" >")[0])
    parser = parser_of(name)
    if name == "codex":
        return  # it passes its words on
    try:
        parser.parse_intermixed_args(words)
    except ValueError as problem:
        # A text may name a command without its arguments, but none that the command lacks.
        if "required" not in str(problem):
            raise


@pytest.mark.slow
def test_the_texts_name_commands() -> None:
    quoted = {"jobs recover x", "jobs settle ID --cost USD", "doctor --repair"}
    assert quoted <= {*named_commands(QUOTED)}
    assert {"jobs list", "keys set", "doctor --repair"} <= {*named_commands(UNQUOTED)}


def test_a_command_that_a_text_quotes_is_taken() -> None:
    for command in named_commands(QUOTED):
        assert command.split(maxsplit=1)[0] in COMMANDS, command
        parse(command)


def test_a_command_that_a_text_names_has_the_action_that_follows() -> None:
    for command in named_commands(UNQUOTED):
        name, _, word = command.partition(" ")
        parser = parser_of(name)
        actions = parser._get_positional_actions()[:1]
        if word.startswith("--"):
            assert word in parser._option_string_actions, command
        elif word and actions and actions[0].choices:
            assert word in actions[0].choices, command


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reply", "command"),
    [
        (Reply(status=500), "jobs forget"),
        (json_reply({"data": [{"b64_json": "bm8gcGljdHVyZQ=="}]}), "jobs forget"),
    ],
    ids=["no answer", "no picture"],
)
def test_the_hints_after_a_paid_call_lead_to_its_end(
    cli: CommandLine, openai: OpenAIServer, reply: Reply, command: str
) -> None:
    """A user who follows each hint ends with no open job, and the price stays counted."""
    cli.studio.connect(openai)
    openai.script("generate", reply)
    failed = cli.run("generate", "a fox", "--provider", "openai-image")
    job_id = failed.err.partition("Job: ")[2].split()[0]
    said = failed.err + cli.run("jobs", "recover", job_id).err
    assert f"`limner {command} " in said
    assert cli.run(*command.split(), job_id).status == 0
    assert cli.run("jobs", "list").err == "No job is open.\n"
    assert cli.run("spend", "--json").json["total_usd"] == 0.013515
