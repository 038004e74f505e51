"""Where each client looks, what it is told, and the pages that say so."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.ecosystem.agents import AGENTS
from tests.servers.components import needs

import limner
from limner.frontends.mcp import install
from limner.frontends.mcp.clients import AS_MODULE, CLIENTS, ClientSetup
from limner.frontends.mcp.offers import compiled

ROOT = Path(limner.__file__).parents[2]
PAGES = ROOT / "docs" / "guides" / "clients"
HOME, CWD = Path("/home/ada"), Path("/srv/site")
COMMAND = "/usr/local/bin/limner"


def _place(system: str, env: Mapping[str, str] | None = None) -> ClientSetup:
    return ClientSetup(system=system, env=env or {}, home=HOME, cwd=CWD)


def _user_files(place: ClientSetup) -> dict[str, str]:
    return {name: str(client.files["user"](place)) for name, client in CLIENTS.items()}


def test_the_command_line_offers_every_client_there_is() -> None:
    assert tuple(CLIENTS) == install.CLIENTS


def test_each_client_has_its_documented_file_on_linux() -> None:
    assert _user_files(_place("linux")) == {
        "claude-code": "/home/ada/.claude.json",
        "claude-desktop": "/home/ada/.config/Claude/claude_desktop_config.json",
        "codex": "/home/ada/.codex/config.toml",
        "cursor": "/home/ada/.cursor/mcp.json",
        "vscode": "/home/ada/.config/Code/User/mcp.json",
        "gemini-cli": "/home/ada/.gemini/settings.json",
        "opencode": "/home/ada/.config/opencode/opencode.json",
        "goose": "/home/ada/.config/goose/config.yaml",
        "zed": "/home/ada/.config/zed/settings.json",
        "windsurf": "/home/ada/.codeium/windsurf/mcp_config.json",
    }


def test_desktop_programs_have_other_folders_on_macos_and_windows() -> None:
    support = "/home/ada/Library/Application Support"
    mac = _user_files(_place("darwin"))
    assert mac["claude-desktop"] == f"{support}/Claude/claude_desktop_config.json"
    assert mac["vscode"] == f"{support}/Code/User/mcp.json"
    windows = _user_files(_place("win32", {"APPDATA": "/c/Roaming"}))
    assert windows["claude-desktop"] == "/c/Roaming/Claude/claude_desktop_config.json"
    assert windows["vscode"] == "/c/Roaming/Code/User/mcp.json"
    assert windows["cursor"] == "/home/ada/.cursor/mcp.json"
    assert windows["goose"] == "/c/Roaming/Block/goose/config/config.yaml"
    assert windows["zed"] == "/c/Roaming/Zed/settings.json"
    unset = _user_files(_place("win32"))
    assert unset["vscode"] == "/home/ada/AppData/Roaming/Code/User/mcp.json"


def test_claude_desktop_from_the_windows_store_has_a_folder_of_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "Packages" / "Claude_pzs8sxrjxfjjc" / "LocalCache" / "Roaming" / "Claude"
    folder.mkdir(parents=True)
    place = _place("win32", {"APPDATA": "/c/Roaming", "LOCALAPPDATA": str(tmp_path)})
    assert CLIENTS["claude-desktop"].files["user"](place) == folder / "claude_desktop_config.json"


def test_variables_that_move_a_client_are_heeded() -> None:
    env = {
        "CLAUDE_CONFIG_DIR": "/x/claude",
        "CODEX_HOME": "codex-here",
        "GEMINI_CLI_HOME": "/x/gemini",
        "XDG_CONFIG_HOME": "/x/config",
    }
    assert _user_files(_place("linux", env)) == {
        "claude-code": "/x/claude/.claude.json",
        "claude-desktop": "/x/config/Claude/claude_desktop_config.json",
        "codex": "/srv/site/codex-here/config.toml",
        "cursor": "/home/ada/.cursor/mcp.json",
        "vscode": "/x/config/Code/User/mcp.json",
        "gemini-cli": "/x/gemini/.gemini/settings.json",
        "opencode": "/x/config/opencode/opencode.json",
        "goose": "/x/config/goose/config.yaml",
        "zed": "/x/config/zed/settings.json",
        "windsurf": "/home/ada/.codeium/windsurf/mcp_config.json",
    }


def test_most_clients_can_be_set_up_for_a_project() -> None:
    found = {
        name: str(client.files["project"](_place("linux")))
        for name, client in CLIENTS.items()
        if "project" in client.files
    }
    assert found == {
        "claude-code": "/srv/site/.mcp.json",
        "codex": "/srv/site/.codex/config.toml",
        "cursor": "/srv/site/.cursor/mcp.json",
        "vscode": "/srv/site/.vscode/mcp.json",
        "gemini-cli": "/srv/site/.gemini/settings.json",
        "opencode": "/srv/site/opencode.json",
        "zed": "/srv/site/.zed/settings.json",
    }


def test_an_entry_names_limner_s_folder_where_it_is_not_the_usual_one() -> None:
    entry = CLIENTS["codex"].entry([COMMAND], home=Path("/data/limner"))
    assert CLIENTS["codex"].snippet("pictures", entry) == (
        "[mcp_servers.pictures]\n"
        f'command = "{COMMAND}"\n'
        'args = ["mcp"]\n'
        'env = { LIMNER_HOME = "/data/limner", LIMNER_MCP_ANSWER_WITHIN_S = "570" }\n'
        "required = true\n"
        "startup_timeout_sec = 60\n"
        "tool_timeout_sec = 600\n"
    )


def test_without_a_script_python_itself_starts_limner() -> None:
    entry = CLIENTS["cursor"].entry(["C:\\Py\\python.exe", *AS_MODULE])
    assert entry == {
        "type": "stdio",
        "command": "C:\\Py\\python.exe",
        "args": ["-P", "-m", "limner", "mcp"],
    }


def test_a_project_with_a_folder_named_limner_is_not_run_in_its_place(tmp_path: Path) -> None:
    """Clients start servers in the folder that they work in, which may be a stranger's."""
    (tmp_path / "limner").mkdir()
    (tmp_path / "limner" / "__init__.py").write_text("raise SystemExit(9)")
    words = [sys.executable, *AS_MODULE, "mcp", "--help"]
    assert subprocess.run(words, cwd=tmp_path, capture_output=True, check=False).returncode == 0


