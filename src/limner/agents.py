"""`Agent`: a conversation for a program; messages go in, events come out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import Self

from limner.agent.conversation import Conversation
from limner.agent.events import Event, TurnEnded
from limner.agent.session_options import parse_options
from limner.agent.turn_reader import TurnReader
from limner.client import Limner
from limner.errors import UserError
from limner.net.per_loop import PerLoop
from limner.settings import Policy, Sandbox
from limner.tools.base import Question, Tool, answer_no
from limner.tools.image_input import ImageInput
from limner.tools.registry import ToolRegistry
from limner.wires.items import user_message


class Agent:
    """A model that draws, looks and calls tools, and remembers the conversation.

    Use it as ``async with limner.Agent() as agent`` and read what happens::

        async for event in agent.run("Draw a fox, and check that it is red."):
            print(event)

    Args:
        lim: the `Limner` whose pictures, ledger and settings it uses; by default a new one.
        model: the model that answers, as ``provider/id``; by default what the settings say.
        personality: the id of a personality.
        tools: more tools, as ``limner.tool`` makes them.
        session: the id of a session to continue, or the beginning of one.
        instructions: more of the system prompt, at its end.
        sandbox: what the model may write.
        approval: when ``ask`` is called.
        budget_usd: the most the session may cost.
        cwd: the folder it works in.
        ask: decides what only a person can decide; by default the answer is no.

    Raises:
        InputInvalid: there is no such sandbox or policy, or the budget is not an amount.
    """

    # For the front ends.
    _internal = frozenset({"conversation"})

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
        ask: Callable[[Question], Awaitable[bool]] = answer_no,
    ) -> None:
        given = {
            "model": model,
            "personality": personality,
            "developer_instructions": instructions,
            "sandbox": sandbox,
            "approval": approval,
            "budget_usd": None if budget_usd is None else str(budget_usd),
        }
        self._options = parse_options({name: one for name, one in given.items() if one is not None})
        self.limner = Limner() if lim is None else lim
        self._owns_limner = lim is None
        self._opening = PerLoop(asyncio.Lock)
        self._more, self._ask, self._cwd = tuple(tools), ask, cwd
        self._session_id = session
        self._conversation: Conversation | None = None
        self._run: _Run | None = None

    @property
    def session_id(self) -> str | None:
        """The id of its session; None before the first turn."""
        return None if self._conversation is None else self._conversation.session.id

    def run(
        self,
        words: str,
        *,
        images: Iterable[ImageInput] = (),
        schema: Mapping[str, object] | None = None,
    ) -> AsyncGenerator[Event]:
        """Send a message, and yield the events of the turn until it ends.

        The last event is a `TurnEnded`. A caller that breaks out of the loop before it interrupts
        the turn; the next `run` waits until that is done. A caller that keeps the generator in a
        variable has to close it, as `contextlib.aclosing` does.

        Args:
            words: the message.
            images: the pictures, as any `ImageInput`.
            schema: a JSON schema that the answer has to follow.

        Raises:
            UserError: a turn is running and its events are read (``TURN_UNDER_WAY``); or there is
                no such model, or no key for it.
            LimnerError: a picture cannot be stored. An error in the turn itself is reported
                by its last event.
        """

        async def prepare(conversation: Conversation) -> _Start:
            item = user_message(
                words, [await self.limner.take_with_path(image) for image in images]
            )
            return lambda emit: conversation.run(
                [item], on_event=emit, ask=self._ask, schema=schema
            )

        return self._start(prepare)

    def compact(self) -> AsyncGenerator[Event]:
        """Summarize the conversation; raises as `run`."""

        async def prepare(conversation: Conversation) -> _Start:
            return lambda emit: conversation.compact(on_event=emit)

        return self._start(prepare)

    async def steer(self, words: str, *, images: Iterable[ImageInput] = ()) -> None:
        """Send a message in the middle of a turn; the model gets it with its next request.

        Raises:
            UserError: no turn is running.
        """
        item = user_message(words, [await self.limner.take_with_path(image) for image in images])
        turn = None if self._conversation is None else self._conversation.turn
        if turn is None:
            raise UserError("No turn is running.", code="NO_TURN", hint="Start one with run().")
        turn.steer([item])

    def interrupt(self) -> None:
        """End the running turn, if there is one."""
        if self._conversation is not None and self._conversation.turn is not None:
            self._conversation.turn.interrupt()

    async def conversation(self) -> Conversation:
        """The conversation, which is started or opened on the first call.

        Raises:
            UserError: another process uses that session (``SESSION_IN_USE``).
            InputInvalid: there is no session of that id.
        """
        # Two calls at the same time get the same session.
        async with self._opening.get():
            if self._conversation is None:
                self._conversation = await self._opened()
        return self._conversation

    async def aclose(self) -> None:
        """End the running turn, release the session, and close the `Limner` if it made that."""
        if self._run is not None:
            await self._run.end()
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
            return await conversations.create(self._options, cwd=cwd, tools=self._tools)
        return await conversations.open(
            self._session_id, tools=self._tools, changes=self._options, cwd=self._cwd
        )

    def _tools(self) -> ToolRegistry:
        return self.limner.conversation_registry(self._more)

    def _start(self, prepare: Callable[[Conversation], Awaitable[_Start]]) -> AsyncGenerator[Event]:
        reader = TurnReader()
        events = self._events(prepare, reader)
        reader.watch(events)
        return events

    async def _events(
        self, prepare: Callable[[Conversation], Awaitable[_Start]], reader: TurnReader
    ) -> AsyncGenerator[Event]:
        """The events of a turn, as they happen."""
        conversation = await self.conversation()
        start = await prepare(conversation)
        if self._run is not None and await self._run.reader.has_left():
            await self._run.end()
        events: asyncio.Queue[Event | None] = asyncio.Queue()
        turn = asyncio.ensure_future(start(events.put_nowait))
        turn.add_done_callback(lambda _: events.put_nowait(None))
        run = _Run(conversation, turn, reader)
        try:
            reader.read_on()
            while (event := await events.get()) is not None:
                # Only now: a turn that is refused must not replace the one that runs.
                self._run = run
                yield event
                reader.read_on()
            await turn
        except asyncio.CancelledError:
            # As if the process ended here: a call that has no output yet can still get one.
            turn.cancel()
            await asyncio.wait({turn})
            raise
        finally:
            await run.end()


_Start = Callable[[Callable[[Event], None]], Awaitable[TurnEnded]]


class _Run:
    """A turn, and the reader of its events."""

    def __init__(
        self, conversation: Conversation, turn: asyncio.Future[TurnEnded], reader: TurnReader
    ) -> None:
        self.reader = reader
        self._conversation, self._turn = conversation, turn

    async def end(self) -> None:
        """Interrupt the turn, and wait until it has stored its end."""
        if self._turn.done():
            return
        if self._conversation.turn is not None:
            self._conversation.turn.interrupt()
        try:
            await asyncio.wait({self._turn})
        except asyncio.CancelledError:
            self._turn.cancel()
            raise
