"""`Agent`: a conversation for a program; what is said goes in, what happens comes out as events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from limner.agent.conversation import Conversation
from limner.agent.events import Event, TurnEnded
from limner.agent.session_options import read_terms
from limner.client import Limner
from limner.errors import UserError
from limner.net.per_loop import PerLoop
from limner.settings import Policy, Sandbox
from limner.tools.base import Question, Tool, ask_nobody
from limner.tools.registry import ToolRegistry
from limner.wires.items import user_message


class Agent:
    """A model that draws, looks and calls tools, and remembers what was said.

    Use it as ``async with limner.Agent() as agent`` and read what happens::

        async for event in agent.run("Draw a fox, and check that it is red."):
            print(event)

    Args:
        lim: whose pictures, ledger and settings it uses; one of its own where left out.
        model: who is talked to, as ``provider/id``; by default what the settings say.
        personality: the id of a personality.
        tools: more tools, as ``limner.tool`` makes them.
        session: the id of a session to continue, or the beginning of one.
        instructions: more of the system prompt, at its end.
        sandbox: what the model may write.
        approval: when ``ask`` is asked.
        budget_usd: the most the session may cost.
        cwd: the folder it works in.
        ask: decides what only a person can decide; by default the answer is no.

    Raises:
        InputInvalid: there is no such sandbox or policy, or the budget is no amount.
    """

    def __init__(
        self,
        lim: Limner | None = None,
        *,
        model: str | None = None,
        personality: str | None = None,
        tools: Iterable[Tool] = (),
        session: str | None = None,
        instructions: str | None = None,
        sandbox: Sandbox | None = None,
        approval: Policy | None = None,
        budget_usd: Decimal | float | str | None = None,
        cwd: Path | None = None,
        ask: Callable[[Question], Awaitable[bool]] = ask_nobody,
    ) -> None:
        asked = {
            "model": model,
            "personality": personality,
            "developer_instructions": instructions,
            "sandbox": sandbox,
            "approval": approval,
            "budget_usd": None if budget_usd is None else str(budget_usd),
        }
        self._terms = read_terms({name: one for name, one in asked.items() if one is not None})
        self.limner = Limner() if lim is None else lim
        self._owns_limner = lim is None
        self._opening = PerLoop(asyncio.Lock)
        self._more, self._ask, self._cwd = tuple(tools), ask, cwd
        self._session_id = session
        self._conversation: Conversation | None = None

    @property
    def session_id(self) -> str | None:
        """The id of its session; None before the first turn."""
        return None if self._conversation is None else self._conversation.session.id

    async def run(
        self,
        words: str,
        *,
        images: Iterable[str | Path | bytes] = (),
        schema: Mapping[str, Any] | None = None,
    ) -> AsyncGenerator[Event]:
        """Say something, and follow what happens until the turn is over.

        The last event is a `TurnEnded`. Leaving the loop before it cancels the turn.

        Args:
            words: what to say.
            images: picture files, or the bytes of pictures.
            schema: a JSON schema that the answer has to follow.

        Raises:
            UserError: a turn is under way; or there is no such model, or no key for it.
            LimnerError: a picture cannot be taken in. What goes wrong in the turn itself is told
                by its last event.
        """
        conversation = await self.conversation()
        item = user_message(words, [await self.limner.shown(image) for image in images])
        happening = _events(
            lambda tell: conversation.run([item], tell=tell, ask=self._ask, schema=schema)
        )
        # Whoever leaves has left the turn too, and not only asked it to end some time.
        async with aclosing(happening) as events:
            async for event in events:
                yield event

    async def compact(self) -> AsyncGenerator[Event]:
        """Have the conversation summed up; raises as `run`."""
        conversation = await self.conversation()
        happening = _events(lambda tell: conversation.compact(tell=tell))
        async with aclosing(happening) as events:
            async for event in events:
                yield event

    async def steer(self, words: str, *, images: Iterable[str | Path | bytes] = ()) -> None:
        """Say something in the middle of a turn: the model hears it before it goes on.

        Raises:
            UserError: no turn is under way.
        """
        item = user_message(words, [await self.limner.shown(image) for image in images])
        turn = None if self._conversation is None else self._conversation.turn
        if turn is None:
            raise UserError("No turn is under way.", code="NO_TURN", hint="Begin one with run().")
        turn.steer([item])

    def interrupt(self) -> None:
        """End the turn that is under way, if there is one."""
        if self._conversation is not None and self._conversation.turn is not None:
            self._conversation.turn.interrupt()

    async def conversation(self) -> Conversation:
        """The conversation itself, begun or opened where that has not happened yet.

        Raises:
            UserError: somebody else is talking in that session (``SESSION_IN_USE``).
            InputInvalid: there is no session of that id.
        """
        # Two who ask at once are to talk in one session.
        async with self._opening.get():
            if self._conversation is None:
                self._conversation = await self._opened()
        return self._conversation

    async def aclose(self) -> None:
        """Let others have the session, and close the `Limner` that this made for itself."""
        if self._conversation is not None:
            await self._conversation.aclose()
        if self._owns_limner:
            await self.limner.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def _opened(self) -> Conversation:
        conversations = self.limner.conversations
        if self._session_id is None:
            cwd = self.limner.cwd if self._cwd is None else self._cwd
            return await conversations.begin(self._terms, cwd=cwd, tools=self._tools)
        return await conversations.open(
            self._session_id, tools=self._tools, changes=self._terms, cwd=self._cwd
        )

    def _tools(self) -> ToolRegistry:
        return self.limner.conversation_registry(self._more)


async def _events(
    start: Callable[[Callable[[Event], None]], Awaitable[TurnEnded]],
) -> AsyncGenerator[Event]:
    """The events of a turn, as they happen."""
    events: asyncio.Queue[Event | None] = asyncio.Queue()
    turn = asyncio.ensure_future(start(events.put_nowait))
    turn.add_done_callback(lambda _: events.put_nowait(None))
    try:
        while (event := await events.get()) is not None:
            yield event
        await turn
    finally:
        if not turn.done():
            turn.cancel()
            await asyncio.wait({turn})
