"""A name and a folder -> an app-server to be measured: its command, home and environment.

Both find the same model at the same address, with no message of the client's naming it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec

MODEL = "gpt-5.5"
KEY = "sk-benchmark"
# What is off would ask services elsewhere for news.
CODEX_CONFIG = """\
model = "{model}"
model_provider = "here"

[model_providers.here]
name = "here"
base_url = "{base_url}"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
supports_websockets = false

[features]
apps = false
plugins = false
remote_plugin = false

[analytics]
enabled = false
"""


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """An app-server that has a home of its own."""

    name: str
    command: tuple[str, ...]
    home: Path
    cwd: Path
    env: dict[str, str]

    def room_bytes(self) -> int:
        """What its home takes on disk."""
        return sum(file.stat().st_size for file in self.home.rglob("*") if file.is_file())


def limner(folder: Path, *, base_url: str) -> Peer:
    """Our own, as it is installed here."""
    home, cwd = _folders(folder, "limner")
    env = {
        "LIMNER_HOME": str(home),
        "LIMNER_MODEL_ROLES_DEFAULT": f"openai/{MODEL}",
        "OPENAI_BASE_URL": base_url,
    }
    command = (str(Path(sys.executable).parent / "limner"), "app-server")
    return Peer(name="limner", command=command, home=home, cwd=cwd, env=_env(cwd, env))


def codex(folder: Path, *, base_url: str) -> Peer:
    """The real one, from the wheel that carries its binary.

    Raises:
        ImportError: it is not installed.
    """
    from codex_cli_bin import bundled_codex_path

    home, cwd = _folders(folder, "codex")
    (home / "config.toml").write_text(CODEX_CONFIG.format(model=MODEL, base_url=base_url))
    # Whatever else it wants to reach ends at the model, which says that there is nothing.
    elsewhere = dict.fromkeys(("ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY"), base_url)
    env = {"CODEX_HOME": str(home), "NO_PROXY": "127.0.0.1", **elsewhere}
    command = (str(bundled_codex_path()), "app-server")
    return Peer(name="codex", command=command, home=home, cwd=cwd, env=_env(cwd, env))


def _folders(folder: Path, name: str) -> tuple[Path, Path]:
    home, cwd = folder / f"{name}-home", folder / f"{name}-work"
    home.mkdir(parents=True)
    cwd.mkdir()
    return home, cwd


def _env(cwd: Path, more: dict[str, str]) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(cwd), "OPENAI_API_KEY": KEY, **more}
