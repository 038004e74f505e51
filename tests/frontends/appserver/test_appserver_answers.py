"""Every answer that a client's tool can give: what clients see of it, and what the model gets."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.agent.agent_pictures import data_url, encoded, handle_of, image, program, seen, text
from tests.fuzz import EVERY_CHECK

from limner.agent.call_items import SAYS_IT_FAILED, output_item
from limner.client import Limner
from limner.frontends.appserver.protocol.base import ContentItem, InputAudio, InputImage, InputText
from limner.frontends.appserver.tool_answers import (
    SHAPE,
    ClientAnswer,
    ToolAnswers,
    cancelled,
    refused,
    timed_out,
)
from limner.tools.base import Outcome, ToolResult
from limner.wires.items import function_call_output

PNG = encoded(5)
PIXELS = data_url(PNG)
SOUND = "data:audio/wav;base64,AAAA"
SAW = seen(handle_of(PNG), detail="high")
REMOTE = "remote image URLs are not supported; use an inline data URL instead"
FAILED = text(SAYS_IT_FAILED)


@pytest.fixture
async def lim(tmp_path: Path) -> AsyncIterator[Limner]:
    async with program(tmp_path) as lim:
        yield lim


async def read(lim: Limner, result: Any) -> ClientAnswer:
    raw = msgspec.Raw(json.dumps(result).encode())
    return await ToolAnswers(ingress=lim.ingress).read(raw, tool="shot")


def said(words: str) -> dict[str, Any]:
    return {"type": "inputText", "text": words}


def shown(url: str, **more: Any) -> dict[str, Any]:
    return {"type": "inputImage", "imageUrl": url, **more}


def on_the_wire(answer: ClientAnswer) -> Any:
    return function_call_output(call_id="c", parts=answer.parts)["output"]


GOOD: dict[str, tuple[list[Any], tuple[ContentItem, ...], Any]] = {
    "one text": ([said("done")], (InputText(text="done"),), "done"),
    "two texts": (
        [said("a"), said("b")],
        (InputText(text="a"), InputText(text="b")),
        [text("a"), text("b")],
    ),
    "text and picture": (
        [said("a"), shown(PIXELS)],
        (InputText(text="a"), InputImage(image_url=PIXELS)),
        [text("a"), SAW],
    ),
    "a picture alone": ([shown(PIXELS)], (InputImage(image_url=PIXELS),), [SAW]),
    "a sound": (
        [{"type": "inputAudio", "audioUrl": SOUND}],
        (InputAudio(audio_url=SOUND),),
        [{"type": "input_audio", "audio_url": SOUND}],
    ),
    "nothing": ([], (), []),
}


@pytest.mark.parametrize("kind", GOOD)
async def test_an_answer_is_kept_as_sent_and_reaches_the_model(lim: Limner, kind: str) -> None:
    sent, kept, output = GOOD[kind]
    answer = await read(lim, {"contentItems": sent, "success": True})
    assert (answer.status, answer.success, answer.content_items) == ("completed", True, kept)
    assert on_the_wire(answer) == output
    assert answer.warnings == ()


@pytest.mark.parametrize("kind", GOOD)
async def test_better_than_codex_a_model_learns_that_a_tool_failed(lim: Limner, kind: str) -> None:
    sent, kept, _ = GOOD[kind]
    good = await read(lim, {"contentItems": sent, "success": True})
    answer = await read(lim, {"contentItems": sent, "success": False})
    assert (answer.status, answer.success, answer.content_items) == ("failed", False, kept)
    assert answer.parts == (FAILED, *good.parts)


BAD: dict[str, tuple[Any, str]] = {
    "the first form": (
        {"output": "done", "success": True},
        f"dynamic tool response was invalid: `output` is no longer read, answer with {SHAPE}",
    ),
    "no success": (
        {"contentItems": []},
        "dynamic tool response was invalid: object missing required field `success`; "
        f"answer with {SHAPE}",
    ),
    "an unknown kind": (
        {"contentItems": [{"type": "inputFilm"}], "success": True},
        "dynamic tool response was invalid: invalid value 'inputFilm' - at "
        f"`$.contentItems[0].type`; answer with {SHAPE}",
    ),
    "the model's own words": (
        {"contentItems": [text("a")], "success": True},
        "dynamic tool response was invalid: invalid value 'input_text' - at "
        f"`$.contentItems[0].type`; answer with {SHAPE}",
    ),
    "null": (
        None,
        f"dynamic tool response was invalid: expected `object`, got `null`; answer with {SHAPE}",
    ),
    "a remote picture": (
        {"contentItems": [said("a"), shown("https://x/a.png")], "success": True},
        REMOTE,
    ),
    "another remote picture": ({"contentItems": [shown(" HTTP://x")], "success": True}, REMOTE),
    "a file": (
        {"contentItems": [shown("file:///a.png")], "success": True},
        "image URLs must use an inline data URL; files are not read through a URL; send the "
        "picture itself as a data URL",
    ),
    "no address": (
        {"contentItems": [shown("not a url")], "success": True},
        "image URLs must use an inline data URL",
    ),
    "a remote sound": (
        {"contentItems": [{"type": "inputAudio", "audioUrl": "https://x"}], "success": True},
        "audio URLs must use an inline data URL",
    ),
}


@pytest.mark.parametrize("kind", BAD)
async def test_an_invalid_answer_fails_with_a_text(lim: Limner, kind: str) -> None:
    result, words = BAD[kind]
    answer = await read(lim, result)
    assert answer == ClientAnswer(
        status="failed",
        success=False,
        content_items=(InputText(text=words),),
        parts=(text(words),),
    )
    assert on_the_wire(answer) == words


async def test_only_the_picture_that_does_not_decode_is_replaced(lim: Limner) -> None:
    broken = data_url(PNG[:40])
    answer = await read(
        lim, {"contentItems": [said("a"), shown(broken), shown(PIXELS)], "success": True}
    )
    assert (answer.status, answer.success) == ("completed", True)
    assert answer.content_items[1] == InputImage(image_url=broken)
    first, placeholder, last = answer.parts
    assert (first, last) == (text("a"), SAW)
    assert placeholder["text"].startswith("[image omitted: ")
    assert len(answer.warnings) == 1


async def test_better_than_codex_detail_and_label_are_honoured(lim: Limner) -> None:
    sent = [shown(PIXELS, detail="low", label=" left "), shown(PIXELS, detail="x", label=3)]
    answer = await read(lim, {"contentItems": sent, "success": True})
    low = seen(handle_of(PNG), detail="low")
    assert answer.parts == (text("left"), low, SAW)
    assert json.loads(msgspec.json.encode(answer.content_items)) == sent


async def test_a_handle_of_a_picture_that_is_here_is_taken(lim: Limner) -> None:
    await read(lim, {"contentItems": [shown(PIXELS)], "success": True})
    handle = f"limner://image/{handle_of(PNG)}"
    answer = await read(lim, {"contentItems": [shown(handle)], "success": True})
    assert answer.parts == (image(handle, detail="high"),)


def test_better_than_codex_the_model_reads_a_clients_error_shortened_and_without_keys() -> None:
    answer = refused("no screen\nfor sk-abcdefghijkl")
    words = "dynamic tool request failed: no screen for •••"
    assert (answer.status, answer.content_items) == ("failed", (InputText(text=words),))
    assert on_the_wire(answer) == words
    assert len(on_the_wire(refused("long " * 10_000))) < 1_100
    assert on_the_wire(refused("  ")) == "dynamic tool request failed"


async def test_words_without_end_are_cut_and_pictures_stay(lim: Limner) -> None:
    sent = [said("a" * 100_000), shown(PIXELS), said("short")]
    answer = await read(lim, {"contentItems": sent, "success": True})
    long, picture, short = answer.parts
    assert len(long["text"]) + len(short["text"]) <= 40_000
    assert long["text"].endswith("characters cut]")
    assert (picture["type"], short) == ("input_image", text("short"))
    # Clients see what was sent.
    assert answer.content_items[0] == InputText(text="a" * 100_000)


def test_a_call_without_an_answer_times_out() -> None:
    assert on_the_wire(timed_out(30)) == "dynamic tool call got no answer within 30 seconds"


def test_a_call_of_a_turn_that_was_interrupted_shows_nothing() -> None:
    words = "dynamic tool call was cancelled before receiving a response"
    assert cancelled() == ClientAnswer(
        status="failed", success=False, content_items=(), parts=(text(words),)
    )


async def test_an_answer_is_an_outcome_of_a_tool(lim: Limner) -> None:
    sent = [said("a"), shown(PIXELS), {"type": "inputAudio", "audioUrl": SOUND}]
    answer = await read(lim, {"contentItems": sent, "success": False})
    assert answer.outcome == Outcome(value={}, parts=answer.parts, success=False, untrusted=True)
    # Whoever tells the model of it says once that it failed.
    result = ToolResult(call_id="c", name="shot", ok=False, parts=answer.outcome.parts)
    call = {"type": "function_call", "call_id": "c"}
    assert output_item(call, result)["output"][:2] == [FAILED, text("a")]


@settings(max_examples=60, suppress_health_check=EVERY_CHECK)
@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
async def test_whatever_bytes_a_client_answers_with_become_words_property(
    lim: Limner, raw: bytes
) -> None:
    answer = await ToolAnswers(ingress=lim.ingress).read(msgspec.Raw(raw), tool="shot")
    (part,) = answer.parts
    assert (answer.status, part["type"]) == ("failed", "input_text")
    assert part["text"].startswith("dynamic tool response was invalid: ")
