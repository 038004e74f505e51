"""A question that only the user can decide -> a request to clients, and their decision."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from limner.display_text import clean_line
from limner.frontends.appserver.protocol.base import Shape
from limner.frontends.appserver.protocol.notifications import ServerRequestResolvedNotification
from limner.frontends.appserver.protocol.server_requests import (
    CommandExecutionRequestApprovalParams,
    CommandExecutionRequestApprovalResponse,
    Decision,
    FileChangeRequestApprovalParams,
)
from limner.frontends.appserver.subscribers import Subscribers
from limner.frontends.appserver.v1.approvals import decode_v1_decision
from limner.net.jsonrpc import RpcError
from limner.net.jsonrpc_peer import PendingRequests
from limner.tools.base import Question
from limner.tools.consent import OverCap

SPENDING = "item/commandExecution/requestApproval"
WRITING = "item/fileChange/requestApproval"
DECISIONS: tuple[Decision, ...] = ("accept", "acceptForSession", "decline", "cancel")
MAX_COMMAND_CHARS = 2_000


class ApprovalSource(msgspec.Struct, frozen=True, kw_only=True):
    """What needs the approval: a tool call, or the turn itself.

    Attributes:
        turn_id: the turn.
        item_id: the item of the call; for the turn itself, the id of the turn.
        tool: the name of the tool; empty for the turn itself.
        arguments: the arguments of the call.
        cwd: the folder of the thread.
    """

    turn_id: str
    item_id: str
    cwd: str
    tool: str = ""
    arguments: Mapping[str, Any] = msgspec.field(default_factory=dict[str, Any])

    @property
    def command(self) -> str:
        """What would be done, in one line."""
        if not self.tool:
            return "go on with the turn"
        given = msgspec.json.encode(self.arguments).decode()
        return clean_line(f"{self.tool} {given}")[:MAX_COMMAND_CHARS]


class Approvals:
    """The approvals of one thread. What was accepted for the session is not asked again.

    For money that is the same tool up to the same amount; for a file it is the same file.
    """

    def __init__(
        self, thread_id: str, *, subscribers: Subscribers, pending: PendingRequests
    ) -> None:
        self._thread_id, self._subscribers, self._pending = thread_id, subscribers, pending
        self._spending_nano: dict[str, int] = {}
        self._writing: set[str] = set()
        self._open = 0

    async def decide(
        self, question: Question, source: ApprovalSource, *, on_waiting: Callable[[bool], None]
    ) -> Decision:
        """Ask the clients, and wait for the first answer.

        Args:
            question: the question.
            source: what needs the approval.
            on_waiting: is called with True when clients are asked, and with False afterwards.
        """
        if self._is_accepted(question, source):
            return "accept"
        request = self._pending.open(*self._request(question, source))
        self._open += 1
        try:
            if self._open == 1:
                on_waiting(True)
            with self._subscribers.requested(request):
                decision = _decision(await request.result())
        except RpcError:
            decision = "decline"
        finally:
            self._open -= 1
            resolved = ServerRequestResolvedNotification(
                thread_id=self._thread_id, request_id=request.id
            )
            self._subscribers.notify(resolved)
            if self._open == 0:
                on_waiting(False)
        if decision == "acceptForSession":
            self._remember(question, source)
        return decision

    def _request(self, question: Question, source: ApprovalSource) -> tuple[str, Shape]:
        about: dict[str, Any] = {
            "thread_id": self._thread_id,
            "turn_id": source.turn_id,
            "item_id": source.item_id,
            "started_at_ms": time.time_ns() // 1_000_000,
            "reason": question.text,
        }
        if question.amount_nano is None:
            return WRITING, FileChangeRequestApprovalParams(**about)
        params = CommandExecutionRequestApprovalParams(
            **about, command=source.command, cwd=source.cwd, available_decisions=DECISIONS
        )
        return SPENDING, params

    def _is_accepted(self, question: Question, source: ApprovalSource) -> bool:
        if question.amount_nano is None:
            return question.text in self._writing
        limit_nano = self._spending_nano.get(source.tool, -1)
        return question.amount_nano <= limit_nano and not isinstance(question, OverCap)

    def _remember(self, question: Question, source: ApprovalSource) -> None:
        if question.amount_nano is None:
            self._writing.add(question.text)
        else:
            self._spending_nano[source.tool] = question.amount_nano


def _decision(answer: msgspec.Raw) -> Decision:
    """The decision of a client; an answer of another form counts as ``decline``."""
    try:
        read = msgspec.json.decode(answer, type=CommandExecutionRequestApprovalResponse)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return decode_v1_decision(answer) or "decline"
    # The other forms change the rules of a command sandbox, which limner does not have.
    return "decline" if isinstance(read.decision, dict) else read.decision
