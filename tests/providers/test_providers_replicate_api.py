"""Giving a Flux picture up, and finding and resuming one that was started earlier."""

from __future__ import annotations

import asyncio
import time as wall
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from msgspec.structs import replace
from tests.providers.drawn import stopped_clock
from tests.servers.samples import PICTURE

from limner.errors import JobTaken, ProviderAuth, ProviderRefused, ProviderUnavailable
from limner.pictures.request import ImageRequest, Receipt, RemoteJob
from limner.providers.base import Connection
from limner.providers.replicate_flux import ReplicateFlux
from limner.testing import FakeDesk, FakeSink
from limner.testing.servers.http_server import Gate, Reply, dropped, json_reply
from limner.testing.servers.replicate_server import PAGE, ReplicateServer, error_reply

MODEL = "black-forest-labs/flux-schnell"
REQUEST = ImageRequest(prompt="a fox", model=MODEL, width=1024, height=1024, seed=42)
INPUTS = {"prompt": "a fox", "seed": 42}
HOUR_MS = 3_600_000


class Giving:
    """A drawing that is given up at some point."""

    def __init__(self, connection: Connection, *, cancel_timeout_s: float = 10.0) -> None:
        self.desk, self.sink = FakeDesk(), FakeSink()
        provider = ReplicateFlux(connection)
        provider.cancel_timeout_s = cancel_timeout_s
        self._task = asyncio.ensure_future(
            provider.generate(REQUEST, self.sink, self.desk.callbacks)
        )

    async def up(self) -> None:
        self._task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await self._task


def job(server: ReplicateServer, one: str) -> RemoteJob:
    return RemoteJob(remote_id=one, url=f"{server.base_url}/predictions/{one}")


async def test_giving_up_between_looks_cancels_the_prediction(
    replicate_server: ReplicateServer, connect: Callable[..., Connection]
) -> None:
    replicate_server.looks = 9
    clock, waiting = stopped_clock()
    giving = Giving(connect(replicate_server.base_url, clock=clock))
    await waiting.wait()
    await giving.up()
    (cancel,) = replicate_server.sent("cancel")
    (one,) = replicate_server.predictions
    assert cancel.path == f"/v1/predictions/{one}/cancel"
    assert replicate_server.predictions[one]["status"] == "canceled"
    assert (giving.desk.withdrawn, giving.desk.jobs) == (1, [job(replicate_server, one)])


@pytest.mark.parametrize("route", ["look", "file"])
async def test_giving_up_in_the_middle_of_a_request_cancels_the_prediction(
    route: str, replicate_server: ReplicateServer, connect: Callable[..., Connection]
) -> None:
    replicate_server.looks = 1
    replicate_server.always(route, Reply(hold=Gate()))
    giving = Giving(connect(replicate_server.base_url))
    await replicate_server.wait_until(route)
    await giving.up()
    assert len(replicate_server.sent("cancel")) == 1
    # A picture that is done is paid for, whoever gave it up.
    assert giving.desk.withdrawn == (1 if route == "look" else 0)


async def test_giving_up_while_the_job_is_written_down_cancels_it(
    replicate_server: ReplicateServer, connect: Callable[..., Connection]
) -> None:
    replicate_server.looks = 9
    desk, reached = FakeDesk(), asyncio.Event()

    async def journal(job: RemoteJob) -> None:
        reached.set()
        await asyncio.Event().wait()

    provider = ReplicateFlux(connect(replicate_server.base_url))
    drawing = asyncio.ensure_future(
        provider.generate(REQUEST, FakeSink(), replace(desk.callbacks, journal=journal))
    )
    await reached.wait()
    drawing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await drawing
    assert len(replicate_server.sent("cancel")) == 1
    assert desk.withdrawn == 1


async def test_giving_up_before_the_id_is_known_waits_for_it(
    replicate_server: ReplicateServer, connect: Callable[..., Connection]
) -> None:
    gate = Gate()
    prediction = replicate_server.add(MODEL, INPUTS)
    held = json_reply(prediction, status=201)
    replicate_server.script("create", replace(held, hold=gate))
    giving = Giving(connect(replicate_server.base_url))
    await replicate_server.wait_until("create")
    up = asyncio.ensure_future(giving.up())
    await asyncio.sleep(0)
    gate.open()
    await up
    assert len(replicate_server.sent("cancel")) == 1
    assert replicate_server.sent("list") == []
    assert giving.desk.jobs == [job(replicate_server, prediction["id"])]
    assert giving.desk.withdrawn == 1


