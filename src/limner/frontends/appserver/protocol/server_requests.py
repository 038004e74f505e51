"""The requests of the server to its clients, and their responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from limner.frontends.appserver.protocol.base import ContentItem, Shape

Decision = Literal["accept", "acceptForSession", "decline", "cancel"]


class DynamicToolCallParams(Shape):
    """The model calls a tool of the client."""

    thread_id: str
    turn_id: str
    call_id: str
    namespace: str | None = None
    tool: str
    arguments: Any


class DynamicToolCallResponse(Shape):
    """The output of the tool, and whether the call succeeded."""

    content_items: list[ContentItem]
    success: bool


class CommandExecutionRequestApprovalParams(Shape):
    """Asks the user for a paid request: a picture or a model request."""

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
    """A decision of another form counts as ``decline``."""

    decision: Decision | dict[str, Any]


class FileChangeRequestApprovalParams(Shape):
    """Asks the user whether a file may be written."""

    thread_id: str
    turn_id: str
    item_id: str
    started_at_ms: int
    reason: str | None = None
    grant_root: str | None = None


class FileChangeRequestApprovalResponse(Shape):
    decision: Decision


class Asked(NamedTuple):
    """The types of a request of the server and of its response."""

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
