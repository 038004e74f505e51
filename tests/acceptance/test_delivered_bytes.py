"""What a service delivered is kept, whatever fails here afterwards, and finished without paying."""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import resource
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.acceptance.conftest import PRICE_NANO, Studio, picture, unlabelled
from tests.acceptance.hardship import (
    collect_a_week_later,
    full_disk,
    held_back,
    kill_child,
    kill_children,
    limner,
)
from tests.fuzz import IS_LONG

from limner import LimnerError, ToolCall
from limner.errors import BadProviderImage, ProviderUnavailable, StorageError, UnexpectedError
from limner.testing.servers.http_server import Gate, Reply
from limner.testing.servers.openai_server import OpenAIServer
from limner.testing.servers.replicate_server import ReplicateServer

WORKER = "limner.rendering.worker"
WORKER_KILLS = 100 if IS_LONG else 12


@contextmanager
def no_descriptor_left() -> Generator[None]:
    """This process cannot open any file or pipe, as at the end of ``ulimit -n``."""
    free = os.dup(0)
    os.close(free)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def ledger(studio: Studio) -> list[tuple[str, int, bool]]:
    async with studio.open() as lim:
        rows = (await lim.money.spend(recent=1_000)).recent
    return [(row.state, row.cost_nano, row.picture is not None) for row in rows]


async def recover_from_the_command_line(studio: Studio) -> dict[str, Any]:
    _, said = await limner("jobs", "recover", env=studio.env, cwd=studio.cwd)
    (job,) = said["jobs"]
    return job


async def fail_after_the_answer(
    studio: Studio, openai: OpenAIServer, spoil: Callable[[Any], Any]
) -> LimnerError:
    """The error of a call whose answer is here, and that something local then stops."""
    gate = Gate()
    openai.script("generate", held_back(openai, gate))
    async with studio.connect(openai).open() as lim:
        drawing = asyncio.create_task(lim.generate("a fox", provider="openai-image"))
        await openai.wait_until("generate")
        try:
            with spoil(lim):
                gate.open()
                with pytest.raises(LimnerError) as caught:
                    await drawing
        finally:
            gate.open()  # or the call would never end, and the program would wait for it
    return caught.value


def assert_it_is_kept(error: LimnerError, openai: OpenAIServer) -> None:
    job_id = error.extras["job_id"]
    assert (error.billed, error.cost_nano > 0) == (True, True)
    assert Path(error.extras["kept_at"]).read_bytes() == openai.picture
    assert error.hint == (
        f"The bytes are kept until `limner jobs forget {job_id}`."
        if isinstance(error, BadProviderImage)
        else f"The bytes are kept: `limner jobs recover {job_id}` goes on without a new payment."
    )


@contextmanager
def closed_workers(lim: Any) -> Generator[None]:
    lim.imaging._close()
    yield


@contextmanager
def killed_worker_and_no_descriptor(lim: Any) -> Generator[None]:
    kill_child(WORKER)
    with no_descriptor_left():
        yield


