"""OpenAI's Responses API: a prompt -> ``POST /responses``; its events -> an answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from limner.wires.base import Answer, Prompt, Reader, Request, Sight, Stop, Usage
from limner.wires.messages import Message, messages
from limner.wires.openai import bearer, data_url, json_schema
from limner.wires.reading import Count, counted, kind_of, read


class OpenAIResponses:
    """How the Responses API is asked."""

    version = None

    def headers(self, key: str) -> Mapping[str, str]:
        """The key as a bearer's."""
        return bearer(key)

    def request(self, model: str, prompt: Prompt) -> Request:
        """One streamed response that the service does not keep; raises as `Wire.request`."""
        body: dict[str, Any] = {
            "model": model,
            "input": [_item(message) for message in messages(prompt)],
            "max_output_tokens": prompt.max_output_tokens,
            "store": False,
            "stream": True,
        }
        if prompt.instructions is not None:
            body["instructions"] = prompt.instructions
        if prompt.effort is not None:
            body["reasoning"] = {"effort": prompt.effort}
        if prompt.schema is not None:
            body["text"] = {"format": {"type": "json_schema", **json_schema(prompt.schema)}}
        return Request(path="/responses", body=msgspec.json.encode(body))

    def reader(self) -> Reader:
        """A reader for one response."""
        return _Reader()


WIRE = OpenAIResponses()


def _item(message: Message) -> dict[str, Any]:
    content: Any = [_part(part) for part in message.parts]
    if message.role == "assistant":
        # Parts would need the id that the service once gave; a plain text needs none.
        content = "".join(part for part in message.parts if isinstance(part, str))
    return {"type": "message", "role": message.role, "content": content}


def _part(part: str | Sight) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "input_text", "text": part}
    return {"type": "input_image", "image_url": data_url(part), "detail": part.detail or "auto"}


class _Delta(msgspec.Struct):
    delta: str


class _Trouble(msgspec.Struct):
    code: str | None = None
    message: str | None = None


class _TroubleEvent(_Trouble):
    # Documented flat, and seen nested as in the body of an error answer.
    error: _Trouble | None = None


class _Incomplete(msgspec.Struct):
    reason: str | None = None


class _Content(msgspec.Struct):
    type: str = ""
    text: str = ""
    refusal: str = ""


class _Output(msgspec.Struct):
    type: str = ""
    content: list[_Content] | None = None


class _Response(msgspec.Struct):
    model: str | None = None
    error: _Trouble | None = None
    incomplete_details: _Incomplete | None = None
    usage: Any = None
    output: list[_Output] = []


class _ResponseEvent(msgspec.Struct):
    response: _Response


class _InputDetails(msgspec.Struct):
    cached_tokens: Count | None = None
    cache_write_tokens: Count | None = None


class _OutputDetails(msgspec.Struct):
    reasoning_tokens: Count | None = None


class _Usage(msgspec.Struct):
    input_tokens: Count
    output_tokens: Count
    input_tokens_details: _InputDetails | None = None
    output_tokens_details: _OutputDetails | None = None


class _Reader:
    """Follows the events of one response."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._refusal: list[str] = []
        self._answer: Answer | None = None
        self._takes = {
            "response.output_text.delta": self._text,
            "response.refusal.delta": self._refused,
            "response.completed": self._ended,
            "response.incomplete": self._ended,
            "response.failed": self._failed,
            "error": self._broke,
        }

    def feed(self, name: str, data: str) -> str:
        take = self._takes.get(kind_of(data))
        return "" if take is None else take(data)

    def finish(self) -> Answer | None:
        return self._answer

    def _text(self, data: str) -> str:
        piece = read(data, _Delta).delta
        self._pieces.append(piece)
        return piece

    def _refused(self, data: str) -> str:
        self._refusal.append(read(data, _Delta).delta)
        return ""

    def _ended(self, data: str) -> str:
        response = read(data, _ResponseEvent).response
        late = "" if self._pieces else self._told_at_the_end(response)
        self._answer = self._so_far(
            self._stop(response), response, message="".join(self._refusal) or None
        )
        return late

    def _told_at_the_end(self, response: _Response) -> str:
        """The text of a response whose pieces were not sent one by one."""
        contents = [one for output in response.output for one in output.content or ()]
        self._pieces = [one.text for one in contents if one.type == "output_text"]
        if not self._refusal:
            self._refusal = [one.refusal for one in contents if one.type == "refusal"]
        return "".join(self._pieces)

    def _stop(self, response: _Response) -> Stop:
        cut = response.incomplete_details
        if self._refusal or (cut is not None and cut.reason == "content_filter"):
            return "refusal"
        return "end" if cut is None else "length"

    def _failed(self, data: str) -> str:
        response = read(data, _ResponseEvent).response
        error = response.error or _Trouble()
        self._answer = self._so_far("error", response, message=error.message, code=error.code)
        return ""

    def _broke(self, data: str) -> str:
        event = read(data, _TroubleEvent)
        error = event.error or event
        self._answer = self._so_far("error", _Response(), message=error.message, code=error.code)
        return ""

    def _so_far(
        self, stop: Stop, response: _Response, *, message: str | None, code: str | None = None
    ) -> Answer:
        return Answer(
            text="".join(self._pieces),
            stop=stop,
            model=response.model,
            usage=_usage(response.usage),
            message=message,
            code=code,
        )


def _usage(raw: Any) -> Usage | None:
    usage = counted(raw, _Usage)
    if usage is None:
        return None
    cache, thought = usage.input_tokens_details, usage.output_tokens_details
    return Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=cache and cache.cached_tokens,
        cache_write_tokens=cache and cache.cache_write_tokens,
        reasoning_tokens=thought and thought.reasoning_tokens,
    )
