"""A request of OpenAI's Responses API -> the scripted answer, as OpenAI words it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from limner.testing.servers.histories import responses_problem
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


class ResponsesServer(ModelServer):
    """``POST /v1/responses``."""

    @property
    def base_url(self) -> str:
        return f"{self.origin}/v1"

    def objection(self, seen: ReceivedRequest) -> Reply | None:
        if (seen.method, seen.path) != ("POST", "/v1/responses"):
            return error_reply(404, f"Invalid URL ({seen.method} {seen.path})")
        if not seen.headers.get("authorization", "").startswith("Bearer "):
            return error_reply(401, "Missing bearer authentication in header")
        problem = responses_problem(seen.json())
        return error_reply(400, problem) if problem else None

    def wants_stream(self, seen: ReceivedRequest, body: Any) -> bool:
        return bool(body.get("stream"))

    def whole(self, answer: ModelAnswer, body: Any) -> Any:
        return _response(answer, body, status=_status(answer), output=_output(answer))

    def events(
        self, answer: ModelAnswer, body: Any
    ) -> tuple[Sequence[ServerEvent], Sequence[ServerEvent]]:
        at = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
        started = _response(answer, body, status="in_progress", output=[])
        item = {"id": "msg_1", "type": "message", "role": "assistant"}
        before: list[tuple[str, dict[str, Any]]] = [
            ("response.created", {"response": started}),
            ("response.in_progress", {"response": started}),
            ("response.a_kind_from_the_future", {"delta": {"not": "a text"}}),
            (
                "response.output_item.added",
                {"output_index": 0, "item": item | {"status": "in_progress", "content": []}},
            ),
            ("response.content_part.added", at | {"part": _text_part("")}),
        ]
        before += [
            ("response.output_text.delta", at | {"delta": piece, "logprobs": []})
            for piece in answer.pieces
        ]
        if answer.refusal is not None:
            before += [
                ("response.refusal.delta", at | {"delta": part}) for part in halves(answer.refusal)
            ]
        after = [*_endings(answer, at), _last(answer, body)]
        everything = [
            ServerEvent(name=kind, data={"type": kind, "sequence_number": number, **fields})
            for number, (kind, fields) in enumerate([*before, *after])
        ]
        return everything[: len(before)], everything[len(before) :]


def _endings(answer: ModelAnswer, at: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    if answer.error is not None:
        return []
    return [
        ("response.output_text.done", at | {"text": answer.text, "logprobs": []}),
        ("response.content_part.done", at | {"part": _text_part(answer.text)}),
        ("response.output_item.done", {"output_index": 0, "item": _message(answer)}),
        *(event for at, call in enumerate(answer.calls, 1) for event in _calling(at, call)),
    ]


def _calling(at: int, call: ScriptedCall) -> list[tuple[str, dict[str, Any]]]:
    item = _call(call)
    place = {"item_id": item["id"], "output_index": at}
    started = item | {"arguments": "", "status": "in_progress"}
    deltas = [
        ("response.function_call_arguments.delta", place | {"delta": piece})
        for piece in halves(call.arguments)
    ]
    done = {"name": call.name, "arguments": call.arguments}
    return [
        ("response.output_item.added", {"output_index": at, "item": started}),
        *deltas,
        ("response.function_call_arguments.done", place | done),
        ("response.output_item.done", {"output_index": at, "item": item}),
    ]


def _call(call: ScriptedCall) -> dict[str, Any]:
    return {
        "id": f"fc_{call.call_id}",
        "type": "function_call",
        "status": "completed",
        "call_id": call.call_id,
        "name": call.name,
        "arguments": call.arguments,
    }


def _output(answer: ModelAnswer) -> list[dict[str, Any]]:
    return [_message(answer), *map(_call, answer.calls)]


def _last(answer: ModelAnswer, body: Any) -> tuple[str, dict[str, Any]]:
    status = _status(answer)
    output = _output(answer)
    return f"response.{status}", {"response": _response(answer, body, status=status, output=output)}


def _status(answer: ModelAnswer) -> str:
    if answer.error is not None:
        return "failed"
    return "completed" if answer.stop == "end" else "incomplete"


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _message(answer: ModelAnswer) -> dict[str, Any]:
    content: list[dict[str, Any]] = [_text_part(answer.text)]
    if answer.refusal is not None:
        content = [{"type": "refusal", "refusal": answer.refusal}]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed" if answer.stop == "end" else "incomplete",
        "content": content,
    }


def _response(answer: ModelAnswer, body: Any, *, status: str, output: list[Any]) -> dict[str, Any]:
    failure, done = answer.error, status != "in_progress"
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1762000000,
        "status": status,
        "model": f"{body['model']}-2026-11-01",
        "output": output,
        "error": {"code": failure.code, "message": failure.message} if failure and done else None,
        "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": _usage(answer.usage) if done and answer.usage else None,
    }


def _usage(counts: TokenCounts) -> dict[str, Any]:
    return {
        "input_tokens": counts.input,
        "input_tokens_details": {"cached_tokens": counts.cached, "cache_write_tokens": 0},
        "output_tokens": counts.output,
        "output_tokens_details": {"reasoning_tokens": counts.reasoning},
        "total_tokens": counts.input + counts.output,
    }
