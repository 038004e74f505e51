"""What only the user can decide -> an approval that clients are asked for, and their decision."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from limner.frontends.appserver.protocol.base import Shape
from limner.frontends.appserver.protocol.notifications import ServerRequestResolvedNotification
from limner.frontends.appserver.protocol.server_requests import (
    CommandExecutionRequestApprovalParams,
    CommandExecutionRequestApprovalResponse,
    Decision,
    FileChangeRequestApprovalParams,
)
from limner.frontends.appserver.subscribers import Subscribers
from limner.frontends.appserver.v1.approvals import old_decision
from limner.net.jsonrpc import RpcError
from limner.net.jsonrpc_peer import PendingRequests
from limner.tools.base import Question
from limner.tools.consent import OverCap

SPENDING = "item/commandExecution/requestApproval"
WRITING = "item/fileChange/requestApproval"
DECISIONS: tuple[Decision, ...] = ("accept", "acceptForSession", "decline", "cancel")
MAX_COMMAND_CHARS = 2_000


class Asker(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks: a call of a tool, or the turn itself.

    Attributes:
        turn_id: the turn.
        item_id: the item that clients see of the call, or else the turn's id.
        tool: what is called; empty for the turn itself.
        arguments: what it is called with.
        cwd: where.
    """

    turn_id: str
    item_id: str
    cwd: str
    tool: str = ""
    arguments: Mapping[str, Any] = msgspec.field(default_factory=dict[str, Any])

    @property
    def command(self) -> str:
        """What would be done, in a line."""
        given = msgspec.json.encode(self.arguments).decode()
        return f"{self.tool} {given}"[:MAX_COMMAND_CHARS] if self.tool else "go on with the turn"


class Approvals:
    """The approvals of one thread. What was accepted for the session is not asked again.

    That is, for money, what the same tool asks up to the same amount; for a file, that file.
    """

    def __init__(self, thread_id: str, *, audience: Subscribers, asking: PendingRequests) -> None:
        self._thread_id, self._audience, self._asking = thread_id, audience, asking
        self._spending_nano: dict[str, int] = {}
        self._writing: set[str] = set()
        self._open = 0

    async def decide(
        self, question: Question, asker: Asker, *, waiting: Callable[[bool], None]
    ) -> Decision:
        """What the user says, through whichever client answers first; waits until one does.

        Args:
            question: what is to be decided.
            asker: who asks.
            waiting: is told when somebody is waited for, and when no longer.
        """
        if self._is_settled(question, asker):
            return "accept"
        request = self._asking.open(*self._request(question, asker))
        self._open += 1
        try:
            if self._open == 1:
                waiting(True)
            with self._audience.asked(request):
                decision = _decision(await request.result())
        except RpcError:
            decision = "decline"
        finally:
            self._open -= 1
            resolved = ServerRequestResolvedNotification(
                thread_id=self._thread_id, request_id=request.id
            )
            self._audience.tell(resolved)
            if self._open == 0:
                waiting(False)
        if decision == "acceptForSession":
            self._remember(question, asker)
        return decision

    def _request(self, question: Question, asker: Asker) -> tuple[str, Shape]:
        about: dict[str, Any] = {
            "thread_id": self._thread_id,
            "turn_id": asker.turn_id,
            "item_id": asker.item_id,
            "started_at_ms": time.time_ns() // 1_000_000,
            "reason": question.text,
        }
        if question.amount_nano is None:
            return WRITING, FileChangeRequestApprovalParams(**about)
        params = CommandExecutionRequestApprovalParams(
            **about, command=asker.command, cwd=asker.cwd, available_decisions=DECISIONS
        )
        return SPENDING, params

    def _is_settled(self, question: Question, asker: Asker) -> bool:
        if question.amount_nano is None:
            return question.text in self._writing
        limit_nano = self._spending_nano.get(asker.tool, -1)
        return question.amount_nano <= limit_nano and not isinstance(question, OverCap)

    def _remember(self, question: Question, asker: Asker) -> None:
        if question.amount_nano is None:
            self._writing.add(question.text)
        else:
            self._spending_nano[asker.tool] = question.amount_nano


def _decision(answer: msgspec.Raw) -> Decision:
    """What a client decided; whatever is no decision is a no."""
    try:
        read = msgspec.json.decode(answer, type=CommandExecutionRequestApprovalResponse)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return old_decision(answer) or "decline"
    # The other forms change rules of a sandbox for commands, and there are none here.
    return "decline" if isinstance(read.decision, dict) else read.decision
