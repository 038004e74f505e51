"""The three batch APIs over real sockets; the vendors' own clients judge servers and requests."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import date
from typing import Any

import anthropic
import openai
import pytest
from anthropic.types.messages.batch_create_params import Request as AnthropicRequest
from google import genai
from google.genai import types as genai_types
from msgspec.structs import replace
from openai.types.batch_create_params import BatchCreateParams
from openai.types.image_generate_params import ImageGenerateParamsNonStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
from pydantic import TypeAdapter
from tests.servers.batch_servers import (
    AnthropicBatchServer,
    BatchServer,
    GeminiBatchServer,
    OpenAIBatchServer,
    fates,
)
from tests.servers.samples import KEY, PICTURE
from tests.wires.wire_prompts import FULL

from limner.batches.remote_api import (
    BatchApi,
    LineRequest,
    LineResult,
    NotDecided,
    RemoteStatus,
    RemoteSubmission,
    batch_api,
)
from limner.errors import BadProviderImage, LimnerError, ProviderBadRequest
from limner.models.registry import Registry
from limner.models.remote import RemoteModel
from limner.net.http import Http
from limner.pictures.request import ImageRequest, SourceImage
from limner.providers.base import Connection
from limner.providers.gemini_image import GeminiImage
from limner.providers.openai import OpenAIImage
from limner.testing import FakeClock
from limner.testing.servers.http_server import ReceivedRequest, cut_short
from limner.wires.base import Prompt

SERVERS: dict[str, type[BatchServer]] = {
    "openai": OpenAIBatchServer,
    "anthropic": AnthropicBatchServer,
    "gemini": GeminiBatchServer,
}
FOX = SourceImage(handle="f" * 64, mime="image/png", width=64, height=64, data=PICTURE)
DRAW = ImageRequest(prompt="a fox", model="gpt-image-2", width=1024, height=1024)
WORDS = replace(FULL, tools=(), conversation=None)


class Vendor:
    """A server, the API that speaks to it, and requests for it."""

    def __init__(self, name: str, server: BatchServer, http: Http) -> None:
        self.name, self.server, self._http = name, server, http
        self.api: BatchApi = batch_api(name, self.model().service)

    def connection(self) -> Connection:
        async def illustrate(_: ImageRequest) -> tuple[bytes, dict[str, Any], None]:
            return b"", {}, None

        return Connection(
            http=self._http.client(),
            base_url=self.server.base_url,
            key=KEY,
            illustrate=illustrate,
            clock=FakeClock().clock,
        )

    def model(self) -> RemoteModel:
        names = {
            "openai": ("openai/gpt-5.5", "OPENAI_BASE_URL"),
            "anthropic": ("anthropic/claude-haiku-5-5", "ANTHROPIC_BASE_URL"),
            "gemini": ("google/gemini-3.8-flash", "GEMINI_BASE_URL"),
        }
        model, variable = names[self.name]
        env = {variable: self.server.base_url}
        found = Registry(
            key_of=lambda _: KEY,
            env=env,
            roles={},
            own=(),
            embedded=False,
            today=lambda: date(2026, 11, 16),
        ).find(model)
        assert found is not None
        return RemoteModel(found.model, http=self._http.client(), key=KEY, kind="test")

    def submission(self, count: int = 3, *, tag: str = "lim_1") -> RemoteSubmission:
        requests = [self.model().batch_request(asked(number)) for number in range(count)]
        return RemoteSubmission(
            tag=tag,
            path=requests[0].path,
            model=self.model().name.partition("/")[2],
            requests=[
                LineRequest(key=f"{tag}_{number}", body=request.body)
                for number, request in enumerate(requests)
            ],
        )

    async def create(self, submission: RemoteSubmission) -> RemoteStatus:
        return await self.api.create(submission, await self.api.upload(submission))


def asked(number: int) -> Prompt:
    question = {"type": "input_text", "text": f"Question {number}"}
    return Prompt(items=[{"type": "message", "role": "user", "content": [question]}])


@pytest.fixture(params=SERVERS)
async def vendor(request: pytest.FixtureRequest) -> AsyncIterator[Vendor]:
    http = Http()
    with SERVERS[request.param](PICTURE) as server:
        yield Vendor(request.param, server, http)
        await http.aclose()


@pytest.fixture
async def gemini() -> AsyncIterator[Vendor]:
    http = Http()
    with GeminiBatchServer(PICTURE) as server:
        yield Vendor("gemini", server, http)
        await http.aclose()


@pytest.fixture
async def open_ai() -> AsyncIterator[Vendor]:
    http = Http()
    with OpenAIBatchServer(PICTURE) as server:
        yield Vendor("openai", server, http)
        await http.aclose()


async def read(api: BatchApi, status: RemoteStatus) -> dict[str, tuple[Any, str | None, bytes]]:
    found: dict[str, tuple[Any, str | None, bytes]] = {}
    async with aclosing(api.results(status)) as results:
        async for result in results:
            assert isinstance(result, LineResult)
            sink = Bytes()
            result.picture.copy_to(sink)
            found[result.key] = (result.response, result.code, bytes(sink.data))
    return found


class Bytes:
    def __init__(self) -> None:
        self.data = bytearray()

    def write(self, data: bytes | memoryview) -> None:
        self.data += data


async def test_a_batch_is_uploaded_created_polled_and_read(vendor: Vendor) -> None:
    created = await vendor.create(vendor.submission())
    assert (created.ended, created.results) == (False, ())
    ended = await vendor.api.status(created.remote_id)
    assert (ended.ended, ended.done, ended.failed, ended.failure) == (True, 3, 0, None)
    found = await read(vendor.api, ended)
    assert set(found) == {"lim_1_0", "lim_1_1", "lim_1_2"}
    for response, code, _ in found.values():
        assert code is None
        answer = vendor.model().read_batched(response)
        assert answer.text == "A red fox — “hello” — in the snow 🦊."
        assert answer.usage is not None
        assert (answer.usage.input_tokens, answer.usage.output_tokens) == (1200, 45)


async def test_a_request_that_failed_or_expired_has_its_reason(vendor: Vendor) -> None:
    vendor.server.fate = fates("ok", "failed", "expired")
    created = await vendor.create(vendor.submission())
    ended = await vendor.api.status(created.remote_id)
    assert (ended.done, ended.failed) == (1, 2)
    found = await read(vendor.api, ended)
    codes = {key: code for key, (_, code, _) in found.items()}
    expected = {
        "openai": ("moderation_blocked", "batch_expired"),
        "anthropic": ("invalid_request_error", "expired"),
        "gemini": ("3", "4"),
    }
    failed, expired = expected[vendor.name]
    assert codes == {"lim_1_0": None, "lim_1_1": failed, "lim_1_2": expired}


async def test_a_batch_whose_id_was_lost_is_found_and_no_other(vendor: Vendor) -> None:
    submission = vendor.submission()
    keys = [one.key for one in submission.requests]
    since_s = 1_789_999_000.0
    assert await vendor.api.find("lim_1", keys, since_s=since_s) is None
    await vendor.create(vendor.submission(tag="other"))
    created = await vendor.create(submission)
    for batch in vendor.server.batches.values():
        vendor.server.polled(batch.id)
    found = await vendor.api.find("lim_1", keys, since_s=since_s)
    assert found is not None
    assert found.remote_id == created.remote_id
    strangers = [f"x{key}" for key in keys]
    assert await vendor.api.find("lim_2", strangers, since_s=since_s) is None


async def test_anthropic_cannot_say_before_the_end_whose_batch_it_is() -> None:
    http = Http()
    with AnthropicBatchServer(PICTURE) as server:
        vendor = Vendor("anthropic", server, http)
        submission = vendor.submission()
        created = await vendor.create(submission)
        keys = [one.key for one in submission.requests]
        with pytest.raises(NotDecided):
            await vendor.api.find("lim_1", keys, since_s=0)
        # A batch of another size is another batch.
        assert await vendor.api.find("lim_1", keys[:2], since_s=0) is None
        server.polled(created.remote_id)
        found = await vendor.api.find("lim_1", keys, since_s=0)
        assert found is not None
        await http.aclose()


async def test_a_cancelled_batch_keeps_what_was_answered(vendor: Vendor) -> None:
    vendor.server.polls = 100
    created = await vendor.create(vendor.submission())
    await vendor.api.cancel(created.remote_id)
    ended = await vendor.api.status(created.remote_id)
    assert (ended.ended, ended.done, ended.failed) == (True, 1, 2)
    found = await read(vendor.api, ended)
    assert [key for key, (_, code, _) in found.items() if code is None] == ["lim_1_0"]


async def test_a_line_that_is_no_json_does_not_hide_the_others(vendor: Vendor) -> None:
    created = await vendor.create(vendor.submission())
    ended = await vendor.api.status(created.remote_id)
    reply = vendor.server.on_results(result_request(vendor, ended))
    broken = (*reply.pieces[:1], b'{"custom_id": NaN}\n', *reply.pieces[1:])
    vendor.server.script("results", replace(reply, pieces=broken))
    async with aclosing(vendor.api.results(ended)) as results:
        kinds = [type(result) async for result in results]
    assert kinds == [LineResult, BadProviderImage, LineResult, LineResult]


async def test_results_that_break_off_fail_and_those_before_count(vendor: Vendor) -> None:
    created = await vendor.create(vendor.submission())
    ended = await vendor.api.status(created.remote_id)
    whole = vendor.server.on_results(result_request(vendor, ended))
    vendor.server.script("results", cut_short(whole, keep=0.5))
    keys: list[str] = []
    with pytest.raises(LimnerError):  # noqa: PT012 - what arrived before counts
        async with aclosing(vendor.api.results(ended)) as results:
            async for result in results:
                assert isinstance(result, LineResult)
                keys.append(result.key)
    assert len(keys) == 1


def result_request(vendor: Vendor, ended: RemoteStatus) -> Any:
    url = vendor.api.result_url(ended.results[0]).removeprefix(vendor.server.origin)
    return ReceivedRequest(method="GET", target=url, headers={}, body=b"")


async def test_results_that_are_gone_are_an_error(vendor: Vendor) -> None:
    created = await vendor.create(vendor.submission())
    ended = await vendor.api.status(created.remote_id)
    vendor.server.lost = True
    with pytest.raises(ProviderBadRequest):
        await read(vendor.api, ended)


async def test_a_batch_that_is_refused_as_a_whole_says_why(open_ai: Vendor, gemini: Vendor) -> None:
    for vendor in (open_ai, gemini):
        vendor.server.refusal = "The model has no batches."
        created = await vendor.create(vendor.submission())
        status = await vendor.api.status(created.remote_id)
        assert (status.ended, status.failure) == (True, "The model has no batches.")
        assert (status.results, status.is_uncertain) == ((), False)


# --- pictures ---


async def test_pictures_of_a_batch_arrive_byte_for_byte(open_ai: Vendor, gemini: Vendor) -> None:
    drawn: dict[str, Any] = {
        "openai": (open_ai, OpenAIImage(open_ai.connection()), DRAW),
        "gemini": (
            gemini,
            GeminiImage(gemini.connection()),
            replace(DRAW, model="gemini-nano-banana-2.1"),
        ),
    }
    for vendor, provider, request in drawn.values():
        line = provider.batch_request(request)
        submission = RemoteSubmission(
            tag="pics",
            path=line.path,
            model=request.model,
            requests=[LineRequest(key=f"p{number}", body=line.body) for number in range(3)],
        )
        api = batch_api(provider.batch_api, provider.service)
        created = await api.create(submission, await api.upload(submission))
        found = await read(api, await api.status(created.remote_id))
        assert {key: picture for key, (_, _, picture) in found.items()} == dict.fromkeys(
            ("p0", "p1", "p2"), PICTURE
        )
        assert vendor.server.billed == ["p0", "p1", "p2"]


async def test_an_edit_in_a_batch_names_its_pictures_as_data_urls(open_ai: Vendor) -> None:
    provider = OpenAIImage(open_ai.connection())
    request = replace(DRAW, sources=(FOX, FOX), mask=FOX, background="opaque")
    line = provider.batch_request(request)
    url = f"data:image/png;base64,{base64.b64encode(PICTURE).decode()}"
    assert line.path == "/v1/images/edits"
    assert json.loads(line.body) == {
        "model": "gpt-image-2",
        "prompt": "a fox",
        "size": "1024x1024",
        "quality": "medium",
        "output_format": "png",
        "n": 1,
        "background": "opaque",
        "images": [{"image_url": url}, {"image_url": url}],
        "mask": {"image_url": url},
    }


# --- the vendors' types ---


async def test_the_lines_for_openai_are_what_its_types_take(open_ai: Vendor) -> None:
    words = json.loads(open_ai.model().batch_request(WORDS).body)
    draw = json.loads(OpenAIImage(open_ai.connection()).batch_request(DRAW).body)
    TypeAdapter(ResponseCreateParamsNonStreaming).validate_python(words)
    assert TypeAdapter(ImageGenerateParamsNonStreaming).validate_python(draw) == draw


async def test_openais_client_reads_our_server_and_takes_our_creation(open_ai: Vendor) -> None:
    submission = open_ai.submission()
    created = await open_ai.create(submission)
    [sent] = open_ai.server.sent("create")
    assert TypeAdapter(BatchCreateParams).validate_python(sent.json()) == sent.json()
    async with openai.AsyncOpenAI(api_key=KEY, base_url=open_ai.server.base_url) as client:
        batch = await client.batches.retrieve(created.remote_id)
        assert (batch.status, batch.metadata) == ("completed", {"limner": "lim_1"})
        assert [one.id async for one in client.batches.list()] == [batch.id]
        assert batch.output_file_id is not None
        content = await client.files.content(batch.output_file_id)
        assert len(content.content.splitlines()) == 3
        file = await client.files.create(file=("in.jsonl", b"{}\n"), purpose="batch")
        assert file.purpose == "batch"


async def test_anthropics_client_reads_our_server_and_takes_our_requests() -> None:
    http = Http()
    with AnthropicBatchServer(PICTURE) as server:
        vendor = Vendor("anthropic", server, http)
        server.fate = fates("ok", "failed", "expired")
        created = await vendor.create(vendor.submission())
        [sent] = server.sent("create")
        for request in sent.json()["requests"]:
            TypeAdapter(AnthropicRequest).validate_python(request)
        async with anthropic.AsyncAnthropic(api_key=KEY, base_url=server.base_url) as client:
            batch = await client.messages.batches.retrieve(created.remote_id)
            assert (batch.processing_status, batch.request_counts.succeeded) == ("ended", 1)
            listed = await client.messages.batches.list()
            assert [one.id for one in listed.data] == [batch.id]
            lines = [line async for line in await client.messages.batches.results(batch.id)]
            kinds = {line.custom_id: line.result.type for line in lines}
            assert kinds == {"lim_1_0": "succeeded", "lim_1_1": "errored", "lim_1_2": "expired"}
        await http.aclose()


async def test_googles_client_reads_our_server_and_takes_our_requests(gemini: Vendor) -> None:
    request = replace(DRAW, model="gemini-nano-banana-2.1")
    draw = json.loads(GeminiImage(gemini.connection()).batch_request(request).body)
    words = json.loads(gemini.model().batch_request(WORDS).body)
    for sent in (draw, words):
        for content in sent["contents"]:
            genai_types.Content.model_validate(content)
    genai_types.GenerateContentConfig.model_validate(draw["generationConfig"])
    genai_types.GenerationConfig.model_validate(words["generationConfig"])
    options = genai_types.HttpOptions(base_url=gemini.server.base_url, api_version="v1beta")
    client = genai.Client(api_key=KEY, http_options=options)
    created = await gemini.create(gemini.submission())
    job = await client.aio.batches.get(name=created.remote_id)
    assert (job.display_name, job.state) == ("lim_1", genai_types.JobState.JOB_STATE_SUCCEEDED)
    assert job.dest is not None
    assert job.dest.file_name is not None
    data = await client.aio.files.download(file=job.dest.file_name)
    assert len(data.splitlines()) == 3
    theirs = await client.aio.batches.create(
        model="gemini-3.8-flash",
        src="files/in1",
        config=genai_types.CreateBatchJobConfig(display_name="lim_1"),
    )
    assert theirs.name is not None
    ours, sdk = (one.json() for one in gemini.server.sent("create"))
    assert ours == sdk
