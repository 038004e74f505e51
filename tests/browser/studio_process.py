"""`limner studio` as a process, with services on this machine in place of the real ones."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2
from tests.acceptance.conftest import OPENAI_KEY

from limner.testing.servers.openai_server import OpenAIServer

START = "from limner.frontends.cli.main import main; import sys; sys.exit(main())"
ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)/\?token=\S+")
MODEL = "anthropic/claude-opus-4-8"


class StudioProcess:
    """A home, and the server for it; `start` can be called again after `kill`.

    Attributes:
        home: the limner home.
        url: the address that works once.
        port: the port; it stays the same after a restart.
    """

    def __init__(self, folder: Path) -> None:
        self.home, self.cwd = folder / "limner-home", folder / "work"
        self.cwd.mkdir(parents=True)
        self.env = {"HOME": str(folder), "LIMNER_HOME": str(self.home), "PATH": "/usr/bin:/bin"}
        self.url, self.port = "", 0
        self._process: subprocess.Popen[str] | None = None

    def connect(self, drawer: OpenAIServer | None, talker: Any = None) -> None:
        """Use services on this machine."""
        if drawer is not None:
            self.env |= {"OPENAI_API_KEY": OPENAI_KEY, "OPENAI_BASE_URL": drawer.base_url}
        if talker is not None:
            self.env |= {
                "ANTHROPIC_API_KEY": "sk-ant-test-0123456789",
                "ANTHROPIC_BASE_URL": talker.base_url,
                "LIMNER_MODEL_ROLES_DEFAULT": MODEL,
            }

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start the server and wait for its address."""
        words = ["-c", START, "studio", "--no-open", "--port", str(self.port)]
        paths = [str(path) for path in sys.path if path]
        self._process = subprocess.Popen(
            [sys.executable, *words],
            env={**self.env, "PYTHONPATH": ":".join(paths)},
            cwd=self.cwd,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        found = ADDRESS.search(line)
        assert found is not None, line
        self.url, self.port = found[0], int(found[1])

    def stop(self, how: int = signal.SIGTERM) -> None:
        """End the server, and wait for its end."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.communicate(timeout=60)
            self._process = None

    def api(self) -> httpx2.Client:
        """A program with the token of the server."""
        (file,) = (self.home / "tokens").glob("studio-127*")
        headers: Mapping[str, str] = {"authorization": f"Bearer {file.read_text()}"}
        return httpx2.Client(base_url=self.origin, headers=headers, timeout=60)

    def add(self, name: str, data: bytes) -> str:
        """Put a picture into the store; its handle."""
        with self.api() as api:
            answer = api.post("/api/pictures", params={"name": name}, content=data)
            assert answer.status_code == 200, answer.text
            return answer.json()["handle"]
