"""A server's request for approval -> one question for the user, and the server's response."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

import msgspec

from limner.content import Discreet
from limner.display_text import clean_line
from limner.errors import NANO_PER_USD
from limner.frontends.remote.connection import Params
from limner.json_shapes import as_object
from limner.tools.base import Question

ApprovalKind = Literal["command", "file_change", "permissions", "elicitation", "tool"]

_REJECTION = "The user said no."
_SHOWN_CHARS = 2_000


class ApprovalRequest(Discreet, frozen=True, kw_only=True):
    """Something that needs the user's approval.

    Attributes:
        kind: a command, a change of files, more permissions, a question of an MCP server, or an
            action of this client's tool.
        text: the question, for a reader.
        thread_id: the thread that it comes from.
        amount_usd: what it costs, if it is about money.
        raw: the params of the server's request; empty if a tool asks.
    """

    unshown = ("raw",)

    kind: ApprovalKind
    text: str
    thread_id: str | None = None
    amount_nano: int | None = None
    raw: Params = msgspec.field(default_factory=dict[str, Any])

    @property
    def amount_usd(self) -> float | None:
        """What it costs in dollars, if it is about money."""
        return None if self.amount_nano is None else self.amount_nano / NANO_PER_USD


Approve = Callable[[ApprovalRequest], Awaitable[bool]]


async def decline(approval: ApprovalRequest) -> bool:  # noqa: ARG001 - it has the type Approve
    """Approve nothing: the default."""
    return False


def is_approval(method: str) -> bool:
    """Whether a request of the server asks for approval."""
    return method in _METHODS


async def respond(method: str, params: Params, approve: Approve) -> dict[str, Any]:
    """Ask the user what the server asks; returns the response in the server's form."""
    kind, shape = _METHODS[method]
    thread_id: object = params.get("threadId", params.get("conversationId"))
    approval = ApprovalRequest(
        kind=kind,
        text=_question(kind, params),
        thread_id=thread_id if isinstance(thread_id, str) else None,
        raw=params,
    )
    return shape(await approve(approval), params)


def ask_with(approve: Approve, thread_id: str) -> Callable[[Question], Awaitable[bool]]:
    """Make the function with which a tool of this client asks the user."""

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


def _question(kind: ApprovalKind, params: Params) -> str:
    command: object = params.get("command")
    what = {
        "command": f"Run {_shown(command)}?" if command else "Run a command?",
        "file_change": "Change files?",
        "permissions": f"Grant {_shown(params.get('permissions'))}?",
    }.get(kind, "Answer an MCP server?")
    reason: object = params.get("reason") or params.get("message") or params.get("description")
    return f"{_shown(reason)} {what}" if reason else what


def _shown(value: object) -> str:
    return clean_line(str(value), max_chars=_SHOWN_CHARS)


def _decision(allowed: bool, _: Params) -> dict[str, Any]:
    return {"decision": "accept" if allowed else "decline"}


def _review(allowed: bool, _: Params) -> dict[str, Any]:
    # Earlier releases of Codex had the word `denied`. They read another form as a denial, too.
    return {"decision": "approved" if allowed else {"denied": {"rejection": _REJECTION}}}


def _permissions(allowed: bool, params: Params) -> dict[str, Any]:
    granted: Mapping[str, Any] = as_object(params.get("permissions")) if allowed else {}
    return {"permissions": granted, "scope": "turn"}


def _elicitation(allowed: bool, params: Params) -> dict[str, Any]:
    # Approval alone cannot fill in the required fields of a form.
    schema = as_object(params.get("requestedSchema"))
    if not allowed or params.get("mode") != "form" or schema.get("required"):
        return {"action": "decline", "content": None}
    return {"action": "accept", "content": {}}


_METHODS: Mapping[str, tuple[ApprovalKind, Callable[[bool, Params], dict[str, Any]]]] = {
    "item/commandExecution/requestApproval": ("command", _decision),
    "item/fileChange/requestApproval": ("file_change", _decision),
    "item/permissions/requestApproval": ("permissions", _permissions),
    "mcpServer/elicitation/request": ("elicitation", _elicitation),
    "execCommandApproval": ("command", _review),
    "applyPatchApproval": ("file_change", _review),
}
