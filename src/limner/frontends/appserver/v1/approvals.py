"""Approvals <-> the requests and responses of the first protocol."""

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
    cmd: str


class ExecCommandApprovalParams(Shape):
    """Asks the user for a paid request: a picture or a model request."""

    conversation_id: str
    call_id: str
    approval_id: None = None
    command: tuple[str, ...]
    cwd: str
    reason: str | None = None
    parsed_cmd: tuple[ParsedCommand, ...] = ()


class ExecCommandApprovalResponse(Shape):
    """A decision of another form counts as ``denied``."""

    decision: ReviewDecision


class ApplyPatchApprovalParams(Shape):
    """Asks the user whether a file may be written. ``reason`` names the file."""

    conversation_id: str
    call_id: str
    file_changes: Mapping[str, Any] = {}
    reason: str | None = None
    grant_root: str | None = None


class ApplyPatchApprovalResponse(Shape):
    decision: ReviewDecision


SERVER_REQUESTS: Mapping[str, Asked] = {
    SPENDING: Asked(ExecCommandApprovalParams, ExecCommandApprovalResponse),
    WRITING: Asked(ApplyPatchApprovalParams, ApplyPatchApprovalResponse),
}


def to_v1_request(params: object) -> tuple[str, Shape] | None:
    """The method and params for a client of the first protocol; None if they are the same there.

    Calls of a client's tools are the same in both protocols.
    """
    match params:
        case CommandExecutionRequestApprovalParams():
            command = params.command or ""
            approval = ExecCommandApprovalParams(
                conversation_id=params.thread_id,
                call_id=params.item_id,
                command=tuple(command.split(" ", maxsplit=1)),
                cwd=params.cwd or "",
                reason=params.reason,
                parsed_cmd=(ParsedCommand(cmd=command),),
            )
            return SPENDING, approval
        case FileChangeRequestApprovalParams():
            return WRITING, ApplyPatchApprovalParams(
                conversation_id=params.thread_id,
                call_id=params.item_id,
                reason=params.reason,
                grant_root=params.grant_root,
            )
        case _:
            return None


def decode_v1_decision(answer: msgspec.Raw) -> Decision | None:
    """The decision of a client of the first protocol; None if it is not a decision."""
    try:
        read = msgspec.json.decode(answer, type=ExecCommandApprovalResponse)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    return _DECISIONS[read.decision]
