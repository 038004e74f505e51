"""A request of Google's generateContent -> the scripted answer, as Google words it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from limner.testing.servers.histories import gemini_problem
from limner.testing.servers.http_server import ReceivedRequest, Reply, json_reply
from limner.testing.servers.model_server import ModelAnswer, ModelServer, ServerEvent, TokenCounts

_PATH = re.compile(r"/v1(?:beta)?/models/([^/:]+):(streamGenerateContent|generateContent)")


def error_reply(status: int, word: str, message: str, *, reason: str | None = None) -> Reply:
    """An error as Google words it."""
    info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason}
    details = [] if reason is None else [info]
    error = {"code": status, "message": message, "status": word, "details": details}
    return json_reply({"error": error}, status=status)


class GeminiServer(ModelServer):
    """``POST /v1beta/models/<id>:generateContent`` and ``:streamGenerateContent?alt=sse``."""

    # The vendor's own client stumbles over comments, so the real service cannot send any.
    comments = False

    @property
    def base_url(self) -> str:
        return self.origin

    def objection(self, seen: ReceivedRequest) -> Reply | None:
        if seen.method != "POST" or _PATH.fullmatch(seen.path) is None:
            return error_reply(404, "NOT_FOUND", f"no route {seen.path}")
        if "x-goog-api-key" not in seen.headers:
            return error_reply(403, "PERMISSION_DENIED", "Unregistered callers may not")
        if self.wants_stream(seen, None) and seen.query.get("alt") != ["sse"]:
            return error_reply(400, "INVALID_ARGUMENT", "only alt=sse here")
        problem = gemini_problem(seen.json())
        return error_reply(400, "INVALID_ARGUMENT", problem) if problem else None

    def wants_stream(self, seen: ReceivedRequest, body: Any) -> bool:
        return seen.path.endswith(":streamGenerateContent")

    def whole(self, answer: ModelAnswer, body: Any) -> Any:
        parts = [{"text": answer.text}, *_calling(answer)]
        return _chunk(parts, answer.usage, **_ending(answer))

    def events(
        self, answer: ModelAnswer, body: Any
    ) -> tuple[Sequence[ServerEvent], Sequence[ServerEvent]]:
        if answer.refusal is not None and not answer.pieces:
            feedback = {"blockReason": "PROHIBITED_CONTENT", "blockReasonMessage": answer.refusal}
            counts = {"usageMetadata": _usage(answer.usage)} if answer.usage else {}
            return [], [ServerEvent(data={"promptFeedback": feedback, **counts})]
        before = [_chunk([{"text": "Is it a fox?", "thought": True}], answer.usage)]
        before += [_chunk([{"text": piece}], answer.usage) for piece in answer.pieces]
        before += [_chunk([part], answer.usage) for part in _calling(answer)]
        last = _chunk([], answer.usage, **_ending(answer))
        if answer.error is not None:
            failure = answer.error
            last = {"error": {"code": 503, "message": failure.message, "status": failure.code}}
        return [ServerEvent(data=chunk) for chunk in before], [ServerEvent(data=last)]


def _calling(answer: ModelAnswer) -> list[dict[str, Any]]:
    """The calls, whole; of parallel ones only the first is signed."""
    calls = [
        {
            "functionCall": {
                "id": call.call_id,
                "name": call.name,
                "args": json.loads(call.arguments),
            }
        }
        for call in answer.calls
    ]
    return [part | ({} if at else {"thoughtSignature": "c2ln"}) for at, part in enumerate(calls)]


def _ending(answer: ModelAnswer) -> dict[str, Any]:
    if answer.refusal is not None:
        return {"finishReason": "SAFETY", "finishMessage": answer.refusal}
    return {"finishReason": "STOP" if answer.stop == "end" else "MAX_TOKENS"}


def _chunk(parts: list[Any], usage: TokenCounts | None, **ending: Any) -> dict[str, Any]:
    candidate = {"content": {"role": "model", "parts": parts}, "index": 0, **ending}
    chunk = {"candidates": [candidate], "modelVersion": "gemini-test-001", "responseId": "r1"}
    return chunk | ({"usageMetadata": _usage(usage)} if usage else {})


def _usage(counts: TokenCounts) -> dict[str, Any]:
    return {
        "promptTokenCount": counts.input,
        "cachedContentTokenCount": counts.cached,
        "candidatesTokenCount": counts.output - counts.reasoning,
        "thoughtsTokenCount": counts.reasoning,
        "totalTokenCount": counts.input + counts.output,
    }
