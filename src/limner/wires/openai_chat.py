"""Chat Completions, OpenAI's and everybody's: a prompt -> a request; its chunks -> an answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from limner.wires.base import Answer, Prompt, Reader, Request, Sight, Stop, Usage
from limner.wires.messages import Message, messages
from limner.wires.openai import bearer, data_url, json_schema
from limner.wires.reading import DONE, Count, counted, read

_STOPS: Mapping[str, Stop] = {"length": "length", "content_filter": "refusal", "error": "error"}


class OpenAIChat:
    """How Chat Completions is asked."""

    version = None

    def headers(self, key: str) -> Mapping[str, str]:
        """The key as a bearer's; servers of one's own often have none."""
        return bearer(key)

    def request(self, model: str, prompt: Prompt) -> Request:
        """One streamed completion; raises as `Wire.request`."""
        said = [_message(message) for message in messages(prompt)]
        if prompt.instructions is not None:
            said.insert(0, {"role": "system", "content": prompt.instructions})
        body: dict[str, Any] = {
            "model": model,
            "messages": said,
            # The older max_tokens is refused by the vendor's newer models; a server that does not
            # know this one passes it over.
            "max_completion_tokens": prompt.max_output_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if prompt.effort is not None:
            body["reasoning_effort"] = prompt.effort
        if prompt.schema is not None:
            body["response_format"] = {
                "type": "json_schema",
                "json_schema": json_schema(prompt.schema),
            }
        return Request(path="/chat/completions", body=msgspec.json.encode(body))

    def reader(self) -> Reader:
        """A reader for one completion."""
        return _Reader()


WIRE = OpenAIChat()


def _message(message: Message) -> dict[str, Any]:
    return {"role": message.role, "content": [_part(part) for part in message.parts]}


def _part(part: str | Sight) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    image: dict[str, Any] = {"url": data_url(part)}
    if part.detail is not None:
        image["detail"] = part.detail
    return {"type": "image_url", "image_url": image}


class _Delta(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Trouble(msgspec.Struct):
    message: str | None = None
    type: str | None = None
    # A word at OpenAI, a number at some who speak its language.
    code: str | int | None = None


class _Chunk(msgspec.Struct):
    model: str | None = None
    choices: list[_Choice] | None = None
    usage: Any = None
    error: _Trouble | str | None = None


class _InputDetails(msgspec.Struct):
    cached_tokens: Count | None = None
    cache_write_tokens: Count | None = None


class _OutputDetails(msgspec.Struct):
    reasoning_tokens: Count | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: Count
    completion_tokens: Count
    prompt_tokens_details: _InputDetails | None = None
    completion_tokens_details: _OutputDetails | None = None


class _Reader:
    """Follows the chunks of one completion."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._refusal: list[str] = []
        self._stop: Stop | None = None
        self._model: str | None = None
        self._usage: Usage | None = None
        self._trouble: _Trouble | None = None

    def feed(self, name: str, data: str) -> str:
        if data.strip() == DONE:
            self._stop = self._stop or "end"
            return ""
        chunk = read(data, _Chunk)
        self._model = chunk.model or self._model
        self._usage = _usage(chunk.usage) or self._usage
        if chunk.error is not None:
            error = chunk.error
            self._trouble = _Trouble(message=error) if isinstance(error, str) else error
            self._stop = "error"
        return "".join(self._said(choice) for choice in (chunk.choices or [])[:1])

    def finish(self) -> Answer | None:
        if self._stop is None:
            return None
        trouble = self._trouble or _Trouble()
        code = trouble.code if trouble.code is not None else trouble.type
        return Answer(
            text="".join(self._pieces),
            stop="refusal" if self._refusal else self._stop,
            model=self._model,
            usage=self._usage,
            message="".join(self._refusal) or trouble.message,
            code=None if code is None else str(code),
        )

    def _said(self, choice: _Choice) -> str:
        delta = choice.delta or _Delta()
        if choice.finish_reason is not None:
            self._stop = _STOPS.get(choice.finish_reason, "end")
        if delta.refusal:
            self._refusal.append(delta.refusal)
        piece = delta.content or ""
        self._pieces.append(piece)
        return piece


def _usage(raw: Any) -> Usage | None:
    usage = counted(raw, _Usage)
    if usage is None:
        return None
    cache, thought = usage.prompt_tokens_details, usage.completion_tokens_details
    return Usage(
        input_tokens=usage.prompt_tokens,
        output_tokens=usage.completion_tokens,
        cache_read_tokens=cache and cache.cached_tokens,
        cache_write_tokens=cache and cache.cache_write_tokens,
        reasoning_tokens=thought and thought.reasoning_tokens,
    )
