"""What only the user can decide -> one question in one shape, and its answer in the server's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

import msgspec

from limner.content import Discreet
from limner.frontends.remote.connection import Params
from limner.json_shapes import as_object
from limner.tools.base import Question

Kind = Literal["command", "file_change", "permissions", "elicitation", "tool"]

_SHOWN_CHARS = 2_000


class ApprovalRequest(Discreet, frozen=True, kw_only=True):
    """Something that is not done without the user's word.

    Attributes:
        kind: what it is: a command, a change of files, more permissions, a question of an MCP
            server, or something that a tool of this client is about to do.
        text: the question, for a reader.
        thread_id: the conversation that it comes from.
        amount_nano: what it costs, where it is about money, in nano-dollars.
        raw: the request as the server sent it; empty where a tool asks.
    """

    unshown = ("raw",)

    kind: Kind
    text: str
    thread_id: str | None = None
    amount_nano: int | None = None
    raw: Params = msgspec.field(default_factory=dict[str, Any])


Approve = Callable[[ApprovalRequest], Awaitable[bool]]


async def decline(approval: ApprovalRequest) -> bool:  # noqa: ARG001 - the shape of everyone who approves
    """The answer where nobody is there to say yes."""
    return False


def asks(method: str) -> bool:
    """Whether a request of the server is for approval."""
    return method in _KINDS


async def answer(method: str, params: Params, approve: Approve) -> dict[str, Any]:
    """Put a request of the server to the user; the answer that the server understands."""
    kind, reply = _KINDS[method]
    thread: object = params.get("threadId", params.get("conversationId"))
    approval = ApprovalRequest(
        kind=kind,
        text=_question(kind, params),
        thread_id=thread if isinstance(thread, str) else None,
        raw=params,
    )
    return reply(await approve(approval), params)


def asker(thread_id: str, approve: Approve) -> Callable[[Question], Awaitable[bool]]:
    """How a tool asks: its question goes the same way as the server's."""

    async def ask(question: Question) -> bool:
        return await approve(
            ApprovalRequest(
                kind="tool",
                text=question.text,
                thread_id=thread_id,
                amount_nano=question.amount_nano,
            )
        )

    return ask


def _question(kind: Kind, params: Params) -> str:
    command: object = params.get("command")
    what = {
        "command": f"Run {_shown(command)}?" if command else "Run a command?",
        "file_change": "Change files?",
        "permissions": f"Grant {_shown(params.get('permissions'))}?",
    }.get(kind, "Answer an MCP server?")
    reason: object = params.get("reason") or params.get("message") or params.get("description")
    return f"{_shown(reason)} {what}" if reason else what


def _shown(value: object) -> str:
    return str(value)[:_SHOWN_CHARS]


def _decision(allowed: bool, _: Params) -> dict[str, Any]:
    return {"decision": "accept" if allowed else "decline"}


def _review(allowed: bool, _: Params) -> dict[str, Any]:
    return {"decision": "approved" if allowed else "denied"}


def _permissions(allowed: bool, params: Params) -> dict[str, Any]:
    granted: Mapping[str, Any] = as_object(params.get("permissions")) if allowed else {}
    return {"permissions": granted, "scope": "turn"}


def _elicitation(allowed: bool, params: Params) -> dict[str, Any]:
    # A form with something to fill in cannot be answered by a yes.
    schema = as_object(params.get("requestedSchema"))
    if not allowed or params.get("mode") != "form" or schema.get("required"):
        return {"action": "decline", "content": None}
    return {"action": "accept", "content": {}}


_KINDS: Mapping[str, tuple[Kind, Callable[[bool, Params], dict[str, Any]]]] = {
    "item/commandExecution/requestApproval": ("command", _decision),
    "item/fileChange/requestApproval": ("file_change", _decision),
    "item/permissions/requestApproval": ("permissions", _permissions),
    "mcpServer/elicitation/request": ("elicitation", _elicitation),
    "execCommandApproval": ("command", _review),
    "applyPatchApproval": ("file_change", _review),
}
