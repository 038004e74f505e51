"""OpenAI's Responses API: turns -> ``POST /responses``; its events -> an answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from limner.wires.base import Answer, ModelRequest, Prompt, Stop, StreamReader, ToolOffer, Usage
from limner.wires.content_parts import AudioClip, Part, PartSupport, replace_surrogates
from limner.wires.item_views import Reasoning
from limner.wires.openai_shared import bearer, data_url, json_schema
from limner.wires.stream import Count, ItemBuilder, counted, kind_of, read
from limner.wires.turns import (
    AssistantTurn,
    CallPart,
    MessagePart,
    OutputPart,
    Step,
    ToolTurn,
    Turn,
    UserTurn,
    turns,
)

API = "openai-responses"

# The service says nothing of the types of sounds: each goes as it came.
_TAKES = PartSupport(count=1500, audio=None)
_DETAILS = frozenset({"auto", "low", "high", "original"})
_PHASES = frozenset({"commentary", "final_answer"})


class OpenAIResponses:
    """How the Responses API is asked."""

    version = None

    def headers(self, key: str) -> Mapping[str, str]:
        """The key as a bearer's."""
        return bearer(key)

    def request(self, model: str, prompt: Prompt) -> ModelRequest:
        """One streamed response that the service does not keep; raises as `Wire.request`."""
        body: dict[str, Any] = {
            "model": model,
            "input": [item for turn in turns(prompt, _TAKES) for item in _items(turn)],
            "max_output_tokens": prompt.max_output_tokens,
            "store": False,
            "stream": True,
        }
        if prompt.instructions is not None:
            body["instructions"] = replace_surrogates(prompt.instructions)
        if prompt.effort is not None:
            body["reasoning"] = {"effort": prompt.effort}
        if prompt.tools:
            body["tools"] = [_tool(offer) for offer in prompt.tools]
            if prompt.effort not in (None, "none"):
                # The service keeps nothing: without this a thought would be lost at each call.
                body["include"] = ["reasoning.encrypted_content"]
        if prompt.schema is not None:
            body["text"] = {"format": {"type": "json_schema", **json_schema(prompt.schema)}}
        return ModelRequest(path="/responses", body=msgspec.json.encode(body))

    def reader(self) -> StreamReader:
        """A reader for one response."""
        return _Reader()


WIRE = OpenAIResponses()


def _tool(offer: ToolOffer) -> dict[str, Any]:
    return {
        "type": "function",
        "name": offer.name,
        "description": offer.description,
        "parameters": offer.schema,
        "strict": False,
    }


def _items(turn: Turn) -> list[dict[str, Any]]:
    match turn:
        case UserTurn():
            content = [_part(part) for part in turn.parts]
            return [{"type": "message", "role": turn.role, "content": content}]
        case AssistantTurn():
            return [item for step in turn.concluded for item in _made(step)]
        case ToolTurn():
            return [_output(output) for output in turn.outputs]


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "input_text", "text": part}
    if isinstance(part, AudioClip):
        return {"type": "input_audio", "audio_url": part.url}
    detail = part.image.detail if part.image.detail in _DETAILS else "auto"
    return {"type": "input_image", "image_url": data_url(part.image), "detail": detail}


def _made(step: Step) -> list[dict[str, Any]]:
    match step:
        case MessagePart():
            # Parts would need the id that the service once gave; a plain text needs none.
            said = {"type": "message", "role": "assistant", "content": "".join(step.texts)}
            return [said | ({"phase": step.phase} if step.phase in _PHASES else {})]
        case CallPart():
            named = {"call_id": step.call_id, "name": step.name}
            if step.is_custom:
                return [{"type": "custom_tool_call", **named, "input": step.arguments}]
            return [{"type": "function_call", **named, "arguments": step.arguments}]
        case _:
            return _thought(step.reasoning)


def _thought(reasoning: Reasoning) -> list[dict[str, Any]]:
    """A thought of this service, which only its encrypted form brings back; not those of others."""
    if reasoning.origin not in (None, API) or reasoning.encrypted_content is None:
        return []
    summary = [{"type": "summary_text", "text": part.text} for part in reasoning.summary]
    return [
        {
            "type": "reasoning",
            "summary": summary,
            "encrypted_content": reasoning.encrypted_content,
        }
    ]


def _output(output: OutputPart) -> dict[str, Any]:
    parts = output.parts
    is_text = len(parts) == 1 and isinstance(parts[0], str)
    return {
        "type": "custom_tool_call_output" if output.call.is_custom else "function_call_output",
        "call_id": output.call.call_id,
        "output": parts[0] if is_text else [_part(part) for part in parts],
    }


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


class _ItemEvent(msgspec.Struct):
    item: dict[str, Any]
    output_index: int = 0


class _Response(msgspec.Struct):
    model: str | None = None
    error: _Trouble | None = None
    incomplete_details: _Incomplete | None = None
    usage: Any = None
    output: list[dict[str, Any]] = []


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
        self._made = ItemBuilder(API)
        self._items: dict[int, dict[str, Any]] = {}
        self._refusal: list[str] = []
        self._answer: Answer | None = None
        self._takes = {
            "response.output_text.delta": self._text,
            "response.refusal.delta": self._refused,
            "response.output_item.done": self._done,
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
        return self._made.say(read(data, _Delta).delta)

    def _refused(self, data: str) -> str:
        self._refusal.append(read(data, _Delta).delta)
        return ""

    def _done(self, data: str) -> str:
        self._made.count(data)
        event = read(data, _ItemEvent)
        self._items[event.output_index] = event.item
        return ""

    def _ended(self, data: str) -> str:
        response = read(data, _ResponseEvent).response
        late = "" if self._made.text else self._told_at_the_end(response)
        self._answer = self._so_far(
            self._stop(response), response, message="".join(self._refusal) or None
        )
        return late

    def _told_at_the_end(self, response: _Response) -> str:
        """The text of a response whose pieces were not sent one by one."""
        outputs = [output for one in response.output if (output := counted(one, _Output))]
        contents = [one for output in outputs for one in output.content or ()]
        if not self._refusal:
            self._refusal = [one.refusal for one in contents if one.type == "refusal"]
        return self._made.say("".join(one.text for one in contents if one.type == "output_text"))

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
        done = tuple(self._items[at] for at in sorted(self._items))
        return Answer(
            text=self._made.text,
            stop=stop,
            model=response.model,
            usage=_usage(response.usage),
            message=message,
            code=code,
            items=done or tuple(response.output) or self._made.items(),
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
