"""Anthropic's Messages API: a prompt -> ``POST /v1/messages``; its events -> an answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from limner.wires.base import Answer, Effort, Prompt, Reader, Request, Sight, Stop, Usage
from limner.wires.messages import messages
from limner.wires.reading import Count, counted, kind_of, read
from limner.wires.schemas import closed

EDITION = "2023-06-01"

_STOPS: Mapping[str, Stop] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}


class AnthropicMessages:
    """How the Messages API is asked."""

    version = "v1"

    def headers(self, key: str) -> Mapping[str, str]:
        """The key, and the edition of the API that is spoken here."""
        return {"anthropic-version": EDITION} | ({"x-api-key": key} if key else {})

    def request(self, model: str, prompt: Prompt) -> Request:
        """One streamed message; raises as `Wire.request`."""
        body: dict[str, Any] = {
            "model": model,
            "messages": [
                {"role": message.role, "content": [_block(part) for part in message.parts]}
                for message in messages(prompt)
            ],
            "max_tokens": prompt.max_output_tokens,
            "stream": True,
        }
        if prompt.instructions is not None:
            body["system"] = prompt.instructions
        output: dict[str, Any] = {}
        if prompt.effort == "none":
            body["thinking"] = {"type": "disabled"}
        elif prompt.effort is not None:
            body["thinking"] = {"type": "adaptive"}
            output["effort"] = _effort(prompt.effort)
        if prompt.schema is not None:
            output["format"] = {"type": "json_schema", "schema": closed(prompt.schema)}
        if output:
            body["output_config"] = output
        return Request(path="/messages", body=msgspec.json.encode(body))

    def reader(self) -> Reader:
        """A reader for one message."""
        return _Reader()


WIRE = AnthropicMessages()


def _effort(effort: Effort) -> Effort:
    """The nearest effort that the API has a word for."""
    return "low" if effort == "minimal" else effort


def _block(part: str | Sight) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    # Bytes are written as base64 by the encoder itself.
    source = {"type": "base64", "media_type": part.mime, "data": part.data}
    return {"type": "image", "source": source}


class _Details(msgspec.Struct):
    explanation: str | None = None


class _Delta(msgspec.Struct):
    type: str = ""
    text: str = ""


class _DeltaEvent(msgspec.Struct):
    delta: _Delta


class _End(msgspec.Struct):
    stop_reason: str | None = None
    stop_details: _Details | None = None


class _EndEvent(msgspec.Struct):
    delta: _End
    usage: Any = None


class _Message(msgspec.Struct):
    model: str | None = None
    usage: Any = None


class _MessageEvent(msgspec.Struct):
    message: _Message


class _Block(msgspec.Struct):
    type: str = ""
    text: str = ""


class _BlockEvent(msgspec.Struct):
    content_block: _Block


class _Trouble(msgspec.Struct):
    type: str | None = None
    message: str | None = None


class _TroubleEvent(msgspec.Struct):
    error: _Trouble


class _OutputDetails(msgspec.Struct):
    thinking_tokens: Count | None = None


class _Usage(msgspec.Struct):
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cache_creation_input_tokens: Count | None = None
    cache_read_input_tokens: Count | None = None
    output_tokens_details: _OutputDetails | None = None


class _Reader:
    """Follows the events of one message."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._stop: Stop | None = None
        self._model: str | None = None
        self._usage: dict[str, Any] = {}
        self._message: str | None = None
        self._code: str | None = None
        self._takes = {
            "message_start": self._began,
            "content_block_start": self._opened,
            "content_block_delta": self._continued,
            "message_delta": self._ended,
            "error": self._broke,
        }

    def feed(self, name: str, data: str) -> str:
        take = self._takes.get(kind_of(data))
        return "" if take is None else take(data)

    def finish(self) -> Answer | None:
        if self._stop is None:
            return None
        return Answer(
            text="".join(self._pieces),
            stop=self._stop,
            model=self._model,
            usage=_usage(self._usage),
            message=self._message,
            code=self._code,
        )

    def _began(self, data: str) -> str:
        message = read(data, _MessageEvent).message
        self._model = message.model
        self._count(message.usage)
        return ""

    def _opened(self, data: str) -> str:
        block = read(data, _BlockEvent).content_block
        return self._said(block.text if block.type == "text" else "")

    def _continued(self, data: str) -> str:
        delta = read(data, _DeltaEvent).delta
        return self._said(delta.text if delta.type == "text_delta" else "")

    def _said(self, piece: str) -> str:
        self._pieces.append(piece)
        return piece

    def _ended(self, data: str) -> str:
        event = read(data, _EndEvent)
        self._count(event.usage)
        if event.delta.stop_reason is not None:
            self._stop = _STOPS.get(event.delta.stop_reason, "end")
        if event.delta.stop_details is not None:
            self._message = event.delta.stop_details.explanation
        return ""

    def _broke(self, data: str) -> str:
        error = read(data, _TroubleEvent).error
        self._stop, self._message, self._code = "error", error.message, error.type
        return ""

    def _count(self, usage: Any) -> None:
        """Later counts are totals, and stand for the earlier; what they leave out stays."""
        if isinstance(usage, dict):
            given = cast("dict[str, Any]", usage)
            self._usage |= {key: value for key, value in given.items() if value is not None}


def _usage(raw: dict[str, Any]) -> Usage | None:
    usage = counted(raw, _Usage)
    if usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    # Here, unlike elsewhere, what was read from or written to a cache is counted apart.
    cache_read, cache_write = usage.cache_read_input_tokens, usage.cache_creation_input_tokens
    thought = usage.output_tokens_details
    return Usage(
        input_tokens=usage.input_tokens + (cache_read or 0) + (cache_write or 0),
        output_tokens=usage.output_tokens,
        cache_read_tokens=cache_read,
        cache_write_tokens=cache_write,
        reasoning_tokens=thought and thought.thinking_tokens,
    )
