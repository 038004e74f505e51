"""`limner mcp install` and `uninstall` on files as the clients and their users leave them."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import sysconfig
import tomllib
from argparse import ArgumentParser
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.frontends.cli_process import CommandLine

from limner.errors import InputInvalid, SettingsError, StorageError, UserError
from limner.frontends.cli.output import CommandResult
from limner.frontends.mcp.client_env import passed_on
from limner.frontends.mcp.config_files import ConfigFile
from limner.frontends.mcp.install import configure, run_doctor, run_install, run_uninstall

LIMNER = json.dumps(str(Path(sysconfig.get_path("scripts")) / "limner"))

# As Claude Code writes it: state of its own around the servers.
CLAUDE_CODE = """{
  "numStartups": 34,
  "tipsHistory": {
    "new-user-warmup": 3
  },
  "projects": {
    "/home/ada/site": {
      "mcpServers": {},
      "history": [
        "draw a \\"cat\\" // and {a} dog"
      ]
    }
  },
  "mcpServers": {
    "github": {
      "type": "http",
      "url": "https://api.example.com/mcp/",
      "headers": {
        "Authorization": "Bearer not-for-the-screen-0123456789"
      }
    }
  },
  "lastCost": 0.10
}"""
CLAUDE_CODE_ADDED = f""",
    "limner": {{
      "type": "stdio",
      "command": {LIMNER},
      "args": [
        "mcp"
      ],
      "env": {{
        "LIMNER_MCP_ANSWER_WITHIN_S": "570"
      }},
      "timeout": 600000
    }}"""
CLAUDE_CODE_AFTER = CLAUDE_CODE.replace(
    """      }
    }
  },
  "lastCost""",
    f"""      }}
    }}{CLAUDE_CODE_ADDED}
  }},
  "lastCost""",
)

CLAUDE_DESKTOP = '{"globalShortcut": "", "mcpServers": {"fs": {"command": "npx", "args": []}}}\r\n'
CLAUDE_DESKTOP_AFTER = (
    '{"globalShortcut": "", "mcpServers": {"fs": {"command": "npx", "args": []}, '
    f'"limner": {{"command": {LIMNER}, "args": ["mcp"]}}}}}}\r\n'
)

CODEX = """\
# my Codex
model = "gpt-5.5"   # the good one
approval_policy = "on-request"

[mcp_servers.docs]
command = "npx"
args = [
  "-y", # yes
  "docs-mcp",
]
[mcp_servers.docs.env]
DOCS_TOKEN = "t0k3n"

[projects."/home/ada/site"]
trust_level = "trusted"
"""
CODEX_AFTER = f"""{CODEX}
[mcp_servers.limner]
command = {LIMNER}
args = ["mcp"]
env = {{ LIMNER_MCP_ANSWER_WITHIN_S = "570" }}
required = true
startup_timeout_sec = 60
tool_timeout_sec = 600
"""

CURSOR = '\ufeff{\n\t"mcpServers": {}\n}\n'
CURSOR_AFTER = (
    '\ufeff{\n\t"mcpServers": {\n\t\t"limner": {\n\t\t\t"type": "stdio",\n'
    f'\t\t\t"command": {LIMNER},\n\t\t\t"args": [\n\t\t\t\t"mcp"\n\t\t\t]\n\t\t}}\n\t}}\n}}\n'
)

VSCODE = """\
{
    // Servers of this profile
    "inputs": [
        { "id": "key", "type": "promptString", "password": true, },
    ],
    "servers": {
        /* the one from work */
        "work": { "type": "http", "url": "https://mcp.example.com" }, // ask Grace
        // "old": { "command": "old" },
    },
}
"""
VSCODE_AFTER = VSCODE.replace(
    "// ask Grace\n",
    f"""// ask Grace
        "limner": {{
            "type": "stdio",
            "command": {LIMNER},
            "args": [
                "mcp"
            ]
        }},
""",
)

