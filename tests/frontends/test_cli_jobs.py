"""`limner jobs` and `limner spend`: the jobs of a process that died."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.frontends.cli_process import CommandLine, Done

from limner.testing.servers.http_server import Gate, Reply
from limner.testing.servers.openai_server import OpenAIServer
from limner.testing.servers.replicate_server import ReplicateServer

pytestmark = pytest.mark.slow

FLUX = ["generate", "a fox", "--provider", "replicate-flux", "--out", "fox.png"]


@pytest.fixture
async def killed(cli: CommandLine, replicate: ReplicateServer) -> str:
    """The job of a process that was killed while Flux was drawing for it."""
    cli.studio.connect(replicate)
    replicate.looks = 1_000_000
    running = cli.start(*FLUX)
    await replicate.wait_until("look")
    running.kill()
    replicate.looks = 1
    (job,) = cli.run("jobs", "list", "--json").json["jobs"]
    assert job.pop("created_ms") > 0
    assert job == {
        "id": job["id"],
        "provider": "replicate-flux",
        "model": "black-forest-labs/flux-schnell",
        "remote_id": next(iter(replicate.predictions)),
        "state": "open",
        "quoted_usd": 0.003,
    }
    return job["id"]


def test_without_interrupted_jobs_there_is_nothing_to_recover(cli: CommandLine) -> None:
    assert cli.run_all(["jobs", "list"], ["jobs", "recover"], ["spend"]) == [
        Done(status=0, err="No job is open.\n"),
        Done(status=0, err="Nothing to recover.\n"),
        Done(status=0, out="$0.00 in all\n"),
    ]


def test_the_picture_of_a_killed_process_is_recovered(cli: CommandLine, killed: str) -> None:
    path = cli.studio.cwd / "fox.png"
    assert cli.run("jobs", "list").out.split()[::4] == [killed, "open"]
    assert cli.run("jobs", "recover") == Done(
        status=0, out=f"{path}\n", err=f"{killed}: recovered to {path}\n"
    )
    assert path.read_bytes().startswith(b"\x89PNG")
    assert cli.run("jobs", "list").err == "No job is open.\n"
    spend = cli.run("spend", "--json").json
    assert (spend["total_usd"], spend["unknown_usd"]) == (0.003, 0)


def test_a_prediction_that_failed_meanwhile_costs_nothing(
    cli: CommandLine, replicate: ReplicateServer, killed: str
) -> None:
    replicate.outcome, replicate.error = "failed", "out of memory"
    done = cli.run("jobs", "recover", killed, "--json")
    (outcome,) = done.json["jobs"]
    assert (done.status, outcome["job"], outcome["state"]) == (3, killed, "failed")
    assert outcome["error"]["billed"] is False
    assert done.err == f"{killed}: {outcome['error']['message']}\n"
    assert cli.run("spend", "--json").json["total_usd"] == 0


def test_a_job_that_does_not_exist_is_named(cli: CommandLine) -> None:
    assert cli.run("jobs", "recover", "job_0") == Done(
        status=2,
        err="limner: there is no open job 'job_0'\n  limner jobs list shows them\n",
    )


async def test_a_job_that_another_process_waits_for_is_left_alone(
    cli: CommandLine, replicate: ReplicateServer
) -> None:
    cli.studio.connect(replicate)
    replicate.looks = 1_000_000
    running = cli.start(*FLUX)
    await replicate.wait_until("look")
    (outcome,) = cli.run("jobs", "recover", "--json").json["jobs"]
    spend = cli.run("spend").out.splitlines()[:2]
    running.kill()
    assert (outcome["state"], outcome["reason"]) == ("waiting", "another process is waiting for it")
    assert spend == ["$0.00 in all", "$0.003 more is set aside for calls in flight"]


async def test_a_job_whose_provider_cannot_be_asked_stays_counted(
    cli: CommandLine, openai: OpenAIServer
) -> None:
    cli.studio.connect(openai)
    openai.always("generate", Reply(hold=Gate()))
    running = cli.start("generate", "a fox", "--provider", "openai-image")
    await openai.wait_until("generate")
    running.kill()
    done = cli.run("jobs", "recover")
    assert (done.status, done.out) == (0, "")
    assert done.err.endswith(
        ": its provider cannot tell what became of it; it stays counted\n"
        "`limner jobs settle ID --cost USD` or `limner jobs forget ID` closes a job.\n"
    )
    spend = cli.run("spend").out.splitlines()
    assert spend[:2] == [
        "$0.013515 in all",
        "$0.013515 of it may not have been charged: limner jobs list",
    ]
    assert spend[-1].split()[::3] == ["$0.013515", "unknown"]
    assert spend[-1].endswith("openai-image    OWNER_DIED")


def test_spend_lists_the_newest_sessions_and_the_rest_by_pages(
    cli: CommandLine, openai: OpenAIServer
) -> None:
    cli.studio.connect(openai)
    for _ in range(3):
        assert cli.run("generate", "a fox", "--provider", "openai-image").status == 0
    pages = [cli.run("spend", "--json", "--limit", "2").json]
    pages.append(cli.run("spend", "--json", "--limit", "2", "--after", str(pages[0]["next"])).json)
    assert [len(page["by_session"]) for page in pages] == [2, 1]
    assert [page["next"] for page in pages] == [2, None]
    assert len({line["name"] for page in pages for line in page["by_session"]}) == 3
    assert cli.run("spend", "--limit", "0").status == 2


def test_the_doctor_finds_sums_that_differ_from_the_ledger(cli: CommandLine) -> None:
    assert cli.run("spend").status == 0
    with closing(sqlite3.connect(cli.studio.home / "limner.db")) as database, database:
        database.execute("INSERT INTO spending VALUES ('session', 's', 5, 0, 0, 1, 1)")
    done = cli.run("doctor")
    assert done.status == 1
    (line,) = [line for line in done.out.splitlines() if not line.startswith(("ok  ", "works now"))]
    assert line == (
        "FAIL  database    1 sums differ from the rows of the ledger: session s. "
        "Budgets go by these sums. `limner doctor --repair` adds them up anew."
    )


@pytest.mark.parametrize(
    ("words", "usd", "source"),
    [
        (("settle", "--cost", "0.01"), 0.01, "provider"),
        (("settle", "--cost", "0"), 0.0, "provider"),
        (("forget",), 0.003, "unknown"),
    ],
)
def test_a_job_without_an_outcome_is_closed_by_the_user(
    cli: CommandLine, killed: str, words: tuple[str, ...], usd: float, source: str
) -> None:
    action, *cost = words
    done = cli.run("jobs", action, killed, *cost, "--json")
    assert (done.status, done.err) == (0, "")
    assert done.json == {"job": killed, "state": "closed", "cost_usd": usd, "cost_source": source}
    assert cli.run("jobs", "list").err == "No job is open.\n"
    spend = cli.run("spend", "--json").json
    assert (spend["total_usd"], spend["unknown_usd"]) == (usd, 0)


async def test_only_a_job_that_is_open_is_closed(
    cli: CommandLine, replicate: ReplicateServer
) -> None:
    cli.studio.connect(replicate)
    replicate.looks = 1_000_000
    running = cli.start(*FLUX)
    await replicate.wait_until("look")
    (job,) = cli.run("jobs", "list", "--json").json["jobs"]
    done = cli.run("jobs", "forget", job["id"])
    running.kill()
    assert (done.status, done.err) == (
        2,
        f"limner: Another process is waiting for {job['id']}.\n  End it first.\n",
    )


def test_a_job_whose_picture_is_stored_cannot_be_forgotten(
    cli: CommandLine, openai: OpenAIServer
) -> None:
    cli.studio.connect(openai)
    cli.run("generate", "a fox", "--provider", "openai-image")
    # As if the process had died before it wrote the file.
    with closing(sqlite3.connect(cli.studio.home / "limner.db")) as database, database:
        database.execute("UPDATE ledger SET path = NULL, owner = 'ended'")
    (job,) = cli.run("jobs", "list", "--json").json["jobs"]
    assert cli.run("jobs", "forget", job["id"]) == Done(
        status=2,
        err=f"limner: The picture of {job['id']} is paid for and stored.\n"
        f"  `limner jobs recover {job['id']}` writes its file.\n",
    )


def test_forgetting_a_job_deletes_its_bytes(cli: CommandLine, openai: OpenAIServer) -> None:
    cli.studio.connect(openai)
    openai.picture = b"no picture"
    error = cli.run("generate", "a fox", "--provider", "openai-image", "--json").error
    job_id, kept_at = error["job_id"], Path(error["kept_at"])
    assert error["hint"] == f"The bytes are kept until `limner jobs forget {job_id}`."
    assert cli.run("jobs", "recover").err == f"{job_id}: {error['message']}\n  {error['hint']}\n"
    assert cli.run("jobs", "settle", job_id, "--cost", "1") == Done(
        status=2,
        err=f"limner: The price of {job_id} is known: $0.01342.\n"
        f"  `limner jobs forget {job_id}` deletes its bytes.\n",
    )
    assert kept_at.read_bytes() == b"no picture"
    assert cli.run("jobs", "forget", job_id).out == f"{job_id}: closed, $0.01342 stays counted\n"
    assert [*kept_at.parent.iterdir()] == []
    assert cli.run("jobs", "list").err == "No job is open.\n"
    assert cli.run("spend", "--json").json["total_usd"] == 0.01342


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["settle", "job_0"], "settle needs --cost, and no other action takes it"),
        (["forget", "job_0", "--cost", "1"], "settle needs --cost, and no other action takes it"),
        (["settle", "--cost", "1"], "settle needs the ID of a job"),
        (["settle", "job_0", "--cost", "much"], "'much' is not an amount in dollars"),
        (["forget", "job_0"], "there is no open job 'job_0'"),
    ],
)
def test_a_wrong_way_to_close_a_job_is_refused(
    cli: CommandLine, words: list[str], message: str
) -> None:
    done = cli.run("jobs", *words, "--json")
    assert (done.status, done.error["message"]) == (2, message)
