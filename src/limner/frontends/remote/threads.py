"""One thread at an app-server: text and pictures go in, events and results come out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

from limner.agent.events import Event
from limner.agent.turn_reader import TurnReader
from limner.errors import LimnerError, UserError
from limner.frontends.remote.connection import Params, Request
from limner.frontends.remote.events import Reconnected, RemoteEvent, TurnResult
from limner.frontends.remote.output_parts import OutputParts
from limner.frontends.remote.tool_calls import ToolCallServer
from limner.frontends.remote.transports import SERVER_GONE
from limner.frontends.remote.turns import MAX_EVENTS, RemoteTurn, finished_items
from limner.json_shapes import as_list, as_object
from limner.tools.image_input import ImageInput

# How long a turn may take to stop after the caller has left it.
LEAVE_TIMEOUT_S = 10.0


class TurnOptions(TypedDict, total=False):
    """The options of one turn.

    Attributes:
        model: the model, from this turn on.
        effort: the reasoning effort.
        output_schema: a JSON schema that the answer has to follow.
    """

    model: str
    effort: str
    output_schema: Mapping[str, object]


class ThreadOptions(TypedDict, total=False):
    """The options of a thread, besides its folder and its tools.

    Attributes:
        model: the model.
        model_provider: the provider of that model.
        approval_policy: when the user is asked.
        sandbox: what the server's own tools may do.
        config: settings of the server, for this thread only.
        base_instructions: replace the server's own.
        developer_instructions: are added to them.
        ephemeral: the server does not store the thread.
    """

    model: str
    model_provider: str
    approval_policy: Literal["untrusted", "on-failure", "on-request", "never"]
    sandbox: Literal["read-only", "workspace-write", "danger-full-access"]
    config: Mapping[str, object]
    base_instructions: str
    developer_instructions: str
    ephemeral: bool


class Thread:
    """A conversation. One turn runs at a time; calls of this client's tools run side by side.

    A `Client` makes it, and resumes it after the connection to the server was lost.

    Args:
        thread_id: the server's id of it; empty if it is not started yet.
        request: sends a request to the server.
        ready: waits while the connection is being opened again.
        output: prepares pictures for the server.
        cwd: the folder in which the tools of this client work.
        params: the params that start or resume the thread.
        make_tools: makes the server of this thread's tool calls.
    """

    # The `Client` calls these.
    _internal = frozenset(
        {"__init__", "open", "open_fork", "report", "call_tool", "aclose"}
        | {"on_notification", "on_reconnect", "on_lost"}
    )

    def __init__(
        self,
        thread_id: str,
        *,
        request: Request,
        ready: Callable[[], Awaitable[None]],
        output: OutputParts,
        cwd: Path,
        params: Params,
        make_tools: Callable[[Thread], ToolCallServer],
    ) -> None:
        self.id = thread_id
        self.cwd = cwd
        self.raw: Mapping[str, Any] = {}
        self._request, self._ready, self._params = request, ready, params
        self._output = output
        self._tools = make_tools(self)
        self._turn: RemoteTurn | None = None
        self._spent_nano = 0
        self._is_stored = bool(thread_id)
        self._reconnected: Reconnected | None = None
        self._lost: LimnerError | None = None
        self._held_back: list[tuple[str, Params]] | None = None

    @property
    def model(self) -> str | None:
        """The model, as the server names it."""
        name: object = self.raw.get("model")
        return name if isinstance(name, str) else None

    async def run(
        self, text: str, *, images: Sequence[ImageInput] = (), **options: Unpack[TurnOptions]
    ) -> TurnResult:
        """Send a message, and wait until the model has called its tools and answered.

        Args:
            text: the user's message.
            images: pictures of the message: files, bytes, or pictures of this program.
            options: the options of this turn.

        Raises:
            UserError: a turn is running and its events are read.
            LimnerError: the turn could not be started. If it fails later, or is interrupted, the
                result says so.
        """
        async with aclosing(self.stream(text, images=images, **options)) as events:
            async for event in events:
                if isinstance(event, TurnResult):
                    return event
        raise AssertionError("a turn without an end")

    def stream(
        self, text: str, *, images: Sequence[ImageInput] = (), **options: Unpack[TurnOptions]
    ) -> AsyncGenerator[RemoteEvent]:
        """As `run`, but yields each event, as `limner.Agent.run` does; the last is a `TurnResult`.

        A caller that breaks out of the loop before that interrupts the turn; the next turn waits
        until that is done. A caller that keeps the generator in a variable has to close it, as
        `contextlib.aclosing` does.

        Raises:
            LimnerError: as `run`.
        """
        reader = TurnReader()
        events = self._stream(reader, text, images, options)
        reader.watch(events)
        return events

    async def _stream(
        self, reader: TurnReader, text: str, images: Sequence[ImageInput], options: TurnOptions
    ) -> AsyncGenerator[RemoteEvent]:
        if self._turn is not None and await self._turn.reader.has_left():
            await self._leave(self._turn)
        turn = self._begin(reader)
        reader.read_on()
        turn.starting = asyncio.create_task(self._start(turn, text, images, in_camel_case(options)))
        try:
            # A request that is on its way may start a turn, even if the caller has left.
            await asyncio.shield(turn.starting)
            async for event in turn.events():
                yield event
                reader.read_on()
        finally:
            await self._leave(turn)

    async def steer(self, text: str, *, images: Sequence[ImageInput] = ()) -> None:
        """Send a message in the middle of the running turn.

        Raises:
            UserError: no turn is running.
            LimnerError: the server refuses.
        """
        turn_id = self._running_id()
        user_input = await self._output.user_input(text, images)
        params = {"threadId": self.id, "expectedTurnId": turn_id, "input": user_input}
        await self._request("turn/steer", params)

    async def interrupt(self) -> None:
        """Stop the running turn; its last event says that it was interrupted.

        Raises:
            UserError: no turn is running.
            LimnerError: the server refuses.
        """
        params = {"threadId": self.id, "turnId": self._running_id()}
        await self._request("turn/interrupt", params)

    async def archive(self) -> None:
        """Archive the thread; it can be neither continued nor resumed until it is unarchived.

        Raises:
            LimnerError: the server refuses.
        """
        await self._request("thread/archive", {"threadId": self.id})

    async def open(self, request: Request) -> None:
        """Start the thread at the server, or resume it there.

        Raises:
            LimnerError: the server does not have it, or is gone.
        """
        if self._is_stored:
            # Its history may be hundreds of megabytes, and this client does not read it.
            resume = {**self._params, "threadId": self.id, "excludeTurns": True}
            resume.pop("ephemeral", None)
            self._adopt(await request("thread/resume", resume))
        else:
            self._adopt(await request("thread/start", self._params))

    async def open_fork(self, thread_id: str, request: Request) -> None:
        """Start the thread at the server as a copy of another.

        Raises:
            LimnerError: the server does not have that one, or is gone.
        """
        fork = {**self._params, "threadId": thread_id, "excludeTurns": True}
        self._adopt(await request("thread/fork", fork))
        self._is_stored = True

    def on_notification(self, method: str, params: Params) -> None:
        """Handle a notification about this thread."""
        if self._held_back is not None:
            if len(self._held_back) < MAX_EVENTS:
                self._held_back.append((method, params))
            return
        turn = self._turn
        is_end = method == "turn/completed"
        if is_end and isinstance(turn_id := as_object(params.get("turn")).get("id"), str):
            self._tools.stop(turn_id=turn_id)
        if turn is None or not turn.is_about(params):
            return
        if is_end:
            turn.complete(params)
        else:
            turn.receive(method, params)

    def report(self, turn_id: str, event: Event) -> None:
        """Add an event of this client's tools to the turn."""
        if self._turn is not None and self._turn.id in (None, turn_id):
            self._turn.add(event)

    async def call_tool(self, params: Params) -> dict[str, Any]:
        """Run a tool for the server; returns the response."""
        return await self._tools.call(params)

    async def on_reconnect(self, reason: str, request: Request) -> None:
        """Resume the thread over a new connection, and its turn if that is still running.

        Raises:
            LimnerError: SERVER_GONE.
        """
        # New notifications come after what was missed while there was no connection.
        held_back: list[tuple[str, Params]] = []
        self._held_back = held_back
        try:
            await self.open(request)
            self._continue_turn(reason, await self._newest_turn(request))
        except LimnerError as error:
            if error.code == SERVER_GONE:
                raise
            self.on_lost(error)
        finally:
            self._held_back = None
        for method, params in held_back:
            self.on_notification(method, params)

    def on_lost(self, error: LimnerError) -> None:
        """The thread cannot be resumed."""
        self._lost = error
        self._tools.stop()
        if self._turn is not None:
            self._turn.end("interrupted", error=_turn_lost(error.message))

    async def aclose(self) -> None:
        """Stop its running tool calls."""
        await self._tools.aclose()

    def _adopt(self, response: Mapping[str, Any]) -> None:
        thread_id: object = as_object(response.get("thread")).get("id")
        if not isinstance(thread_id, str):
            raise LimnerError("The app-server gave the thread no id.", code="SERVER_REFUSED")
        self.id, self.raw = thread_id, response

    def _continue_turn(self, reason: str, newest: Mapping[str, Any]) -> None:
        """Bring the turn up to date with the server's newest turn."""
        turn = self._turn
        if turn is None:
            self._reconnected = Reconnected(reason=reason, goes_on=False)
            return
        if turn.id is None:  # it is about to start, and has waited for the new connection
            turn.add(Reconnected(reason=reason, goes_on=False))
            return
        status = newest.get("status") if newest.get("id") == turn.id else None
        goes_on = status in {"inProgress", "completed", "failed"}
        turn.add(Reconnected(reason=reason, goes_on=goes_on))
        if status == "inProgress":
            turn.catch_up(finished_items(newest))
            return
        self._tools.stop(turn_id=turn.id)
        if goes_on:
            turn.complete({"threadId": self.id, "turn": newest})
        else:
            turn.end("interrupted", error=_turn_lost(reason))

    def _begin(self, reader: TurnReader) -> RemoteTurn:
        if self._lost is not None:
            raise self._lost
        if self._turn is not None:
            raise UserError("A turn is running.", hint="Steer it, interrupt it, or wait for it.")
        turn = RemoteTurn(
            reader=reader, spent_nano=self._spent_nano, is_own_tool=self._tools.has_tool
        )
        self._turn = turn
        if self._reconnected is not None:
            turn.add(self._reconnected)
            self._reconnected = None
        return turn

    async def _start(
        self, turn: RemoteTurn, text: str, images: Sequence[ImageInput], options: Mapping[str, Any]
    ) -> None:
        user_input = await self._output.user_input(text, images)
        # Only now: a thread that had no turn yet gets another id after the connection was lost.
        await self._ready()
        params = {"threadId": self.id, "input": user_input, **options}
        try:
            response = await self._request("turn/start", params)
        except LimnerError as error:
            if error.code != SERVER_GONE:
                raise
            # The turn may have started; it is not started a second time.
            turn.end("interrupted", error=_turn_lost(error.message))
            return
        turn_id: object = as_object(response.get("turn")).get("id")
        if isinstance(turn_id, str):
            turn.id = turn_id
        self._is_stored = True

    async def _leave(self, turn: RemoteTurn) -> None:
        """Interrupt the turn if it is still running, and make room for the next."""
        # The next turn may do this while Python closes the generator of this one.
        async with turn.leaving:
            if self._turn is not turn or turn.starting is None:
                return
            try:
                with suppress(LimnerError, TimeoutError):
                    async with asyncio.timeout(LEAVE_TIMEOUT_S):
                        await turn.starting
                        if not turn.ended.is_set():
                            await self.interrupt()
                            await turn.ended.wait()
            finally:
                turn.starting.cancel()
                turn.end("interrupted", error=None)
                self._turn, self._spent_nano = None, turn.spent_nano

    def _running_id(self) -> str:
        if self._turn is None or self._turn.id is None or self._turn.ended.is_set():
            raise UserError("No turn is running.")
        return self._turn.id

    async def _newest_turn(self, request: Request) -> Mapping[str, Any]:
        """The newest turn, with all of its items."""
        if self._turn is None or self._turn.id is None:
            return {}
        params = {
            "threadId": self.id,
            "limit": 1,
            "sortDirection": "desc",
            "itemsView": "full",
        }
        listed = as_list((await request("thread/turns/list", params)).get("data"))
        return as_object(listed[0]) if listed else {}


def in_camel_case(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options by their names in the protocol, which are in camel case."""

    def camel(name: str) -> str:
        first, *others = name.split("_")
        return first + "".join(word.capitalize() for word in others)

    return {camel(name): value for name, value in options.items()}


def _turn_lost(reason: str) -> LimnerError:
    return LimnerError(
        f"The turn was lost with the connection to the app-server: {reason}",
        code=SERVER_GONE,
        extras={"info": "connectionLost"},
    )
