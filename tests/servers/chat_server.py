"""An OpenAI-compatible Chat Completions API on this machine; like many, it asks for no key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.servers.model_server import Calls, Counts, ModelServer, Saying, Sent, halves
from tests.servers.openai_server import error_reply
from tests.servers.wire import Reply, Seen


class ChatServer(ModelServer):
    """``POST /v1/chat/completions``."""

    @property
    def base_url(self) -> str:
        return f"{self.origin}/v1"

    def objection(self, seen: Seen) -> Reply | None:
        if (seen.method, seen.path) != ("POST", "/v1/chat/completions"):
            return error_reply(404, f"Invalid URL ({seen.method} {seen.path})")
        return None

    def wants_stream(self, seen: Seen, body: Any) -> bool:
        return bool(body.get("stream"))

    def whole(self, saying: Saying, body: Any) -> Any:
        message = {
            "role": "assistant",
            "content": None if saying.refusal else saying.text,
            "refusal": saying.refusal,
        }
        if saying.calls:
            message["tool_calls"] = [_call(call) for call in saying.calls]
        choice = {
            "index": 0,
            "message": message,
            "finish_reason": _reason(saying),
            "logprobs": None,
        }
        return {
            **_head(body, "chat.completion"),
            "choices": [choice],
            "usage": _usage(saying.usage) if saying.usage else None,
        }

    def events(self, saying: Saying, body: Any) -> tuple[Sequence[Sent], Sequence[Sent]]:
        head = _head(body, "chat.completion.chunk")
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": "", "refusal": None}]
        deltas += [{"content": piece} for piece in saying.pieces]
        if saying.refusal is not None:
            deltas.append({"refusal": saying.refusal})
        deltas += [delta for at, call in enumerate(saying.calls) for delta in _calling(at, call)]
        before = [Sent(data=head | {"choices": [_choice(delta)]}) for delta in deltas]
        if saying.trouble is not None:
            trouble = saying.trouble
            error = {"message": trouble.message, "type": "server_error", "code": trouble.code}
            return before, [Sent(data={"error": error})]
        after = [Sent(data=head | {"choices": [_choice({}, _reason(saying))]})]
        if saying.usage is not None and body["stream_options"]["include_usage"]:
            after.append(Sent(data=head | {"choices": [], "usage": _usage(saying.usage)}))
        return before, [*after, Sent(data="[DONE]")]


def _call(call: Calls) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.call_id, "type": "function", "function": function}


def _calling(at: int, call: Calls) -> list[dict[str, Any]]:
    """The first piece has the name, the others go on with the arguments."""
    first, *rest = halves(call.arguments)
    begun = _call(call) | {"index": at, "function": {"name": call.name, "arguments": first}}
    pieces = [begun, *({"index": at, "function": {"arguments": piece}} for piece in rest)]
    return [{"tool_calls": [piece]} for piece in pieces]


def _reason(saying: Saying) -> str:
    if saying.calls:
        return "tool_calls"
    return "stop" if saying.stop == "end" else "length"


def _head(body: Any, kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1762000000, "model": body["model"]}


def _choice(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "finish_reason": reason, "logprobs": None}


def _usage(counts: Counts) -> dict[str, Any]:
    return {
        "prompt_tokens": counts.input,
        "completion_tokens": counts.output,
        "total_tokens": counts.input + counts.output,
        "prompt_tokens_details": {"cached_tokens": counts.cached},
        "completion_tokens_details": {"reasoning_tokens": counts.reasoning},
    }
