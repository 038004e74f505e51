"""Pictures that were paid for and never received: found again, brought in once, never lost."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.acceptance.conftest import SPRING, Studio, picture, unlabelled
from tests.acceptance.hardship import full_disk, held_back, kill, limner, start
from tests.databases import change

from limner import GeneratedImage, Limner, LimnerError
from limner.errors import (
    BadProviderImage,
    NoProvider,
    OutputExists,
    ProviderUnavailable,
    StorageError,
    UserError,
)
from limner.money.records import JobRow, LedgerRow
from limner.testing import FakeClock
from limner.testing.servers.http_server import Gate, Reply, bytes_reply, html_reply, json_reply
from limner.testing.servers.openai_server import OpenAIServer
from limner.testing.servers.replicate_server import ReplicateServer, error_reply

pytestmark = pytest.mark.slow

FLUX_NANO = 3_000_000


@pytest.fixture
def studio(tmp_path: Path, database: str | None) -> Studio:
    """A home with its records in either kind of database."""
    return Studio(tmp_path, store=database)


async def alter(studio: Studio, statement: str) -> None:
    async with studio.open() as lim:
        await change(lim.store, statement)


def in_no_time(lim: Limner) -> Limner:
    """The same Limner, except that waiting for Flux takes no time."""
    spec = lim.specs["replicate-flux"]
    time = FakeClock()
    lim.specs["replicate-flux"] = replace(
        spec, build=lambda connection: spec.build(replace(connection, clock=time.clock))
    )
    return lim


async def time_out(studio: Studio, server: ReplicateServer, **arguments: Any) -> LimnerError:
    """The failure of a picture that takes longer than anybody waits."""
    server.looks = 1_000_000
    async with in_no_time(studio.connect(server).open()) as lim:
        with pytest.raises(ProviderUnavailable) as caught:
            await lim.generate("a fox", **arguments)
    server.looks = 0
    return caught.value


async def open_job(lim: Limner) -> JobRow:
    (job,) = await lim.money.unfinished_jobs()
    return job


async def recover(studio: Studio) -> GeneratedImage | None:
    async with studio.open() as lim:
        return await lim.recover(await open_job(lim))


async def ledger(studio: Studio) -> list[LedgerRow]:
    async with studio.open() as lim:
        return list((await lim.money.spend()).recent)


async def states(studio: Studio) -> list[tuple[str, int, str | None, bool]]:
    """Of each call: its state, what it costs, why it failed, and whether there is a picture."""
    rows = await ledger(studio)
    return [(row.state, row.cost_nano, row.error_code, row.picture is not None) for row in rows]


async def test_a_time_out_may_be_billed_names_its_job_and_is_recovered_later(
    studio: Studio, replicate: ReplicateServer
) -> None:
    error = await time_out(studio, replicate)
    (prediction,) = replicate.predictions
    assert (error.code, error.billed, error.cost_usd, error.retryable) == (
        "IMAGE_GEN_PROVIDER_UNAVAILABLE",
        True,
        0.003,
        False,
    )
    assert "may be billed" in error.message
    assert "120 s" in error.message
    assert error.extras["remote_id"] == prediction
    assert replicate.sent("cancel") == []
    assert await states(studio) == [("unknown", FLUX_NANO, "IMAGE_GEN_PROVIDER_UNAVAILABLE", False)]

    status, said = await limner("jobs", "list", env=studio.env, cwd=studio.cwd)
    assert (status, [job["id"] for job in said["jobs"]]) == (0, [error.extras["job_id"]])
    status, said = await limner("jobs", "recover", env=studio.env, cwd=studio.cwd)
    (job,) = said["jobs"]
    assert (status, job["job"], job["state"]) == (0, error.extras["job_id"], "recovered")
    assert [str(path) for path in studio.files] == [job["path"]]
    assert unlabelled(studio.files[0]) == replicate.picture
    assert await states(studio) == [("settled", FLUX_NANO, None, True)]
    assert len(replicate.sent("create")) == 1
    status, said = await limner("jobs", "recover", env=studio.env, cwd=studio.cwd)
    assert (status, said["jobs"]) == (0, [])


async def test_a_recovered_picture_has_its_requested_path_and_size(
    studio: Studio, replicate: ReplicateServer
) -> None:
    replicate.file = bytes_reply(picture(256, 256, kind="WEBP"))
    await time_out(studio, replicate, output_path="art/fox.png", size="512x512", seed=7)
    drawn = await recover(studio)
    assert drawn is not None
    assert drawn.path == studio.cwd / "art" / "fox.png"
    assert (drawn.dimensions, drawn.cost_usd, drawn.extras) == (
        (512, 512),
        0.003,
        {"seed": 7, "drawn_size": "256x256"},
    )
    assert [row.path for row in await ledger(studio)] == [str(drawn.path)]


@pytest.mark.parametrize("overwrite", [False, True])
async def test_a_recovered_picture_replaces_nothing_that_took_its_place(
    studio: Studio, replicate: ReplicateServer, overwrite: bool
) -> None:
    target = studio.cwd / "fox.png"
    await time_out(studio, replicate, output_path=str(target), overwrite=overwrite)
    target.write_text("drawn since")
    drawn = await recover(studio)
    assert drawn is not None
    assert target.read_text() == "drawn since"
    assert studio.files == [drawn.path]
    assert await states(studio) == [("settled", FLUX_NANO, None, True)]


async def test_a_place_that_is_taken_while_the_picture_comes_in_is_left_alone(
    studio: Studio, replicate: ReplicateServer
) -> None:
    target, gate = studio.cwd / "fox.png", Gate()
    await time_out(studio, replicate, output_path=str(target))
    replicate.always("file", replace(replicate.file, hold=gate))
    coming = asyncio.create_task(recover(studio))
    await replicate.wait_until("file")
    target.write_text("drawn since")
    gate.open()
    drawn = await coming
    assert drawn is not None
    assert (target.read_text(), studio.files) == ("drawn since", [drawn.path])


async def test_a_place_that_is_gone_does_not_keep_a_picture_from_coming_in(
    studio: Studio, replicate: ReplicateServer
) -> None:
    folder = studio.cwd / "stick"
    await time_out(studio, replicate, output_path="stick/fox.png")
    folder.symlink_to("/nowhere")
    drawn = await recover(studio)
    assert drawn is not None
    assert studio.files == [drawn.path]


async def test_two_who_recover_the_same_job_end_with_one_picture(
    studio: Studio, replicate: ReplicateServer
) -> None:
    """Both have the picture in hand before either of them settles."""
    await time_out(studio, replicate)
    gate = Gate()
    replicate.always("file", replace(replicate.file, hold=gate))
    both = asyncio.gather(recover(studio), recover(studio), return_exceptions=True)
    await replicate.wait_until("file", count=2)
    gate.open()
    outcomes = await both
    (drawn,) = [one for one in outcomes if isinstance(one, GeneratedImage)]
    (loser,) = [one for one in outcomes if isinstance(one, UserError)]
    assert studio.files == [drawn.path]
    assert (loser.code, loser.billed, loser.cost_usd) == ("JOB_ALREADY_RECEIVED", False, 0.0)
    assert Path(loser.extras["kept_at"]).read_bytes() == replicate.picture
    assert await states(studio) == [("settled", FLUX_NANO, None, True)]


async def test_two_commands_that_recover_the_same_job_end_with_one_picture(
    studio: Studio, replicate: ReplicateServer
) -> None:
    await time_out(studio, replicate)
    gate = Gate()
    replicate.always("file", replace(replicate.file, hold=gate))
    commands = [limner("jobs", "recover", env=studio.env, cwd=studio.cwd) for _ in range(2)]
    both = asyncio.gather(*commands)
    await replicate.wait_until("file", count=2)
    gate.open()
    outcomes = [said["jobs"][0] for _, said in await both]
    (path,) = [one["path"] for one in outcomes if one["state"] == "recovered"]
    assert sorted(one["state"] for one in outcomes) == ["received", "recovered"]
    assert [str(file) for file in studio.files] == [path]
    assert await states(studio) == [("settled", FLUX_NANO, None, True)]


async def test_a_job_that_failed_gives_the_money_back(
    studio: Studio, replicate: ReplicateServer
) -> None:
    await time_out(studio, replicate)
    replicate.outcome, replicate.error = "failed", "out of memory"
    with pytest.raises(ProviderUnavailable) as caught:
        await recover(studio)
    assert "out of memory" in caught.value.message
    assert (caught.value.billed, caught.value.cost_nano) == (False, 0)
    assert await states(studio) == [("released", 0, "IMAGE_GEN_PROVIDER_UNAVAILABLE", False)]
    status, said = await limner("jobs", "recover", env=studio.env, cwd=studio.cwd)
    assert (status, said["jobs"]) == (0, [])


@pytest.mark.parametrize(
    "reply",
    [error_reply(401, "who are you"), error_reply(404, "what prediction")],
    ids=["unauthorized", "not found"],
)
async def test_a_provider_that_gives_no_result_leaves_the_job_as_it_is(
    studio: Studio, replicate: ReplicateServer, reply: Reply
) -> None:
    await time_out(studio, replicate)
    replicate.script("look", reply)
    with pytest.raises(LimnerError) as caught:
        await recover(studio)
    assert (caught.value.billed, caught.value.cost_source) == (True, "unknown")
    drawn = await recover(studio)
    assert drawn is not None


async def test_a_recovery_that_is_given_up_leaves_the_job_as_it_is(
    studio: Studio, replicate: ReplicateServer
) -> None:
    await time_out(studio, replicate)
    replicate.always("look", Reply(hold=Gate()))
    recovering = asyncio.create_task(recover(studio))
    await replicate.wait_until("look", count=len(replicate.sent("look")) + 1)
    recovering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await recovering
    assert replicate.sent("cancel") == []
    assert await states(studio) == [("unknown", FLUX_NANO, "CANCELLED", False)]


async def test_without_the_key_a_job_waits_for_it(
    studio: Studio, replicate: ReplicateServer
) -> None:
    await time_out(studio, replicate)
    key = studio.env.pop("REPLICATE_API_TOKEN")
    with pytest.raises(NoProvider):
        await recover(studio)
    studio.env["REPLICATE_API_TOKEN"] = key
    assert await recover(studio) is not None


async def test_an_openai_request_that_cannot_be_recovered_stays_counted(
    studio: Studio, openai: OpenAIServer
) -> None:
    openai.script("generate", Reply(head=False, ending="reset"))
    studio.connect(openai)
    async with studio.open(at=SPRING) as lim:
        with pytest.raises(ProviderUnavailable):
            await lim.generate("a fox")
    before = await states(studio)
    assert await recover(studio) is None
    assert await states(studio) == before
    assert before == [("unknown", 40_000_000, "IMAGE_GEN_PROVIDER_UNAVAILABLE", False)]
    status, said = await limner("jobs", "recover", env=studio.env, cwd=studio.cwd)
    assert (status, [job["state"] for job in said["jobs"]]) == (0, ["unknown"])


async def test_a_job_whose_id_never_arrived_is_found_by_its_seed(
    studio: Studio, replicate: ReplicateServer
) -> None:
    """The process is killed while the service holds back its answer to the paid request."""
    studio.connect(replicate)
    for _ in range(2):
        replicate.add("black-forest-labs/flux-schnell", {"prompt": "a fox", "seed": 1})
    replicate.script("create", Reply(hold=Gate()))
    process = await start("generate", "a fox", "--json", env=studio.env, cwd=studio.cwd)
    await replicate.wait_until("create")
    await kill(process)
    inputs = replicate.sent("create")[0].json()["input"]
    ours = replicate.add(
        "black-forest-labs/flux-schnell",
        inputs,
        status="succeeded",
        output=[f"{replicate.origin}/files/ours.png"],
    )
    for _ in range(2):
        replicate.add("black-forest-labs/flux-schnell", {"prompt": "a fox", "seed": 2})

    status, said = await limner("jobs", "recover", env=studio.env, cwd=studio.cwd)
    (job,) = said["jobs"]
    assert (status, job["state"], job["seed"]) == (0, "recovered", inputs["seed"])
    assert [seen.path for seen in replicate.sent("look")] == [f"/v1/predictions/{ours['id']}"]
    assert await states(studio) == [("settled", FLUX_NANO, None, True)]
    assert len(replicate.sent("create")) == 1


async def test_a_job_the_service_never_heard_of_stays_counted(
    studio: Studio, replicate: ReplicateServer
) -> None:
    studio.connect(replicate)
    replicate.script("create", Reply(hold=Gate()))
    process = await start("generate", "a fox", "--json", env=studio.env, cwd=studio.cwd)
    await replicate.wait_until("create")
    await kill(process)
    assert await recover(studio) is None
    assert await states(studio) == [("unknown", FLUX_NANO, "OWNER_DIED", False)]


async def test_a_full_disk_after_the_answer_leaves_a_job_to_recover(
    studio: Studio, replicate: ReplicateServer
) -> None:
    gate = Gate()
    replicate.always("file", replace(replicate.file, hold=gate))
    async with studio.connect(replicate).open() as lim:
        drawing = asyncio.create_task(lim.generate("a fox"))
        await replicate.wait_until("file")
        with full_disk():
            gate.open()
            with pytest.raises(StorageError) as caught:
                await drawing
        error = caught.value
        assert (error.billed, error.cost_usd, error.cost_source) == (True, 0.003, "unknown")
        job_id = error.extras["job_id"]
        # A ledger on the same disk: the row is as it was, and its owner still lives.
        assert ("unrecorded" in error.extras) != lim.store.is_shared
        if not lim.store.is_shared:
            await lim.money.mark_unknown((await open_job(lim)).reservation, error_code=error.code)
        job = await open_job(lim)
        assert job.id == job_id
        assert await lim.recover(job) is not None
    assert len(studio.files) == 1
    assert await states(studio) == [("settled", FLUX_NANO, None, True)]


async def test_a_journal_that_cannot_be_read_is_an_error_of_that_job_alone(
    studio: Studio, replicate: ReplicateServer
) -> None:
    await time_out(studio, replicate)
    await alter(studio, "UPDATE jobs SET request = '{\"request\": 7}'")
    status, said = await limner("jobs", "recover", env=studio.env, cwd=studio.cwd)
    assert (status, said["jobs"][0]["error"]["code"]) == (1, "STORAGE_FAILED")
    assert await states(studio) == [("unknown", FLUX_NANO, "IMAGE_GEN_PROVIDER_UNAVAILABLE", False)]


async def test_a_picture_that_was_settled_but_never_written_is_named_by_the_ledger(
    studio: Studio, replicate: ReplicateServer
) -> None:
    """What a process leaves that dies between the settlement and the file."""
    async with studio.connect(replicate).open() as lim:
        drawn = await lim.generate("a fox")
    drawn.path.unlink()
    await alter(studio, "UPDATE ledger SET path = NULL")
    status, said = await limner("spend", env=studio.env, cwd=studio.cwd)
    (row,) = said["recent"]
    assert (status, row["state"], row["path"]) == (0, "settled", None)
    async with studio.open() as lim:
        kept = lim.pictures.local_path(await lim.pictures.recall(row["picture"]))
    assert kept.read_bytes() == replicate.picture


@pytest.mark.parametrize("route", ["look", "file"])
async def test_a_picture_that_came_broken_is_fetched_again(
    studio: Studio, replicate: ReplicateServer, route: str
) -> None:
    """Something on the way answers for the service, once."""
    replicate.looks = 1
    replicate.script(route, html_reply())
    async with in_no_time(studio.connect(replicate).open()) as lim:
        with pytest.raises(BadProviderImage) as caught:
            await lim.generate("a fox")
    error = caught.value
    assert (error.billed, error.cost_usd, error.cost_source) == (True, 0.003, "unknown")
    assert "job_id" in error.extras
    assert await recover(studio) is not None
    assert unlabelled(studio.files[0]) == replicate.picture
    assert await states(studio) == [("settled", FLUX_NANO, None, True)]


async def test_a_picture_that_comes_broken_twice_is_paid_for_and_its_bytes_are_kept(
    studio: Studio, replicate: ReplicateServer
) -> None:
    await time_out(studio, replicate)
    replicate.file = bytes_reply(picture()[:500])
    with pytest.raises(BadProviderImage) as caught:
        await recover(studio)
    assert Path(caught.value.extras["kept_at"]).read_bytes() == picture()[:500]
    assert await states(studio) == [("settled", FLUX_NANO, "IMAGE_GEN_BAD_RESPONSE", False)]
    _, said = await limner("jobs", "list", env=studio.env, cwd=studio.cwd)
    assert [job["state"] for job in said["jobs"]] == ["bytes are here"]


async def test_a_service_that_is_busy_once_is_asked_again(
    studio: Studio, replicate: ReplicateServer
) -> None:
    await time_out(studio, replicate)
    replicate.script("look", json_reply({"detail": "busy"}, status=503))
    assert await recover(studio) is not None


async def test_a_picture_that_is_paid_for_but_was_never_written_is_written_by_recover(
    studio: Studio, openai: OpenAIServer
) -> None:
    target, gate = studio.cwd / "fox.png", Gate()
    openai.script("generate", held_back(openai, gate))
    async with studio.connect(openai).open(at=SPRING) as lim:
        drawing = asyncio.create_task(lim.generate("a fox", output_path=str(target)))
        await openai.wait_until("generate")
        target.write_text("in the way")
        gate.open()
        with pytest.raises(OutputExists):
            await drawing
    # As if the process had died there.
    await alter(studio, "UPDATE ledger SET owner = 'ended'")
    target.unlink()
    _, said = await limner("jobs", "recover", env=studio.env, cwd=studio.cwd)
    assert [(one["state"], one["path"], one["cost_usd"]) for one in said["jobs"]] == [
        ("recovered", str(target), 0.04)
    ]
    assert unlabelled(target) == openai.picture
    _, said = await limner("jobs", "recover", env=studio.env, cwd=studio.cwd)
    assert said == {"jobs": []}


async def test_a_recovered_svg_file_is_the_picture_in_a_file_of_its_own_format(
    studio: Studio,
) -> None:
    """limner stores the picture and not the SVG, so this is what it can write."""
    target = studio.cwd / "chart.svg"
    async with studio.open() as lim:
        drawn = await lim.render(
            {"type": "bar", "labels": ["Q1"], "values": [12]}, output_path=str(target)
        )
        stored = lim.pictures.local_path(drawn.image).read_bytes()
    target.unlink()
    await alter(studio, "UPDATE ledger SET path = NULL, owner = 'ended'")
    recovered = await recover(studio)
    assert recovered is not None
    assert recovered.path == studio.cwd / "chart.png"
    assert unlabelled(recovered.path) == stored
    assert not target.exists()