@pytest.mark.slow
async def test_giving_up_where_the_id_never_comes_finds_the_prediction_by_its_seed(
    replicate_server: ReplicateServer, connect: Callable[..., Connection]
) -> None:
    prediction = replicate_server.add(MODEL, INPUTS)
    replicate_server.always("create", Reply(hold=Gate()))
    giving = Giving(connect(replicate_server.base_url), cancel_timeout_s=2.0)
    await replicate_server.wait_until("create")
    await giving.up()
    assert prediction["status"] == "canceled"
    assert giving.desk.jobs == [job(replicate_server, prediction["id"])]
    assert giving.desk.withdrawn == 1
    await replicate_server.wait_for_hangup()


async def test_giving_up_what_the_service_refused_anyway_costs_nothing(
    replicate_server: ReplicateServer, connect: Callable[..., Connection]
) -> None:
    gate = Gate()
    replicate_server.script("create", replace(error_reply(401, "no"), hold=gate))
    giving = Giving(connect(replicate_server.base_url))
    await replicate_server.wait_until("create")
    up = asyncio.ensure_future(giving.up())
    await asyncio.sleep(0)
    gate.open()
    await up
    assert (giving.desk.jobs, giving.desk.withdrawn) == ([], 1)
    assert len(replicate_server.requests) == 1


async def test_giving_up_while_waiting_out_a_rate_limit_sends_nothing_more(
    replicate_server: ReplicateServer, connect: Callable[..., Connection]
) -> None:
    replicate_server.always("create", error_reply(429, "slow"))
    clock, waiting = stopped_clock()
    giving = Giving(connect(replicate_server.base_url, clock=clock))
    await waiting.wait()
    await giving.up()
    assert [replicate_server.route(seen) for seen in replicate_server.requests] == ["create"]


@pytest.mark.parametrize("answer", [error_reply(500, "oops"), error_reply(404, "gone")])
async def test_a_cancellation_that_is_not_accepted_leaves_the_money_counted(
    answer: Reply, replicate_server: ReplicateServer, connect: Callable[..., Connection]
) -> None:
    replicate_server.looks = 9
    replicate_server.always("cancel", answer)
    replicate_server.always("look", Reply(hold=Gate()))
    giving = Giving(connect(replicate_server.base_url))
    await replicate_server.wait_until("look")
    await giving.up()
    assert len(replicate_server.sent("cancel")) == 1
    assert giving.desk.withdrawn == 0


async def test_a_cancellation_that_is_not_answered_does_not_hold_the_caller(
    replicate_server: ReplicateServer, connect: Callable[..., Connection]
) -> None:
    replicate_server.looks = 9
    for route in ("look", "cancel"):
        replicate_server.always(route, Reply(hold=Gate()))
    giving = Giving(connect(replicate_server.base_url), cancel_timeout_s=0.2)
    await replicate_server.wait_until("look")
    await giving.up()
    assert (len(replicate_server.sent("cancel")), giving.desk.withdrawn) == (1, 0)


async def find(
    server: ReplicateServer, connect: Callable[..., Connection], **changes: Any
) -> RemoteJob | None:
    since_ms = int(wall.time() * 1000) - HOUR_MS
    provider = ReplicateFlux(connect(server.base_url))
    found = await provider.find(replace(REQUEST, **changes), since_ms=since_ms)
    return next(iter(found or ()), None)


async def test_a_prediction_is_found_by_model_prompt_and_seed(
    replicate_server: ReplicateServer, connect: Callable[..., Connection]
) -> None:
    mine = replicate_server.add(MODEL, INPUTS | {"aspect_ratio": "1:1"})
    replicate_server.add(MODEL, INPUTS | {"seed": 43})
    replicate_server.add(MODEL, INPUTS | {"prompt": "a wolf"})
    replicate_server.add("somebody/else", INPUTS)
    replicate_server.add(MODEL, {}, input=None, output="data:image/png;base64,QUJD")
    assert await find(replicate_server, connect) == job(replicate_server, mine["id"])
    assert await find(replicate_server, connect, seed=44) is None
    assert await find(replicate_server, connect, prompt="a") is None
    assert await find(replicate_server, connect, seed=None) is None


async def test_a_prediction_is_found_pages_back_but_not_before_it_was_asked_for(
    replicate_server: ReplicateServer, connect: Callable[..., Connection]
) -> None:
    old = replicate_server.add(MODEL, INPUTS, created_at="2020-01-01T00:00:00Z")
    for seed in range(1000, 1000 + 2 * PAGE):
        replicate_server.add(MODEL, INPUTS | {"seed": seed})
    found = await find(replicate_server, connect, seed=1000)
    assert found == job(replicate_server, "p000000000002")
    assert len(replicate_server.sent("list")) == 1 + 2
    assert await find(replicate_server, connect) is None
    old["created_at"] = "not a time"
    assert await find(replicate_server, connect) == job(replicate_server, old["id"])


