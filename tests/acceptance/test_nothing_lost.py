"""A paid picture, disturbed at each step: it is kept, and its cost is reported."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Generator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.acceptance.conftest import SPRING, Studio, picture, unlabelled
from tests.acceptance.hardship import full_disk, held_back, until

from limner import GeneratedImage, Limner, LimnerError
from limner.errors import (
    ApprovalDenied,
    Cancelled,
    ProviderRefused,
    StorageError,
    cancellation_cost,
)
from limner.storage.incoming_files import Incoming, IncomingFile
from limner.testing.servers.gemini_image_server import GeminiImageServer
from limner.testing.servers.http_server import Gate, json_reply
from limner.testing.servers.openai_server import OpenAIServer, error_reply
from limner.testing.servers.replicate_server import ReplicateServer

FOUR_CENTS = 40_000_000


async def ledger(studio: Studio) -> list[tuple[Any, ...]]:
    async with studio.open() as lim:
        rows = (await lim.money.spend()).recent
    return [(row.state, row.cost_nano, row.error_code, row.path) for row in rows]


@contextmanager
def busy_database(studio: Studio) -> Generator[None]:
    """Another process writes to the database for as long as the context lasts."""
    path = studio.home / "limner.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("COMMIT")


async def stop(task: asyncio.Task[Any]) -> Cancelled:
    """Wait for a cancelled task, and return the cost in its cancellation."""
    await asyncio.wait([task])
    assert task.cancelled()
    try:
        task.result()
    except asyncio.CancelledError as stopped:
        cost = cancellation_cost(stopped)
    assert cost is not None
    return cost


async def test_a_picture_that_has_come_in_is_kept_however_often_its_call_is_cancelled(
    studio: Studio, openai: OpenAIServer
) -> None:
    gate = Gate()
    openai.script("generate", held_back(openai, gate, from_piece=2))
    async with studio.connect(openai).open(at=SPRING) as lim:
        drawing = asyncio.create_task(lim.generate("a fox"))
        await openai.wait_until("generate")
        with busy_database(studio):
            gate.open()
            await until(lambda: any((studio.home / "blobs").glob("??/*")))
            for _ in range(3):
                drawing.cancel()
                await asyncio.wait([drawing], timeout=0.01)
            assert not drawing.done()
        cost = await stop(drawing)
    (path,) = studio.files
    assert unlabelled(path) == openai.picture
    assert (cost.billed, cost.cost_usd, cost.extras["path"]) == (True, 0.04, str(path))
    assert await ledger(studio) == [("settled", FOUR_CENTS, None, str(path))]


async def test_a_call_that_is_cancelled_while_it_waits_for_its_turn_costs_nothing(
    studio: Studio, openai: OpenAIServer
) -> None:
    studio.env["LIMNER_IMAGES_CONCURRENCY"] = "1"
    gate = Gate()
    openai.script("generate", held_back(openai, gate))
    async with studio.connect(openai).open(at=SPRING) as lim:
        first = asyncio.create_task(lim.generate("a fox"))
        await openai.wait_until("generate")
        second = asyncio.create_task(lim.generate("a hen"))
        while (await lim.money.spend()).in_flight_nano < 2 * FOUR_CENTS:
            pass
        # From its row in the ledger it goes on to the queue, where it stays.
        await asyncio.wait([second], timeout=0.2)
        second.cancel()
        try:
            cost = await stop(second)
        finally:
            gate.open()
        await first
    assert (cost.billed, cost.cost_nano) == (False, 0)
    assert len(openai.requests) == 1
    assert [row[:3] for row in await ledger(studio)] == [
        ("released", 0, "CANCELLED"),
        ("settled", FOUR_CENTS, None),
    ]


async def test_closing_waits_for_what_was_sent_and_drops_what_was_not(
    studio: Studio, openai: OpenAIServer
) -> None:
    """One of several pictures is refused; its siblings are with the service or in the queue."""
    studio.env["LIMNER_IMAGES_CONCURRENCY"] = "2"
    gate = Gate()
    openai.script("generate", held_back(openai, gate))
    openai.always("generate", error_reply(400, "no", code="moderation_blocked"))
    tasks: list[asyncio.Task[GeneratedImage]] = []

    async def program() -> None:
        async with studio.connect(openai).open(at=SPRING) as lim:
            tasks.append(asyncio.create_task(lim.generate("a fox")))
            await openai.wait_until("generate")
            tasks.extend(asyncio.create_task(lim.generate(f"{n} hens")) for n in range(3))
            await asyncio.gather(*tasks)

    running = asyncio.create_task(program())
    await openai.wait_until("generate", count=2)
    await asyncio.wait([running], timeout=0.05)
    assert not running.done()
    gate.open()
    with pytest.raises(ProviderRefused):
        await running
    drawn = tasks[0].result()
    assert unlabelled(drawn.path) == openai.picture
    outcomes = await asyncio.gather(*tasks[1:], return_exceptions=True)
    kinds = sorted(type(outcome).__name__ for outcome in outcomes)
    sent = len(openai.requests) - 1
    assert kinds == sorted(["ProviderRefused"] * sent + ["RuntimeError"] * (3 - sent))
    assert sorted({row[0] for row in await ledger(studio)}) == ["released", "settled"]


async def test_a_closed_limner_draws_nothing(studio: Studio, openai: OpenAIServer) -> None:
    async with studio.connect(openai).open(at=SPRING) as lim:
        pass
    with pytest.raises(RuntimeError, match="this Limner is closed"):
        await lim.generate("a fox")
    assert openai.requests == []


async def test_closing_may_be_given_up_without_harm_to_what_it_waits_for(
    studio: Studio, openai: OpenAIServer
) -> None:
    gate = Gate()
    openai.script("generate", held_back(openai, gate))
    lim = studio.connect(openai).open(at=SPRING)
    drawing = asyncio.create_task(lim.generate("a fox"))
    await openai.wait_until("generate")
    closing_up = asyncio.create_task(lim.generator.in_flight.aclose())
    await asyncio.sleep(0)
    closing_up.cancel()
    await asyncio.wait([closing_up])
    gate.open()
    drawn = await drawing
    await lim.aclose()
    assert studio.files == [drawn.path]


async def test_a_generated_folder_that_is_a_file_is_found_before_paying(
    studio: Studio, openai: OpenAIServer
) -> None:
    studio.home.mkdir()
    (studio.home / "generated").write_text("not a folder")
    result = await studio.connect(openai).call(at=SPRING, prompt="a fox")
    assert (result.domain_code, result.billed) == ("STORAGE_FAILED", False)
    assert openai.requests == []


async def test_a_home_that_is_a_file_is_found_before_paying(
    studio: Studio, openai: OpenAIServer
) -> None:
    studio.home.write_text("not a folder")
    result = await studio.connect(openai).call(
        at=SPRING, prompt="a fox", output_path=str(studio.cwd / "fox.png")
    )
    assert (result.domain_code, result.billed) == ("STORAGE_FAILED", False)
    assert openai.requests == []


async def test_a_prompt_with_a_lone_surrogate_is_refused_before_paying(
    studio: Studio, openai: OpenAIServer
) -> None:
    """Half of a character pair can be written in JSON, but neither sent nor journalled."""
    result = await studio.connect(openai).call(at=SPRING, prompt="a fox \ud83e")
    assert (result.code, result.field) == ("input_invalid", "prompt")
    assert result.error == "prompt contains a lone surrogate at position 6"
    assert openai.requests == []
    assert await ledger(studio) == []


async def test_a_refusal_by_the_user_leaves_no_row(studio: Studio, openai: OpenAIServer) -> None:
    studio.env["LIMNER_APPROVAL_POLICY"] = "untrusted"
    async with studio.connect(openai).open(at=SPRING) as lim:
        with pytest.raises(ApprovalDenied):
            await lim.generate("a fox")
    assert openai.requests == []
    assert await ledger(studio) == []


async def disk_that_fills_up(lim: Limner, server: OpenAIServer, gate: Gate) -> LimnerError:
    """The failure of a call during whose answer the disk becomes full."""
    drawing = asyncio.create_task(lim.generate("a fox"))
    await server.wait_until("generate")
    with full_disk():
        gate.open()
        with pytest.raises(StorageError) as caught:
            await drawing
    return caught.value


async def test_a_disk_that_is_full_when_the_picture_arrives_is_an_error_with_its_cost(
    studio: Studio, openai: OpenAIServer
) -> None:
    gate = Gate()
    openai.script("generate", held_back(openai, gate, from_piece=1))
    async with studio.connect(openai).open(at=SPRING) as lim:
        error = await disk_that_fills_up(lim, openai, gate)
        assert (error.billed, error.cost_usd, error.cost_source) == (True, 0.04, "unknown")
        assert sorted(error.extras) == ["job_id", "provider", "unrecorded"]
        # The row is still open, and so still counted.
        assert (await lim.money.spend()).in_flight_nano == FOUR_CENTS
    assert studio.files == []


async def test_the_next_process_counts_what_a_full_disk_kept_from_being_recorded(
    studio: Studio, openai: OpenAIServer
) -> None:
    gate = Gate()
    openai.script("generate", held_back(openai, gate))
    lim = studio.connect(openai).open(at=SPRING)
    await disk_that_fills_up(lim, openai, gate)
    await lim.aclose()
    with closing(sqlite3.connect(studio.home / "limner.db")) as connection, connection:
        connection.execute("UPDATE ledger SET owner_start = 'another'")  # as if it had ended
    assert await ledger(studio) == [("unknown", FOUR_CENTS, "OWNER_DIED", None)]


async def test_a_job_whose_id_cannot_be_recorded_is_not_lost(
    studio: Studio, replicate: ReplicateServer
) -> None:
    """The disk is full just when the service tells the id of its prediction."""
    gate = Gate()
    replicate.looks = 1
    prediction = replicate.add("black-forest-labs/flux-schnell", {"prompt": "a fox", "seed": 7})
    replicate.script("create", replace(json_reply(prediction, status=201), hold=gate))
    async with studio.connect(replicate).open(at=datetime.now(UTC)) as lim:
        drawing = asyncio.create_task(lim.generate("a fox", seed=7))
        await replicate.wait_until("create")
        with full_disk():
            gate.open()
            with pytest.raises(StorageError) as caught:
                await drawing
        assert (caught.value.billed, caught.value.cost_source) == (True, "unknown")
        (job,) = await lim.money.unfinished_jobs()
        assert job.remote_id is None
        drawn = await lim.recover(job)
    assert drawn is not None
    assert studio.files == [drawn.path]


async def test_a_refusal_that_is_charged_for_counts_at_its_price(studio: Studio) -> None:
    with GeminiImageServer(picture(64, 64)) as server:
        studio.env |= {"GEMINI_API_KEY": "AIza-test-key-1234567890"}
        studio.env |= {"GEMINI_BASE_URL": server.base_url}
        refusal = {
            "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
            "usageMetadata": {"promptTokenCount": 4},
        }
        server.always("generate", json_reply(refusal))
        async with studio.open() as lim:
            with pytest.raises(ProviderRefused):
                await lim.generate("a fox", provider="gemini-image")
            (row,) = (await lim.money.spend()).recent
    assert (row.state, row.cost_nano, row.cost_source) == ("settled", 6_000, "computed")


@pytest.mark.parametrize("name", ["fox.png", None])
async def test_a_picture_that_cannot_be_written_is_kept_and_the_error_says_where(
    studio: Studio, openai: OpenAIServer, name: str | None
) -> None:
    """The folder it is to go to becomes something else while the picture is drawn."""
    gate = Gate()
    openai.script("generate", held_back(openai, gate))
    folder = studio.home / "generated" if name is None else studio.cwd / "art"
    target = None if name is None else str(folder / name)
    async with studio.connect(openai).open(at=SPRING) as lim:
        drawing = asyncio.create_task(lim.generate("a fox", output_path=target))
        await openai.wait_until("generate")
        folder.write_text("in the way")
        gate.open()
        with pytest.raises(StorageError) as caught:
            await drawing
    error = caught.value
    assert (error.billed, error.cost_usd, error.cost_source) == (True, 0.04, "table")
    assert Path(error.extras["kept_at"]).read_bytes() == openai.picture
    assert await ledger(studio) == [("settled", FOUR_CENTS, None, None)]


async def test_a_call_that_is_cancelled_while_the_disk_is_full_stays_cancelled(
    studio: Studio,
) -> None:
    opening, go_on = threading.Event(), threading.Event()

    class FullDisk(Incoming):
        def open(self, job_id: str, *, room_bytes: int, max_bytes: int) -> IncomingFile:
            opening.set()
            assert go_on.wait(timeout=60)
            raise StorageError("The disk is full.", code="NO_ROOM")

    async with studio.open() as lim:
        folder, blobs = lim.home.incoming, lim.components.blobs
        lim.components.generator = replace(lim.generator, incoming=FullDisk(folder, blobs))
        drawing = asyncio.create_task(lim.generate("a fox"))
        await asyncio.to_thread(opening.wait, 60)
        drawing.cancel()
        go_on.set()
        await asyncio.wait([drawing])
    assert drawing.cancelled()