GEMINI = """\
{
  "ui": { "theme": "Dracula" }, // dark
  "security": {
    "auth": { "selectedType": "gemini-api-key" }
  }
}
"""
GEMINI_AFTER = f"""\
{{
  "ui": {{ "theme": "Dracula" }}, // dark
  "security": {{
    "auth": {{ "selectedType": "gemini-api-key" }}
  }},
  "mcpServers": {{
    "limner": {{
      "command": {LIMNER},
      "args": [
        "mcp"
      ],
      "env": {{
        "LIMNER_MCP_ANSWER_WITHIN_S": "570"
      }},
      "timeout": 600000
    }}
  }}
}}
"""
OPENCODE = """\
{
  "$schema": "https://opencode.ai/config.json",
  "mcp": {}, // none yet
}
"""
OPENCODE_AFTER = OPENCODE.replace(
    '"mcp": {}',
    f""""mcp": {{
    "limner": {{
      "type": "local",
      "command": [
        {LIMNER},
        "mcp"
      ],
      "environment": {{
        "LIMNER_MCP_ANSWER_WITHIN_S": "570"
      }},
      "enabled": true,
      "timeout": 600000
    }}
  }}""",
)
GOOSE = """\
# my goose
GOOSE_MODE: smart_approve
extensions:   # MCP servers
    developer:
        enabled: true   # always
        type: builtin
GOOSE_MODEL: gpt-5.5
"""
GOOSE_AFTER = GOOSE.replace(
    "# MCP servers\n",
    f"""# MCP servers
    limner:
      type: stdio
      name: limner
      description: Draw, edit and look at pictures
      cmd: {json.loads(LIMNER)}
      args:
      - mcp
      envs:
        LIMNER_MCP_ANSWER_WITHIN_S: '570'
      timeout: 600
      enabled: true
""",
)
ZED = """\
// Zed settings
{
  "theme": "One Dark",
}
"""
ZED_AFTER = f"""\
// Zed settings
{{
  "theme": "One Dark",
  "context_servers": {{
    "limner": {{
      "command": {LIMNER},
      "args": [
        "mcp"
      ]
    }}
  }},
}}
"""
WINDSURF = '{"mcpServers": {}}'
WINDSURF_AFTER = f'{{"mcpServers": {{"limner": {{"command": {LIMNER}, "args": ["mcp"]}}}}}}'
FILES = {
    "claude-code": (".claude.json", CLAUDE_CODE, CLAUDE_CODE_AFTER),
    "claude-desktop": (
        ".config/Claude/claude_desktop_config.json",
        CLAUDE_DESKTOP,
        CLAUDE_DESKTOP_AFTER,
    ),
    "codex": (".codex/config.toml", CODEX, CODEX_AFTER),
    "cursor": (".cursor/mcp.json", CURSOR, CURSOR_AFTER),
    "vscode": (".config/Code/User/mcp.json", VSCODE, VSCODE_AFTER),
    "gemini-cli": (".gemini/settings.json", GEMINI, GEMINI_AFTER),
    "opencode": (".config/opencode/opencode.json", OPENCODE, OPENCODE_AFTER),
    "goose": (".config/goose/config.yaml", GOOSE, GOOSE_AFTER),
    "zed": (".config/zed/settings.json", ZED, ZED_AFTER),
    "windsurf": (".codeium/windsurf/mcp_config.json", WINDSURF, WINDSURF_AFTER),
}
MOVING = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "LIMNER_HOME", "XDG_CONFIG_HOME")


@dataclass(frozen=True)
class User:
    """Somebody with a home folder and a project in it."""

    home: Path
    project: Path

    def install(self, *words: str) -> CommandResult:
        return run_install(_parsed(words))

    def doctor(self, *words: str) -> CommandResult:
        return run_doctor(_parsed(words))

    def uninstall(self, *words: str) -> CommandResult:
        return run_uninstall(_parsed(words))

    def has(self, path: str, content: str) -> Path:
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode())
        return file


def _parsed(words: tuple[str, ...]) -> Any:
    parser = ArgumentParser()
    configure(parser)
    return parser.parse_intermixed_args(words)


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> User:
    home = tmp_path / "ada"
    project = home / "site"
    project.mkdir(parents=True)
    for name in (*MOVING, *passed_on(os.environ)):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")  # no client that could add the server itself
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.chdir(project)
    return User(home, project)


