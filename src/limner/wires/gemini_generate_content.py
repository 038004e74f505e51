"""Google's generateContent: a prompt -> ``:streamGenerateContent``; its chunks -> an answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from limner.wires.base import Answer, Effort, Prompt, Reader, Request, Sight, Stop, Usage
from limner.wires.messages import messages
from limner.wires.reading import Count, counted, read

_ROLES = {"user": "user", "assistant": "model"}
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
    """How generateContent is asked."""

    version = "v1beta"

    def headers(self, key: str) -> Mapping[str, str]:
        """The key in a header, where it gets into no log of addresses."""
        return {"x-goog-api-key": key} if key else {}

    def request(self, model: str, prompt: Prompt) -> Request:
        """One streamed generation; raises as `Wire.request`."""
        settings: dict[str, Any] = {"maxOutputTokens": prompt.max_output_tokens}
        if prompt.effort is not None:
            settings["thinkingConfig"] = {"thinkingLevel": _LEVELS[prompt.effort]}
        if prompt.schema is not None:
            settings["responseMimeType"] = "application/json"
            settings["responseJsonSchema"] = prompt.schema
        body: dict[str, Any] = {
            "contents": [
                {"role": _ROLES[message.role], "parts": [_part(part) for part in message.parts]}
                for message in messages(prompt)
            ],
            "generationConfig": settings,
        }
        if prompt.instructions is not None:
            body["systemInstruction"] = {"parts": [{"text": prompt.instructions}]}
        path = f"/models/{quote(model, safe='')}:streamGenerateContent?alt=sse"
        return Request(path=path, body=msgspec.json.encode(body))

    def reader(self) -> Reader:
        """A reader for one generation."""
        return _Reader()


WIRE = GeminiGenerateContent()


def _part(part: str | Sight) -> dict[str, Any]:
    if isinstance(part, str):
        return {"text": part}
    # Bytes are written as base64 by the encoder itself.
    placed: dict[str, Any] = {"inlineData": {"mimeType": part.mime, "data": part.data}}
    if part.detail in _DETAILS:
        placed["mediaResolution"] = {"level": f"MEDIA_RESOLUTION_{part.detail.upper()}"}
    return placed


class _Part(msgspec.Struct):
    text: str = ""
    thought: bool = False


class _Content(msgspec.Struct):
    parts: list[_Part] | None = None


class _Candidate(msgspec.Struct, rename="camel"):
    content: _Content | None = None
    finish_reason: str | None = None
    finish_message: str | None = None


class _Feedback(msgspec.Struct, rename="camel"):
    block_reason: str | None = None
    block_reason_message: str | None = None


class _Trouble(msgspec.Struct):
    message: str | None = None
    status: str | None = None


class _Chunk(msgspec.Struct, rename="camel"):
    candidates: list[_Candidate] | None = None
    prompt_feedback: _Feedback | None = None
    usage_metadata: Any = None
    model_version: str | None = None
    error: _Trouble | None = None


class _Usage(msgspec.Struct, rename="camel"):
    prompt_token_count: Count
    candidates_token_count: Count = 0
    thoughts_token_count: Count | None = None
    tool_use_prompt_token_count: Count = 0
    cached_content_token_count: Count | None = None


class _Reader:
    """Follows the chunks of one generation."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._stop: Stop | None = None
        self._model: str | None = None
        self._usage: Usage | None = None
        self._message: str | None = None
        self._code: str | None = None

    def feed(self, name: str, data: str) -> str:
        chunk = read(data, _Chunk)
        self._model = chunk.model_version or self._model
        self._usage = _usage(chunk.usage_metadata) or self._usage
        if chunk.error is not None:
            self._end("error", chunk.error.message, chunk.error.status)
        feedback = chunk.prompt_feedback
        if feedback is not None and feedback.block_reason is not None:
            self._end("refusal", feedback.block_reason_message, feedback.block_reason)
        return "".join(self._said(candidate) for candidate in (chunk.candidates or [])[:1])

    def finish(self) -> Answer | None:
        if self._stop is None:
            return None
        return Answer(
            text="".join(self._pieces),
            stop=self._stop,
            model=self._model,
            usage=self._usage,
            message=self._message,
            code=self._code,
        )

    def _said(self, candidate: _Candidate) -> str:
        reason = candidate.finish_reason
        if reason is not None:
            stop = _STOPS.get(reason, "error")
            is_told = stop in ("refusal", "error")
            self._end(stop, candidate.finish_message, reason if is_told else None)
        parts = (candidate.content or _Content()).parts or []
        piece = "".join(part.text for part in parts if not part.thought)
        self._pieces.append(piece)
        return piece

    def _end(self, stop: Stop, message: str | None, code: str | None) -> None:
        self._stop, self._message, self._code = stop, message, code


def _usage(raw: Any) -> Usage | None:
    usage = counted(raw, _Usage)
    if usage is None:
        return None
    return Usage(
        input_tokens=usage.prompt_token_count + usage.tool_use_prompt_token_count,
        output_tokens=usage.candidates_token_count + (usage.thoughts_token_count or 0),
        cache_read_tokens=usage.cached_content_token_count,
        reasoning_tokens=usage.thoughts_token_count,
    )
