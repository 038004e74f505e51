"""Bedrock's Converse: turns -> ``POST /model/<id>/converse-stream``; its events -> an answer.

The service frames its events in a format of its own. The caller that decodes the frames passes the
kind of each event as its name and its JSON as its data. No caller does that yet, so this wire is
not in the table of wires.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from limner.wires.base import ModelRequest, Prompt, Stop, StreamReader, ToolOffer, encode_body
from limner.wires.content_parts import Part, PartSupport, PlacedPicture, join_text
from limner.wires.openai_shared import bearer
from limner.wires.stream import (
    AnswerReader,
    CallBuilder,
    Count,
    ReasoningBuilder,
    convert_or_none,
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
    label_media,
    split_instructions,
)

API = "bedrock-converse"

_FORMATS = {
    "image/png": "png",
    "image/jpeg": "jpeg",
    "image/gif": "gif",
    "image/webp": "webp",
}
_TAKES = PartSupport(types=frozenset(_FORMATS), count=20, bytes_each=3_750_000)
# The model families whose tool results can contain pictures; for others, pictures follow them.
_IMAGE_RESULTS = re.compile(r"(^|[./])(anthropic\.claude|amazon\.nova)")
_EMPTY = "(nothing)"

_STOPS: Mapping[str, Stop] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "guardrail_intervened": "refusal",
    "content_filtered": "refusal",
    "malformed_model_output": "error",
    "malformed_tool_use": "error",
}


class BedrockConverse:
    """The wire of Converse."""

    version = None

    def headers(self, key: str) -> Mapping[str, str]:
        """A key of Bedrock as a bearer token."""
        return bearer(key)

    def request(self, model: str, prompt: Prompt) -> ModelRequest:
        """A request for one streamed answer; raises as `Wire.request`."""
        system, turns = split_instructions(prompt, build_turns(prompt, _TAKES))
        body: dict[str, Any] = {
            "messages": list(_Writer(model).messages(turns)),
            "inferenceConfig": {"maxTokens": prompt.max_output_tokens},
        }
        if system is not None:
            body["system"] = [{"text": system}]
        # The service wants a tool for each call in the conversation.
        called = [ToolOffer(name=name, description=name, schema={}) for name in called_tools(turns)]
        if tools := prompt.tools or called:
            body["toolConfig"] = {"tools": [_tool(offer) for offer in tools]}
        if output := _output_config(prompt):
            body["outputConfig"] = output
        path = f"/model/{quote(model, safe='')}/converse-stream"
        return ModelRequest(path=path, pieces=encode_body(body))

    def reader(self) -> StreamReader:
        """A reader for one answer."""
        return _Reader(API)


WIRE = BedrockConverse()


def _output_config(prompt: Prompt) -> dict[str, Any]:
    config: dict[str, Any] = {}
    if prompt.schema is not None:
        schema = msgspec.json.encode(close_schema(prompt.schema)).decode()
        structure = {"jsonSchema": {"name": "answer", "schema": schema}}
        config["textFormat"] = {"type": "json_schema", "structure": structure}
    if prompt.effort not in (None, "none"):
        config["effort"] = "low" if prompt.effort == "minimal" else prompt.effort
    return config


def _tool(offer: ToolOffer) -> dict[str, Any]:
    schema = {"json": {"type": "object", **offer.schema}}
    return {
        "toolSpec": {
            "name": offer.name,
            "description": offer.description,
            "inputSchema": schema,
        }
    }


class _Writer:
    """Writes the turns for one model."""

    def __init__(self, model: str) -> None:
        self._has_image_results = _IMAGE_RESULTS.search(model) is not None

    def messages(self, turns: Sequence[Turn]) -> Iterable[dict[str, Any]]:
        for role, group in group_by_role(turns):
            blocks = [block for turn in group for block in self._blocks(turn)]
            yield {"role": role, "content": blocks}

    def _blocks(self, turn: Turn) -> list[dict[str, Any]]:
        match turn:
            case UserTurn():
                return [_block(part) for part in turn.parts]
            case AssistantTurn():
                return [block for step in turn.trimmed_steps for block in _step(step)]
            case ToolTurn():
                results = [{"toolResult": self._result(output)} for output in turn.outputs]
                following = [] if self._has_image_results else label_media(turn.outputs)
                return results + [_block(part) for part in following]

    def _result(self, output: OutputPart) -> dict[str, Any]:
        parts = output.parts if self._has_image_results else [join_text(output.parts)]
        return {
            "toolUseId": output.call.call_id,
            "content": [_block(part or _EMPTY) for part in parts or [_EMPTY]],
            "status": "error" if output.has_failed else "success",
        }


def _block(part: Part) -> dict[str, Any]:
    if not isinstance(part, PlacedPicture):
        return {"text": join_text([part])}
    # The encoder writes bytes as base64.
    return {"image": {"format": _FORMATS[part.image.mime], "source": {"bytes": part.image.data}}}


def _step(step: Step) -> list[dict[str, Any]]:
    match step:
        case MessagePart():
            return [_block(text) for text in step.texts]
        case CallPart():
            use = {"toolUseId": step.call_id, "name": step.name, "input": step.fields}
            return [{"toolUse": use}]
        case _:
            return _reasoning(step)


def _reasoning(part: ReasoningPart) -> list[dict[str, Any]]:
    """Reasoning that this service has signed; not that of others."""
    signature = part.signature_of(API)
    if signature is None:
        return []
    if part.text is None:
        return [{"reasoningContent": {"redactedContent": signature}}]
    return [{"reasoningContent": {"reasoningText": {"text": part.text, "signature": signature}}}]


class _ToolUse(msgspec.Struct, rename="camel"):
    tool_use_id: str = ""
    name: str = ""


class _Start(msgspec.Struct, rename="camel"):
    tool_use: _ToolUse | None = None


class _StartEvent(msgspec.Struct, rename="camel"):
    start: _Start
    content_block_index: int = 0


class _Input(msgspec.Struct):
    input: str = ""


class _ReasoningDelta(msgspec.Struct, rename="camel"):
    text: str = ""
    signature: str = ""
    redacted_content: str = ""


class _Delta(msgspec.Struct, rename="camel"):
    text: str = ""
    tool_use: _Input | None = None
    reasoning_content: _ReasoningDelta | None = None


class _DeltaEvent(msgspec.Struct, rename="camel"):
    delta: _Delta
    content_block_index: int = 0


class _StopEvent(msgspec.Struct, rename="camel"):
    stop_reason: str


class _UsageEvent(msgspec.Struct):
    usage: Any = None


class _Usage(msgspec.Struct, rename="camel"):
    input_tokens: Count
    output_tokens: Count
    cache_read_input_tokens: Count | None = None
    cache_write_input_tokens: Count | None = None


class _Error(msgspec.Struct):
    message: str | None = None


class _Reader(AnswerReader):
    """Reads the events of one answer."""

    def __init__(self, api: str) -> None:
        super().__init__(api)
        self._open: dict[int, ReasoningBuilder | CallBuilder] = {}
        self._handlers = {
            "contentBlockStart": self._on_block,
            "contentBlockDelta": self._on_delta,
            "messageStop": self._on_end,
            "metadata": self._on_usage,
        }

    def feed(self, name: str, data: str) -> str:
        if name.endswith("Exception"):
            self._stop, self._code = "error", name
            self._message = parse_event(data, _Error).message
            return ""
        handle = self._handlers.get(name)
        return "" if handle is None else handle(data)

    def _on_block(self, data: str) -> str:
        event = parse_event(data, _StartEvent)
        use = event.start.tool_use
        if use is not None:
            self._open[event.content_block_index] = self._items.start(
                CallBuilder(use.tool_use_id, use.name)
            )
        return ""

    def _on_delta(self, data: str) -> str:
        event = parse_event(data, _DeltaEvent)
        delta, block = event.delta, self._open.get(event.content_block_index)
        if delta.tool_use is not None and isinstance(block, CallBuilder):
            self._items.add_piece(block, delta.tool_use.input)
        if delta.reasoning_content is not None:
            self._add_reasoning(event.content_block_index, delta.reasoning_content)
        return self._items.add_text(delta.text)

    def _add_reasoning(self, at: int, delta: _ReasoningDelta) -> None:
        block = self._open.get(at)
        if not isinstance(block, ReasoningBuilder):
            block = self._items.start(ReasoningBuilder(is_hidden=bool(delta.redacted_content)))
            self._open[at] = block
        signature = delta.signature or delta.redacted_content
        self._items.count_chars(signature)
        block.signature += signature
        self._items.add_piece(block, delta.text)

    def _on_end(self, data: str) -> str:
        reason = parse_event(data, _StopEvent).stop_reason
        self._stop = _STOPS.get(reason, "end")
        if self._stop in ("refusal", "error"):
            self._code = reason
        return ""

    def _on_usage(self, data: str) -> str:
        usage = convert_or_none(parse_event(data, _UsageEvent).usage, _Usage)
        if usage is not None:
            self._usage = usage_beside_cache(
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                cache_read=usage.cache_read_input_tokens,
                cache_write=usage.cache_write_input_tokens,
            )
        return ""
