"""Google's generateContent: turns -> ``:streamGenerateContent``; its chunks -> an answer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from limner.wires.base import (
    Effort,
    ModelPicture,
    ModelRequest,
    Prompt,
    Stop,
    StreamReader,
    ToolOffer,
    Usage,
    encode_body,
)
from limner.wires.content_parts import AudioClip, Part, PartSupport, PlacedPicture, join_text
from limner.wires.stream import (
    AnswerReader,
    CallBuilder,
    Count,
    ReasoningBuilder,
    convert_or_none,
    parse_event,
)
from limner.wires.turns import (
    AssistantTurn,
    CallPart,
    MessagePart,
    OutputPart,
    ReasoningPart,
    ToolTurn,
    Turn,
    UserTurn,
    build_turns,
    label_media,
    split_instructions,
)

API = "gemini-generate-content"

_TAKES = PartSupport(
    types=frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"}),
    count=3600,
    audio=frozenset(
        {"audio/wav", "audio/mp3", "audio/aiff", "audio/aac", "audio/ogg", "audio/flac"}
    ),
)
# Since Gemini 3 an output can contain pictures, calls have ids, and signatures are required.
_OLD = re.compile(r"(gemini-[12]\b|gemma)")
# What the service accepts instead of a signature for a call that it did not sign.
_UNSIGNED = "skip_thought_signature_validator"
_LEVELS: Mapping[Effort, str] = {
    "none": "MINIMAL",
    "minimal": "MINIMAL",
    "low": "LOW",
    "medium": "MEDIUM",
    "high": "HIGH",
    "xhigh": "HIGH",
    "max": "HIGH",
}
_DETAILS = frozenset({"low", "medium", "high", "ultra_high"})
_REFUSALS = (
    "SAFETY",
    "RECITATION",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
)
_STOPS: Mapping[str, Stop] = {
    "STOP": "end",
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
    **dict.fromkeys(_REFUSALS, "refusal"),
}


class GeminiGenerateContent:
    """The wire of generateContent."""

    version = "v1beta"
    batch_api = "gemini"

    def headers(self, key: str) -> Mapping[str, str]:
        """The key in a header, so that no log of URLs contains it."""
        return {"x-goog-api-key": key} if key else {}

    def request(self, model: str, prompt: Prompt) -> ModelRequest:
        """A request for one streamed generation; raises as `Wire.request`."""
        settings: dict[str, Any] = {"maxOutputTokens": prompt.max_output_tokens}
        if prompt.effort is not None:
            settings["thinkingConfig"] = {"thinkingLevel": _LEVELS[prompt.effort]}
        if prompt.schema is not None:
            settings["responseMimeType"] = "application/json"
            settings["responseJsonSchema"] = prompt.schema
        system, turns = split_instructions(prompt, build_turns(prompt, _TAKES))
        writer = _Writer(model)
        body: dict[str, Any] = {
            "contents": [writer.content(turn) for turn in turns],
            "generationConfig": settings,
        }
        if system is not None:
            body["systemInstruction"] = {"parts": [{"text": system}]}
        if prompt.tools:
            declarations = [_declaration(offer) for offer in prompt.tools]
            body["tools"] = [{"functionDeclarations": declarations}]
        path = f"/models/{quote(model, safe='')}:streamGenerateContent?alt=sse"
        return ModelRequest(path=path, pieces=encode_body(body))

    def reader(self) -> StreamReader:
        """A reader for one generation."""
        return _Reader(API)

    def events(self, whole: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
        """A chunk has the same form as a whole generation."""
        return [whole]


WIRE = GeminiGenerateContent()


def _declaration(offer: ToolOffer) -> dict[str, Any]:
    return {
        "name": offer.name,
        "description": offer.description,
        "parametersJsonSchema": offer.schema,
    }


class _Writer:
    """Writes the turns for one model."""

    def __init__(self, model: str) -> None:
        self._is_old = _OLD.match(model) is not None

    def content(self, turn: Turn) -> dict[str, Any]:
        match turn:
            case UserTurn():
                return {"role": "user", "parts": [_part(part) for part in turn.parts]}
            case AssistantTurn():
                return {"role": "model", "parts": list(self._steps(turn))}
            case ToolTurn():
                return {"role": "user", "parts": self._results(turn.outputs)}

    def _steps(self, turn: AssistantTurn) -> Iterable[dict[str, Any]]:
        """The parts of an answer; a signature is a field of the part after the reasoning."""
        signature: str | None = None
        is_unsigned = not self._is_old
        for step in turn.steps:
            if isinstance(step, ReasoningPart):
                if signature is not None:
                    yield _signed({"text": ""}, signature)
                signature = step.signature_of(API)
                continue
            if isinstance(step, CallPart):
                # Only the first of parallel calls has a signature.
                if is_unsigned and signature is None:
                    signature = _UNSIGNED
                is_unsigned = False
                yield _signed({"functionCall": self._call(step)}, signature)
            else:
                yield from _texts(step, signature)
            signature = None
        if signature is not None:
            yield _signed({"text": ""}, signature)

    def _call(self, call: CallPart) -> dict[str, Any]:
        return self._identify(call) | {"args": call.fields}

    def _identify(self, call: CallPart) -> dict[str, Any]:
        name = {"name": call.name}
        return name if self._is_old else {"id": call.call_id, **name}

    def _results(self, outputs: Sequence[OutputPart]) -> list[dict[str, Any]]:
        returned = [{"functionResponse": self._response(output)} for output in outputs]
        # An output can contain pictures at most: audio follows it.
        following = label_media(outputs) if self._is_old else label_media(outputs, AudioClip)
        return returned + [_part(part) for part in following]

    def _response(self, output: OutputPart) -> dict[str, Any]:
        result = {"error" if output.has_failed else "output": join_text(output.parts)}
        response = self._identify(output.call) | {"response": result}
        images = [
            {"inlineData": _blob(part.image)}
            for part in output.parts
            if isinstance(part, PlacedPicture)
        ]
        return response | {"parts": images} if images and not self._is_old else response


def _texts(message: MessagePart, signature: str | None) -> list[dict[str, Any]]:
    first, *rest = ({"text": text} for text in message.texts)
    return [_signed(first, signature), *rest]


def _signed(part: dict[str, Any], signature: str | None) -> dict[str, Any]:
    return part if signature is None else {**part, "thoughtSignature": signature}


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, str):
        return {"text": part}
    if isinstance(part, AudioClip):
        return {"inlineData": {"mimeType": part.mime, "data": part.base64}}
    placed: dict[str, Any] = {"inlineData": _blob(part.image)}
    detail = part.image.detail
    if detail in _DETAILS:
        placed["mediaResolution"] = {"level": f"MEDIA_RESOLUTION_{detail.upper()}"}
    return placed


def _blob(image: ModelPicture) -> dict[str, Any]:
    return {"mimeType": image.mime, "data": image.json_text()}


class _Call(msgspec.Struct):
    name: str = ""
    args: dict[str, Any] | None = None
    id: str | None = None


class _Part(msgspec.Struct, rename="camel"):
    text: str = ""
    thought: bool = False
    thought_signature: str | None = None
    function_call: _Call | None = None


class _Content(msgspec.Struct):
    parts: list[_Part] | None = None


class _Candidate(msgspec.Struct, rename="camel"):
    content: _Content | None = None
    finish_reason: str | None = None
    finish_message: str | None = None


class _Feedback(msgspec.Struct, rename="camel"):
    block_reason: str | None = None
    block_reason_message: str | None = None


class _Error(msgspec.Struct):
    message: str | None = None
    status: str | None = None


class _Chunk(msgspec.Struct, rename="camel"):
    candidates: list[_Candidate] | None = None
    prompt_feedback: _Feedback | None = None
    usage_metadata: Any = None
    model_version: str | None = None
    response_id: str | None = None
    error: _Error | None = None


class _Usage(msgspec.Struct, rename="camel"):
    prompt_token_count: Count
    candidates_token_count: Count = 0
    thoughts_token_count: Count | None = None
    tool_use_prompt_token_count: Count = 0
    cached_content_token_count: Count | None = None


class _Reader(AnswerReader):
    """Reads the chunks of one generation."""

    def feed(self, name: str, data: str) -> str:
        chunk = parse_event(data, _Chunk)
        self._model = chunk.model_version or self._model
        self._items.answer_id = chunk.response_id or self._items.answer_id
        self._usage = _usage(chunk.usage_metadata) or self._usage
        if chunk.error is not None:
            self._end("error", chunk.error.message, chunk.error.status)
        feedback = chunk.prompt_feedback
        if feedback is not None and feedback.block_reason is not None:
            self._end("refusal", feedback.block_reason_message, feedback.block_reason)
        return "".join(self._candidate(candidate) for candidate in (chunk.candidates or [])[:1])

    def _candidate(self, candidate: _Candidate) -> str:
        reason = candidate.finish_reason
        if reason is not None:
            stop = _STOPS.get(reason, "error")
            has_code = stop in ("refusal", "error")
            self._end(stop, candidate.finish_message, reason if has_code else None)
        parts = (candidate.content or _Content()).parts or []
        return "".join(self._part(part) for part in parts)

    def _part(self, part: _Part) -> str:
        if part.thought:
            self._items.add_piece(self._reasoning(is_hidden=False), part.text)
        # The signature of a text comes at its end, that of a call with the call.
        text = "" if part.thought else self._items.add_text(part.text)
        if part.thought_signature:
            self._items.count_chars(part.thought_signature)
            self._reasoning(is_hidden=True).signature = part.thought_signature
        if part.function_call is not None:
            call = part.function_call
            arguments = msgspec.json.encode(call.args or {}).decode()
            self._items.start(CallBuilder(call.id or "", call.name, [arguments]))
        return text

    def _reasoning(self, *, is_hidden: bool) -> ReasoningBuilder:
        """The reasoning that is not signed yet, or a new one."""
        last = self._items.last
        if isinstance(last, ReasoningBuilder) and not last.signature:
            return last
        return self._items.start(ReasoningBuilder(is_hidden=is_hidden))

    def _end(self, stop: Stop, message: str | None, code: str | None) -> None:
        self._stop, self._message, self._code = stop, message, code


def _usage(raw: Any) -> Usage | None:
    usage = convert_or_none(raw, _Usage)
    if usage is None:
        return None
    return Usage(
        input_tokens=usage.prompt_token_count + usage.tool_use_prompt_token_count,
        output_tokens=usage.candidates_token_count + (usage.thoughts_token_count or 0),
        cache_read_tokens=usage.cached_content_token_count,
        reasoning_tokens=usage.thoughts_token_count,
    )
