"""Unfinished pictures on the way, streamed by OpenAI: events checked against the vendor's own."""

from __future__ import annotations

import asyncio
import base64
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

import openai
import pytest
from msgspec.structs import replace
from openai.types.image_edit_stream_event import ImageEditStreamEvent
from openai.types.image_gen_stream_event import ImageGenStreamEvent
from openai.types.image_generate_params import ImageGenerateParamsStreaming
from pydantic import TypeAdapter
from tests.servers.samples import KEY, PICTURE
from tests.servers.test_servers_processes import serving

from limner.errors import (
    BadProviderImage,
    ProviderBadRequest,
    ProviderRateLimited,
    ProviderRefused,
    ProviderUnavailable,
)
from limner.pictures.request import ImageRequest, Progress, Receipt, SourceImage
from limner.providers.base import Connection
from limner.providers.openai import OpenAIImage
from limner.testing import FakeClock, FakeDesk, FakeSink
from limner.testing.servers.http_server import Gate, Reply, json_reply
from limner.testing.servers.openai_server import (
    OpenAIServer,
    error_reply,
    event,
    events_reply,
    read_form,
)

SHOWN = ImageRequest(
    prompt="a fox", model="gpt-image-2.5-flare", width=1024, height=1024, partial_pictures=2
)
EDIT = replace(
    SHOWN,
    sources=(SourceImage(handle="0" * 64, mime="image/webp", width=8, height=8, data=b"webp"),),
)
STARTED = Progress(message="OpenAI is drawing", elapsed_s=0.0)
COST = Receipt(prompt_used="a fox", cost_nano=50 * 5_000 + 439 * 30_000, cost_source="computed")


class Drawing:
    """One provider at one server, and what came of it."""

    def __init__(self, server: OpenAIServer, connect: Callable[..., Connection]) -> None:
        self.sink, self.desk = FakeSink(), FakeDesk()
        self.provider = OpenAIImage(connect(server.base_url))

    async def draw(self, request: ImageRequest = SHOWN) -> Receipt:
        return await self.provider.generate(request, self.sink, self.desk.callbacks)


@pytest.fixture
async def drawing(openai_server: OpenAIServer, connect: Callable[..., Connection]) -> Drawing:
    return Drawing(openai_server, connect)


def unfinished(number: int, *, most: int = 2) -> Progress:
    return Progress(
        message=f"Unfinished picture {number} of at most {most}",
        elapsed_s=0.0,
        picture=b"unfinished %d" % (number - 1),
    )


def partial(data: bytes, number: int = 0) -> bytes:
    kind = "image_generation.partial_image"
    return event(kind, b64_json=base64.b64encode(data).decode(), partial_image_index=number)


def completed(**fields: Any) -> bytes:
    return event("image_generation.completed", **fields)


@pytest.mark.parametrize("request_", [SHOWN, EDIT])
async def test_unfinished_pictures_are_shown_and_the_finished_one_is_poured(
    request_: ImageRequest, drawing: Drawing
) -> None:
    assert await drawing.draw(request_) == COST
    assert bytes(drawing.sink.data) == PICTURE
    assert drawing.desk.progress == [STARTED, unfinished(1), unfinished(2)]


async def test_they_are_asked_for_in_the_vendors_words(
    drawing: Drawing, openai_server: OpenAIServer
) -> None:
    await drawing.draw(SHOWN)
    (seen,) = openai_server.requests
    body = seen.json()
    assert (body["stream"], body["partial_images"]) == (True, 2)
    assert seen.headers["accept"] == "text/event-stream"
    assert set(body) <= set(get_type_hints(ImageGenerateParamsStreaming))
    TypeAdapter(ImageGenerateParamsStreaming).validate_python(body)


