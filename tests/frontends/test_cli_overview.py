"""What `limner` says about itself."""

from __future__ import annotations

import re

import pytest
from tests.frontends.cli_process import CommandLine, Done

from limner import __version__
from limner.frontends.cli.main import COMMANDS


def test_the_overview_lists_every_command_and_examples(cli: CommandLine) -> None:
    done = cli.run("--help")
    assert (done.status, done.err) == (0, "")
    listed = re.findall(r"^  ([\w-]+) ", done.out.split("commands:")[1].split("examples:")[0], re.M)
    assert listed == [*COMMANDS]
    assert done.out.count('  limner generate "') == 3


def test_only_commands_that_exist_are_listed() -> None:
    assert [*COMMANDS] == [
        "chat",
        "generate",
        "edit",
        "render",
        "transform",
        "check",
        "sheet",
        "inspect",
        "fit",
        "batch",
        "work",
        "show",
        "models",
        "spend",
        "sessions",
        "gc",
        "backup",
        "store",
        "jobs",
        "reconcile",
        "mcp",
        "app-server",
        "codex",
        "assets",
        "trust",
        "keys",
        "doctor",
        "studio",
        "demo",
    ]


@pytest.mark.slow
def test_every_command_has_a_help_text_with_an_example(cli: CommandLine) -> None:
    helped = cli.run_all(*([command, "--help"] for command in COMMANDS))
    for command, done in zip(COMMANDS, helped, strict=True):
        assert (done.status, done.err) == (0, "")
        usage, description, *_ = done.out.split("\n\n")
        assert usage.startswith(f"usage: limner {command} [-h]")
        assert re.fullmatch(r"[A-Z].*\.", description, re.DOTALL)
        assert "--json" in done.out
        assert re.search(rf"\n(?:examples|with a key):\n  limner {command}", done.out)
    assert not cli.studio.home.exists()


def test_the_version_is_the_packages_own(cli: CommandLine) -> None:
    assert cli.run("--version") == Done(status=0, out=f"limner {__version__}\n")


def test_without_a_command_the_overview_is_no_result(cli: CommandLine) -> None:
    assert cli.run() == Done(status=2, err=cli.run("--help").out)


def test_an_unknown_command_is_told_in_the_words_of_every_failure(cli: CommandLine) -> None:
    done = cli.run("paint")
    assert (done.status, done.out) == (2, "")
    assert done.err.splitlines() == [
        "limner: there is no command 'paint'",
        "  See: limner --help",
    ]
    assert cli.run("genrate").err.splitlines()[1] == "  Did you mean: limner generate"


@pytest.mark.slow
def test_help_is_wrapped_at_the_width_of_the_terminal(cli: CommandLine) -> None:
    for words in ([], ["doctor"], ["generate"]):
        help_text = cli.run(*words, "--help", env={"COLUMNS": "60"}).out
        prose = help_text.partition("examples:")[0].splitlines()
        assert max(map(len, prose)) <= 60


def test_an_unknown_option_is_told_in_json_where_json_was_asked_for(cli: CommandLine) -> None:
    done = cli.run("generate", "a robot", "--sise", "512x512", "--json")
    assert (done.status, done.err) == (2, "")
    assert done.error == {
        "code": "USAGE",
        "message": "unrecognized arguments: --sise 512x512",
        "retryable": False,
        "billed": False,
        "cost_usd": 0.0,
        "hint": "See: limner generate --help",
    }


def test_an_option_cannot_be_abbreviated(cli: CommandLine) -> None:
    assert cli.run("models", "--js") == Done(
        status=2,
        err="limner: unrecognized arguments: --js\n  See: limner models --help\n",
    )


def test_a_command_without_its_words_shows_an_example(cli: CommandLine) -> None:
    assert cli.run("keys") == Done(
        status=2,
        err="limner: say what to do: set, list, remove\n"
        "  For example: limner keys set OPENAI_API_KEY\n"
        "  See: limner keys --help\n",
    )
    assert cli.run("inspect", "photo.png") == Done(
        status=2,
        err="limner: give a question\n"
        '  For example: limner inspect photo.png "What does the error say?"\n',
    )


def test_a_file_name_may_start_with_a_hyphen_after_two_hyphens(cli: CommandLine) -> None:
    (cli.studio.cwd / "-v.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"/>')
    done = cli.run("render", "--size", "16x16", "--json", "--", "-v.svg")
    assert (done.status, done.json["dimensions"]) == (0, {"width": 16, "height": 16})
    assert cli.run("render", "-v.svg") == Done(
        status=2,
        err="limner: unrecognized arguments: -v.svg\n"
        "  Write ./-v.svg for the file: a word that starts with a hyphen is an option.\n"
        "  See: limner render --help\n",
    )


def test_words_without_quotes_are_told_to_have_them(cli: CommandLine) -> None:
    assert cli.run("generate", "a", "red", "fox") == Done(
        status=2,
        err="limner: unrecognized arguments: red fox\n"
        "  Put words that belong together in quotes.\n"
        "  See: limner generate --help\n",
    )


def test_a_wrong_argument_has_the_name_of_its_option(cli: CommandLine) -> None:
    assert cli.run("generate", "a fox", "--count", "0") == Done(
        status=2, err="limner: --count must be at least 1\n"
    )
    assert cli.run("generate", " ").err == "limner: prompt is required and must not be blank\n"
