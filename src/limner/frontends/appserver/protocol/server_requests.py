"""What the server asks clients, and what they answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from limner.frontends.appserver.protocol.base import ContentItem, Shape

Decision = Literal["accept", "acceptForSession", "decline", "cancel"]


class DynamicToolCallParams(Shape):
    """A model calls a tool of the client."""

    thread_id: str
    turn_id: str
    call_id: str
    namespace: str | None = None
    tool: str
    arguments: Any


class DynamicToolCallResponse(Shape):
    """What the tool has to say, and whether it did what it was asked for."""

    content_items: list[ContentItem]
    success: bool


class CommandExecutionRequestApprovalParams(Shape):
    """May this be done? Here it is about paying for a picture or an answer."""

    thread_id: str
    turn_id: str
    item_id: str
    started_at_ms: int
    reason: str | None = None
    command: str | None = None
    cwd: str | None = None
    command_actions: tuple[()] | None = None
    available_decisions: tuple[Decision, ...] | None = None


class CommandExecutionRequestApprovalResponse(Shape):
    """Yes or no; an answer of another kind is a no."""

    decision: Decision | dict[str, Any]


class FileChangeRequestApprovalParams(Shape):
    """May this be written? ``grant_root`` is the folder it is about."""

    thread_id: str
    turn_id: str
    item_id: str
    started_at_ms: int
    reason: str | None = None
    grant_root: str | None = None


class FileChangeRequestApprovalResponse(Shape):
    """Yes or no."""

    decision: Decision


class Asked(NamedTuple):
    """The types of one question and its answer."""

    params: type[Shape]
    response: type[Shape]


SERVER_REQUESTS: Mapping[str, Asked] = {
    "item/tool/call": Asked(DynamicToolCallParams, DynamicToolCallResponse),
    "item/commandExecution/requestApproval": Asked(
        CommandExecutionRequestApprovalParams, CommandExecutionRequestApprovalResponse
    ),
    "item/fileChange/requestApproval": Asked(
        FileChangeRequestApprovalParams, FileChangeRequestApprovalResponse
    ),
}
