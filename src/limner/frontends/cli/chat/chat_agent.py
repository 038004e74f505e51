"""What a person asked for -> the other side of the conversation: a session, and who answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from limner.agent.session import SessionAbout
from limner.agent.session_options import SessionOptions
from limner.agents import Agent
from limner.client import Limner
from limner.errors import UserError
from limner.models.registry import KnownModel
from limner.tools.base import Question

LATEST = ""


class ChatOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asks for.

    Attributes:
        terms: who answers, and how far they may go.
        session: the session to continue, or ``LATEST``; None begins one.
        cwd: the folder to work in; None is this one, or the session's own.
    """

    terms: SessionOptions = SessionOptions()
    session: str | None = None
    cwd: Path | None = None


class ChatAgent:
    """The other side. Nothing is stored before something is said.

    Args:
        lim: whose sessions they are.
        wishes: what was asked for.
        ask: decides what only a person can decide.
    """

    def __init__(
        self, lim: Limner, wishes: ChatOptions, *, ask: Callable[[Question], Awaitable[bool]]
    ) -> None:
        self._lim, self._wishes, self._ask = lim, wishes, ask
        self.agent = self._agent(None)

    @property
    def session_id(self) -> str | None:
        """The session, once there is one."""
        return self.agent.session_id

    async def begin(self) -> KnownModel:
        """Take up the session that was asked for, if any, and tell who answers.

        Raises:
            UserError: there is no such session, personality or model, or no key for it.
        """
        session = self._wishes.session
        if session is not None:
            self.agent = self._agent(await self._latest() if session == LATEST else session)
            await self.agent.conversation()
        return await self.model()

    async def model(self) -> KnownModel:
        """Who answers the next message.

        Raises:
            UserError: there is no such personality or model, or no key for it.
        """
        return self._answering(await self.terms())

    async def terms(self) -> SessionOptions:
        """What holds from the next message on."""
        if self.session_id is None:
            return self._wishes.terms
        return (await self.agent.conversation()).options

    async def change(self, changes: SessionOptions) -> KnownModel:
        """Let something else hold from the next message on, and tell who answers then.

        Raises:
            UserError: there is no such personality or model, or no key for it.
        """
        model = self._answering(_changed(await self.terms(), changes))
        self._wishes = msgspec.structs.replace(
            self._wishes, terms=_changed(self._wishes.terms, changes)
        )
        if self.session_id is None:
            self.agent = self._agent(None)
        else:
            conversation = await self.agent.conversation()
            await self._lim.conversations.change(conversation, changes)
        return model

    async def about(self) -> SessionAbout | None:
        """What is known of the session, once there is one."""
        if self.session_id is None:
            return None
        return await (await self.agent.conversation()).session.about()

    async def resume(self, session_id: str) -> None:
        """Go on with another session, under the terms it has.

        Raises:
            UserError: somebody else is talking in it.
            InputInvalid: there is no such session, or there are several.
        """
        session = await self._lim.sessions.open(session_id)
        if session.id == self.session_id:
            return
        agent = Agent(self._lim, session=session.id, ask=self._ask)
        await agent.conversation()
        await self.agent.aclose()
        self.agent = agent

    async def fork(self) -> None:
        """Go on in a copy of this session; the other stays as it is.

        Raises:
            UserError: nothing was said yet.
        """
        if self.session_id is None:
            raise UserError("There is nothing to copy yet.", hint="Say something first.")
        await self.resume((await self._lim.sessions.fork(self.session_id)).id)

    async def renew(self) -> None:
        """Begin a new session with the next message."""
        await self.agent.aclose()
        self.agent = self._agent(None)

    async def _latest(self) -> str:
        for about in await self._lim.sessions.list(limit=1):
            return about.id
        raise UserError("No session is stored here yet.", hint="Begin one: limner chat")

    def _answering(self, terms: SessionOptions) -> KnownModel:
        turn_configs = self._lim.conversations.turn_configs
        return turn_configs.build(terms, session_id="", cwd=self._lim.cwd).found.model

    def _agent(self, session: str | None) -> Agent:
        terms = self._wishes.terms
        return Agent(
            self._lim,
            session=session,
            model=terms.model,
            personality=terms.personality,
            sandbox=terms.sandbox,
            approval=terms.approval,
            budget_usd=terms.budget_usd,
            cwd=self._wishes.cwd,
            ask=self._ask,
        )


def _changed(terms: SessionOptions, changes: SessionOptions) -> SessionOptions:
    fields = {name: getattr(changes, name) for name in changes.__struct_fields__}
    asked = {name: value for name, value in fields.items() if value is not None}
    return msgspec.structs.replace(terms, **asked)