@pytest.mark.parametrize("request_", [SHOWN, EDIT])
async def test_the_vendors_own_client_asks_the_same_and_understands_the_events(
    request_: ImageRequest, drawing: Drawing, openai_server: OpenAIServer
) -> None:
    await drawing.draw(request_)
    (ours,) = openai_server.requests

    def ask() -> list[Any]:
        with openai.OpenAI(base_url=openai_server.base_url, api_key=KEY, max_retries=0) as client:
            if not request_.sources:
                return list(client.images.generate(**ours.json()))
            form = read_form(ours)
            (image,) = form.files
            given: dict[str, Any] = {**form.fields, "n": 1, "stream": True, "partial_images": 2}
            file = (image.filename, image.data, image.mime)
            return list(client.images.edit(image=file, **given))

    events = await asyncio.to_thread(ask)
    kind = "image_edit" if request_.sources else "image_generation"
    assert [one.type for one in events] == [
        f"{kind}.partial_image",
        f"{kind}.partial_image",
        f"{kind}.completed",
    ]
    expected = ImageEditStreamEvent if request_.sources else ImageGenStreamEvent
    for one in events:
        TypeAdapter(expected).validate_python(one.model_dump())
    theirs = openai_server.requests[1]
    if request_.sources:
        assert read_form(theirs) == read_form(ours)
    else:
        assert theirs.json() == ours.json()


async def test_a_service_that_streams_nothing_has_drawn_all_the_same(
    drawing: Drawing, openai_server: OpenAIServer
) -> None:
    answer = {"data": [{"b64_json": base64.b64encode(b"plain").decode()}]}
    openai_server.script("generate", json_reply(answer))
    assert await drawing.draw() == Receipt(prompt_used="a fox")
    assert (bytes(drawing.sink.data), drawing.desk.progress) == (b"plain", [STARTED])


async def test_events_that_nobody_knows_and_names_that_are_missing_do_no_harm(
    drawing: Drawing, openai_server: OpenAIServer
) -> None:
    picture = base64.b64encode(b"done").decode()
    openai_server.script(
        "generate",
        events_reply(
            b"\xef\xbb\xbf: hello\r\n\r\n",
            event("image_generation.queued", position=3),
            b"data: []\n\ndata: {}\n\n",
            b'data: {"type": "image_generation.partial_image", "b64_json": null}\n\n',
            b'data: {"b64_json": "%b",\ndata:  "usage": null, ' % picture.encode(),
            b'"type": "image_generation.completed"}\r\r',
            b"data: [DONE]\n\n",
        ),
    )
    assert await drawing.draw() == Receipt(prompt_used="a fox")
    assert bytes(drawing.sink.data) == b"done"


async def test_the_name_of_an_event_will_do_where_its_type_is_missing(
    drawing: Drawing, openai_server: OpenAIServer
) -> None:
    openai_server.script(
        "generate", events_reply(b'data: {"b64_json": "QQ=="}\nevent: image_edit.completed\n\n')
    )
    await drawing.draw()
    assert bytes(drawing.sink.data) == b"A"


async def test_no_more_unfinished_pictures_are_shown_than_were_asked_for(
    drawing: Drawing, openai_server: OpenAIServer
) -> None:
    too_many = [partial(b"unfinished %d" % number, number) for number in range(9)]
    openai_server.script("generate", events_reply(*too_many, completed(b64_json="QQ==")))
    await drawing.draw()
    assert drawing.desk.progress == [STARTED, unfinished(1), unfinished(2)]


async def test_the_time_that_has_passed_is_told(
    drawing: Drawing, openai_server: OpenAIServer, time: FakeClock
) -> None:
    gate = Gate()
    openai_server.script("generate", events_reply(gate, partial(b"a"), completed(b64_json="QQ==")))
    task = asyncio.ensure_future(drawing.draw())
    await openai_server.wait_until("generate")
    time.now_s = 12.5
    gate.open()
    await task
    assert [one.elapsed_s for one in drawing.desk.progress] == [0.0, 12.5]


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        ({"error": {"code": "moderation_blocked", "message": f"no {KEY}"}}, ProviderRefused),
        ({"error": {"type": "invalid_request_error", "message": "no"}}, ProviderBadRequest),
        ({"error": {"code": "server_error", "message": "oops"}}, ProviderUnavailable),
        ({"code": "rate_limit_exceeded", "message": "slow"}, ProviderRateLimited),
        ({"error": {"code": 5, "message": ["no text"]}}, ProviderUnavailable),
    ],
)
async def test_a_failure_in_the_middle_may_be_billed_and_is_not_sent_again(
    failure: dict[str, Any], kind: Any, drawing: Drawing, openai_server: OpenAIServer
) -> None:
    openai_server.always("generate", events_reply(partial(b"a"), event("error", **failure)))
    with pytest.raises(kind, match="may be billed") as caught:
        await drawing.draw()
    assert caught.value.may_be_billed
    assert caught.value.extras["provider"] == "openai-image"
    assert KEY not in str(caught.value.as_json())
    assert len(openai_server.requests) == 1
    assert not drawing.sink.data


