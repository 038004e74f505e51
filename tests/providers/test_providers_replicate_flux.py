"""Flux over Replicate's predictions: asking, waiting, collecting, failing."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from replicate.client import Client
from tests.servers.samples import KEY, PICTURE

from limner.errors import (
    BadProviderImage,
    ProviderAuth,
    ProviderBadRequest,
    ProviderError,
    ProviderRefused,
    ProviderUnavailable,
)
from limner.pictures.request import ImageRequest, Progress, Receipt, RemoteJob
from limner.providers.base import Connection
from limner.providers.model_inputs import nearest_aspect_ratio
from limner.providers.replicate_flux import ASPECT_RATIOS, ReplicateFlux
from limner.testing import FakeClock, FakeDesk, FakeSink
from limner.testing.servers.http_server import (
    Reply,
    bytes_reply,
    cut_short,
    dropped,
    html_reply,
    json_reply,
)
from limner.testing.servers.replicate_server import ReplicateServer, error_reply

MODEL = "black-forest-labs/flux-schnell"
REQUEST = ImageRequest(prompt="a fox", model=MODEL, width=1024, height=1792, seed=42)
RECEIPT = Receipt(prompt_used="a fox", extras={"seed": 42})
NSFW = "All generated images contained NSFW content. Try running it again with a different prompt."


class Drawn:
    """One drawing, and everything around it."""

    def __init__(self, connection: Connection) -> None:
        self.provider = ReplicateFlux(connection)
        self.sink, self.desk = FakeSink(), FakeDesk()

    async def generate(self, request: ImageRequest = REQUEST) -> Receipt:
        return await self.provider.generate(request, self.sink, self.desk.callbacks)

    @property
    def data(self) -> bytes:
        return bytes(self.sink.data)


@pytest.fixture
def flux(
    replicate_server: ReplicateServer, connect: Callable[..., Connection]
) -> Callable[[], Drawn]:
    return lambda: Drawn(connect(replicate_server.base_url))


def only_job(server: ReplicateServer) -> RemoteJob:
    (one,) = server.predictions
    return RemoteJob(remote_id=one, url=f"{server.base_url}/predictions/{one}")


@pytest.mark.parametrize("delivery", ["url", "single url", "data"])
async def test_a_fast_picture_takes_one_round_trip_and_its_job_is_written_down(
    delivery: Any, replicate_server: ReplicateServer, flux: Callable[[], Drawn]
) -> None:
    replicate_server.delivery = delivery
    drawn = flux()
    assert await drawn.generate() == RECEIPT
    assert drawn.data == PICTURE
    assert drawn.desk.jobs == [only_job(replicate_server)]
    create, *rest = replicate_server.requests
    assert (create.method, create.target) == (
        "POST",
        "/v1/models/black-forest-labs/flux-schnell/predictions",
    )
    assert create.headers["authorization"] == f"Bearer {KEY}"
    assert create.headers["prefer"] == "wait=1"
    assert create.json() == {
        "input": {
            "prompt": "a fox",
            "aspect_ratio": "9:16",
            "output_format": "png",
            "num_outputs": 1,
            "seed": 42,
        }
    }
    assert [replicate_server.route(seen) for seen in rest] == (
        [] if delivery == "data" else ["file"]
    )


async def test_without_a_seed_one_is_chosen_and_told(
    replicate_server: ReplicateServer, flux: Callable[[], Drawn]
) -> None:
    request = ImageRequest(prompt="a fox", model=MODEL, width=512, height=512)
    receipts = [await flux().generate(request) for _ in range(3)]
    sent = [seen.json()["input"]["seed"] for seen in replicate_server.sent("create")]
    assert [receipt.extras["seed"] for receipt in receipts] == sent
    assert len(set(sent)) == 3
    assert all(0 <= seed < 2**31 for seed in sent)


async def test_a_slow_picture_is_looked_at_with_growing_pauses(
    replicate_server: ReplicateServer, flux: Callable[[], Drawn], time: FakeClock
) -> None:
    replicate_server.looks = 8
    drawn = flux()
    assert await drawn.generate() == RECEIPT
    assert drawn.data == PICTURE
    pauses = [0.5, 0.75, 1.125, 1.6875, 2.53125, 3.0, 3.0, 3.0]
    assert time.slept == pauses
    began = [sum(pauses[:count]) for count in range(8)]
    assert drawn.desk.progress == [
        Progress(message="Flux is drawing", elapsed_s=seconds) for seconds in began
    ]


async def test_the_job_is_written_down_before_the_first_look(
    replicate_server: ReplicateServer, flux: Callable[[], Drawn]
) -> None:
    replicate_server.looks = 1
    looks_when_journalled: list[int] = []
    drawn = flux()
    desk = drawn.desk.callbacks

    async def journal(job: RemoteJob) -> None:
        looks_when_journalled.append(len(replicate_server.sent("look")))

    await drawn.provider.generate(REQUEST, drawn.sink, replace(desk, journal=journal))
    assert looks_when_journalled == [0]


@pytest.mark.parametrize(
    "bad",
    [
        error_reply(500, "oops"),
        error_reply(502, "oops"),
        error_reply(503, "oops"),
        error_reply(429, "throttled"),
        dropped(),
        cut_short(json_reply({"id": "p", "status": "processing"})),
    ],
)
async def test_a_look_that_fails_is_repeated(
    bad: Reply, replicate_server: ReplicateServer, flux: Callable[[], Drawn]
) -> None:
    replicate_server.looks = 1
    replicate_server.script("look", bad, bad)
    drawn = flux()
    assert await drawn.generate() == RECEIPT
    assert drawn.data == PICTURE
    assert len(replicate_server.sent("look")) == 3
    assert len(replicate_server.sent("create")) == 1


async def test_a_pause_asked_for_between_looks_is_kept(
    replicate_server: ReplicateServer, flux: Callable[[], Drawn], time: FakeClock
) -> None:
    replicate_server.looks = 1
    replicate_server.script("look", error_reply(429, "slow", **{"Retry-After": "11"}))
    await flux().generate()
    assert time.slept == [0.5, 11.0]


@pytest.mark.parametrize(
    ("status", "kind"), [(401, ProviderAuth), (404, ProviderBadRequest), (400, ProviderBadRequest)]
)
async def test_a_look_that_is_refused_leaves_the_money_at_stake(
    status: int,
    kind: type[ProviderError],
    replicate_server: ReplicateServer,
    flux: Callable[[], Drawn],
) -> None:
    replicate_server.looks = 9
    replicate_server.always("look", error_reply(status, "no"))
    with pytest.raises(kind) as caught:
        await flux().generate()
    assert (caught.value.may_be_billed, caught.value.retryable) == (True, False)
    assert caught.value.extras["remote_id"] == only_job(replicate_server).remote_id


async def test_after_two_minutes_the_job_is_left_running_and_can_be_recovered(
    replicate_server: ReplicateServer, flux: Callable[[], Drawn], time: FakeClock
) -> None:
    replicate_server.looks = 10**9
    drawn = flux()
    with pytest.raises(ProviderUnavailable, match="may be billed") as caught:
        await drawn.generate()
    job = only_job(replicate_server)
    assert (caught.value.may_be_billed, caught.value.retryable) == (True, False)
    assert caught.value.hint == "Run `limner jobs recover` to fetch the picture once it is there."
    assert caught.value.extras == {"provider": "replicate-flux", "remote_id": job.remote_id}
    assert time.now_s == pytest.approx(120)
    assert drawn.desk.jobs == [job]
    assert (drawn.desk.withdrawn, replicate_server.sent("cancel")) == (0, [])


@pytest.mark.parametrize("looks", [0, 2])
@pytest.mark.parametrize("outcome", ["canceled", "aborted", "failed"])
async def test_every_end_ends_the_waiting(
    outcome: str, looks: int, replicate_server: ReplicateServer, flux: Callable[[], Drawn]
) -> None:
    replicate_server.looks, replicate_server.outcome = looks, outcome
    replicate_server.error = f"CUDA out of memory, {KEY}, 1500 NSFW-ish characters"
    with pytest.raises(ProviderUnavailable) as caught:
        await flux().generate()
    assert caught.value.message == (
        f"Replicate says the prediction is {outcome}: "
        "CUDA out of memory, •••, 1500 NSFW-ish characters"
    )
    assert (caught.value.may_be_billed, caught.value.retryable) == (False, True)
    assert caught.value.extras["provider_code"] == outcome
    assert len(replicate_server.sent("look")) == looks


@pytest.mark.parametrize("said", [NSFW, "The input was flagged as sensitive. (E005) (xyz)"])
async def test_a_picture_the_model_will_not_show_is_a_refusal(
    said: str, replicate_server: ReplicateServer, flux: Callable[[], Drawn]
) -> None:
    replicate_server.looks, replicate_server.outcome, replicate_server.error = 1, "failed", said
    with pytest.raises(ProviderRefused) as caught:
        await flux().generate()
    assert caught.value.message == f"Replicate says the prediction is failed: {said}"
    assert (caught.value.may_be_billed, caught.value.retryable) == (False, False)


@pytest.mark.parametrize("error", [None, {"x": 1}, 7])
async def test_a_failure_without_words_is_still_one(
    error: Any, replicate_server: ReplicateServer, flux: Callable[[], Drawn]
) -> None:
    replicate_server.outcome, replicate_server.error = "failed", error
    with pytest.raises(ProviderUnavailable, match="no reason given"):
        await flux().generate()


@pytest.mark.parametrize("output", [None, [], "", [""], {}, 7, [None]])
async def test_success_without_a_picture_is_a_bad_answer(
    output: Any, replicate_server: ReplicateServer, flux: Callable[[], Drawn]
) -> None:
    answer = {"id": "p1", "status": "succeeded", "output": output}
    replicate_server.script("create", json_reply(answer, status=201))
    with pytest.raises(BadProviderImage, match="without a picture") as caught:
        await flux().generate()
    assert caught.value.extras == {"provider": "replicate-flux", "remote_id": "p1"}


@pytest.mark.parametrize(
    "file",
    [
        bytes_reply(b"RIFF\x00\x00\x00\x00WEBPVP8 ", headers={"Content-Type": "image/webp"}),
        html_reply(),
        bytes_reply(b""),
    ],
)
async def test_whatever_is_delivered_is_poured_for_the_caller_to_verify(
    file: Reply, replicate_server: ReplicateServer, flux: Callable[[], Drawn]
) -> None:
    replicate_server.file = file
    drawn = flux()
    await drawn.generate()
    assert drawn.data == b"".join(file.pieces)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [Reply(status=503), dropped()])
async def test_a_picture_that_cannot_be_fetched_yet_is_fetched_later(
    bad: Reply, replicate_server: ReplicateServer, flux: Callable[[], Drawn], time: FakeClock
) -> None:
    replicate_server.script("file", bad, bad)
    drawn = flux()
    assert await drawn.generate() == RECEIPT
    assert (drawn.data, time.slept) == (PICTURE, [0.5, 1.0])
    assert len(replicate_server.sent("create")) == 1


async def test_a_picture_that_cannot_be_fetched_at_all_may_be_billed(
    replicate_server: ReplicateServer, flux: Callable[[], Drawn]
) -> None:
    replicate_server.always("file", Reply(status=503))
    with pytest.raises(ProviderUnavailable, match="may be billed") as caught:
        await flux().generate()
    assert (caught.value.may_be_billed, caught.value.retryable) == (True, False)
    assert len(replicate_server.sent("file")) == 4


async def test_a_picture_that_breaks_off_is_not_poured_twice(
    replicate_server: ReplicateServer, flux: Callable[[], Drawn]
) -> None:
    replicate_server.script("file", cut_short(bytes_reply(PICTURE)))
    drawn = flux()
    with pytest.raises(ProviderUnavailable):
        await drawn.generate()
    assert len(replicate_server.sent("file")) == 1
    assert PICTURE.startswith(drawn.data)


async def test_a_look_that_breaks_off_inside_the_picture_is_not_repeated(
    replicate_server: ReplicateServer, flux: Callable[[], Drawn]
) -> None:
    replicate_server.looks = 1
    url = "data:image/png;base64," + "QUJD" * 200_000
    ended = json_reply({"id": "p1", "status": "succeeded", "output": url})
    replicate_server.script("look", cut_short(ended))
    with pytest.raises(ProviderUnavailable) as caught:
        await flux().generate()
    assert (caught.value.may_be_billed, caught.value.retryable) == (True, False)
    assert len(replicate_server.sent("look")) == 1


async def test_a_picture_before_the_end_is_a_bad_answer(
    replicate_server: ReplicateServer, flux: Callable[[], Drawn]
) -> None:
    early = {"id": "p1", "status": "processing", "output": "data:image/png;base64,QUJD"}
    replicate_server.script("create", json_reply(early, status=201))
    with pytest.raises(BadProviderImage, match="before it was done"):
        await flux().generate()


@pytest.mark.parametrize(
    "url", ["https://evil.example/out.png", "http://replicate.delivery/out.png", "file:///etc/x"]
)
async def test_an_output_address_elsewhere_is_not_followed(
    url: str, replicate_server: ReplicateServer, flux: Callable[[], Drawn]
) -> None:
    replicate_server.output_url = url
    with pytest.raises(BadProviderImage, match="was not fetched"):
        await flux().generate()


@pytest.mark.parametrize(
    "urls",
    [
        {"get": "https://evil.example/v1/predictions/p1"},
        {"get": "//evil.example"},
        {"get": 7},
        [],
        None,
    ],
)
async def test_the_key_is_not_sent_where_a_hostile_answer_points(
    urls: Any, replicate_server: ReplicateServer, flux: Callable[[], Drawn]
) -> None:
    replicate_server.looks = 1
    prediction = replicate_server.add(MODEL, {}, urls=urls)
    replicate_server.script("create", json_reply(prediction, status=201))
    drawn = flux()
    await drawn.generate()
    assert drawn.desk.jobs == [only_job(replicate_server)]
    assert len(replicate_server.sent("look")) == 1


@pytest.mark.parametrize("hostile", ["../../account", "a/b", "p1?x=", "", "é", "x" * 200])
async def test_an_id_that_would_change_the_address_is_a_bad_answer(
    hostile: str, replicate_server: ReplicateServer, flux: Callable[[], Drawn]
) -> None:
    replicate_server.script("create", json_reply({"id": hostile, "status": "starting"}))
    with pytest.raises(BadProviderImage, match="not a prediction"):
        await flux().generate()
    assert len(replicate_server.requests) == 1


@given(width=st.integers(64, 4096), height=st.integers(64, 4096))
def test_property_the_aspect_ratio_is_the_nearest_there_is(width: int, height: int) -> None:
    def stretch(ratio: str) -> float:
        across, down = map(int, ratio.split(":"))
        factor = (width / height) / (across / down)
        return max(factor, 1 / factor)

    chosen = nearest_aspect_ratio(width, height, ASPECT_RATIOS)
    assert stretch(chosen) <= min(map(stretch, ASPECT_RATIOS)) + 1e-9
    turned = nearest_aspect_ratio(height, width, ASPECT_RATIOS)
    assert math.isclose(stretch(":".join(reversed(turned.split(":")))), stretch(chosen))


@pytest.mark.parametrize(
    ("size", "ratio"),
    [((512, 512), "1:1"), ((1024, 1024), "1:1"), ((1024, 1792), "9:16"), ((1792, 1024), "16:9")],
)
def test_the_documented_sizes_have_their_ratios(size: tuple[int, int], ratio: str) -> None:
    assert nearest_aspect_ratio(*size, ASPECT_RATIOS) == ratio


@pytest.mark.parametrize("looks", [0, 2])
async def test_the_vendors_own_client_understands_the_same_server(
    looks: int, replicate_server: ReplicateServer
) -> None:
    replicate_server.looks = looks

    def ask() -> Any:
        client = Client(api_token="k", base_url=replicate_server.origin)
        client.poll_interval = 0.0
        prediction = client.models.predictions.create(
            model=MODEL, input={"prompt": "a fox", "seed": 42}, wait=1
        )
        prediction.wait()
        (listed,) = client.predictions.list()
        cancelled = client.predictions.cancel(prediction.id)
        client._client.close()
        return prediction, listed, cancelled

    prediction, listed, cancelled = await asyncio.to_thread(ask)
    assert prediction.status == listed.status == cancelled.status == "succeeded"
    assert prediction.output == [f"{replicate_server.origin}/files/out-0.png"]
    assert listed.input == {"prompt": "a fox", "seed": 42}
    routes = [replicate_server.route(seen) for seen in replicate_server.requests]
    assert routes == ["create", *["look"] * looks, "list", "cancel"]
    assert replicate_server.requests[0].headers["prefer"] == "wait=1"
