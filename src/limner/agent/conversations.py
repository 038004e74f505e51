"""The id of a session, or none yet -> a conversation under its terms, ready for the next turn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from limner.agent.conversation import Conversation
from limner.agent.leases import Lease
from limner.agent.loop import Parts
from limner.agent.session import Session
from limner.agent.sessions import Sessions
from limner.agent.standing import Standings
from limner.agent.terms import Terms, read_terms
from limner.tools.registry import ToolRegistry

# Where a session keeps its terms among its settings.
TERMS = "terms"

Tools = Callable[[], ToolRegistry]


class Conversations(msgspec.Struct, frozen=True, kw_only=True):
    """Begins conversations and opens them again."""

    sessions: Sessions
    standings: Standings
    parts: Parts

    async def begin(
        self, terms: Terms, *, cwd: Path, tools: Tools, session_id: str | None = None
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
        changes: Terms | None = None,
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

    async def change(self, conversation: Conversation, changes: Terms) -> None:
        """Put what the changes say in place of what was agreed, from the next turn on."""
        asked = {name: value for name, value in _fields(changes).items() if value is not None}
        terms = msgspec.structs.replace(conversation.terms, **asked)
        if terms != conversation.terms:
            about = await conversation.session.about()
            settings = {**about.settings, TERMS: msgspec.to_builtins(terms)}
            await self.sessions.configure(conversation.session.id, settings)
            conversation.terms = terms

    def _conversation(
        self, session: Session, lease: Lease, terms: Terms, *, cwd: Path, tools: Tools
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


def _fields(terms: Terms) -> dict[str, object]:
    return {name: getattr(terms, name) for name in terms.__struct_fields__}