async def test_a_worker_that_is_killed_under_a_paid_picture_is_replaced(
    studio: Studio, openai: OpenAIServer
) -> None:
    gate = Gate()
    openai.script("generate", held_back(openai, gate))
    async with studio.connect(openai).open() as lim:
        drawing = asyncio.create_task(lim.generate("a fox", provider="openai-image"))
        await openai.wait_until("generate")
        kill_child(WORKER)
        gate.open()
        drawn = await drawing
    assert unlabelled(drawn.path) == openai.picture
    assert await ledger(studio) == [("settled", drawn.cost_nano, True)]
    assert list((studio.home / "incoming").iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("spoil", [closed_workers, killed_worker_and_no_descriptor])
async def test_what_stops_a_call_after_the_answer_keeps_the_bytes_and_recover_finishes_them(
    studio: Studio, openai: OpenAIServer, spoil: Callable[[Any], Any]
) -> None:
    error = await fail_after_the_answer(studio, openai, spoil)
    assert_it_is_kept(error, openai)
    assert await ledger(studio) == [("settled", error.cost_nano, False)]
    _, said = await limner("jobs", "list", env=studio.env, cwd=studio.cwd)
    assert [job["state"] for job in said["jobs"]] == ["bytes are here"]
    await limner("gc", "--all", env=studio.env, cwd=studio.cwd)
    del studio.env["OPENAI_API_KEY"]  # neither the key nor the service is needed
    openai.always("generate", Reply(head=False, ending="reset"))
    job = await recover_from_the_command_line(studio)
    assert (job["state"], job["cost_usd"]) == ("recovered", error.cost_usd)
    assert unlabelled(Path(job["path"])) == openai.picture
    assert await ledger(studio) == [("settled", error.cost_nano, True)]
    assert len(openai.sent("generate")) == 1
    assert list((studio.home / "incoming").iterdir()) == []


async def test_an_unexpected_exception_after_the_answer_carries_its_cost_to_the_model(
    studio: Studio, openai: OpenAIServer
) -> None:
    gate = Gate()
    openai.script("generate", held_back(openai, gate))
    async with studio.connect(openai).open() as lim:
        call = ToolCall(name="image_generate", arguments={"prompt": "a fox"})
        tools = lim.registry()
        running = asyncio.create_task(tools.execute_parallel([call], studio.context()))
        await openai.wait_until("generate")
        lim.imaging._close()  # pyright: ignore[reportPrivateUsage]
        gate.open()
        (result,) = await running
    assert (result.ok, result.domain_code, result.untrusted) == (False, "UNEXPECTED", True)
    assert (result.billed, result.cost_nano > 0) == (True, True)
    assert await ledger(studio) == [("settled", result.cost_nano, False)]
    assert Path(str(result.extras["kept_at"])).read_bytes() == openai.picture


async def test_a_full_disk_refuses_a_call_before_it_is_sent(
    studio: Studio, openai: OpenAIServer
) -> None:
    async with studio.connect(openai).open() as lim:
        await lim.money.spend()  # the database exists
        with full_disk(), pytest.raises(StorageError) as caught:
            await lim.generate("a fox", provider="openai-image")
    assert (caught.value.code, caught.value.billed) == ("NO_ROOM", False)
    assert openai.sent("generate") == []
    assert await ledger(studio) == []


async def test_a_picture_that_is_broken_is_kept_and_listed(
    studio: Studio, openai: OpenAIServer
) -> None:
    openai.picture = picture()[:500]
    async with studio.connect(openai).open() as lim:
        with pytest.raises(BadProviderImage) as caught:
            await lim.generate("a fox", provider="openai-image")
        (job,) = await lim.money.unfinished_jobs()
        assert_it_is_kept(caught.value, openai)
        with pytest.raises(BadProviderImage) as again:
            await lim.recover(job)
        assert (again.value.billed, again.value.cost_nano) == (True, PRICE_NANO)
        assert [one.id for one in await lim.money.unfinished_jobs()] == [job.id]
    assert await ledger(studio) == [("settled", PRICE_NANO, False)]


@pytest.mark.parametrize("whole", [True, False])
async def test_bytes_of_an_answer_whose_end_was_lost_are_used_if_they_are_a_picture(
    studio: Studio, openai: OpenAIServer, whole: bool
) -> None:
    """The connection ends behind the picture, or within it: then the outcome is unknown."""
    reply = openai.drawn({"model": "dall-e-3", "response_format": "b64_json"})
    pieces = [piece for piece in reply.pieces if isinstance(piece, bytes)]
    body = b"".join(pieces)
    end = body.index(b'"', body.index(b"b64_json") + 20) if whole else len(body) // 2
    cut = body[: end + 1] if whole else body[:end]
    openai.script("generate", replace(reply, pieces=(cut,), length=len(body), ending="reset"))
    async with studio.connect(openai).open() as lim:
        with pytest.raises(ProviderUnavailable) as caught:
            await lim.generate("a fox", provider="openai-image")
        quote_nano = caught.value.cost_nano
        assert await ledger(studio) == [("unknown", quote_nano, False)]
        (job,) = await lim.money.unfinished_jobs()
        drawn = await lim.recover(job)
    if whole:
        assert drawn is not None
        assert unlabelled(drawn.path) == openai.picture
        assert await ledger(studio) == [("settled", quote_nano, True)]
    else:
        assert drawn is None
        assert await ledger(studio) == [("unknown", quote_nano, False)]


async def test_bytes_that_were_fetched_are_not_fetched_again(
    studio: Studio, replicate: ReplicateServer
) -> None:
    gate = Gate()
    replicate.always("file", replace(replicate.file, hold=gate))
    async with studio.connect(replicate).open() as lim:
        drawing = asyncio.create_task(lim.generate("a fox"))
        await replicate.wait_until("file")
        with closed_workers(lim):
            gate.open()
            with pytest.raises(UnexpectedError) as caught:
                await drawing
    assert Path(caught.value.extras["kept_at"]).read_bytes() == replicate.picture
    async with studio.open() as lim:
        (job,) = await lim.money.unfinished_jobs()
        assert await lim.recover(job) is not None
    assert len(replicate.sent("file")) == 1


async def test_delivered_bytes_that_changed_on_the_disk_are_not_trusted(
    studio: Studio, openai: OpenAIServer
) -> None:
    error = await fail_after_the_answer(studio, openai, closed_workers)
    kept = Path(error.extras["kept_at"])
    kept.write_bytes(picture(10, 10))
    async with studio.open() as lim:
        (job,) = await lim.money.unfinished_jobs()
        with pytest.raises(StorageError, match="have changed on the disk"):
            await lim.recover(job)
    assert hashlib.sha256(kept.read_bytes()).digest() == hashlib.sha256(picture(10, 10)).digest()


@pytest.mark.slow
async def test_workers_that_are_killed_at_any_moment_of_paid_calls_lose_no_picture(
    studio: Studio, openai: OpenAIServer, replicate: ReplicateServer
) -> None:
    moments = random.Random(20261116)
    errors: list[LimnerError] = []
    async with studio.connect(openai, replicate).open() as lim:
        for number in range(WORKER_KILLS):
            provider, size = [("openai-image", "1024x1024"), ("replicate-flux", "512x512")][
                number % 2
            ]
            drawing = asyncio.create_task(
                lim.generate(f"fox {number}", provider=provider, size=size)
            )
            await asyncio.wait([drawing], timeout=moments.uniform(0, 0.15))
            kill_children(WORKER)
            try:
                await drawing
            except LimnerError as error:
                errors.append(error)
        await collect_a_week_later(studio.home, env=studio.env, cwd=studio.cwd)
        for job in await lim.money.unfinished_jobs():
            assert await lim.recover(job) is not None
    await collect_a_week_later(studio.home, env=studio.env, cwd=studio.cwd)
    assert {openai.picture, replicate.picture} <= {
        blob.read_bytes() for blob in (studio.home / "blobs").glob("*/*")
    }
    billed = len(openai.sent("generate")) + len(replicate.predictions)
    assert [state for state, _, has_picture in await ledger(studio) if has_picture] == (
        ["settled"] * billed
    )
    assert len(studio.files) == billed
