"""Chat Completions, OpenAI's and everybody's: turns -> a request; its chunks -> an answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from limner.wires.base import Answer, ModelRequest, Prompt, Stop, StreamReader, ToolOffer, Usage
from limner.wires.content_parts import (
    AudioClip,
    Part,
    PartSupport,
    join_text,
    media,
    replace_surrogates,
)
from limner.wires.openai_shared import bearer, data_url, json_schema
from limner.wires.stream import DONE, CallBuilder, Count, ItemBuilder, counted, read
from limner.wires.turns import (
    AssistantTurn,
    CallPart,
    MessagePart,
    ToolTurn,
    Turn,
    UserTurn,
    labelled,
    turns,
)

API = "openai-chat"

_AUDIO_FORMATS = {"audio/wav": "wav", "audio/mp3": "mp3"}
# Many services speak this language, each with limits of its own; only sounds have named formats.
_TAKES = PartSupport(audio=frozenset(_AUDIO_FORMATS))
_DETAILS = frozenset({"auto", "low", "high"})
_STOPS: Mapping[str, Stop] = {"length": "length", "content_filter": "refusal", "error": "error"}


class OpenAIChat:
    """How Chat Completions is asked."""

    version = None

    def headers(self, key: str) -> Mapping[str, str]:
        """The key as a bearer's; servers of one's own often have none."""
        return bearer(key)

    def request(self, model: str, prompt: Prompt) -> ModelRequest:
        """One streamed completion; raises as `Wire.request`."""
        said = [message for turn in turns(prompt, _TAKES) for message in _messages(turn)]
        if prompt.instructions is not None:
            said.insert(0, {"role": "system", "content": replace_surrogates(prompt.instructions)})
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
        if prompt.tools:
            body["tools"] = [_tool(offer) for offer in prompt.tools]
        if prompt.schema is not None:
            body["response_format"] = {
                "type": "json_schema",
                "json_schema": json_schema(prompt.schema),
            }
        return ModelRequest(path="/chat/completions", body=msgspec.json.encode(body))

    def reader(self) -> StreamReader:
        """A reader for one completion."""
        return _Reader()


WIRE = OpenAIChat()


def _tool(offer: ToolOffer) -> dict[str, Any]:
    function = {
        "name": offer.name,
        "description": offer.description,
        "parameters": offer.schema,
    }
    return {"type": "function", "function": function}


def _messages(turn: Turn) -> list[dict[str, Any]]:
    match turn:
        case UserTurn(role="user"):
            return [_user(turn.parts)]
        case UserTurn():
            return _instructions(turn)
        case AssistantTurn():
            return [_answer(turn)]
        case ToolTurn():
            return _results(turn)


def _user(parts: Iterable[Part]) -> dict[str, Any]:
    return {"role": "user", "content": [_part(part) for part in parts]}


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if isinstance(part, AudioClip):
        sound = {"data": part.base64, "format": _AUDIO_FORMATS[part.mime]}
        return {"type": "input_audio", "input_audio": sound}
    image: dict[str, Any] = {"url": data_url(part.image)}
    if part.image.detail in _DETAILS:
        image["detail"] = part.image.detail
    return {"type": "image_url", "image_url": image}


def _instructions(turn: UserTurn) -> list[dict[str, Any]]:
    """Not every server knows the newer role, and none takes a picture or a sound in either."""
    said: list[dict[str, Any]] = [{"role": "system", "content": join_text(turn.parts)}]
    shown = [part for one in media(turn.parts) for part in (f"{one.name}:", one)]
    return [*said, _user(shown)] if shown else said


def _answer(turn: AssistantTurn) -> dict[str, Any]:
    texts = [text for step in turn.steps if isinstance(step, MessagePart) for text in step.texts]
    calls = [_call(step) for step in turn.steps if isinstance(step, CallPart)]
    answer: dict[str, Any] = {"role": "assistant"}
    if texts:
        answer["content"] = [_part(text) for text in texts]
    return {**answer, "tool_calls": calls} if calls else answer


def _call(call: CallPart) -> dict[str, Any]:
    # Servers with a model's own template read the arguments, and fail where they are no object.
    arguments = msgspec.json.encode(call.fields).decode()
    return {
        "id": call.call_id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }


def _results(turn: ToolTurn) -> list[dict[str, Any]]:
    """A message of a tool is text alone: what else they gave follows in one of the user."""
    told: list[dict[str, Any]] = [
        {
            "role": "tool",
            "tool_call_id": output.call.call_id,
            "content": join_text(output.parts),
        }
        for output in turn.outputs
    ]
    shown = labelled(turn.outputs)
    return [*told, _user(shown)] if shown else told


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | None = None


class _ToolCall(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Delta(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[_ToolCall] | None = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Trouble(msgspec.Struct):
    message: str | None = None
    type: str | None = None
    # A word at OpenAI, a number at some who speak its language.
    code: str | int | None = None


class _Chunk(msgspec.Struct):
    id: str | None = None
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
        self._made = ItemBuilder(API)
        self._calls: dict[int, CallBuilder] = {}
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
        self._made.answer_id = chunk.id or self._made.answer_id
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
            text=self._made.text,
            stop="refusal" if self._refusal else self._stop,
            model=self._model,
            usage=self._usage,
            message="".join(self._refusal) or trouble.message,
            code=None if code is None else str(code),
            items=self._made.items(),
        )

    def _said(self, choice: _Choice) -> str:
        delta = choice.delta or _Delta()
        if choice.finish_reason is not None:
            self._stop = _STOPS.get(choice.finish_reason, "end")
        if delta.refusal:
            self._refusal.append(delta.refusal)
        for piece in delta.tool_calls or ():
            self._called(piece)
        return self._made.say(delta.content or "")

    def _called(self, piece: _ToolCall) -> None:
        function = piece.function or _Function()
        # Who sends calls whole may not number them.
        at = len(self._calls) if piece.index is None else piece.index
        call = self._calls.get(at)
        # Some number all of them alike, and only their ids tell them apart.
        if call is None or (piece.id and call.call_id and piece.id != call.call_id):
            self._calls[at] = call = self._made.open(CallBuilder())
        call.call_id = call.call_id or piece.id or ""
        call.name = call.name or function.name or ""
        self._made.add(call, function.arguments or "")


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
