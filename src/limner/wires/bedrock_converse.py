"""Bedrock's Converse: turns -> ``POST /model/<id>/converse-stream``; its events -> an answer.

The service frames its events in a way of its own: who reads them off the line passes the kind of
each as its name and its JSON as its data. Until somebody does, this wire is not in the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any
from urllib.parse import quote

import msgspec

from limner.wires.base import (
    Answer,
    ModelPicture,
    ModelRequest,
    Prompt,
    Stop,
    StreamReader,
    ToolOffer,
    Usage,
)
from limner.wires.content_parts import Part, PartSupport, PlacedPicture, join_text
from limner.wires.item_views import Reasoning
from limner.wires.openai_shared import bearer
from limner.wires.stream import CallBuilder, Count, ItemBuilder, ReasoningBuilder, counted, read
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
    labelled,
    turns,
)

API = "bedrock-converse"

_FORMATS = {
    "image/png": "png",
    "image/jpeg": "jpeg",
    "image/gif": "gif",
    "image/webp": "webp",
}
_TAKES = PartSupport(types=frozenset(_FORMATS), count=20, bytes_each=3_750_000)
# The families whose outputs of tools can carry pictures; for others they stand beside.
_SEEING_RESULTS = re.compile(r"(^|[./])(anthropic\.claude|amazon\.nova)")
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
    """How Converse is asked."""

    version = None

    def headers(self, key: str) -> Mapping[str, str]:
        """A key of Bedrock's own as a bearer's."""
        return bearer(key)

    def request(self, model: str, prompt: Prompt) -> ModelRequest:
        """One streamed answer; raises as `Wire.request`."""
        system, said = instructed(prompt, turns(prompt, _TAKES))
        writing = _Writing(model)
        body: dict[str, Any] = {
            "messages": list(writing.messages(said)),
            "inferenceConfig": {"maxTokens": prompt.max_output_tokens},
        }
        if system is not None:
            body["system"] = [{"text": system}]
        # A conversation with calls in it must say what they were calls of.
        known = [ToolOffer(name=name, description=name, schema={}) for name in called(said)]
        if tools := prompt.tools or known:
            body["toolConfig"] = {"tools": [_tool(offer) for offer in tools]}
        if output := _output_config(prompt):
            body["outputConfig"] = output
        path = f"/model/{quote(model, safe='')}/converse-stream"
        return ModelRequest(path=path, body=msgspec.json.encode(body))

    def reader(self) -> StreamReader:
        """A reader for one answer."""
        return _Reader()


WIRE = BedrockConverse()


def _output_config(prompt: Prompt) -> dict[str, Any]:
    config: dict[str, Any] = {}
    if prompt.schema is not None:
        schema = msgspec.json.encode(closed(prompt.schema)).decode()
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


class _Writing:
    """Writes the turns for one model."""

    def __init__(self, model: str) -> None:
        self._results_see = _SEEING_RESULTS.search(model) is not None

    def messages(self, said: Sequence[Turn]) -> Iterable[dict[str, Any]]:
        """The turns as messages in which the roles take turns."""
        for role, group in groupby(said, key=_role):
            blocks = [block for turn in group for block in self._blocks(turn)]
            yield {"role": role, "content": blocks}

    def _blocks(self, turn: Turn) -> list[dict[str, Any]]:
        match turn:
            case UserTurn():
                return [_block(part) for part in turn.parts]
            case AssistantTurn():
                return [block for step in turn.concluded for block in _made(step)]
            case ToolTurn():
                results = [{"toolResult": self._result(output)} for output in turn.outputs]
                beside = [] if self._results_see else labelled(turn.outputs)
                return results + [_block(part) for part in beside]

    def _result(self, output: OutputPart) -> dict[str, Any]:
        parts = output.parts if self._results_see else [join_text(output.parts)]
        return {
            "toolUseId": output.call.call_id,
            "content": [_block(part or _EMPTY) for part in parts or [_EMPTY]],
            "status": "error" if output.has_failed else "success",
        }


def _role(turn: Turn) -> str:
    return "assistant" if isinstance(turn, AssistantTurn) else "user"


def _block(part: Part) -> dict[str, Any]:
    return (
        {"image": _image(part.image)}
        if isinstance(part, PlacedPicture)
        else {"text": join_text([part])}
    )


def _image(image: ModelPicture) -> dict[str, Any]:
    # Bytes are written as base64 by the encoder itself.
    return {"format": _FORMATS[image.mime], "source": {"bytes": image.data}}


def _made(step: Step) -> list[dict[str, Any]]:
    match step:
        case MessagePart():
            return [_block(text) for text in step.texts]
        case CallPart():
            use = {"toolUseId": step.call_id, "name": step.name, "input": step.fields}
            return [{"toolUse": use}]
        case _:
            return _thinking(step.reasoning)


def _thinking(reasoning: Reasoning) -> list[dict[str, Any]]:
    """A thought of this service, with the signature that it knows it by; not those of others."""
    signature = reasoning.encrypted_content
    if reasoning.origin != API or signature is None:
        return []
    if reasoning.content is None:
        return [{"reasoningContent": {"redactedContent": signature}}]
    text = "".join(part.text for part in reasoning.content)
    return [{"reasoningContent": {"reasoningText": {"text": text, "signature": signature}}}]


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


class _Trouble(msgspec.Struct):
    message: str | None = None


class _Reader:
    """Follows the events of one answer."""

    def __init__(self) -> None:
        self._made = ItemBuilder(API)
        self._open: dict[int, ReasoningBuilder | CallBuilder] = {}
        self._stop: Stop | None = None
        self._usage: Usage | None = None
        self._message: str | None = None
        self._code: str | None = None
        self._takes = {
            "contentBlockStart": self._opened,
            "contentBlockDelta": self._continued,
            "messageStop": self._ended,
            "metadata": self._counted,
        }

    def feed(self, name: str, data: str) -> str:
        if name.endswith("Exception"):
            self._stop, self._code = "error", name
            self._message = read(data, _Trouble).message
            return ""
        take = self._takes.get(name)
        return "" if take is None else take(data)

    def finish(self) -> Answer | None:
        if self._stop is None:
            return None
        return Answer(
            text=self._made.text,
            stop=self._stop,
            usage=self._usage,
            message=self._message,
            code=self._code,
            items=self._made.items(),
        )

    def _opened(self, data: str) -> str:
        event = read(data, _StartEvent)
        use = event.start.tool_use
        if use is not None:
            self._open[event.content_block_index] = self._made.open(
                CallBuilder(use.tool_use_id, use.name)
            )
        return ""

    def _continued(self, data: str) -> str:
        event = read(data, _DeltaEvent)
        delta, block = event.delta, self._open.get(event.content_block_index)
        if delta.tool_use is not None and isinstance(block, CallBuilder):
            self._made.add(block, delta.tool_use.input)
        if delta.reasoning_content is not None:
            self._thought(event.content_block_index, delta.reasoning_content)
        return self._made.say(delta.text)

    def _thought(self, at: int, delta: _ReasoningDelta) -> None:
        block = self._open.get(at)
        if not isinstance(block, ReasoningBuilder):
            block = self._made.open(ReasoningBuilder(is_hidden=bool(delta.redacted_content)))
            self._open[at] = block
        signature = delta.signature or delta.redacted_content
        self._made.count(signature)
        block.signature += signature
        self._made.add(block, delta.text)

    def _ended(self, data: str) -> str:
        reason = read(data, _StopEvent).stop_reason
        self._stop = _STOPS.get(reason, "end")
        if self._stop in ("refusal", "error"):
            self._code = reason
        return ""

    def _counted(self, data: str) -> str:
        usage = counted(read(data, _UsageEvent).usage, _Usage)
        if usage is not None:
            # What was read from or written to a cache is counted apart.
            cache_read, cache_write = usage.cache_read_input_tokens, usage.cache_write_input_tokens
            self._usage = Usage(
                input_tokens=usage.input_tokens + (cache_read or 0) + (cache_write or 0),
                output_tokens=usage.output_tokens,
                cache_read_tokens=cache_read,
                cache_write_tokens=cache_write,
            )
        return ""
