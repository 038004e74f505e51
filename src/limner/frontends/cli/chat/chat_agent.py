"""The options of the command line -> the agent of a chat: its session and its model."""

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
    """The options of the command line.

    Attributes:
        session_options: the model and its limits.
        session: the session to continue, or ``LATEST``; None starts one.
        cwd: the folder to work in; None means this one, or the session's own.
    """

    session_options: SessionOptions = SessionOptions()
    session: str | None = None
    cwd: Path | None = None


class ChatAgent:
    """The agent of a chat, which can change. Nothing is stored before the first message.

    Args:
        lim: has the sessions.
        options: the options of the command line.
        ask: asks the user for approval.
    """

    def __init__(
        self, lim: Limner, options: ChatOptions, *, ask: Callable[[Question], Awaitable[bool]]
    ) -> None:
        self._lim, self._options, self._ask = lim, options, ask
        self.current = self._make_agent(None)

    @property
    def session_id(self) -> str | None:
        """The id of the session, once there is one."""
        return self.current.session_id

    async def open(self) -> KnownModel:
        """Open the session of the options, if any; returns the model that will answer.

        Raises:
            UserError: there is no such session, personality or model, or no key for it.
        """
        session = self._options.session
        if session is not None:
            self.current = self._make_agent(await self._latest() if session == LATEST else session)
            await self.current.conversation()
        return await self.model()

    async def model(self) -> KnownModel:
        """The model that answers the next message.

        Raises:
            UserError: there is no such personality or model, or no key for it.
        """
        return self._find_model(await self.session_options())

    async def session_options(self) -> SessionOptions:
        """The options that apply to the next message."""
        if self.session_id is None:
            return self._options.session_options
        return (await self.current.conversation()).options

    async def change(self, changes: SessionOptions) -> KnownModel:
        """Change options from the next message on; returns the model that answers then.

        Raises:
            UserError: there is no such personality or model, or no key for it.
        """
        model = self._find_model(_merge(await self.session_options(), changes))
        self._options = msgspec.structs.replace(
            self._options, session_options=_merge(self._options.session_options, changes)
        )
        if self.session_id is None:
            self.current = self._make_agent(None)
        else:
            conversation = await self.current.conversation()
            await self._lim.conversations.change(conversation, changes)
        return model

    async def about(self) -> SessionAbout | None:
        """The description of the session, once there is one."""
        if self.session_id is None:
            return None
        return await (await self.current.conversation()).session.about()

    async def resume(self, session_id: str) -> None:
        """Continue another session, with its own options.

        Raises:
            UserError: another process uses it.
            InputInvalid: there is no such session, or there are several.
        """
        session = await self._lim.sessions.open(session_id)
        if session.id == self.session_id:
            return
        agent = Agent(self._lim, session=session.id, ask=self._ask)
        await agent.conversation()
        await self.current.aclose()
        self.current = agent

    async def fork(self) -> None:
        """Continue in a copy of this session; the original is unchanged.

        Raises:
            UserError: there is no message yet.
        """
        if self.session_id is None:
            raise UserError("There is nothing to copy yet.", hint="Send a message first.")
        await self.resume((await self._lim.sessions.fork(self.session_id)).id)

    async def start_over(self) -> None:
        """Start a new session with the next message."""
        await self.current.aclose()
        self.current = self._make_agent(None)

    async def _latest(self) -> str:
        for about in await self._lim.sessions.list(limit=1):
            return about.id
        raise UserError("No session is stored here yet.", hint="Start one: limner chat")

    def _find_model(self, options: SessionOptions) -> KnownModel:
        turn_configs = self._lim.conversations.turn_configs
        return turn_configs.build(options, session_id="", cwd=self._lim.cwd).found.model

    def _make_agent(self, session: str | None) -> Agent:
        options = self._options.session_options
        return Agent(
            self._lim,
            session=session,
            model=options.model,
            personality=options.personality,
            sandbox=options.sandbox,
            approval=options.approval,
            budget_usd=options.budget_usd,
            cwd=self._options.cwd,
            ask=self._ask,
        )


def _merge(options: SessionOptions, changes: SessionOptions) -> SessionOptions:
    fields = {name: getattr(changes, name) for name in changes.__struct_fields__}
    given = {name: value for name, value in fields.items() if value is not None}
    return msgspec.structs.replace(options, **given)
