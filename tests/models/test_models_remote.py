"""A question over each wire to a real server: answers, refusals, failures, time-outs, leaving."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace
from tests.servers.chat_server import ChatServer
from tests.servers.samples import KEY
from tests.wires.vendor_types import assert_legal
from tests.wires.wire_prompts import (
    DRAW,
    FOX,
    FULL,
    LOOK,
    PICTURES,
    image,
    output,
    prompt,
    text,
    user,
)

from limner.catalogue.vision import vision_model
from limner.errors import (
    InputInvalid,
    ModelBadAnswer,
    ModelTimeout,
    ProviderAuth,
    ProviderBadRequest,
    ProviderError,
    ProviderPaymentRequired,
    ProviderRateLimited,
    ProviderRefused,
    ProviderUnavailable,
    SettingsError,
)
from limner.models.pricing import cost_of
from limner.models.registry import KnownModel
from limner.models.remote import RemoteModel
from limner.testing import FakeClock
from limner.testing.servers import anthropic_server, gemini_server, openai_server
from limner.testing.servers.http_server import Gate, Reply, bytes_reply, dropped, html_reply
from limner.testing.servers.model_server import (
    TEXT,
    ModelAnswer,
    ModelServer,
    ScriptedCall,
    StreamError,
)
from limner.wires.base import Prompt, Usage

Connect = Callable[..., RemoteModel]
BODY = {"model": "m", "stream": True, "stream_options": {"include_usage": True}}


def said(server: ModelServer, saying: ModelAnswer, **rest: Any) -> Reply:
    return replace(server.streamed(saying, BODY), **rest)


def vendor_error(api: str, status: int, message: str) -> Reply:
    if api == "anthropic-messages":
        kinds = {401: "authentication_error", 429: "rate_limit_error", 529: "overloaded_error"}
        return anthropic_server.error_reply(
            status, kinds.get(status, "invalid_request_error"), message
        )
    if api == "gemini-generate-content":
        words = {401: "UNAUTHENTICATED", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}
        return gemini_server.error_reply(status, words.get(status, "INVALID_ARGUMENT"), message)
    return openai_server.error_reply(status, message, code="some_code")


async def failing(model: RemoteModel, kind: type[ProviderError], **rest: Any) -> Any:
    with pytest.raises(kind) as caught:
        await model.ask(LOOK, **rest)
    assert type(caught.value) is kind
    return caught.value


async def test_a_question_is_answered_in_pieces_and_whole(
    api: str, server: ModelServer, connect: Connect
) -> None:
    pieces: list[str] = []
    answer = await connect(api, server.base_url).ask(FULL, on_text=pieces.append)
    assert (answer.text, answer.stop) == (TEXT, "end")
    assert pieces == ["A red fox — “hel", "lo” — in ", "the snow 🦊."]
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (1200, 45)
    (seen,) = server.requests
    assert seen.headers["content-type"] == "application/json"
    assert seen.headers["accept"] == "text/event-stream"
    assert_legal(api, seen.json())


async def test_no_key_is_sent_where_none_is_needed(
    api: str, server: ModelServer, connect: Connect
) -> None:
    await connect(api, server.base_url).ask(LOOK)
    (seen,) = server.requests
    keys = {name for name, value in seen.headers.items() if KEY in value}
    assert (
        keys
        == {
            "openai-responses": {"authorization"},
            "openai-chat": set(),
            "anthropic-messages": {"x-api-key"},
            "gemini-generate-content": {"x-goog-api-key"},
        }[api]
    )
    assert ("authorization" in seen.headers) == (api == "openai-responses")


@pytest.mark.parametrize(
    ("api", "suffix"),
    [
        ("anthropic-messages", ""),
        ("anthropic-messages", "/v1"),
        ("gemini-generate-content", ""),
        ("gemini-generate-content", "/v1beta"),
        ("gemini-generate-content", "/v1"),
    ],
)
async def test_a_base_url_may_end_in_the_version_or_not(
    api: str, suffix: str, server: ModelServer, connect: Connect
) -> None:
    assert (await connect(api, f"{server.origin}{suffix}/").ask(LOOK)).text == TEXT


async def test_a_conversation_goes_back_and_forth_with_its_calls_and_pictures(
    api: str, server: ModelServer, connect: Connect
) -> None:
    model = connect(api, server.base_url)
    items: list[Any] = [user(text("Draw a fox."))]
    server.model_answer = ModelAnswer(
        calls=(
            ScriptedCall(name="image_generate", arguments='{"prompt":"a fox"}', call_id="call_a"),
        )
    )
    answer = await model.ask(prompt(*items, tools=[DRAW]))
    assert answer.stop == "end"
    (called,) = (item for item in answer.items if item["type"] == "function_call")
    assert (called["name"], called["arguments"]) == ("image_generate", '{"prompt":"a fox"}')
    items += [*answer.items, output(called["call_id"], text("Done."), image(FOX))]
    server.model_answer = ModelAnswer()
    answer = await model.ask(prompt(*items, tools=[DRAW]))
    assert answer.text == TEXT
    _, second = server.requests
    assert_legal(api, second.json())
    assert base64.b64encode(PICTURES[FOX].data) in second.body


def _blind(model: KnownModel) -> KnownModel:
    return replace(model, facts=replace(model.facts, takes_images=False))


async def test_a_model_that_takes_no_images_is_sent_words_for_them(connect: Connect) -> None:
    with ChatServer() as server:
        await connect("openai-chat", server.base_url, change=_blind).ask(LOOK)
    (seen,) = server.requests
    (message,) = seen.json()["messages"]
    assert message["content"] == [
        {
            "type": "text",
            "text": f"[picture limner://image/{FOX} is not shown: this model takes no pictures]",
        },
        {"type": "text", "text": "What is it?"},
    ]


async def test_an_answer_that_reached_its_limit_is_an_answer(
    api: str, server: ModelServer, connect: Connect
) -> None:
    server.model_answer = ModelAnswer(stop="length")
    assert (await connect(api, server.base_url).ask(LOOK)).stop == "length"


async def test_a_refusal_is_raised_with_its_words_and_what_it_cost(
    api: str, server: ModelServer, connect: Connect
) -> None:
    server.model_answer = ModelAnswer(pieces=(), refusal=f"Not {KEY} today.")
    model = connect(api, server.base_url)
    error = await failing(model, ProviderRefused)
    assert (error.code, error.retryable, error.may_be_billed) == ("MODEL_REFUSED", False, False)
    assert error.provider_message == "Not ••• today."
    assert error.message == f"{model.name} will not answer this: Not ••• today."
    assert error.extras["usage"]["input_tokens"] == 1200
    assert (error.cost_nano > 0) == (api != "openai-chat")
    assert error.cost_source == "computed"


def test_a_cost_counts_the_cache_at_its_own_rate() -> None:
    rate = vision_model("openai/gpt-5.6-terra").rate
    assert rate is not None
    usage = Usage(
        input_tokens=1000, output_tokens=10, cache_read_tokens=600, cache_write_tokens=100
    )
    assert cost_of(rate, usage) == 300 * 2_000 + 600 * 200 + 100 * 2_500 + 10 * 12_000
    bare = Usage(input_tokens=1000, output_tokens=10)
    assert cost_of(rate, bare) == 1000 * 2_000 + 10 * 12_000


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (400, ProviderBadRequest, "MODEL_BAD_REQUEST"),
        (401, ProviderAuth, "MODEL_AUTH"),
        (402, ProviderPaymentRequired, "MODEL_PAYMENT_REQUIRED"),
        (404, ProviderBadRequest, "MODEL_BAD_REQUEST"),
        (413, ProviderBadRequest, "MODEL_BAD_REQUEST"),
        (500, ProviderUnavailable, "MODEL_UNAVAILABLE"),
        (503, ProviderUnavailable, "MODEL_UNAVAILABLE"),
        (529, ProviderUnavailable, "MODEL_UNAVAILABLE"),
    ],
)
async def test_an_error_answer_is_known_by_its_status_and_sent_once(
    status: int,
    kind: type[ProviderError],
    code: str,
    api: str,
    server: ModelServer,
    connect: Connect,
) -> None:
    server.always("ask", vendor_error(api, status, f"No: {KEY}"))
    error = await failing(connect(api, server.base_url), kind)
    assert (error.code, error.provider_message, error.billed) == (code, "No: •••", False)
    assert error.extras["status"] == status
    assert len(server.requests) == 1


async def test_a_rate_limit_is_waited_for_and_then_told(
    api: str, server: ModelServer, connect: Connect, time: FakeClock
) -> None:
    server.script("ask", vendor_error(api, 429, "Slow down"))
    assert (await connect(api, server.base_url).ask(LOOK)).text == TEXT
    server.always("ask", vendor_error(api, 429, "Slow down"))
    error = await failing(connect(api, server.base_url), ProviderRateLimited)
    assert (error.code, error.provider_message) == ("MODEL_RATE_LIMITED", "Slow down")
    assert error.hint == "Wait a little, or ask less often."
    assert time.slept == [0.5, 0.5, 1.0, 2.0, 4.0, 8.0]


async def test_googles_400_for_a_wrong_key_is_about_the_key(connect: Connect) -> None:
    reply = gemini_server.error_reply(
        400, "INVALID_ARGUMENT", "API key not valid.", reason="API_KEY_INVALID"
    )
    with gemini_server.GeminiServer() as server:
        server.always("ask", reply)
        error = await failing(connect("gemini-generate-content", server.base_url), ProviderAuth)
    assert (error.code, error.hint) == ("MODEL_AUTH", "Check the key in GEMINI_API_KEY.")


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("overloaded_error", ProviderUnavailable),
        ("UNAVAILABLE", ProviderUnavailable),
        ("rate_limit_exceeded", ProviderRateLimited),
        ("invalid_prompt", ProviderBadRequest),
        ("image_content_policy_violation", ProviderRefused),
    ],
)
async def test_a_failure_in_the_middle_is_known_by_its_code_and_not_resent(
    word: str, kind: type[ProviderError], api: str, server: ModelServer, connect: Connect
) -> None:
    server.model_answer = ModelAnswer(
        usage=None, error=StreamError(code=word, message=f"Sorry, {KEY}")
    )
    error = await failing(connect(api, server.base_url), kind)
    assert (error.code, error.provider_message) == (kind.model_code, "Sorry, •••")
    assert error.extras["provider_code"] == word
    assert len(server.requests) == 1


async def test_a_stream_that_just_ends_is_a_bad_answer_that_may_be_billed(
    api: str, server: ModelServer, connect: Connect
) -> None:
    server.model_answer = ModelAnswer(is_whole=False)
    error = await failing(connect(api, server.base_url), ModelBadAnswer)
    assert error.code == "MODEL_BAD_ANSWER"
    assert "is incomplete" in error.message
    assert error.may_be_billed == (api != "openai-chat")
    assert len(server.requests) == 1


async def test_a_dropped_connection_is_not_sent_again(
    api: str, server: ModelServer, connect: Connect
) -> None:
    server.always("ask", dropped())
    error = await failing(connect(api, server.base_url), ProviderUnavailable)
    assert (error.code, error.may_be_billed) == ("MODEL_UNAVAILABLE", api != "openai-chat")
    server.always("ask", said(server, ModelAnswer(is_whole=False), ending="reset"))
    error = await failing(connect(api, server.base_url), ProviderUnavailable)
    assert (error.code, error.may_be_billed) == ("MODEL_UNAVAILABLE", api != "openai-chat")
    assert len(server.requests) == 2


async def test_an_answer_that_is_whole_survives_what_happens_to_the_line_after_it(
    api: str, server: ModelServer, connect: Connect
) -> None:
    server.script("ask", said(server, ModelAnswer(), ending="reset"))
    assert (await connect(api, server.base_url).ask(LOOK)).text == TEXT


async def test_a_server_that_is_not_there_was_sent_nothing(
    connect: Connect, time: FakeClock
) -> None:
    error = await failing(connect("openai-responses", "http://127.0.0.1:9/v1"), ProviderUnavailable)
    assert (error.code, error.may_be_billed, error.retryable) == ("MODEL_UNAVAILABLE", False, True)
    assert error.hint == "Check the network, and OPENAI_BASE_URL if it is set."
    assert time.slept == [0.5, 1.0, 2.0]


@pytest.mark.parametrize("reply", [html_reply(), bytes_reply(b"{}", headers={})])
async def test_something_else_than_events_is_a_bad_answer(
    reply: Reply, api: str, server: ModelServer, connect: Connect
) -> None:
    server.always("ask", reply)
    error = await failing(connect(api, server.base_url), ModelBadAnswer)
    assert error.code == "MODEL_BAD_ANSWER"


async def test_the_time_is_up_before_the_answer_is_complete(
    api: str, server: ModelServer, connect: Connect
) -> None:
    server.model_answer = ModelAnswer(gate=Gate())
    pieces: list[str] = []
    model = connect(api, server.base_url)
    error = await failing(model, ModelTimeout, timeout_s=0.2, on_text=pieces.append)
    assert (error.code, error.retryable) == ("MODEL_TIMEOUT", True)
    assert error.message.startswith(f"{model.name} did not finish its answer in 0.2 s")
    assert error.may_be_billed == (api != "openai-chat")


async def test_a_silent_server_is_given_up_before_the_whole_time_is_up(
    api: str, server: ModelServer, connect: Connect
) -> None:
    server.model_answer = ModelAnswer(gate=Gate())
    model = connect(api, server.base_url, idle_timeout_s=0.2)
    error = await failing(model, ProviderUnavailable, timeout_s=None)
    assert "did not answer in time" in error.message


async def test_cancelling_is_no_time_out_and_closes_the_connection(
    api: str, server: ModelServer, connect: Connect
) -> None:
    server.model_answer = ModelAnswer(gate=Gate())
    started = asyncio.Event()
    model = connect(api, server.base_url)
    asking = asyncio.create_task(model.ask(LOOK, on_text=lambda piece: started.set()))
    await started.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await server.wait_for_hangup()
    assert len(server.requests) == 1


async def test_what_cannot_be_placed_is_never_sent(
    api: str, server: ModelServer, connect: Connect
) -> None:
    with pytest.raises(InputInvalid):
        await connect(api, server.base_url).ask(Prompt(items=[{"type": "reasoning"}]))
    assert server.requests == []


async def test_a_wrong_key_or_address_is_named_before_anything_is_sent(connect: Connect) -> None:
    with pytest.raises(ProviderAuth, match="OPENAI_API_KEY") as caught:
        connect("openai-responses", "http://127.0.0.1:9", key="sk-\n")
    assert caught.value.code == "MODEL_AUTH"
    with pytest.raises(SettingsError, match="OPENAI_BASE_URL is not a web address"):
        connect("openai-responses", "localhost")


async def test_an_endless_answer_is_not_kept_for_ever(
    server: ModelServer, api: str, connect: Connect
) -> None:
    server.model_answer = ModelAnswer(pieces=("x" * 1_000_000,) * 5)
    error = await failing(connect(api, server.base_url), ModelBadAnswer)
    assert "more than 4,000,000 characters" in error.message
