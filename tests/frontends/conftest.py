"""The command line beside the servers it is pointed at."""

from __future__ import annotations

import pytest
from tests.acceptance.conftest import Studio, openai, replicate, studio
from tests.frontends.cli_process import CommandLine

__all__ = ["openai", "replicate", "studio"]


@pytest.fixture
def cli(studio: Studio) -> CommandLine:
    return CommandLine(studio)
