"""The calls of a server that ended: what the next server fetches, refuses and reports."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import msgspec
import pytest
from tests.acceptance.conftest import AUTUMN, Studio

from limner import Limner
from limner.errors import LimnerError
from limner.frontends.mcp.calls import CallStore
from limner.frontends.mcp.resume import CallResumer
from limner.money.records import Reservation
from limner.pictures.request import ImageRequest
from limner.testing.servers.openai_server import OpenAIServer
from limner.tools.journal import JournalEntry

CALL, DIGEST = "call-1", "digest"
QUOTE_NANO, PRICE_NANO = 10_000_000, 4_000_000
REQUEST = ImageRequest(prompt="a fox", model="gpt-image-2.5-flare", width=1024, height=1024)
ENTRY = msgspec.json.encode(JournalEntry(request=REQUEST, target=None)).decode()


class Earlier:
    """The calls of an earlier server, written as that server would have."""

    def __init__(self, lim: Limner) -> None:
        self.lim = lim
        self.calls = CallStore(store=lim.store, clock=lambda: AUTUMN)
        self.resumer = CallResumer(lim=lim, calls=self.calls)

    async def reserve(self) -> Reservation:
        reservation = await self.lim.money.reserve(
            QUOTE_NANO,
            session_id="s",
            tool="image_generate",
            provider="openai-image",
            model=REQUEST.model,
        )
        await self.calls.note(
            CALL, tool="image_generate", digest=DIGEST, ledger_id=reservation.ledger_id
        )
        return reservation

    async def send(self) -> Reservation:
        reservation = await self.reserve()
        await self.lim.money.mark_sent(reservation, request_json=ENTRY)
        return reservation

    async def finish(self) -> LimnerError:
        with pytest.raises(LimnerError) as raised:
            await self.resumer.finish(CALL, progress=lambda _: None)
        return raised.value


async def test_a_call_of_a_live_process_is_left_to_it(studio: Studio) -> None:
    async with studio.open() as lim:
        earlier = Earlier(lim)
        await earlier.send()
        lost = await earlier.send()
        await lim.money.mark_unknown(lost, error_code="OWNER_DIED")
        assert await earlier.resumer.earlier(DIGEST, but="other") is None


async def test_a_call_in_flight_is_neither_fetched_nor_charged(studio: Studio) -> None:
    async with studio.open() as lim:
        earlier = Earlier(lim)
        await earlier.send()
        error = await earlier.finish()
    assert (error.code, error.retryable, error.billed, error.cost_nano) == (
        "JOB_RUNNING_ELSEWHERE",
        True,
        False,
        0,
    )


async def test_a_call_that_may_be_paid_is_found_by_its_repetition_and_by_no_other(
    studio: Studio,
) -> None:
    async with studio.open() as lim:
        earlier = Earlier(lim)
        await lim.money.mark_unknown(await earlier.send(), error_code="OWNER_DIED")
        assert await earlier.resumer.earlier(DIGEST, but="other") == CALL
        assert await earlier.resumer.earlier(DIGEST, but=CALL) is None
        assert await earlier.resumer.earlier("another", but="other") is None


async def test_a_call_that_sent_nothing_costs_nothing_and_may_be_repeated(studio: Studio) -> None:
    async with studio.open() as lim:
        earlier = Earlier(lim)
        await lim.money.release(await earlier.reserve(), error_code="CANCELLED")
        error = await earlier.finish()
    assert (error.code, error.retryable, error.billed, error.cost_nano) == (
        "JOB_ENDED",
        True,
        False,
        0,
    )


async def test_the_costs_of_all_lost_pictures_are_added_and_released_ones_are_not(
    studio: Studio, openai: OpenAIServer
) -> None:
    async with studio.connect(openai).open() as lim:
        earlier = Earlier(lim)
        for _ in range(2):
            await lim.money.mark_unknown(await earlier.send(), error_code="OWNER_DIED")
        await lim.money.release(await earlier.send(), error_code="CANCELLED")
        error = await earlier.finish()
    assert (error.code, error.cost_nano, error.cost_source, error.billed) == (
        "JOB_LOST",
        2 * QUOTE_NANO,
        "unknown",
        True,
    )


async def test_a_released_picture_is_left_out_of_the_ones_that_were_drawn(
    studio: Studio, openai: OpenAIServer
) -> None:
    async with studio.connect(openai).open() as lim:
        drawn = await lim.generate("a fox", provider="openai-image")
        earlier = Earlier(lim)
        await lim.money.release(await earlier.send(), error_code="CANCELLED")
        bought = await earlier.send()
        await lim.money.settle(
            bought, cost_nano=PRICE_NANO, cost_source="provider", picture=drawn.image.handle
        )
        await lim.money.record_path(bought, str(drawn.path))
        outcome = await earlier.resumer.finish(CALL, progress=lambda _: None)
    assert (outcome.content, outcome.cost_nano) == ((drawn.image,), PRICE_NANO)


CHILD = """
import asyncio, os, sys
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.acceptance.conftest import Studio
from tests.acceptance.test_mcp_resume import PRICE_NANO, Earlier

async def main():
    studio = Studio.__new__(Studio)
    studio.home, studio.cwd, studio.env = Path({home!r}), Path({cwd!r}), {env!r}
    async with studio.open() as lim:
        earlier = Earlier(lim)
        {code}
        os._exit(9)

asyncio.run(main())
"""


async def die_after(studio: Studio, code: str) -> None:
    """Run code in another server, which then ends as if it was killed."""
    home, cwd, root = str(studio.home), str(studio.cwd), str(Path(__file__).parents[2])
    program = CHILD.format(root=root, home=home, cwd=cwd, env=studio.env, code=code)
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program)
    assert await process.wait() == 9


async def test_a_settled_call_without_a_picture_reports_its_price_and_not_its_quote(
    studio: Studio,
) -> None:
    settle = (
        "await lim.money.settle(await earlier.send(), cost_nano=PRICE_NANO,"
        " cost_source='provider', picture=None, error_code='IMAGE_GEN_BAD_RESPONSE')"
    )
    await die_after(studio, settle)
    async with studio.open() as lim:
        error = await Earlier(lim).finish()
    assert (error.code, error.cost_nano, error.billed) == ("JOB_LOST", PRICE_NANO, True)
    assert "the call ended with IMAGE_GEN_BAD_RESPONSE" in error.message
    assert "the call was billed" in error.message


async def test_a_process_that_dies_after_this_one_started_is_noticed(
    studio: Studio, openai: OpenAIServer
) -> None:
    async with studio.connect(openai).open() as lim:
        await lim.money.conclude_dead_calls()
        await die_after(studio, "await earlier.send()")
        earlier = Earlier(lim)
        assert await earlier.resumer.earlier(DIGEST, but="other") == CALL
        error = await earlier.finish()
    assert (error.code, error.cost_nano, error.cost_source) == ("JOB_LOST", QUOTE_NANO, "unknown")


async def test_a_call_that_cannot_be_asked_for_without_a_key_still_reports_its_cost(
    studio: Studio,
) -> None:
    async with studio.open() as lim:
        earlier = Earlier(lim)
        await lim.money.mark_unknown(await earlier.send(), error_code="OWNER_DIED")
        error = await earlier.finish()
    assert (error.code, error.cost_nano, error.billed) == (
        "IMAGE_GEN_NO_PROVIDER",
        QUOTE_NANO,
        True,
    )