@pytest.mark.parametrize("client", FILES)
def test_only_the_entry_comes_and_only_the_entry_goes(user: User, client: str) -> None:
    path, before, after = FILES[client]
    file = user.has(path, before)
    file.chmod(0o640)
    installed = user.install(client)
    assert file.read_bytes().decode() == after
    backup = file.with_name(f"{file.name}.limner-backup")
    assert backup.read_bytes().decode() == before
    assert [stat.S_IMODE(each.stat().st_mode) for each in (file, backup)] == [0o640, 0o640]
    assert installed.value == {
        "client": client,
        "scope": "user",
        "name": "limner",
        "path": str(file),
        "changed": True,
        "diff": installed.value["diff"],
        "backup": str(backup),
    }
    assert user.install(client).value["changed"] is False
    assert file.read_bytes().decode() == after
    assert user.uninstall(client).value["changed"] is True
    assert file.read_bytes().decode() == before
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert _names(file.parent) == [file.name, *(["site"] if client == "claude-code" else [])]
    assert user.uninstall(client).value["changed"] is False


@pytest.mark.parametrize(
    ("client", "old", "new"),
    [
        ("claude-code", '"numStartups": 34', '"numStartups": 35'),
        ("claude-desktop", '"fs"', '"files"'),
        ("codex", "# the good one", "# the new one"),
        ("vscode", "// ask Grace", "// ask Alan"),
    ],
)
def test_what_changed_elsewhere_since_stays_when_the_entry_goes(
    user: User, client: str, old: str, new: str
) -> None:
    path, before, after = FILES[client]
    file = user.has(path, before)
    user.install(client)
    file.write_bytes(after.replace(old, new).encode())
    user.uninstall(client)
    assert file.read_bytes().decode() == before.replace(old, new)
    assert file.with_name(f"{file.name}.limner-backup").read_bytes().decode() == before


def test_an_empty_table_may_stay_where_the_file_changed_since(user: User) -> None:
    path, before, after = FILES["gemini-cli"]
    file = user.has(path, before)
    user.install("gemini-cli")
    file.write_text(after.replace("Dracula", "Light"))
    user.uninstall("gemini-cli")
    assert file.read_text() == before.replace("Dracula", "Light").replace(
        "  }\n}", '  },\n  "mcpServers": {}\n}'
    )


@pytest.mark.parametrize("client", FILES)
def test_a_client_without_a_file_gets_one_and_loses_it_again(user: User, client: str) -> None:
    file = user.home / FILES[client][0]
    installed = user.install(client)
    assert file.is_file()
    assert installed.value["backup"] is None
    user.uninstall(client)
    assert not file.exists()


def test_a_project_has_files_of_its_own(user: User) -> None:
    found = user.install("claude-code", "--scope", "project")
    assert found.value["path"] == str(user.project / ".mcp.json")
    assert json.loads((user.project / ".mcp.json").read_text())["mcpServers"]["limner"]
    assert not (user.home / ".claude.json").exists()
    with pytest.raises(InputInvalid, match="Claude Desktop has no configuration for a project"):
        user.install("claude-desktop", "--scope", "project")


def test_a_dry_run_shows_the_change_and_makes_none(user: User) -> None:
    path, before, _ = FILES["codex"]
    file = user.has(path, before)
    shown = user.install("codex", "--dry-run")
    assert shown.value["diff"] == (
        f"--- {file}\n+++ {file}\n@@ -15,0 +16,8 @@\n+\n+[mcp_servers.limner]\n"
        f'+command = {LIMNER}\n+args = ["mcp"]\n'
        '+env = { LIMNER_MCP_ANSWER_WITHIN_S = "570" }\n+required = true\n'
        "+startup_timeout_sec = 60\n+tool_timeout_sec = 600"
    )
    assert shown.notes[0] == shown.value["diff"]
    assert (shown.value["changed"], shown.value["backup"]) == (False, None)
    assert user.install("cursor", "--dry-run").value["changed"] is False
    assert [file.read_text(), _names(file.parent), _names(user.home)] == [
        before,
        ["config.toml"],
        [".codex", "site"],
    ]
    user.install("codex")
    kept = file.read_bytes()
    assert user.uninstall("codex", "--dry-run").value["diff"].count("\n-") == 8
    assert file.read_bytes() == kept


