"""A request of Anthropic's Messages API -> the scripted answer, as Anthropic words it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from limner.testing.servers.histories import messages_problem
from limner.testing.servers.http_server import ReceivedRequest, Reply, json_reply
from limner.testing.servers.model_server import (
    ModelAnswer,
    ModelServer,
    ScriptedCall,
    ServerEvent,
    TokenCounts,
    halves,
)


def error_reply(status: int, kind: str, message: str, **more: Any) -> Reply:
    """An error as Anthropic words it."""
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
    return json_reply(body, status=status, headers={"request-id": "req_1"} | more)


class AnthropicServer(ModelServer):
    """``POST /v1/messages``."""

    @property
    def base_url(self) -> str:
        return self.origin

    def objection(self, seen: ReceivedRequest) -> Reply | None:
        if (seen.method, seen.path) != ("POST", "/v1/messages"):
            return error_reply(404, "not_found_error", f"no route {seen.path}")
        if "anthropic-version" not in seen.headers:
            return error_reply(400, "invalid_request_error", "anthropic-version: required")
        # The documents have the first; the vendor's newest client sends the second.
        if not {"x-api-key", "authorization"} & set(seen.headers):
            return error_reply(401, "authentication_error", "x-api-key header is required")
        problem = messages_problem(seen.json())
        return error_reply(400, "invalid_request_error", problem) if problem else None

    def wants_stream(self, seen: ReceivedRequest, body: Any) -> bool:
        return bool(body.get("stream"))

    def whole(self, answer: ModelAnswer, body: Any) -> Any:
        return _message(body) | {
            "content": [
                {"type": "text", "text": answer.text, "citations": None},
                *(_use(call) | {"input": json.loads(call.arguments)} for call in answer.calls),
            ],
            **_ending(answer),
            "usage": _usage(answer.usage or TokenCounts()),
        }

    def events(
        self, answer: ModelAnswer, body: Any
    ) -> tuple[Sequence[ServerEvent], Sequence[ServerEvent]]:
        counts = answer.usage
        early = {"usage": _usage(counts) | {"output_tokens": 1}} if counts else {}
        before: list[dict[str, Any]] = [
            {"type": "message_start", "message": _message(body) | early},
            {"type": "ping"},
            _started(0, {"type": "thinking", "thinking": "", "signature": ""}),
            _delta(0, {"type": "thinking_delta", "thinking": "Is it a fox?"}),
            _delta(0, {"type": "signature_delta", "signature": "c2ln"}),
            {"type": "content_block_stop", "index": 0},
            _started(1, {"type": "text", "text": "", "citations": None}),
        ]
        before += [_delta(1, {"type": "text_delta", "text": piece}) for piece in answer.pieces]
        if answer.error is not None:
            error = {"type": answer.error.code, "message": answer.error.message}
            return _named(before), _named([{"type": "error", "error": error}])
        late = _usage(counts) if counts else {"output_tokens": 0}
        after = [
            {"type": "content_block_stop", "index": 1},
            *(event for at, call in enumerate(answer.calls, 2) for event in _calling(at, call)),
            {"type": "message_delta", "delta": _ending(answer), "usage": late},
            {"type": "message_stop"},
        ]
        return _named(before), _named(after)


def _named(events: Sequence[dict[str, Any]]) -> list[ServerEvent]:
    return [ServerEvent(name=event["type"], data=event) for event in events]


def _started(index: int, block: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def _delta(index: int, delta: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def _use(call: ScriptedCall) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.call_id, "name": call.name, "input": {}}


def _calling(at: int, call: ScriptedCall) -> list[dict[str, Any]]:
    pieces = [
        _delta(at, {"type": "input_json_delta", "partial_json": piece})
        for piece in ("", *halves(call.arguments))
    ]
    return [_started(at, _use(call)), *pieces, {"type": "content_block_stop", "index": at}]


def _message(body: Any) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }


def _ending(answer: ModelAnswer) -> dict[str, Any]:
    if answer.refusal is not None:
        details = {"type": "refusal", "category": "bio", "explanation": answer.refusal}
        return {"stop_reason": "refusal", "stop_sequence": None, "stop_details": details}
    if answer.calls:
        return {"stop_reason": "tool_use", "stop_sequence": None}
    reason = "end_turn" if answer.stop == "end" else "max_tokens"
    return {"stop_reason": reason, "stop_sequence": None}


def _usage(counts: TokenCounts) -> dict[str, Any]:
    return {
        "input_tokens": counts.input - counts.cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": counts.cached,
        "output_tokens": counts.output,
        "output_tokens_details": {"thinking_tokens": counts.reasoning},
    }
