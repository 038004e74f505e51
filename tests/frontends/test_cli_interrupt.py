"""Ctrl-C cancels what can be cancelled, and the command says what it cost."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest
from tests.frontends.cli_process import CommandLine, Done

from limner.testing.servers.http_server import Gate, Reply
from limner.testing.servers.openai_server import OpenAIServer
from limner.testing.servers.replicate_server import ReplicateServer

PAID = ["generate", "a fox", "--provider", "openai-image"]
FLUX = ["generate", "a fox", "--provider", "replicate-flux"]
HELD = Reply(hold=Gate())


def only_job(cli: CommandLine) -> str:
    (job,) = cli.run("jobs", "list", "--json").json["jobs"]
    return job["id"]


@pytest.mark.slow
async def test_interrupting_a_request_that_cannot_be_called_off_tells_what_it_may_cost(
    cli: CommandLine, openai: OpenAIServer
) -> None:
    cli.studio.connect(openai)
    openai.always("generate", HELD)
    running = cli.start(*PAID)
    await openai.wait_until("generate")
    running.interrupt()
    assert running.end() == Done(
        status=130,
        err="limner: The call was cancelled.\n"
        "  It may have cost $0.013515.\n"
        f"  Job: {only_job(cli)} (limner jobs list)\n"
        "  Look at your account at openai-image before you ask again.\n",
    )
    assert cli.run("spend", "--json").json["unknown_usd"] == 0.013515


@pytest.mark.slow
async def test_an_interruption_is_one_json_object_too(
    cli: CommandLine, openai: OpenAIServer
) -> None:
    cli.studio.connect(openai)
    openai.always("generate", HELD)
    running = cli.start(*PAID, "--json")
    await openai.wait_until("generate")
    running.interrupt()
    done = running.end()
    assert (done.status, done.err) == (130, "")
    assert done.error == {
        "code": "CANCELLED",
        "message": "The call was cancelled.",
        "retryable": False,
        "billed": True,
        "cost_usd": 0.013515,
        "hint": "Look at your account at openai-image before you ask again.",
        "job_id": only_job(cli),
    }


@pytest.mark.slow
async def test_interrupting_flux_calls_the_prediction_off_and_costs_nothing(
    cli: CommandLine, replicate: ReplicateServer
) -> None:
    cli.studio.connect(replicate)
    replicate.looks = 1_000_000
    running = cli.start(*FLUX)
    await replicate.wait_until("look")
    running.interrupt()
    assert running.end() == Done(
        status=130, err="limner: The call was cancelled.\n  It cost nothing.\n"
    )
    (prediction,) = replicate.predictions.values()
    assert prediction["status"] == "canceled"
    assert cli.run("spend", "--json").json["total_usd"] == 0


@pytest.mark.slow
async def test_a_second_interruption_does_not_wait_for_the_service(
    cli: CommandLine, replicate: ReplicateServer
) -> None:
    cli.studio.connect(replicate)
    replicate.looks = 1_000_000
    replicate.always("cancel", HELD)
    running = cli.start(*FLUX, "--json")
    await replicate.wait_until("look")
    running.interrupt()
    await replicate.wait_until("cancel")
    running.interrupt()
    done = running.end()
    assert (done.status, done.err) == (130, "")
    assert (done.error["code"], done.error["cost_usd"]) == ("CANCELLED", 0.003)
    assert done.error["job_id"] == only_job(cli)


@pytest.mark.slow
@pytest.mark.parametrize("presses", [5, None], ids=["five", "until it ends"])
async def test_however_often_ctrl_c_is_pressed_there_is_no_traceback(
    cli: CommandLine, openai: OpenAIServer, presses: int | None
) -> None:
    cli.studio.connect(openai)
    openai.always("generate", HELD)
    for count in range(1, 6):
        running = cli.start(*PAID)
        await openai.wait_until("generate", count=count)
        running.interrupt(presses)
        done = running.end()
        assert done.status in (130, -signal.SIGINT)  # a shell reports 130 for both
        assert done.out == ""
        assert "Traceback" not in done.err
        assert "KeyboardInterrupt" not in done.err
    assert cli.run("spend", "--json").json["unknown_usd"] == 5 * 0.013515


@pytest.mark.slow
async def test_a_batch_ends_its_rows_in_flight_and_a_second_interruption_stops_them(
    cli: CommandLine, openai: OpenAIServer
) -> None:
    cli.studio.connect(openai)
    openai.always("generate", HELD)
    row = {"key": "fox", "prompt": "a fox", "provider": "openai-image"}
    (cli.studio.cwd / "rows.jsonl").write_text(json.dumps(row))
    batch = cli.in_terminal("batch", "run", "rows.jsonl", "--budget", "1")
    await openai.wait_until("generate")
    batch.interrupt()
    batch.wait_until("Press Ctrl-C again to stop them too.")
    batch.interrupt()
    done = batch.end()
    assert done.status == 130
    assert "goes on; no row is paid twice." in " ".join(done.err.split())
    left = cli.run("batch", "status", "rows.jsonl", "--json").json
    assert (left["rows"]["failed"], left["unknown_usd"]) == (1, 0.013515)


def test_a_press_before_the_work_begins_is_not_lost() -> None:
    script = """
import asyncio, signal
from limner.errors import Cancelled
from limner.frontends.cli.terminal import wait_for

class Pressed(asyncio.DefaultEventLoopPolicy):
    def new_event_loop(self):
        signal.raise_signal(signal.SIGINT)
        return super().new_event_loop()

async def work():
    print("began")

asyncio.set_event_loop_policy(Pressed())
try:
    wait_for(work)
except Cancelled as error:
    print(error.message, signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "Interrupted. True\n"
