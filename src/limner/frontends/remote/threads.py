"""One conversation at an app-server: turns go in, events and results come out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

from limner.errors import LimnerError, UserError
from limner.frontends.remote.connection import Params, Request
from limner.frontends.remote.events import (
    Event,
    Reconnected,
    TurnCompleted,
    TurnError,
    TurnResult,
    read,
)
from limner.frontends.remote.output_parts import Image, OutputParts
from limner.frontends.remote.tool_calls import ToolCallServer
from limner.frontends.remote.transports import SERVER_GONE
from limner.frontends.remote.turns import MAX_EVENTS, RemoteTurn, finished_items
from limner.json_shapes import as_list, as_object

# How long a turn that nobody listens to any more may take to stop.
LEAVE_TIMEOUT_S = 10.0


class TurnOptions(TypedDict, total=False):
    """What can be different in one turn.

    Attributes:
        model: who answers, from this turn on.
        effort: how hard it thinks.
        output_schema: a JSON schema that the answer has to follow.
    """

    model: str
    effort: str
    output_schema: Mapping[str, Any]


class ThreadOptions(TypedDict, total=False):
    """What can be said about a thread beside its folder and its tools.

    Attributes:
        model: who answers.
        model_provider: where that model is.
        approval_policy: when the user is asked.
        sandbox: how far the server's own tools may go.
        config: settings of the server, for this thread only.
        base_instructions: in the place of the server's own.
        developer_instructions: in addition to them.
        ephemeral: the server keeps nothing of it.
    """

    model: str
    model_provider: str
    approval_policy: Literal["untrusted", "on-failure", "on-request", "never"]
    sandbox: Literal["read-only", "workspace-write", "danger-full-access"]
    config: Mapping[str, Any]
    base_instructions: str
    developer_instructions: str
    ephemeral: bool


class Thread:
    """A conversation. One turn runs at a time; calls of this client's tools run side by side.

    Made by a `Client`, which also brings it back where the link to the server was lost.

    Args:
        thread_id: what the server calls it; empty where it is yet to be started.
        request: asks the server for something.
        ready: waits while the link is being opened again.
        showing: makes pictures ready for it.
        cwd: the folder that the tools here work in.
        params: what the server is told when the thread starts or is taken up again.
        desk: who answers the calls of this thread.
    """

    def __init__(
        self,
        thread_id: str,
        *,
        request: Request,
        ready: Callable[[], Awaitable[None]],
        showing: OutputParts,
        cwd: Path,
        params: Params,
        desk: Callable[[Thread], ToolCallServer],
    ) -> None:
        self.id = thread_id
        self.cwd = cwd
        self.raw: Mapping[str, Any] = {}
        self._request, self._ready, self._params = request, ready, params
        self._showing = showing
        self._desk = desk(self)
        self._turn: RemoteTurn | None = None
        self._is_stored = bool(thread_id)
        self._news: Reconnected | None = None
        self._lost: LimnerError | None = None
        self._held: list[tuple[str, Params]] | None = None

    @property
    def model(self) -> str | None:
        """Who answers, as the server says."""
        named: object = self.raw.get("model")
        return named if isinstance(named, str) else None

    async def run(
        self, text: str, *, images: Sequence[Image] = (), **options: Unpack[TurnOptions]
    ) -> TurnResult:
        """Let the model answer, calling what it wants, and wait for the end of the turn.

        Args:
            text: what the user says.
            images: pictures to go with it: files, bytes, or pictures of this program.
            options: what is different in this turn.

        Raises:
            UserError: a turn is running.
            LimnerError: the turn could not be started. One that fails later, or is interrupted, is
                a result.
        """
        async with aclosing(self.stream(text, images=images, **options)) as events:
            async for event in events:
                if isinstance(event, TurnCompleted):
                    return event.result
        raise AssertionError("a turn that has no end")

    async def stream(
        self, text: str, *, images: Sequence[Image] = (), **options: Unpack[TurnOptions]
    ) -> AsyncGenerator[Event]:
        """As `run`, telling everything that happens; the last event is `TurnCompleted`.

        Who stops listening before that interrupts the turn: where a loop may be left early, put
        `contextlib.aclosing` around this.

        Raises:
            LimnerError: as `run`.
        """
        turn = self._begin()
        starting = asyncio.create_task(self._start(turn, text, images, named_in_protocol(options)))
        try:
            # A request that is on its way may start a turn, whether or not anybody waits for it.
            await asyncio.shield(starting)
            async for event in turn.events():
                yield event
        finally:
            await self._leave(turn, starting)

    async def steer(self, text: str, *, images: Sequence[Image] = ()) -> None:
        """Say something in the middle of the turn that is running.

        Raises:
            UserError: none is.
            LimnerError: the server refuses.
        """
        turn_id = self._running()
        said = await self._showing.user_input(text, images)
        params = {"threadId": self.id, "expectedTurnId": turn_id, "input": said}
        await self._request("turn/steer", params)

    async def interrupt(self) -> None:
        """Stop the turn that is running; its last event says that it was interrupted.

        Raises:
            UserError: none is.
            LimnerError: the server refuses.
        """
        params = {"threadId": self.id, "turnId": self._running()}
        await self._request("turn/interrupt", params)

    async def archive(self) -> None:
        """Put the thread away; it can be neither continued nor resumed until it is unarchived.

        Raises:
            LimnerError: the server refuses.
        """
        await self._request("thread/archive", {"threadId": self.id})

    async def open(self, request: Request) -> None:
        """Start the thread at the server, or take it up again there.

        Raises:
            LimnerError: the server does not have it, or is gone.
        """
        if self._is_stored:
            # Its history may be hundreds of megabytes, and nobody here reads it.
            resume = {**self._params, "threadId": self.id, "excludeTurns": True}
            resume.pop("ephemeral", None)
            self.adopt(await request("thread/resume", resume))
        else:
            self.adopt(await request("thread/start", self._params))

    async def open_fork(self, thread_id: str, request: Request) -> None:
        """Start the thread at the server as a copy of another.

        Raises:
            LimnerError: the server does not have that one, or is gone.
        """
        fork = {**self._params, "threadId": thread_id, "excludeTurns": True}
        self.adopt(await request("thread/fork", fork))
        self._is_stored = True

    def adopt(self, answer: Mapping[str, Any]) -> None:
        """Take what the server says about the thread."""
        named: object = as_object(answer.get("thread")).get("id")
        if not isinstance(named, str):
            raise LimnerError("The app-server gave the thread no id.", code="SERVER_REFUSED")
        self.id, self.raw = named, answer

    def on_notification(self, method: str, params: Params) -> None:
        """Take a notice about this thread."""
        if self._held is not None:
            if len(self._held) < MAX_EVENTS:
                self._held.append((method, params))
            return
        turn = self._turn
        ends = method == "turn/completed"
        if ends and isinstance(named := as_object(params.get("turn")).get("id"), str):
            self._desk.stop(turn_id=named)
        if turn is None or not turn.is_about(params):
            return
        if ends:
            turn.complete(params)
        else:
            turn.tell(read(method, params))

    def happened(self, turn_id: str, event: Event) -> None:
        """Take what happens here, in a turn."""
        if self._turn is not None and self._turn.id in (None, turn_id):
            self._turn.tell(event)

    async def call_tool(self, params: Params) -> dict[str, Any]:
        """Answer a call of a tool."""
        return await self._desk.answer(params)

    async def on_reconnect(self, reason: str, request: Request) -> None:
        """Take the thread up again over a new link, and the turn that was running if it still is.

        Raises:
            LimnerError: SERVER_GONE.
        """
        # What a new link tells comes after what is found out about the time without one.
        held: list[tuple[str, Params]] = []
        self._held = held
        try:
            await self.open(request)
            self._go_on(reason, await self._latest(request))
        except LimnerError as error:
            if error.code == SERVER_GONE:
                raise
            self.on_lost(error)
        finally:
            self._held = None
        for method, params in held:
            self.on_notification(method, params)

    def _go_on(self, reason: str, latest: Mapping[str, Any]) -> None:
        """Tell the turn what became of it, from what the server says is its newest one."""
        turn = self._turn
        if turn is None:
            self._news = Reconnected(reason=reason, goes_on=False)
            return
        if turn.id is None:  # it is about to start, and has waited for the new link
            turn.tell(Reconnected(reason=reason, goes_on=False))
            return
        status = latest.get("status") if latest.get("id") == turn.id else None
        goes_on = status in {"inProgress", "completed", "failed"}
        turn.tell(Reconnected(reason=reason, goes_on=goes_on))
        if status == "inProgress":
            turn.catch_up(finished_items(latest))
            return
        self._desk.stop(turn_id=turn.id)
        if goes_on:
            turn.complete({"threadId": self.id, "turn": latest})
        else:
            turn.end("interrupted", error=_lost(reason))

    def on_lost(self, error: LimnerError) -> None:
        """The thread cannot be taken up again."""
        self._lost = error
        self._desk.stop()
        if self._turn is not None:
            self._turn.end("interrupted", error=_lost(error.message))

    async def aclose(self) -> None:
        """Stop the tools that are running for it."""
        await self._desk.aclose()

    def _begin(self) -> RemoteTurn:
        if self._lost is not None:
            raise self._lost
        if self._turn is not None:
            raise UserError("A turn is running.", hint="Steer it, interrupt it, or wait for it.")
        self._turn = turn = RemoteTurn()
        if self._news is not None:
            turn.tell(self._news)
            self._news = None
        return turn

    async def _start(
        self, turn: RemoteTurn, text: str, images: Sequence[Image], options: Mapping[str, Any]
    ) -> None:
        said = await self._showing.user_input(text, images)
        # Only now: one that had never run has another id after the link was lost.
        await self._ready()
        params = {"threadId": self.id, "input": said, **options}
        try:
            answer = await self._request("turn/start", params)
        except LimnerError as error:
            if error.code != SERVER_GONE:
                raise
            # Whether it had begun is known to nobody; it is not begun a second time.
            turn.end("interrupted", error=_lost(error.message))
            return
        named: object = as_object(answer.get("turn")).get("id")
        if isinstance(named, str):
            turn.id = named
        self._is_stored = True

    async def _leave(self, turn: RemoteTurn, starting: asyncio.Task[None]) -> None:
        try:
            with suppress(LimnerError, TimeoutError):
                async with asyncio.timeout(LEAVE_TIMEOUT_S):
                    await starting
                    if not turn.ended.is_set():
                        await self.interrupt()
                        await turn.ended.wait()
        finally:
            starting.cancel()
            turn.end("interrupted", error=None)
            self._turn = None

    def _running(self) -> str:
        if self._turn is None or self._turn.id is None or self._turn.ended.is_set():
            raise UserError("No turn is running.")
        return self._turn.id

    async def _latest(self, request: Request) -> Mapping[str, Any]:
        """The newest turn, with everything that was made in it."""
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


def named_in_protocol(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options by the names that the protocol has for them."""

    def name(words: str) -> str:
        first, *others = words.split("_")
        return first + "".join(word.capitalize() for word in others)

    return {name(key): value for key, value in options.items()}


def _lost(reason: str) -> TurnError:
    return TurnError(
        message=f"The turn was lost with the link to the app-server: {reason}",
        info="connectionLost",
    )
