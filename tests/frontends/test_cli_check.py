"""`limner check`: its report file, and what a model was paid for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from tests.acceptance.conftest import OPENAI_KEY
from tests.frontends.cli_process import CommandLine

from limner.testing.servers.model_server import ModelAnswer
from limner.testing.servers.responses_server import ResponsesServer

pytestmark = pytest.mark.slow

CRITERION = "looks friendly"
ANSWER = '{"verdicts": [{"number": 1, "verdict": "pass", "evidence": "it smiles"}]}'


@pytest.fixture
def model() -> Iterator[ResponsesServer]:
    with ResponsesServer() as server:
        server.model_answer = ModelAnswer(pieces=(ANSWER,))
        yield server


@pytest.fixture
def desk(cli: CommandLine, model: ResponsesServer) -> CommandLine:
    cli.studio.env |= {
        "OPENAI_API_KEY": OPENAI_KEY,
        "OPENAI_BASE_URL": model.base_url,
        "LIMNER_MODEL_ROLES_VISION": "openai/gpt-5.5",
    }
    Image.new("RGB", (60, 40), "red").save(cli.studio.cwd / "pic.png")
    return cli


@pytest.mark.parametrize("report", ["missing/report.xml", "."])
def test_a_report_that_cannot_be_written_is_refused_before_a_model_is_paid(
    desk: CommandLine, model: ResponsesServer, report: str
) -> None:
    done = desk.run("check", "pic.png", "--expect", CRITERION, "--junit", report)
    assert (done.status, done.err) == (2, f"limner: {report!r} cannot be written\n")
    assert model.requests == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full disk")
def test_a_report_that_fails_to_be_written_does_not_lose_the_verdicts(desk: CommandLine) -> None:
    words = ("check", "pic.png", "--expect", CRITERION, "--json")
    wanted = desk.run(*words).json["criteria"]
    done = desk.run(*words, "--junit", "/dev/full")
    assert (done.status, done.json["criteria"]) == (2, wanted)
    assert done.err == "limner: '/dev/full' cannot be written: No space left on device\n"
