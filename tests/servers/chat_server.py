"""An OpenAI-compatible Chat Completions API on this machine; like many, it asks for no key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from limner.testing.servers.histories import chat_problem
from limner.testing.servers.http_server import ReceivedRequest, Reply
from limner.testing.servers.model_server import (
    ModelAnswer,
    ModelServer,
    ScriptedCall,
    ServerEvent,
    TokenCounts,
    halves,
)
from limner.testing.servers.openai_server import error_reply


class ChatServer(ModelServer):
    """``POST /v1/chat/completions``."""

    @property
    def base_url(self) -> str:
        return f"{self.origin}/v1"

    def objection(self, seen: ReceivedRequest) -> Reply | None:
        if (seen.method, seen.path) != ("POST", "/v1/chat/completions"):
            return error_reply(404, f"Invalid URL ({seen.method} {seen.path})")
        problem = chat_problem(seen.json())
        return error_reply(400, problem) if problem else None

    def wants_stream(self, seen: ReceivedRequest, body: Any) -> bool:
        return bool(body.get("stream"))

    def whole(self, answer: ModelAnswer, body: Any) -> Any:
        message = {
            "role": "assistant",
            "content": None if answer.refusal else answer.text,
            "refusal": answer.refusal,
        }
        if answer.calls:
            message["tool_calls"] = [_call(call) for call in answer.calls]
        choice = {
            "index": 0,
            "message": message,
            "finish_reason": _reason(answer),
            "logprobs": None,
        }
        return {
            **_head(body, "chat.completion"),
            "choices": [choice],
            "usage": _usage(answer.usage) if answer.usage else None,
        }

    def events(
        self, answer: ModelAnswer, body: Any
    ) -> tuple[Sequence[ServerEvent], Sequence[ServerEvent]]:
        head = _head(body, "chat.completion.chunk")
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": "", "refusal": None}]
        deltas += [{"content": piece} for piece in answer.pieces]
        if answer.refusal is not None:
            deltas.append({"refusal": answer.refusal})
        deltas += [delta for at, call in enumerate(answer.calls) for delta in _calling(at, call)]
        before = [ServerEvent(data=head | {"choices": [_choice(delta)]}) for delta in deltas]
        if answer.error is not None:
            failure = answer.error
            error = {"message": failure.message, "type": "server_error", "code": failure.code}
            return before, [ServerEvent(data={"error": error})]
        after = [ServerEvent(data=head | {"choices": [_choice({}, _reason(answer))]})]
        if answer.usage is not None and (body.get("stream_options") or {}).get("include_usage"):
            after.append(ServerEvent(data=head | {"choices": [], "usage": _usage(answer.usage)}))
        return before, [*after, ServerEvent(data="[DONE]")]


def _call(call: ScriptedCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.call_id, "type": "function", "function": function}


def _calling(at: int, call: ScriptedCall) -> list[dict[str, Any]]:
    """The first piece has the name, the others go on with the arguments."""
    first, *rest = halves(call.arguments)
    started = _call(call) | {"index": at, "function": {"name": call.name, "arguments": first}}
    pieces = [started, *({"index": at, "function": {"arguments": piece}} for piece in rest)]
    return [{"tool_calls": [piece]} for piece in pieces]


def _reason(answer: ModelAnswer) -> str:
    if answer.calls:
        return "tool_calls"
    return "stop" if answer.stop == "end" else "length"


def _head(body: Any, kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1762000000, "model": body["model"]}


def _choice(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "finish_reason": reason, "logprobs": None}


def _usage(counts: TokenCounts) -> dict[str, Any]:
    return {
        "prompt_tokens": counts.input,
        "completion_tokens": counts.output,
        "total_tokens": counts.input + counts.output,
        "prompt_tokens_details": {"cached_tokens": counts.cached},
        "completion_tokens_details": {"reasoning_tokens": counts.reasoning},
    }