def test_variables_are_named_but_not_the_folder_that_is_given() -> None:
    names = {"OPENAI_API_KEY", "LIMNER_HOME", "LIMNER_BUDGET_DAY_USD"}
    client = CLIENTS["codex"]
    assert client.entry([COMMAND], variables=names)["env_vars"] == sorted(names)
    assert client.entry([COMMAND], home=Path("/l"), variables=names)["env_vars"] == [
        "LIMNER_BUDGET_DAY_USD",
        "OPENAI_API_KEY",
    ]


def _console(name: str) -> list[str]:
    page = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```console\n(.*?)```", page, re.DOTALL)
    return [line.removeprefix("$ ") for line in block.splitlines()]


@pytest.mark.parametrize("name", CLIENTS)
def test_the_page_of_a_client_shows_what_install_writes(name: str) -> None:
    client = CLIENTS[name]
    page = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    assert page.startswith(f"# {client.title}\n")
    install, doctor, *own = _console(name)
    assert (install, doctor) == (f"limner mcp install {name}", f"limner mcp doctor {name}")
    # `make ecosystem` runs the list of each agent that it can install.
    assert own == [f"{agent.program} mcp list" for agent in AGENTS if agent.client == name][:1]
    (shown,) = re.findall(r"```(?:json|toml|yaml)\n(.*?)```", page, re.DOTALL)
    assert shown == client.snippet("limner", client.entry([COMMAND]))


def test_every_client_has_a_page_and_the_index_names_it() -> None:
    index = (PAGES / "index.md").read_text(encoding="utf-8")
    assert {path.stem for path in PAGES.glob("*.md")} == {"index", *CLIENTS}
    rows = re.findall(r"^\| \[(.*?)\]\((.*?)\.md\) \| `limner mcp install (.*?)` \|$", index, re.M)
    assert rows == [(client.title, name, name) for name, client in CLIENTS.items()]


@pytest.mark.slow
@pytest.mark.parametrize("name", CLIENTS)
def test_the_commands_of_a_page_set_the_client_up(name: str, tmp_path: Path) -> None:
    env = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(tmp_path)}
    place = ClientSetup(system=sys.platform, env=env, home=tmp_path, cwd=tmp_path)
    printed: list[str] = []
    for words in map(str.split, _console(name)[:2]):
        command = [sys.executable, *AS_MODULE, *words[1:]]
        done = subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        printed.append(done.stdout)
    file = str(CLIENTS[name].files["user"](place))
    assert [file in text for text in printed] == [True, True]
    assert f"answers with {len(compiled().tools)} tools" in printed[1]


def test_the_registry_s_description_is_of_this_version() -> None:
    described = json.loads((ROOT / "server.json").read_text(encoding="utf-8"))
    version = limner.__version__
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", described["name"])
    # The registry reads from the package's own page that the name belongs to it.
    assert f"<!-- mcp-name: {described['name']} -->" in (ROOT / "README.md").read_text("utf-8")
    assert len(described["description"]) <= 100
    assert described["version"] == version
    assert described["packages"] == [
        {
            "registryType": "pypi",
            "identifier": "limner",
            "version": version,
            "runtimeHint": "uvx",
            "packageArguments": [{"type": "positional", "value": "mcp"}],
            "transport": {"type": "stdio"},
            "environmentVariables": described["packages"][0]["environmentVariables"],
        }
    ]
    variables = described["packages"][0]["environmentVariables"]
    assert [(each["name"], each["isRequired"], each.get("isSecret")) for each in variables] == [
        ("OPENAI_API_KEY", False, True),
        ("LIMNER_HOME", False, None),
    ]


def test_setting_up_a_client_loads_nothing_of_the_sdk() -> None:
    program = (
        "import sys, limner.frontends.mcp.install, limner.frontends.mcp.installer;"
        "print('mcp' in sys.modules, 'pydantic' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.decode().split() == ["False", "False"]


@needs("codex_cli_bin")
def test_the_real_codex_reads_the_entry(tmp_path: Path) -> None:
    import codex_cli_bin

    client = CLIENTS["codex"]
    snippet = client.snippet("limner", client.entry([COMMAND]))
    (tmp_path / "config.toml").write_text(f'model = "gpt-5.5" # mine\n\n{snippet}')
    codex = Path(str(codex_cli_bin.__file__)).parent / "bin" / "codex"
    done = subprocess.run(
        [codex, "mcp", "get", "limner", "--json"],
        capture_output=True,
        check=True,
        env={**os.environ, "CODEX_HOME": str(tmp_path)},
    )
    read = json.loads(done.stdout)
    assert read["transport"] == {
        "type": "stdio",
        "command": COMMAND,
        "args": ["mcp"],
        "env": {"LIMNER_MCP_ANSWER_WITHIN_S": "570"},
        "env_vars": [],
        "cwd": None,
    }
    assert (read["enabled"], read["startup_timeout_sec"], read["tool_timeout_sec"]) == (
        True,
        60.0,
        600.0,
    )