@pytest.mark.parametrize("end", [b"", b": bye\n\n", partial(b"b"), b"data: {", completed()[:-2]])
async def test_a_stream_that_ends_too_soon_may_be_billed(
    end: bytes, drawing: Drawing, openai_server: OpenAIServer
) -> None:
    openai_server.always("generate", events_reply(partial(b"a"), end))
    with pytest.raises(ProviderUnavailable, match="before the picture was finished") as caught:
        await drawing.draw()
    assert (caught.value.may_be_billed, caught.value.retryable) == (True, False)
    assert caught.value.extras == {"provider": "openai-image"}


async def test_a_connection_that_breaks_in_the_middle_of_an_event_may_be_billed(
    drawing: Drawing, openai_server: OpenAIServer
) -> None:
    whole = openai_server.streamed(0, kind="image_generation")
    body = b"".join(piece for piece in whole.pieces if isinstance(piece, bytes))
    half = Reply(headers=whole.headers, pieces=(body[:9000],), chunked=True, ending="close")
    openai_server.always("generate", half)
    with pytest.raises(ProviderUnavailable, match="broke off") as caught:
        await drawing.draw()
    assert (caught.value.may_be_billed, caught.value.retryable) == (True, False)
    # Half a picture is worth nothing, and none of it is taken for one.
    assert (bytes(drawing.sink.data), len(openai_server.requests)) == (b"", 1)


@pytest.mark.parametrize(
    "nonsense",
    [completed(), completed(b64_json=None), b"data: hello\n\n", b'data: {"b64_json": "?"}\n\n'],
)
async def test_an_end_without_a_picture_is_a_bad_answer(
    nonsense: bytes, drawing: Drawing, openai_server: OpenAIServer
) -> None:
    openai_server.always("generate", events_reply(nonsense))
    with pytest.raises(BadProviderImage) as caught:
        await drawing.draw()
    assert caught.value.extras == {"provider": "openai-image"}


async def test_a_rate_limit_before_the_stream_passes(
    drawing: Drawing, openai_server: OpenAIServer, time: FakeClock
) -> None:
    openai_server.script("generate", error_reply(429, "Slow", headers={"retry-after": "2"}))
    assert await drawing.draw() == COST
    assert time.slept == [2.0]


async def test_giving_up_in_the_middle_closes_the_stream(
    drawing: Drawing, openai_server: OpenAIServer
) -> None:
    openai_server.always("generate", events_reply(partial(b"unfinished 0"), Gate()))
    shown = asyncio.Event()
    desk = replace(
        drawing.desk.callbacks, progress=lambda one: shown.set() if one.picture else None
    )
    task = asyncio.ensure_future(drawing.provider.generate(SHOWN, drawing.sink, desk))
    async with asyncio.timeout(30):
        await shown.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await openai_server.wait_for_hangup()


async def test_base64_is_not_held_however_large_the_picture_is(
    tmp_path: Path, connect: Callable[..., Connection]
) -> None:
    size_bytes = 16_000_000
    large = tmp_path / "large.png"
    large.write_bytes(bytes(size_bytes))

    class Counter:
        count = 0

        def write(self, data: bytes | memoryview) -> None:
            self.count += len(data)

    sink = Counter()
    async with serving("openai", "--picture", str(large)) as origin:
        provider = OpenAIImage(connect(f"{origin}/v1"))
        tracemalloc.start()
        try:
            await provider.generate(SHOWN, sink, FakeDesk().callbacks)
            peak_bytes = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert sink.count == size_bytes
    # The picture itself, with room to grow, and no base64 of it.
    assert peak_bytes < 1.3 * size_bytes
