"""A place for app-servers, and a model that they talk to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.servers.appserver_process import Stage, staged
from tests.servers.scripted import says


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with staged(tmp_path, says("All ", "right.")) as made:
        yield made
