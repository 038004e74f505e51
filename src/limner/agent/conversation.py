"""A session that is being talked in: one turn at a time, with what one turn learns for the next."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from limner.agent.events import Event, TurnEnded
from limner.agent.leases import Lease
from limner.agent.loop import Parts, Turn
from limner.agent.session import Session
from limner.agent.standing import Standings
from limner.agent.terms import Terms
from limner.agent.thinking import Gauge
from limner.errors import UserError
from limner.tools.base import Question, ask_nobody
from limner.tools.registry import ToolRegistry
from limner.wires.items import Item


class Conversation:
    """One session, and the turn that is under way in it, if there is one.

    Args:
        session: what is said is kept there.
        lease: keeps everybody else from taking turns in it.
        terms: what was agreed; it may be changed between turns.
        cwd: the folder it works in; it may be changed between turns.
        tools: what can be called; asked at the start of each turn.
        standings: works out what holds for a turn.
        parts: what turns work with.
    """

    def __init__(
        self,
        session: Session,
        *,
        lease: Lease,
        terms: Terms,
        cwd: Path,
        tools: Callable[[], ToolRegistry],
        standings: Standings,
        parts: Parts,
    ) -> None:
        self.session, self.terms, self.cwd = session, terms, cwd
        self._lease: Lease | None = lease
        self._tools, self._standings, self._parts = tools, standings, parts
        self._gauge: Gauge | None = None
        self.turn: Turn | None = None

    async def run(
        self,
        given: Sequence[Item],
        *,
        tell: Callable[[Event], None],
        ask: Callable[[Question], Awaitable[bool]] = ask_nobody,
        turn_id: str | None = None,
        schema: Mapping[str, Any] | None = None,
        pending: Sequence[Item] = (),
    ) -> TurnEnded:
        """Take a turn to its end.

        Args:
            given: what the user says, its pictures named by handle.
            tell: hears of everything that happens, in order.
            ask: decides what only the user can decide.
            turn_id: what the turn is called.
            schema: a JSON schema that the answer has to follow.
            pending: calls of an earlier process that are still to be answered.

        Raises:
            UserError: a turn is under way, or the conversation was closed; or there is no such
                model, or no key for it.
            LimnerError: what holds for the turn cannot be worked out. Whatever happens in the
                turn itself is told, not raised.
        """
        turn = self._begin(tell=tell, ask=ask, turn_id=turn_id, schema=schema)
        return await self._take(turn, turn.run(given, pending=pending))

    async def compact(
        self, *, tell: Callable[[Event], None], turn_id: str | None = None
    ) -> TurnEnded:
        """Put a summary in place of the history; raises as `run`."""
        turn = self._begin(tell=tell, ask=ask_nobody, turn_id=turn_id, schema=None)
        return await self._take(turn, turn.sum_up())

    async def aclose(self) -> None:
        """Let others take turns in the session; this conversation takes no more."""
        lease, self._lease = self._lease, None
        if lease is not None:
            await lease.release()

    def _begin(
        self,
        *,
        tell: Callable[[Event], None],
        ask: Callable[[Question], Awaitable[bool]],
        turn_id: str | None,
        schema: Mapping[str, Any] | None,
    ) -> Turn:
        if self._lease is None:
            raise UserError(
                "This conversation was closed.",
                code="CONVERSATION_CLOSED",
                hint=f"Open the session {self.session.id} again.",
            )
        if self.turn is not None:
            raise UserError("A turn is under way.", code="TURN_UNDER_WAY", hint="Steer it.")
        standing = self._standings.of(
            self.terms, session_id=self.session.id, cwd=self.cwd, ask=ask, schema=schema
        )
        self.turn = Turn(
            self.session,
            standing,
            tools=self._tools(),
            parts=self._parts,
            tell=tell,
            turn_id=turn_id,
            gauge=self._gauge_of(standing.found.model.name),
        )
        return self.turn

    def _gauge_of(self, model: str) -> Gauge | None:
        # Another model counts in its own way.
        return self._gauge if self._gauge is not None and self._gauge.model == model else None

    async def _take(self, turn: Turn, work: Awaitable[TurnEnded]) -> TurnEnded:
        try:
            return await work
        finally:
            self.turn, self._gauge = None, turn.gauge