def test_the_change_that_is_shown_holds_no_key_of_another_server(user: User) -> None:
    one_line = json.dumps({"mcpServers": {"a": {"env": {"A_TOKEN": "hush-hush"}}}})
    user.has(".cursor/mcp.json", one_line)
    user.has(".claude.json", CLAUDE_CODE)
    shown = [user.install("cursor").value["diff"], user.install("claude-code").value["diff"]]
    assert "hush-hush" not in shown[0]
    assert "not-for-the-screen" not in shown[1]


def test_a_linked_file_is_changed_where_it_lies(user: User) -> None:
    real = user.has("dotfiles/codex.toml", CODEX)
    link = user.home / ".codex" / "config.toml"
    link.parent.mkdir()
    link.symlink_to("../dotfiles/codex.toml")
    found = user.install("codex")
    assert link.is_symlink()
    assert real.read_text() == CODEX_AFTER
    assert (found.value["path"], found.value["backup"]) == (
        str(link),
        str(real.with_name("codex.toml.limner-backup")),
    )


def test_two_names_come_and_go_by_themselves(user: User) -> None:
    path, before, after = FILES["vscode"]
    file = user.has(path, before)
    user.install("vscode")
    user.install("vscode", "--name", "pictures")
    assert file.with_name("mcp.json.limner-backup").read_text() == before
    user.uninstall("vscode", "--name", "pictures")
    assert file.read_text() == after
    user.uninstall("vscode")
    assert file.read_text() == before


def test_a_path_that_moved_is_corrected_and_the_users_additions_stay(user: User) -> None:
    text = CODEX_AFTER.replace(LIMNER, "'/old/bin/limner'") + "cwd = '/srv' # mine\n"
    file = user.has(".codex/config.toml", text)
    assert user.install("codex").value["changed"] is True
    assert file.read_text() == text.replace("'/old/bin/limner'", LIMNER)
    assert user.uninstall("codex").value["changed"] is True
    assert file.read_text() == CODEX


@pytest.mark.parametrize(
    ("client", "content", "where"),
    [
        ("cursor", '{\n  "mcpServers": {\n', "line 3, column 1"),
        ("codex", "model = gpt\n", "line 1, column 9"),
        ("codex", "mcp_servers = { a = { command = 'a' } }\n", "does not allow the entry"),
        ("gemini-cli", '{"mcpServers": 5}', "'mcpServers' is not a table"),
    ],
)
def test_a_file_that_cannot_be_edited_is_left_and_the_entry_shown(
    user: User, client: str, content: str, where: str
) -> None:
    file = user.has(FILES[client][0], content)
    with pytest.raises(SettingsError) as caught:
        user.install(client)
    assert where in caught.value.message
    assert caught.value.extras["path"] == str(file)
    assert caught.value.extras["snippet"] in (caught.value.hint or "")
    assert LIMNER in caught.value.extras["snippet"]
    assert (file.read_text(), _names(file.parent)) == (content, [file.name])


def test_bytes_that_are_no_text_and_folders_are_left(user: User) -> None:
    file = user.has(".cursor/mcp.json", "")
    file.write_bytes("{}".encode("utf-16"))
    with pytest.raises(SettingsError, match="is not valid UTF-8 at byte 0"):
        user.install("cursor")
    (user.home / ".claude.json").mkdir()
    with pytest.raises(StorageError):
        user.install("claude-code")


def test_an_entry_of_somebody_else_keeps_its_name(user: User) -> None:
    content = '{"mcpServers": {"limner": {"command": "npx", "args": ["limner-brushes"]}}}'
    file = user.has(".cursor/mcp.json", content)
    for change in (user.install, user.uninstall):
        with pytest.raises(
            InputInvalid, match="named 'limner' exists already, and it does not start"
        ):
            change("cursor")
    assert file.read_text() == content
    user.install("cursor", "--name", "limner-2")
    assert list(json.loads(file.read_text())["mcpServers"]) == ["limner", "limner-2"]


