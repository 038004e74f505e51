"""Anthropic's Messages API: turns -> ``POST /v1/messages``; its events -> an answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec

from limner.json_shapes import as_list
from limner.wires.base import (
    Effort,
    ModelRequest,
    Prompt,
    Stop,
    StreamReader,
    ToolOffer,
    Usage,
    encode_body,
)
from limner.wires.content_parts import Part, PartSupport, PlacedPicture, join_text
from limner.wires.stream import (
    AnswerReader,
    CallBuilder,
    Count,
    ReasoningBuilder,
    convert_or_none,
    event_kind,
    parse_event,
    usage_beside_cache,
)
from limner.wires.strict_schema import close_schema
from limner.wires.turns import (
    AssistantTurn,
    CallPart,
    MessagePart,
    OutputPart,
    ReasoningPart,
    Step,
    ToolTurn,
    Turn,
    UserTurn,
    build_turns,
    called_tools,
    group_by_role,
    split_instructions,
)

API = "anthropic-messages"
EDITION = "2023-06-01"

# Ten megabytes of base64.
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
    """The wire of the Messages API."""

    version = "v1"
    batch_api = "anthropic"

    def headers(self, key: str) -> Mapping[str, str]:
        """The key, and the version of the API that this wire follows."""
        return {"anthropic-version": EDITION} | ({"x-api-key": key} if key else {})

    def request(self, model: str, prompt: Prompt) -> ModelRequest:
        """A request for one streamed message; raises as `Wire.request`."""
        system, turns = split_instructions(prompt, build_turns(prompt, _TAKES))
        body: dict[str, Any] = {
            "model": model,
            "messages": list(_messages(turns)),
            "max_tokens": prompt.max_output_tokens,
            "stream": prompt.stream,
        }
        if system is not None:
            body["system"] = system
        if prompt.tools:
            body["tools"] = [_tool(offer) for offer in prompt.tools]
        elif names := called_tools(turns):
            # The service wants a tool for each call in the conversation.
            body["tools"] = [{"name": name, "input_schema": {"type": "object"}} for name in names]
            body["tool_choice"] = {"type": "none"}
        output: dict[str, Any] = {}
        if prompt.effort == "none":
            body["thinking"] = {"type": "disabled"}
        elif prompt.effort is not None:
            body["thinking"] = {"type": "adaptive"}
            output["effort"] = _effort(prompt.effort)
        if prompt.schema is not None:
            output["format"] = {"type": "json_schema", "schema": close_schema(prompt.schema)}
        if output:
            body["output_config"] = output
        return ModelRequest(path="/messages", pieces=encode_body(body))

    def reader(self) -> StreamReader:
        """A reader for one message."""
        return _Reader(API)

    def events(self, whole: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
        """The start of the message, its blocks, and its end."""
        yield {"type": "message_start", "message": whole}
        for index, block in enumerate(as_list(whole.get("content"))):
            yield {"type": "content_block_start", "index": index, "content_block": block}
        end = {name: whole.get(name) for name in ("stop_reason", "stop_details")}
        yield {"type": "message_delta", "delta": end, "usage": whole.get("usage")}


WIRE = AnthropicMessages()


def _effort(effort: Effort) -> Effort:
    """The nearest effort that the API has."""
    return "low" if effort == "minimal" else effort


def _tool(offer: ToolOffer) -> dict[str, Any]:
    schema = {"type": "object", **offer.schema}
    return {"name": offer.name, "description": offer.description, "input_schema": schema}


def _messages(turns: Sequence[Turn]) -> Iterable[dict[str, Any]]:
    for role, group in group_by_role(turns):
        blocks = [block for turn in group for block in _blocks(turn)]
        yield {"role": role, "content": blocks}


def _blocks(turn: Turn) -> list[dict[str, Any]]:
    match turn:
        case UserTurn():
            return [_block(part) for part in turn.parts]
        case AssistantTurn():
            return [block for step in turn.trimmed_steps for block in _step(step)]
        case ToolTurn():
            return [_result(output) for output in turn.outputs]


def _block(part: Part) -> dict[str, Any]:
    if not isinstance(part, PlacedPicture):
        return {"type": "text", "text": join_text([part])}
    source = {"type": "base64", "media_type": part.image.mime, "data": part.image.json_text()}
    return {"type": "image", "source": source}


def _step(step: Step) -> list[dict[str, Any]]:
    match step:
        case MessagePart():
            return [_block(text) for text in step.texts]
        case CallPart():
            use = {"type": "tool_use", "id": step.call_id, "name": step.name}
            return [{**use, "input": step.fields}]
        case _:
            return _reasoning(step)


def _reasoning(part: ReasoningPart) -> list[dict[str, Any]]:
    """Reasoning that this service has signed; not that of others."""
    signature = part.signature_of(API)
    if signature is None:
        return []
    if part.text is None:
        return [{"type": "redacted_thinking", "data": signature}]
    return [{"type": "thinking", "thinking": part.text, "signature": signature}]


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


class _Error(msgspec.Struct):
    type: str | None = None
    message: str | None = None


class _ErrorEvent(msgspec.Struct):
    error: _Error


class _OutputDetails(msgspec.Struct):
    thinking_tokens: Count | None = None


class _Usage(msgspec.Struct):
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cache_creation_input_tokens: Count | None = None
    cache_read_input_tokens: Count | None = None
    output_tokens_details: _OutputDetails | None = None


class _Reader(AnswerReader):
    """Reads the events of one message."""

    def __init__(self, api: str) -> None:
        super().__init__(api)
        self._open: dict[int, ReasoningBuilder | CallBuilder] = {}
        self._counts: dict[str, Any] = {}
        self._handlers = {
            "message_start": self._on_start,
            "content_block_start": self._on_block,
            "content_block_delta": self._on_delta,
            "message_delta": self._on_end,
            "error": self._on_error,
        }

    def feed(self, name: str, data: str) -> str:
        handle = self._handlers.get(event_kind(data))
        return "" if handle is None else handle(data)

    def _on_start(self, data: str) -> str:
        message = parse_event(data, _MessageEvent).message
        self._model, self._items.answer_id = message.model, message.id
        self._count(message.usage)
        return ""

    def _on_block(self, data: str) -> str:
        event = parse_event(data, _BlockEvent)
        block, items = event.content_block, self._items
        match block.type:
            case "text":
                return items.add_text(block.text)
            case "thinking":
                reasoning = ReasoningBuilder([block.thinking], block.signature)
                self._open[event.index] = items.start(reasoning)
            case "redacted_thinking":
                items.start(ReasoningBuilder(signature=block.data, is_hidden=True))
            case "tool_use":
                # Some services with this API send the input here, the others send pieces later.
                pieces = [msgspec.json.encode(block.input).decode()] if block.input else []
                self._open[event.index] = items.start(CallBuilder(block.id, block.name, pieces))
            case _:
                pass
        return ""

    def _on_delta(self, data: str) -> str:
        event = parse_event(data, _DeltaEvent)
        delta, block = event.delta, self._open.get(event.index)
        match delta.type, block:
            case "text_delta", _:
                return self._items.add_text(delta.text)
            case "thinking_delta", ReasoningBuilder():
                self._items.add_piece(block, delta.thinking)
            case "signature_delta", ReasoningBuilder():
                self._items.count_chars(delta.signature)
                block.signature += delta.signature
            case "input_json_delta", CallBuilder():
                self._items.add_piece(block, delta.partial_json)
            case _:
                pass
        return ""

    def _on_end(self, data: str) -> str:
        event = parse_event(data, _EndEvent)
        self._count(event.usage)
        if event.delta.stop_reason is not None:
            self._stop = _STOPS.get(event.delta.stop_reason, "end")
        if event.delta.stop_details is not None:
            self._message = event.delta.stop_details.explanation
        return ""

    def _on_error(self, data: str) -> str:
        error = parse_event(data, _ErrorEvent).error
        self._stop, self._message, self._code = "error", error.message, error.type
        return ""

    def _count(self, usage: Any) -> None:
        """Later counts are totals and replace the earlier ones, except those they leave out."""
        if isinstance(usage, dict):
            counts = cast("dict[str, Any]", usage)
            self._counts |= {key: value for key, value in counts.items() if value is not None}
            self._usage = _usage(self._counts)


def _usage(raw: dict[str, Any]) -> Usage | None:
    usage = convert_or_none(raw, _Usage)
    if usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    details = usage.output_tokens_details
    return usage_beside_cache(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read=usage.cache_read_input_tokens,
        cache_write=usage.cache_creation_input_tokens,
        reasoning=details and details.thinking_tokens,
    )
