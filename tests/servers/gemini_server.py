"""Google's generateContent on this machine."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from tests.servers.model_server import Counts, ModelServer, Saying, Sent
from tests.servers.wire import Reply, Seen, json_reply

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

    def objection(self, seen: Seen) -> Reply | None:
        if seen.method != "POST" or _PATH.fullmatch(seen.path) is None:
            return error_reply(404, "NOT_FOUND", f"no route {seen.path}")
        if "x-goog-api-key" not in seen.headers:
            return error_reply(403, "PERMISSION_DENIED", "Unregistered callers may not")
        if self.wants_stream(seen, None) and seen.query.get("alt") != ["sse"]:
            return error_reply(400, "INVALID_ARGUMENT", "only alt=sse here")
        return None

    def wants_stream(self, seen: Seen, body: Any) -> bool:
        return seen.path.endswith(":streamGenerateContent")

    def whole(self, saying: Saying, body: Any) -> Any:
        parts = [{"text": saying.text}, *_calling(saying)]
        return _chunk(parts, saying.usage, **_ending(saying))

    def events(self, saying: Saying, body: Any) -> tuple[Sequence[Sent], Sequence[Sent]]:
        if saying.refusal is not None and not saying.pieces:
            feedback = {"blockReason": "PROHIBITED_CONTENT", "blockReasonMessage": saying.refusal}
            counts = {"usageMetadata": _usage(saying.usage)} if saying.usage else {}
            return [], [Sent(data={"promptFeedback": feedback, **counts})]
        before = [_chunk([{"text": "Is it a fox?", "thought": True}], saying.usage)]
        before += [_chunk([{"text": piece}], saying.usage) for piece in saying.pieces]
        before += [_chunk([part], saying.usage) for part in _calling(saying)]
        last = _chunk([], saying.usage, **_ending(saying))
        if saying.trouble is not None:
            trouble = saying.trouble
            last = {"error": {"code": 503, "message": trouble.message, "status": trouble.code}}
        return [Sent(data=chunk) for chunk in before], [Sent(data=last)]


def _calling(saying: Saying) -> list[dict[str, Any]]:
    """The calls, whole; of parallel ones only the first is signed."""
    calls = [
        {
            "functionCall": {
                "id": call.call_id,
                "name": call.name,
                "args": json.loads(call.arguments),
            }
        }
        for call in saying.calls
    ]
    return [part | ({} if at else {"thoughtSignature": "c2ln"}) for at, part in enumerate(calls)]


def _ending(saying: Saying) -> dict[str, Any]:
    if saying.refusal is not None:
        return {"finishReason": "SAFETY", "finishMessage": saying.refusal}
    return {"finishReason": "STOP" if saying.stop == "end" else "MAX_TOKENS"}


def _chunk(parts: list[Any], usage: Counts | None, **ending: Any) -> dict[str, Any]:
    candidate = {"content": {"role": "model", "parts": parts}, "index": 0, **ending}
    chunk = {"candidates": [candidate], "modelVersion": "gemini-test-001", "responseId": "r1"}
    return chunk | ({"usageMetadata": _usage(usage)} if usage else {})


def _usage(counts: Counts) -> dict[str, Any]:
    return {
        "promptTokenCount": counts.input,
        "cachedContentTokenCount": counts.cached,
        "candidatesTokenCount": counts.output - counts.reasoning,
        "thoughtsTokenCount": counts.reasoning,
        "totalTokenCount": counts.input + counts.output,
    }
