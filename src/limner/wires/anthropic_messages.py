"""Anthropic's Messages API: turns -> ``POST /v1/messages``; its events -> an answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, cast

import msgspec

from limner.wires.base import (
    Answer,
    Effort,
    ModelRequest,
    Prompt,
    Stop,
    StreamReader,
    ToolOffer,
    Usage,
)
from limner.wires.content_parts import Part, PartSupport, PlacedPicture, join_text
from limner.wires.item_views import Reasoning
from limner.wires.stream import (
    CallBuilder,
    Count,
    ItemBuilder,
    ReasoningBuilder,
    counted,
    kind_of,
    read,
)
from limner.wires.strict_schema import closed
from limner.wires.turns import (
    AssistantTurn,
    CallPart,
    MessagePart,
    OutputPart,
    Step,
    ToolTurn,
    Turn,
    UserTurn,
    called,
    instructed,
    turns,
)

API = "anthropic-messages"
EDITION = "2023-06-01"

# Ten megabytes, counted in base64.
_TAKES = PartSupport(
    types=frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"}),
    count=600,
    bytes_each=10 * 1024 * 1024 // 4 * 3,
)

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

    def request(self, model: str, prompt: Prompt) -> ModelRequest:
        """One streamed message; raises as `Wire.request`."""
        system, said = instructed(prompt, turns(prompt, _TAKES))
        body: dict[str, Any] = {
            "model": model,
            "messages": list(_messages(said)),
            "max_tokens": prompt.max_output_tokens,
            "stream": True,
        }
        if system is not None:
            body["system"] = system
        if prompt.tools:
            body["tools"] = [_tool(offer) for offer in prompt.tools]
        elif names := called(said):
            # A conversation with calls in it must say what they were calls of.
            body["tools"] = [{"name": name, "input_schema": {"type": "object"}} for name in names]
            body["tool_choice"] = {"type": "none"}
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
        return ModelRequest(path="/messages", body=msgspec.json.encode(body))

    def reader(self) -> StreamReader:
        """A reader for one message."""
        return _Reader()


WIRE = AnthropicMessages()


def _effort(effort: Effort) -> Effort:
    """The nearest effort that the API has a word for."""
    return "low" if effort == "minimal" else effort


def _tool(offer: ToolOffer) -> dict[str, Any]:
    schema = {"type": "object", **offer.schema}
    return {"name": offer.name, "description": offer.description, "input_schema": schema}


def _messages(said: Sequence[Turn]) -> Iterable[dict[str, Any]]:
    """The turns as messages in which the roles take turns."""
    for role, group in groupby(said, key=_role):
        blocks = [block for turn in group for block in _blocks(turn)]
        yield {"role": role, "content": blocks}


def _role(turn: Turn) -> str:
    return "assistant" if isinstance(turn, AssistantTurn) else "user"


def _blocks(turn: Turn) -> list[dict[str, Any]]:
    match turn:
        case UserTurn():
            return [_block(part) for part in turn.parts]
        case AssistantTurn():
            return [block for step in turn.concluded for block in _made(step)]
        case ToolTurn():
            return [_result(output) for output in turn.outputs]


def _block(part: Part) -> dict[str, Any]:
    if not isinstance(part, PlacedPicture):
        return {"type": "text", "text": join_text([part])}
    # Bytes are written as base64 by the encoder itself.
    source = {"type": "base64", "media_type": part.image.mime, "data": part.image.data}
    return {"type": "image", "source": source}


def _made(step: Step) -> list[dict[str, Any]]:
    match step:
        case MessagePart():
            return [_block(text) for text in step.texts]
        case CallPart():
            use = {"type": "tool_use", "id": step.call_id, "name": step.name}
            return [{**use, "input": step.fields}]
        case _:
            return _thinking(step.reasoning)


def _thinking(reasoning: Reasoning) -> list[dict[str, Any]]:
    """A thought of this service, with the signature that it knows it by; not those of others."""
    signature = reasoning.encrypted_content
    if reasoning.origin != API or signature is None:
        return []
    if reasoning.content is None:
        return [{"type": "redacted_thinking", "data": signature}]
    text = "".join(part.text for part in reasoning.content)
    return [{"type": "thinking", "thinking": text, "signature": signature}]


def _result(output: OutputPart) -> dict[str, Any]:
    result: dict[str, Any] = {
        "type": "tool_result",
        "tool_use_id": output.call.call_id,
        "content": [_block(part) for part in output.parts],
    }
    return {**result, "is_error": True} if output.has_failed else result


class _Details(msgspec.Struct):
    explanation: str | None = None


class _Delta(msgspec.Struct):
    type: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    partial_json: str = ""


class _DeltaEvent(msgspec.Struct):
    delta: _Delta
    index: int = 0


class _End(msgspec.Struct):
    stop_reason: str | None = None
    stop_details: _Details | None = None


class _EndEvent(msgspec.Struct):
    delta: _End
    usage: Any = None


class _Message(msgspec.Struct):
    id: str | None = None
    model: str | None = None
    usage: Any = None


class _MessageEvent(msgspec.Struct):
    message: _Message


class _Block(msgspec.Struct):
    type: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    data: str = ""
    id: str = ""
    name: str = ""
    input: dict[str, Any] | None = None


class _BlockEvent(msgspec.Struct):
    content_block: _Block
    index: int = 0


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
        self._made = ItemBuilder(API)
        self._open: dict[int, ReasoningBuilder | CallBuilder] = {}
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
            text=self._made.text,
            stop=self._stop,
            model=self._model,
            usage=_usage(self._usage),
            message=self._message,
            code=self._code,
            items=self._made.items(),
        )

    def _began(self, data: str) -> str:
        message = read(data, _MessageEvent).message
        self._model, self._made.answer_id = message.model, message.id
        self._count(message.usage)
        return ""

    def _opened(self, data: str) -> str:
        event = read(data, _BlockEvent)
        block, made = event.content_block, self._made
        match block.type:
            case "text":
                return made.say(block.text)
            case "thinking":
                thought = made.open(ReasoningBuilder([block.thinking], block.signature))
                self._open[event.index] = thought
            case "redacted_thinking":
                made.open(ReasoningBuilder(signature=block.data, is_hidden=True))
            case "tool_use":
                # Whole here from some who speak this language, in pieces later from the others.
                begun = [msgspec.json.encode(block.input).decode()] if block.input else []
                self._open[event.index] = made.open(CallBuilder(block.id, block.name, begun))
            case _:
                pass
        return ""

    def _continued(self, data: str) -> str:
        event = read(data, _DeltaEvent)
        delta, block = event.delta, self._open.get(event.index)
        match delta.type, block:
            case "text_delta", _:
                return self._made.say(delta.text)
            case "thinking_delta", ReasoningBuilder():
                self._made.add(block, delta.thinking)
            case "signature_delta", ReasoningBuilder():
                self._made.count(delta.signature)
                block.signature += delta.signature
            case "input_json_delta", CallBuilder():
                self._made.add(block, delta.partial_json)
            case _:
                pass
        return ""

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