async def test_a_prediction_is_found_behind_any_number_of_newer_ones(
    replicate_server: ReplicateServer, connect: Callable[..., Connection]
) -> None:
    sent = datetime.now(UTC) - timedelta(hours=3)
    mine = replicate_server.add(MODEL, INPUTS, created_at=(sent + timedelta(seconds=1)).isoformat())
    for seed in range(1000, 1000 + 12 * PAGE):
        replicate_server.add(MODEL, INPUTS | {"seed": seed})
    provider = ReplicateFlux(connect(replicate_server.base_url))
    found = await provider.find(REQUEST, since_ms=int(sent.timestamp() * 1000))
    assert found == [job(replicate_server, mine["id"])]
    (listed,) = replicate_server.sent("list")
    asked = {name: datetime.fromisoformat(values[0]) for name, values in listed.query.items()}
    assert asked["created_after"] < sent < asked["created_before"]


async def test_looking_through_predictions_has_an_end_and_stays_at_the_service(
    replicate_server: ReplicateServer, connect: Callable[..., Connection]
) -> None:
    forever = f"{replicate_server.base_url}/predictions?cursor=0"
    replicate_server.always("list", json_reply({"results": [], "next": forever}))
    assert await find(replicate_server, connect) is None
    assert len(replicate_server.sent("list")) == 100 + 10
    elsewhere = {"results": [], "next": "https://evil.example/v1/predictions"}
    replicate_server.always("list", json_reply(elsewhere))
    assert await find(replicate_server, connect) is None
    assert len(replicate_server.sent("list")) == 100 + 10 + 2
    replicate_server.always("list", json_reply(["odd"]))
    assert await find(replicate_server, connect) is None


async def test_a_search_that_fails_says_so(
    replicate_server: ReplicateServer, connect: Callable[..., Connection]
) -> None:
    replicate_server.always("list", error_reply(401, "no"))
    with pytest.raises(ProviderAuth):
        await find(replicate_server, connect)


async def resume(
    server: ReplicateServer, connect: Callable[..., Connection], one: RemoteJob
) -> tuple[Receipt, bytes, FakeDesk]:
    sink, desk = FakeSink(), FakeDesk()
    provider = ReplicateFlux(connect(server.base_url))
    receipt = await provider.resume(one, REQUEST, sink, desk.callbacks)
    return receipt, bytes(sink.data), desk


@pytest.mark.parametrize("looks", [1, 3])
async def test_a_prediction_is_resumed_to_its_picture(
    looks: int, replicate_server: ReplicateServer, connect: Callable[..., Connection]
) -> None:
    replicate_server.looks = looks
    one = replicate_server.add(MODEL, INPUTS)
    receipt, data, desk = await resume(replicate_server, connect, job(replicate_server, one["id"]))
    assert receipt == Receipt(prompt_used="a fox", extras={"seed": 42})
    assert data == PICTURE
    assert len(desk.progress) == looks
    assert replicate_server.sent("create") == []


async def test_a_job_is_resumed_at_the_api_whatever_its_address_says(
    replicate_server: ReplicateServer, connect: Callable[..., Connection]
) -> None:
    one = replicate_server.add(MODEL, INPUTS)
    moved = RemoteJob(remote_id=one["id"], url="https://evil.example/predictions/x")
    _, data, _ = await resume(replicate_server, connect, moved)
    assert data == PICTURE


async def test_resuming_what_failed_says_how(
    replicate_server: ReplicateServer, connect: Callable[..., Connection]
) -> None:
    replicate_server.outcome, replicate_server.error = "failed", "NSFW content detected"
    one = replicate_server.add(MODEL, INPUTS)
    with pytest.raises(ProviderRefused):
        await resume(replicate_server, connect, job(replicate_server, one["id"]))


async def test_resuming_what_never_ends_leaves_it_to_be_resumed_again(
    replicate_server: ReplicateServer, connect: Callable[..., Connection]
) -> None:
    replicate_server.looks = 10**9
    one = replicate_server.add(MODEL, INPUTS)
    with pytest.raises(ProviderUnavailable, match="may be billed"):
        await resume(replicate_server, connect, job(replicate_server, one["id"]))
    assert replicate_server.sent("cancel") == []


async def test_giving_up_a_resumption_leaves_the_prediction_alone(
    replicate_server: ReplicateServer, connect: Callable[..., Connection]
) -> None:
    replicate_server.always("look", Reply(hold=Gate()))
    one = replicate_server.add(MODEL, INPUTS)
    resuming = asyncio.ensure_future(
        resume(replicate_server, connect, job(replicate_server, one["id"]))
    )
    await replicate_server.wait_until("look")
    resuming.cancel()
    with pytest.raises(asyncio.CancelledError):
        await resuming
    assert replicate_server.sent("cancel") == []


