"""Schemathesis reads the OpenAPI description of the studio, and tries to break the server."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from tests.acceptance.conftest import picture
from tests.fuzz import IS_LONG


@pytest.mark.parametrize(
    "examples",
    [
        pytest.param(3, marks=pytest.mark.slow),
        pytest.param(1000 if IS_LONG else 100, marks=pytest.mark.browser),
    ],
)
def test_no_request_by_the_description_breaks_the_server(studio: Any, examples: int) -> None:
    studio.start()
    studio.add("a.png", picture(60, 60))
    (file,) = (studio.home / "tokens").glob("studio-127*")
    words = [
        "run",
        f"{studio.origin}/api/openapi.json",
        f"--header=Authorization: Bearer {file.read_text()}",
        "--checks=not_a_server_error",
        f"--max-examples={examples}",
        "--phases=fuzzing" if examples == 3 else "--phases=examples,coverage,fuzzing",
        # It never ends, as it should.
        "--exclude-path=/api/events",
        "--seed=1",
        "--request-timeout=60",
        "--no-color",
    ]
    start = "from schemathesis.cli import schemathesis; schemathesis()"
    done = subprocess.run(
        [sys.executable, "-c", start, *words],
        cwd=studio.cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