@pytest.mark.parametrize("name", ["", "a b", "a.b", '"', "x" * 65, "é", "../x"])
def test_a_name_that_some_client_would_not_take_is_refused(user: User, name: str) -> None:
    with pytest.raises(InputInvalid, match="cannot be a server's name"):
        user.install("cursor", "--name", name)


def test_no_client_is_bad_usage(user: User) -> None:
    with pytest.raises(UserError, match="say which client: claude-code, "):
        user.install()


def test_a_folder_of_limner_s_own_is_passed_on(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIMNER_HOME", "pictures")
    user.install("cursor")
    entry = json.loads((user.home / ".cursor" / "mcp.json").read_text())["mcpServers"]["limner"]
    assert entry["env"] == {"LIMNER_HOME": str(user.project / "pictures")}


def test_codex_is_told_which_variables_the_server_reads(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It hides all others from its servers; what is set later is added, and all of it goes."""
    file = user.has(".codex/config.toml", CODEX)

    def named() -> Any:
        return tomllib.loads(file.read_text())["mcp_servers"]["limner"].get("env_vars")

    monkeypatch.setenv("SOMEBODY_ELSES_TOKEN", "x")
    user.install("codex")
    assert named() is None
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef")
    user.install("codex")
    assert named() == ["OPENAI_API_KEY"]
    monkeypatch.setenv("LIMNER_BUDGET_DAY_USD", "1")
    user.install("codex")
    assert named() == ["OPENAI_API_KEY", "LIMNER_BUDGET_DAY_USD"]
    monkeypatch.delenv("OPENAI_API_KEY")
    assert user.install("codex").value["changed"] is False
    monkeypatch.setenv("LIMNER_BUDGET_DAY_USD", "not a number")
    user.uninstall("codex")
    assert file.read_text() == CODEX


def test_a_file_that_changes_meanwhile_is_not_written_over(user: User) -> None:
    file = ConfigFile(user.has(".cursor/mcp.json", "{}"))
    text = file.read()
    file.path.write_text('{"theirs": 1}')
    with pytest.raises(StorageError, match="Another program has just changed"):
        file.write('{"ours": 1}', over=text)
    assert file.path.read_text() == '{"theirs": 1}'


@pytest.mark.slow
def test_the_command_line_prints_one_line_or_one_object(cli: CommandLine) -> None:
    home = cli.studio.cwd / "home"
    home.mkdir()
    env = {"HOME": str(home), "XDG_CONFIG_HOME": "", "CODEX_HOME": ""}
    done = cli.run("mcp", "install", "codex", env=env)
    file = home / ".codex" / "config.toml"
    assert done.status == 0
    assert done.out == f"Codex has limner now; restart it to use it: {file}\n"
    assert "+[mcp_servers.limner]\n" in done.err
    gone = cli.run("mcp", "uninstall", "codex", "--json", env=env)
    assert (gone.status, gone.err, gone.json["changed"]) == (0, "", True)
    assert not file.exists()
    file.write_text("model = \n")
    refused = cli.run("mcp", "install", "codex", "--json", env=env)
    assert (refused.status, refused.error["code"]) == (2, "SETTINGS_INVALID")


def test_the_command_that_is_written_starts_limner(user: User) -> None:
    user.install("cursor")
    entry = json.loads((user.home / ".cursor" / "mcp.json").read_text())["mcpServers"]["limner"]
    done = subprocess.run(
        [entry["command"], *entry["args"], "--help"],
        capture_output=True,
        check=True,
        cwd="/",
        env={"HOME": str(user.home)},
    )
    assert b"usage: limner mcp" in done.stdout


FAKE_CLAUDE = """\
#!/bin/sh
printf '%s\\n' "$@" > "$HOME/words"
cd "$HOME"
echo '{"own": 1, "mcpServers": {"limner": {"command": "limner", "args": ["mcp"]}}}' > .claude.json
"""


def test_a_client_that_can_add_a_server_does_it_itself(
    user: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What its command cannot say is completed in its file."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "claude").write_text(FAKE_CLAUDE)
    (programs / "claude").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    assert user.install("claude-code", "--dry-run").value["diff"]
    assert not (user.home / "words").exists()
    done = user.install("claude-code")
    words = (user.home / "words").read_text().splitlines()
    assert words[:5] == ["mcp", "add-json", "--scope", "user", "limner"]
    assert json.loads(words[5])["timeout"] == 600_000
    written = json.loads((user.home / ".claude.json").read_text())
    assert written == {"own": 1, "mcpServers": {"limner": json.loads(words[5])}}
    assert "own" not in done.value["diff"]


def test_a_client_that_fails_to_add_a_server_is_set_up_by_its_file(
    user: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "codex").write_text("#!/bin/sh\nexit 1\n")
    (programs / "codex").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    file = user.has(".codex/config.toml", CODEX)
    user.install("codex")
    assert file.read_text() == CODEX_AFTER


def test_an_entry_can_be_printed_for_any_client(user: User) -> None:
    printed = user.install("--print").text
    assert json.loads(printed) == {
        "mcpServers": {"limner": {"command": json.loads(LIMNER), "args": ["mcp"]}}
    }
    goose = user.install("goose", "--print", "--name", "pictures")
    assert goose.text.startswith("extensions:\n  pictures:\n    type: stdio\n    name: pictures\n")
    assert _names(user.home) == ["site"]


def test_an_installation_in_the_cache_of_uvx_is_started_by_uvx(
    user: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "CACHEDIR.TAG").touch()
    monkeypatch.setenv("UV", "/usr/bin/uv")
    assert json.loads(user.install("--print").text)["mcpServers"]["limner"]["args"] == ["mcp"]
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "archive-v0" / "x"))
    printed = json.loads(user.install("--print").text)
    assert printed["mcpServers"]["limner"] == {"command": "/usr/bin/uvx", "args": ["limner", "mcp"]}


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"command": "/no/such/limner", "args": ["mcp"]}, "does not exist: run install again"),
        ({"command": "npx", "args": ["other"]}, "does not start limner"),
        ({"command": "limner", "args": ["mcp"], "disabled": True}, "is disabled"),
    ],
)
def test_doctor_says_what_is_wrong_with_an_entry(
    user: User, entry: dict[str, Any], says: str
) -> None:
    user.has(".cursor/mcp.json", json.dumps({"mcpServers": {"limner": entry}}))
    done = user.doctor("cursor")
    assert done.status == 1
    assert says in done.text


def test_doctor_says_that_a_file_is_broken_or_that_there_is_no_entry(user: User) -> None:
    none = user.doctor()
    assert (none.status, none.text) == (1, "No client has limner. Run limner mcp install CLIENT.")
    assert user.doctor("zed").text == "Zed has no limner. Run limner mcp install zed."
    user.has(".cursor/mcp.json", "{")
    broken = user.doctor("cursor")
    assert (broken.status, broken.value["checks"][0]["ok"]) == (1, False)


@pytest.mark.slow
def test_doctor_says_that_no_call_works_with_these_settings(user: User) -> None:
    user.install("codex")
    user.has(".limner/config.toml", '[budget]\nday_usd = "much"\n')
    done = user.doctor("codex")
    assert done.status == 1
    assert "no call works" in done.text
    assert "budget.day_usd must be an amount in dollars" in done.text


def test_doctor_finds_limner_under_every_name(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    # The project's file is the user's own there.
    monkeypatch.chdir(user.home)
    gone = {"command": "/no/such/limner", "args": ["mcp"]}
    other = {"command": "npx", "args": ["other"]}
    servers = {"pictures": gone, "drawings": gone, "other": other}
    user.has(".cursor/mcp.json", json.dumps({"mcpServers": servers}))
    details = [one["detail"] for one in user.doctor().value["checks"]]
    assert ["'pictures'" in details[0], "'drawings'" in details[1], len(details)] == [True, True, 2]
