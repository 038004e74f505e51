"""Chat Completions, of OpenAI and many others: turns -> a request; its chunks -> an answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from limner.wires.base import (
    Answer,
    ModelRequest,
    Prompt,
    Stop,
    StreamReader,
    ToolOffer,
    Usage,
    encode_body,
)
from limner.wires.content_parts import (
    AudioClip,
    Part,
    PartSupport,
    join_text,
    media,
    replace_surrogates,
)
from limner.wires.openai_shared import (
    ErrorBody,
    InputDetails,
    OutputDetails,
    bearer,
    data_url,
    json_schema,
    to_usage,
)
from limner.wires.stream import DONE, AnswerReader, CallBuilder, Count, convert_or_none, parse_event
from limner.wires.turns import (
    AssistantTurn,
    CallPart,
    MessagePart,
    ToolTurn,
    Turn,
    UserTurn,
    build_turns,
    label_media,
)

API = "openai-chat"

_AUDIO_FORMATS = {"audio/wav": "wav", "audio/mp3": "mp3"}
# Many services have this API, each with limits of its own; only audio has named formats.
_TAKES = PartSupport(audio=frozenset(_AUDIO_FORMATS))
_DETAILS = frozenset({"auto", "low", "high"})
_STOPS: Mapping[str, Stop] = {"length": "length", "content_filter": "refusal", "error": "error"}


class OpenAIChat:
    """The wire of Chat Completions."""

    version = None

    def headers(self, key: str) -> Mapping[str, str]:
        """The key as a bearer token; a user's own server often has none."""
        return bearer(key)

    def request(self, model: str, prompt: Prompt) -> ModelRequest:
        """A request for one streamed completion; raises as `Wire.request`."""
        turns = build_turns(prompt, _TAKES)
        messages = [message for turn in turns for message in _messages(turn)]
        if prompt.instructions is not None:
            instructions = replace_surrogates(prompt.instructions)
            messages.insert(0, {"role": "system", "content": instructions})
        body: dict[str, Any] = {
            "model": model,
            "messages": messages,
            # OpenAI's newer models refuse the older max_tokens; a server that does not know this
            # field skips it.
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
        return ModelRequest(path="/chat/completions", pieces=encode_body(body))

    def reader(self) -> StreamReader:
        """A reader for one completion."""
        return _Reader(API)


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
        audio = {"data": part.base64, "format": _AUDIO_FORMATS[part.mime]}
        return {"type": "input_audio", "input_audio": audio}
    image: dict[str, Any] = {"url": data_url(part.image)}
    if part.image.detail in _DETAILS:
        image["detail"] = part.image.detail
    return {"type": "image_url", "image_url": image}


def _instructions(turn: UserTurn) -> list[dict[str, Any]]:
    """A system message: not every server knows the role "developer".

    Neither role takes a picture or audio, so these follow in a message of the user.
    """
    system: dict[str, Any] = {"role": "system", "content": join_text(turn.parts)}
    shown = [part for one in media(turn.parts) for part in (f"{one.name}:", one)]
    return [system, _user(shown)] if shown else [system]


def _answer(turn: AssistantTurn) -> dict[str, Any]:
    texts = [text for step in turn.steps if isinstance(step, MessagePart) for text in step.texts]
    calls = [_call(step) for step in turn.steps if isinstance(step, CallPart)]
    answer: dict[str, Any] = {"role": "assistant"}
    if texts:
        answer["content"] = [_part(text) for text in texts]
    return {**answer, "tool_calls": calls} if calls else answer


def _call(call: CallPart) -> dict[str, Any]:
    # Servers that apply a model's chat template parse the arguments, and fail if these are not an
    # object.
    arguments = msgspec.json.encode(call.fields).decode()
    return {
        "id": call.call_id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }


def _results(turn: ToolTurn) -> list[dict[str, Any]]:
    """A tool's message is text alone: pictures and audio follow in a message of the user."""
    messages: list[dict[str, Any]] = [
        {
            "role": "tool",
            "tool_call_id": output.call.call_id,
            "content": join_text(output.parts),
        }
        for output in turn.outputs
    ]
    shown = label_media(turn.outputs)
    return [*messages, _user(shown)] if shown else messages


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


class _Error(ErrorBody):
    type: str | None = None


class _Chunk(msgspec.Struct):
    id: str | None = None
    model: str | None = None
    choices: list[_Choice] | None = None
    usage: Any = None
    error: _Error | str | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: Count
    completion_tokens: Count
    prompt_tokens_details: InputDetails | None = None
    completion_tokens_details: OutputDetails | None = None


class _Reader(AnswerReader):
    """Reads the chunks of one completion."""

    def __init__(self, api: str) -> None:
        super().__init__(api)
        self._calls: dict[int, CallBuilder] = {}
        self._refusal: list[str] = []

    def feed(self, name: str, data: str) -> str:
        if data.strip() == DONE:
            self._stop = self._stop or "end"
            return ""
        chunk = parse_event(data, _Chunk)
        self._model = chunk.model or self._model
        self._items.answer_id = chunk.id or self._items.answer_id
        self._usage = _usage(chunk.usage) or self._usage
        if chunk.error is not None:
            self._fail(chunk.error)
        return "".join(self._choice(choice) for choice in (chunk.choices or [])[:1])

    def finish(self) -> Answer | None:
        if self._refusal and self._stop is not None:
            self._stop = "refusal"
            self._message = "".join(self._refusal) or self._message
        return super().finish()

    def _fail(self, error: _Error | str) -> None:
        self._stop = "error"
        if isinstance(error, str):
            self._message, self._code = error, None
        else:
            self._message = error.message
            self._code = error.type if error.code is None else error.code_text

    def _choice(self, choice: _Choice) -> str:
        delta = choice.delta or _Delta()
        if choice.finish_reason is not None:
            self._stop = _STOPS.get(choice.finish_reason, "end")
        if delta.refusal:
            self._refusal.append(delta.refusal)
        for piece in delta.tool_calls or ():
            self._call(piece)
        return self._items.add_text(delta.content or "")

    def _call(self, piece: _ToolCall) -> None:
        function = piece.function or _Function()
        # A service that sends whole calls may not number them.
        at = len(self._calls) if piece.index is None else piece.index
        call = self._calls.get(at)
        # Some services give all calls the same number; then only the ids differ.
        if call is None or (piece.id and call.call_id and piece.id != call.call_id):
            self._calls[at] = call = self._items.start(CallBuilder())
        call.call_id = call.call_id or piece.id or ""
        call.name = call.name or function.name or ""
        self._items.add_piece(call, function.arguments or "")


def _usage(raw: Any) -> Usage | None:
    usage = convert_or_none(raw, _Usage)
    return usage and to_usage(
        usage.prompt_tokens,
        usage.completion_tokens,
        usage.prompt_tokens_details,
        usage.completion_tokens_details,
    )
