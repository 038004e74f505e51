"""A command -> the same command in a PID namespace of its own, as a container has."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache

import pytest

ANOTHER_CONTAINER = (
    "unshare",
    "-r",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
)


@cache
def _works() -> bool:
    if shutil.which("unshare") is None:
        return False
    tried = subprocess.run([*ANOTHER_CONTAINER, "true"], capture_output=True, check=False)
    return tried.returncode == 0


def needs_namespaces() -> pytest.MarkDecorator:
    """Skips a test if this machine does not let it make a PID namespace."""
    return pytest.mark.skipif(not _works(), reason="no PID namespace can be made here")