async def draw(
    server: ReplicateServer, connect: Callable[..., Connection], *, taken: tuple[str, ...] = ()
) -> tuple[bytes, FakeDesk]:
    """Draw; the predictions in ``taken`` belong to other requests."""
    sink, desk = FakeSink(), FakeDesk()

    async def journal(job: RemoteJob) -> None:
        if job.remote_id in taken:
            raise JobTaken(job.remote_id)
        desk.jobs.append(job)

    provider = ReplicateFlux(connect(server.base_url))
    await provider.generate(REQUEST, sink, replace(desk.callbacks, journal=journal))
    return bytes(sink.data), desk


async def test_the_prediction_of_another_request_is_not_taken_for_ones_own(
    replicate_server: ReplicateServer, connect: Callable[..., Connection]
) -> None:
    other = replicate_server.add(MODEL, INPUTS | {"prompt": "a wolf"})
    mine = replicate_server.add(MODEL, INPUTS)
    replicate_server.script("create", json_reply(other, status=201))
    data, desk = await draw(replicate_server, connect)
    assert (data, desk.jobs[0]) == (PICTURE, job(replicate_server, mine["id"]))


async def test_a_prediction_that_another_request_has_is_refused(
    replicate_server: ReplicateServer, connect: Callable[..., Connection]
) -> None:
    other = replicate_server.add(MODEL, INPUTS)
    replicate_server.script("create", json_reply(other, status=201))
    with pytest.raises(ProviderUnavailable, match="named another request's job") as caught:
        await draw(replicate_server, connect, taken=(other["id"],))
    assert (caught.value.may_be_billed, caught.value.retryable) == (True, False)


async def test_the_look_of_another_prediction_is_not_believed(
    replicate_server: ReplicateServer, connect: Callable[..., Connection]
) -> None:
    replicate_server.looks = 1
    other = replicate_server.add(MODEL, INPUTS, status="succeeded", output="https://evil.example/")
    replicate_server.script("look", json_reply(other))
    data, desk = await draw(replicate_server, connect)
    assert (data, len(replicate_server.sent("look"))) == (PICTURE, 2)
    assert desk.jobs == [job(replicate_server, "p000000000002")]


@pytest.mark.parametrize("failure", [error_reply(500, "oops"), error_reply(409, "no"), dropped()])
async def test_a_failure_after_the_start_goes_on_with_the_prediction_in_the_list(
    failure: Reply, replicate_server: ReplicateServer, connect: Callable[..., Connection]
) -> None:
    taken, mine = (replicate_server.add(MODEL, INPUTS)["id"] for _ in range(2))
    replicate_server.script("create", failure)
    data, desk = await draw(replicate_server, connect, taken=(taken,))
    assert (data, desk.jobs[0]) == (PICTURE, job(replicate_server, mine))
    assert len(replicate_server.sent("create")) == 1


async def test_an_error_is_free_only_if_the_list_has_no_prediction(
    replicate_server: ReplicateServer, connect: Callable[..., Connection]
) -> None:
    replicate_server.always("create", error_reply(503, "busy"))
    with pytest.raises(ProviderUnavailable) as caught:
        await draw(replicate_server, connect)
    assert caught.value.message == "Replicate answered 503: busy; it has no job for this request"
    assert (caught.value.may_be_billed, caught.value.retryable) == (False, True)
    replicate_server.always("list", error_reply(503, "busy"))
    with pytest.raises(ProviderUnavailable, match="may be billed") as caught:
        await draw(replicate_server, connect)
    assert (caught.value.may_be_billed, caught.value.retryable) == (True, False)


@pytest.mark.parametrize("lead_s", [-600, 0, 600, 1200])
async def test_the_prediction_nearest_to_the_request_comes_first_on_the_services_clock(
    lead_s: int, replicate_server: ReplicateServer, connect: Callable[..., Connection]
) -> None:
    sent = datetime.now(UTC)

    def at(seconds: int) -> str:
        created = sent + timedelta(seconds=lead_s + seconds)
        return created.isoformat().replace("+00:00", "Z")

    one, two, three = (
        replicate_server.add(MODEL, INPUTS, created_at=at(seconds))["id"]
        for seconds in (-600, 1, 30)
    )
    date = format_datetime(sent + timedelta(seconds=lead_s), usegmt=True)

    async def found() -> list[str]:
        page = {"results": [*reversed(replicate_server.predictions.values())], "next": None}
        replicate_server.always("list", json_reply(page, headers={"Date": date}))
        provider = ReplicateFlux(connect(replicate_server.base_url))
        jobs = await provider.find(REQUEST, since_ms=int(sent.timestamp() * 1000))
        return [one.remote_id for one in jobs or ()]

    assert await found() == [two, three]
    # The clock may have been set since: an older one is the last resort.
    del replicate_server.predictions[two], replicate_server.predictions[three]
    assert await found() == [one]
