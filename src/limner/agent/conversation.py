"""A session that is being talked in: one turn at a time, with what one turn learns for the next."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from limner.agent.events import Event, TurnEnded
from limner.agent.leases import Lease
from limner.agent.loop import Turn, TurnParts
from limner.agent.model_call import PromptCount
from limner.agent.session import Session
from limner.agent.session_options import SessionOptions, read_terms
from limner.agent.sessions import Sessions
from limner.agent.turn_config import TurnConfigBuilder
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
        terms: SessionOptions,
        cwd: Path,
        tools: Callable[[], ToolRegistry],
        standings: TurnConfigBuilder,
        parts: TurnParts,
    ) -> None:
        self.session, self.terms, self.cwd = session, terms, cwd
        self._lease: Lease | None = lease
        self._tools, self._standings, self._parts = tools, standings, parts
        self._prompt_count: PromptCount | None = None
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
            prompt_count=self._prompt_count_for(standing.found.model.name),
        )
        return self.turn

    def _prompt_count_for(self, model: str) -> PromptCount | None:
        # Another model counts in its own way.
        count = self._prompt_count
        return count if count is not None and count.model == model else None

    async def _take(self, turn: Turn, work: Awaitable[TurnEnded]) -> TurnEnded:
        try:
            return await work
        finally:
            self.turn, self._prompt_count = None, turn.prompt_count


# Where a session keeps its terms among its settings.
TERMS = "terms"

Tools = Callable[[], ToolRegistry]


class Conversations(msgspec.Struct, frozen=True, kw_only=True):
    """Begins conversations and opens them again."""

    sessions: Sessions
    standings: TurnConfigBuilder
    parts: TurnParts

    async def begin(
        self, terms: SessionOptions, *, cwd: Path, tools: Tools, session_id: str | None = None
    ) -> Conversation:
        """A new session under these terms, held until the conversation is closed.

        Raises:
            InputInvalid: the id is taken, or is none.
        """
        session = await self.sessions.create(
            cwd=str(cwd), session_id=session_id, settings={TERMS: msgspec.to_builtins(terms)}
        )
        lease = await self.sessions.hold(session.id)
        return self._conversation(session, lease, terms, cwd=cwd, tools=tools)

    async def open(
        self,
        session_id: str,
        *,
        tools: Tools,
        changes: SessionOptions | None = None,
        cwd: Path | None = None,
    ) -> Conversation:
        """A session that is there, under its own terms but for the ``changes``, which stay.

        It is held until the conversation is closed.

        Raises:
            UserError: another process has it, or another conversation (``SESSION_IN_USE``).
            InputInvalid: there is no such session, or there are several; or its terms make no
                sense to this version.
        """
        session = await self.sessions.open(session_id)
        about = await session.about()
        terms = read_terms(about.settings.get(TERMS, {}))
        lease = await self.sessions.hold(session.id)
        conversation = self._conversation(
            session, lease, terms, cwd=cwd or Path(about.cwd), tools=tools
        )
        if changes is not None:
            await self.change(conversation, changes)
        return conversation

    async def change(self, conversation: Conversation, changes: SessionOptions) -> None:
        """Put what the changes say in place of what was agreed, from the next turn on."""
        asked = {name: value for name, value in _fields(changes).items() if value is not None}
        terms = msgspec.structs.replace(conversation.terms, **asked)
        if terms != conversation.terms:
            about = await conversation.session.about()
            settings = {**about.settings, TERMS: msgspec.to_builtins(terms)}
            await self.sessions.configure(conversation.session.id, settings)
            conversation.terms = terms

    def _conversation(
        self, session: Session, lease: Lease, terms: SessionOptions, *, cwd: Path, tools: Tools
    ) -> Conversation:
        return Conversation(
            session,
            lease=lease,
            terms=terms,
            cwd=cwd,
            tools=tools,
            standings=self.standings,
            parts=self.parts,
        )


def _fields(terms: SessionOptions) -> dict[str, object]:
    return {name: getattr(terms, name) for name in terms.__struct_fields__}
