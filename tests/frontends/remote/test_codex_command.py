"""`limner codex -- …`: the user's Codex with limner's tools, for one run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.servers.components import needs

from limner.frontends.cli.codex import with_settings

LIMNER = Path(sys.executable).with_name("limner")
SHOWS_ITS_WORDS = f"""\
#!{sys.executable}
import json, sys
print(json.dumps(sys.argv[1:]))
sys.exit(7)
"""


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "bin").mkdir()
    return {
        "HOME": str(tmp_path),
        "PATH": str(tmp_path / "bin"),
        "LIMNER_HOME": str(tmp_path / "limner-home"),
        "OPENAI_API_KEY": "sk-test-0123456789abcdef",
        "OPENAI_BASE_URL": "http://127.0.0.1:1/v1",
        "SOMEBODY_ELSES_TOKEN": "x",
    }


def codex(env: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [LIMNER, "codex", *words], env=env, capture_output=True, text=True, check=False
    )


def install(env: dict[str, str], program: str) -> None:
    path = Path(env["PATH"]) / "codex"
    path.write_text(program)
    path.chmod(0o755)


def given(words: list[str]) -> dict[str, Any]:
    """The settings among the words, each after its ``-c``."""
    pairs = (word.partition("=") for word in words[1:14:2])
    assert words[0:14:2] == ["-c"] * 7
    return {name: json.loads(value) for name, _, value in pairs}


def test_codex_is_run_with_our_server_and_the_users_own_words(env: dict[str, str]) -> None:
    install(env, SHOWS_ITS_WORDS)
    done = codex(env, "--", "exec", "--json", "-m", "gpt-5.5", "--", "draw -- a fox")
    words = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (7, "")
    assert given(words) == {
        "mcp_servers.limner.command": sys.executable,
        "mcp_servers.limner.args": ["-P", "-m", "limner", "mcp"],
        "mcp_servers.limner.env_vars": ["LIMNER_HOME", "OPENAI_API_KEY", "OPENAI_BASE_URL"],
        "mcp_servers.limner.env.LIMNER_MCP_ANSWER_WITHIN_S": "570",
        "mcp_servers.limner.required": True,
        "mcp_servers.limner.startup_timeout_sec": 60,
        "mcp_servers.limner.tool_timeout_sec": 600,
    }
    assert words[14:] == ["exec", "--json", "-m", "gpt-5.5", "--", "draw -- a fox"]
    assert env["OPENAI_API_KEY"] not in done.stdout


def test_words_before_the_separator_are_no_words_of_ours(env: dict[str, str]) -> None:
    done = codex(env, "exec", "--json")
    assert done.returncode == 2
    error = json.loads(done.stdout)["error"]
    assert error["message"] == "unrecognized arguments: exec"


def test_without_codex_it_says_how_to_install_it(env: dict[str, str], tmp_path: Path) -> None:
    # The Python that runs this may have the package that brings Codex along.
    hidden = tmp_path / "hidden" / "codex_cli_bin.py"
    hidden.parent.mkdir()
    hidden.write_text("raise ImportError('not here')\n")
    done = codex({**env, "PYTHONPATH": str(hidden.parent)}, "--json")
    assert done.returncode == 2
    error = json.loads(done.stdout)["error"]
    assert (error["code"], error["message"]) == (
        "MISSING_EXTRA",
        "The program 'codex' is not installed.",
    )


@pytest.mark.parametrize(
    ("words", "place"),
    [
        ([], 0),
        (["exec", "draw"], 0),
        (["exec", "-m", "gpt-5.5", "draw", "--", "-c"], 0),
        (["-c", "a=1", "exec", "draw"], 0),
        (["exec", "-c", "a=1", "draw"], 1),
        (["exec", "-ca=1", "draw"], 1),
        (["exec", "--config", "a=1", "draw"], 1),
        (["-c", "a=1", "exec", "--config=b=2", "draw"], 3),
    ],
)
def test_our_settings_stand_where_codex_does_not_forget_them(words: list[str], place: int) -> None:
    assert with_settings(words, ["OURS"]) == [*words[:place], "OURS", *words[place:]]


@needs("codex_cli_bin")
def test_the_real_codex_takes_the_settings_for_this_run_only(
    env: dict[str, str], tmp_path: Path
) -> None:
    home = tmp_path / "codex-home"
    home.mkdir()
    (home / "config.toml").write_text('model = "gpt-5.5"\n')
    done = codex({**env, "CODEX_HOME": str(home)}, "--", "mcp", "get", "limner", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["transport"]["command"], told["transport"]["args"], told["tool_timeout_sec"]) == (
        sys.executable,
        ["-P", "-m", "limner", "mcp"],
        600.0,
    )
    assert told["transport"]["env_vars"] == ["LIMNER_HOME", "OPENAI_API_KEY", "OPENAI_BASE_URL"]
    assert (home / "config.toml").read_text() == 'model = "gpt-5.5"\n'
