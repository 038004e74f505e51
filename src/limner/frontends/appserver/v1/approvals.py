"""Approvals -> the questions that the first protocol has for them, and its answers back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from limner.frontends.appserver.protocol.base import Shape
from limner.frontends.appserver.protocol.server_requests import (
    Asked,
    CommandExecutionRequestApprovalParams,
    Decision,
    FileChangeRequestApprovalParams,
)

SPENDING = "execCommandApproval"
WRITING = "applyPatchApproval"

ReviewDecision = Literal["approved", "approved_for_session", "denied", "abort"]
_DECISIONS: Mapping[ReviewDecision, Decision] = {
    "approved": "accept",
    "approved_for_session": "acceptForSession",
    "denied": "decline",
    "abort": "cancel",
}


class ParsedCommand(Shape, rename=None, tag_field="type", tag="unknown"):
    """A command that nobody took apart."""

    cmd: str


class ExecCommandApprovalParams(Shape):
    """May this be done? Here it is about paying for a picture or an answer."""

    conversation_id: str
    call_id: str
    approval_id: None = None
    command: tuple[str, ...]
    cwd: str
    reason: str | None = None
    parsed_cmd: tuple[ParsedCommand, ...] = ()


class ExecCommandApprovalResponse(Shape):
    """Yes or no; an answer of another kind is a no."""

    decision: ReviewDecision


class ApplyPatchApprovalParams(Shape):
    """May this be written? ``reason`` says where."""

    conversation_id: str
    call_id: str
    file_changes: Mapping[str, Any] = {}
    reason: str | None = None
    grant_root: str | None = None


class ApplyPatchApprovalResponse(Shape):
    """Yes or no."""

    decision: ReviewDecision


SERVER_REQUESTS: Mapping[str, Asked] = {
    SPENDING: Asked(ExecCommandApprovalParams, ExecCommandApprovalResponse),
    WRITING: Asked(ApplyPatchApprovalParams, ApplyPatchApprovalResponse),
}


def translated(params: object) -> tuple[str, Shape] | None:
    """The method and params for a client of the first protocol; None where it knows the question.

    It knows calls of its own tools: they are put to it as they are.
    """
    match params:
        case CommandExecutionRequestApprovalParams():
            command = params.command or ""
            asked = ExecCommandApprovalParams(
                conversation_id=params.thread_id,
                call_id=params.item_id,
                command=tuple(command.split(" ", maxsplit=1)),
                cwd=params.cwd or "",
                reason=params.reason,
                parsed_cmd=(ParsedCommand(cmd=command),),
            )
            return SPENDING, asked
        case FileChangeRequestApprovalParams():
            return WRITING, ApplyPatchApprovalParams(
                conversation_id=params.thread_id,
                call_id=params.item_id,
                reason=params.reason,
                grant_root=params.grant_root,
            )
        case _:
            return None


def old_decision(answer: msgspec.Raw) -> Decision | None:
    """What a client of the first protocol decided; None where it is no decision."""
    try:
        read = msgspec.json.decode(answer, type=ExecCommandApprovalResponse)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    return _DECISIONS[read.decision]
