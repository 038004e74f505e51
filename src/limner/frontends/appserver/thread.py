"""One open thread: its conversation, its subscribers and its running turn.

What only a turn needs is imported and built with the first turn: a client that starts a thread
waits for nothing else.
"""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from limner.agent.leases import Lease
from limner.agent.session import Session
from limner.agent.sessions import new_id
from limner.client import Limner
from limner.errors import LimnerError
from limner.frontends.appserver.connection import Clients
from limner.frontends.appserver.protocol.notifications import (
    ErrorNotification,
    ThreadStatusChangedNotification,
    TokenUsageBreakdown,
    WarningNotification,
)
from limner.frontends.appserver.protocol.threads import Idle, ThreadStatus
from limner.frontends.appserver.rpc_errors import invalid_request, not_open, turn_error
from limner.frontends.appserver.subscribers import Subscribers
from limner.frontends.appserver.thread_state import ThreadState
from limner.frontends.appserver.tool_specs import names_for_model
from limner.net.jsonrpc_peer import PendingRequests
from limner.net.redaction import redact
from limner.wires.items import Item

if TYPE_CHECKING:
    from limner.agent.conversation import Conversation
    from limner.agent.events import Event, TurnEnded
    from limner.frontends.appserver.inputs import ParsedInput
    from limner.frontends.appserver.notifications import TurnContext, TurnNotifications
    from limner.frontends.appserver.thread_history import HistoryContext
    from limner.frontends.appserver.thread_tools import ThreadTools, ToolSetup

NO_TOKENS = TokenUsageBreakdown(
    total_tokens=0,
    input_tokens=0,
    cached_input_tokens=0,
    output_tokens=0,
    reasoning_output_tokens=0,
)

OnStarted = Callable[[str], None]
"""Is called with the id of the turn before any subscriber is notified of it."""


class TurnWork(Protocol):
    """What a turn does: `Conversation.run` or `Conversation.compact`, with its input bound."""

    def __call__(self, *, on_event: Callable[[Event], None], turn_id: str) -> Awaitable[TurnEnded]:
        """Run the turn."""
        ...


class RunningTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A running turn; one that only compacts the history takes no input."""

    id: str
    task: asyncio.Task[None]
    notifications: TurnNotifications
    takes_input: bool


class UnfinishedTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn that an earlier process left, and the calls in it that clients can still answer.

    ``turns_before`` is how many turns had started in the open thread when this was read.
    """

    turn_id: str
    calls: tuple[Item, ...]
    turns_before: int


class LiveThread:
    """A thread that is open in this process.

    Args:
        session: stores its items.
        state: its options and tools.
        lease: keeps other processes from writing to it.
        cwd: the folder it was created in.
        lim: the models, tools and pictures that it uses.
        pending: the requests to clients.
        log: gets the errors that no client sees.
        on_idle: is called when a turn has ended.
        clients: every client of the server.

    Attributes:
        subscribers: the clients that subscribe to it.
        last_used: the time of its last use, by the monotonic clock.
        turns_started: how many turns have started since it was opened.
    """

    def __init__(
        self,
        session: Session,
        state: ThreadState,
        *,
        lease: Lease,
        cwd: Path,
        lim: Limner,
        pending: PendingRequests,
        log: Callable[[str], None],
        on_idle: Callable[[LiveThread], None],
        clients: Clients,
    ) -> None:
        self.id, self.session, self.state = session.id, session, state
        self.subscribers = Subscribers(clients)
        self.last_used = time.monotonic()
        self.turns_started = 0
        self._is_closed = False
        self._lim, self._log, self._on_idle, self._session_cwd = lim, log, on_idle, cwd
        self._status: ThreadStatus = Idle()
        self._running: RunningTurn | None = None
        self._may_start = asyncio.Event()
        self._may_start.set()
        self._task: asyncio.Task[None] | None = None
        self._lease, self._pending = lease, pending

    @cached_property
    def _tools(self) -> ThreadTools:
        from limner.frontends.appserver.thread_tools import ThreadTools  # noqa: PLC0415 - see above

        return ThreadTools(
            self.id,
            lim=self._lim,
            subscribers=self.subscribers,
            pending=self._pending,
            running=self._running_notifications,
            interrupt=self.interrupt,
            on_found=self._save_found,
        )

    @cached_property
    def _setup(self) -> ToolSetup:
        return self._tools.setup(self.state)

    @cached_property
    def _conversation(self) -> Conversation:
        from limner.agent.conversation import Conversation  # noqa: PLC0415 - see above

        conversations = self._lim.conversations
        return Conversation(
            self.session,
            lease=self._lease,
            options=self.state.options,
            cwd=self.cwd,
            tools=lambda: self._setup.registry,
            turn_configs=conversations.turn_configs,
            parts=conversations.parts,
            on_warning=self.warn,
        )

    @property
    def cwd(self) -> Path:
        """The folder it works in."""
        cwd = self.state.extras.cwd
        return self._session_cwd if cwd is None else Path(cwd)

    @property
    def status(self) -> ThreadStatus:
        """Its status, as clients see it."""
        return self._status if self._running is None else self._running.notifications.status

    @property
    def turn_id(self) -> str | None:
        """The id of the running turn."""
        return None if self._running is None else self._running.id

    @property
    def history_context(self) -> HistoryContext:
        """What a reader of its history needs beside the items."""
        from limner.frontends.appserver.thread_history import (  # noqa: PLC0415 - see above
            HistoryContext,
        )

        return HistoryContext(
            tools=names_for_model(self.state.tools),
            cwd=str(self.cwd),
            running=self.turn_id,
            failures=self.state.extras.failures,
        )

    async def save(self, state: ThreadState) -> None:
        """Store a new state. It is in force from the next turn on."""
        before, self.state = self.state, state
        await self._lim.sessions.configure(self.id, state.to_settings())
        tools_changed = (state.tools, state.extras.tools_off) != (
            before.tools,
            before.extras.tools_off,
        )
        if tools_changed:
            vars(self).pop("_setup", None)

    async def start_turn(
        self,
        inputs: Sequence[ParsedInput],
        *,
        on_started: OnStarted,
        schema: Mapping[str, Any] | None = None,
    ) -> None:
        """Start a turn with the input of a user, or add the input to the running turn.

        Raises:
            RpcError: the thread is being closed.
            LimnerError: the turn cannot start, for example without a key.
        """
        while (running := await self._running_turn()) is not None:
            if self._add_input(running, inputs):
                on_started(running.id)
                return
            # A turn that is about to start will take input in a moment.
            has_started = running.notifications.has_started
            await (asyncio.wait({running.task}) if has_started else asyncio.sleep(0))
        work = partial(
            self._conversation.run,
            [one.item for one in inputs],
            ask=self._tools.ask,
            schema=schema,
        )
        await self._start(work, inputs=inputs, on_started=on_started)

    async def resume_turn(self, unfinished: UnfinishedTurn) -> None:
        """Continue a turn of an earlier process, unless another turn has started meanwhile.

        If it cannot continue, subscribers get an error: they have seen a running turn.
        """
        running = await self._running_turn()
        if running is not None or self.turns_started != unfinished.turns_before:
            return
        turn_id = unfinished.turn_id
        work = partial(self._conversation.run, (), ask=self._tools.ask, pending=unfinished.calls)
        try:
            await self._start(work, on_started=lambda _: None, turn_id=turn_id)
        except LimnerError as failure:
            error = ErrorNotification(
                error=turn_error(failure), will_retry=False, thread_id=self.id, turn_id=turn_id
            )
            self.subscribers.notify(error)
            status = ThreadStatusChangedNotification(thread_id=self.id, status=self.status)
            self.subscribers.notify(status)

    async def compact(self, *, on_started: OnStarted) -> None:
        """Replace the history by a summary. A running turn is interrupted for it.

        Raises:
            RpcError: the thread is being closed.
            LimnerError: the turn cannot start, for example without a key.
        """
        while (running := await self._running_turn()) is not None:
            self.interrupt()
            await asyncio.wait({running.task})
        await self._start(self._conversation.compact, on_started=on_started, takes_input=False)

    def steer(self, inputs: Sequence[ParsedInput], *, expected: str) -> str:
        """Add input to the running turn; returns the id of the turn.

        Raises:
            RpcError: the expected turn is not running.
        """
        running = self._running
        if running is None:
            raise invalid_request("no active turn to steer")
        if running.id != expected:
            raise invalid_request(
                f"expected active turn id `{expected[:80]}` but found `{running.id}`"
            )
        if not self._add_input(running, inputs):
            raise invalid_request("no active turn to steer")
        return running.id

    def interrupt(self) -> None:
        """Interrupt the running turn, if there is one."""
        if self._running is None:
            return
        if self._conversation.turn is not None:
            self._conversation.turn.interrupt()
        elif not self._running.notifications.has_started:
            # Its task has not taken its first step yet.
            asyncio.get_running_loop().call_soon(self.interrupt)

    @asynccontextmanager
    async def holding_turns(self) -> AsyncGenerator[None]:
        """Let no turn start meanwhile; one that was asked for waits. A turn that runs goes on."""
        await self._may_start.wait()
        self._may_start.clear()
        try:
            yield
        finally:
            self._may_start.set()

    async def ended(self) -> None:
        """Wait until no turn runs and the state after the last one is stored."""
        if self._task is not None:
            await asyncio.wait({self._task})

    async def stop(self) -> None:
        """Interrupt the running turn, and start no other."""
        self._is_closed = True
        self.interrupt()
        await self.ended()

    async def release(self) -> None:
        """Let other processes write to it."""
        await self._lease.release()

    def warn(self, *messages: str) -> None:
        """Send warnings to the subscribers."""
        for message in messages:
            self.subscribers.notify(WarningNotification(thread_id=self.id, message=message))

    async def _running_turn(self) -> RunningTurn | None:
        """The running turn; waits while no turn may start."""
        await self._may_start.wait()
        return self._running

    def _add_input(self, running: RunningTurn, inputs: Sequence[ParsedInput]) -> bool:
        turn = self._conversation.turn
        if not running.takes_input or turn is None or turn.is_over:
            return False
        for one in inputs:
            running.notifications.note_input(one.item, one.original)
        turn.steer([one.item for one in inputs])
        return True

    async def _start(
        self,
        work: TurnWork,
        *,
        on_started: OnStarted,
        inputs: Sequence[ParsedInput] = (),
        turn_id: str | None = None,
        takes_input: bool = True,
    ) -> None:
        """Start a turn; returns when it has started."""
        if self._is_closed:
            raise not_open(self.id)
        name = new_id() if turn_id is None else turn_id
        started: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def has_started() -> None:
            self.turns_started += 1
            on_started(name)
            started.set_result(None)

        from limner.frontends.appserver.notifications import (  # noqa: PLC0415 - see above
            TurnNotifications,
        )

        notifications = TurnNotifications(self._turn_context(), name, on_started=has_started)
        for one in inputs:
            notifications.note_input(one.item, one.original)
        conversation = self._conversation
        conversation.options, conversation.cwd = self.state.options, self.cwd
        # The client's tools are part of every personality.
        conversation.more_tools = self._setup.client_names
        task = self._task = asyncio.ensure_future(self._run(work, notifications))
        self._running = RunningTurn(
            id=name, task=task, notifications=notifications, takes_input=takes_input
        )
        await asyncio.wait({started, task}, return_when=asyncio.FIRST_COMPLETED)
        if not started.done():
            started.cancel()
            task.result()

    async def _run(self, work: TurnWork, notifications: TurnNotifications) -> None:
        """Run a turn to its end, and store the state after it."""
        turn_id = notifications.turn_id
        try:
            ended = await self._outcome(work, notifications)
            if ended.error is not None:
                failed = self.state.with_failure(turn_id, turn_error(ended.error))
                await self._save_or_log(notifications.with_usage(failed))
            notifications.send_end(ended)
        finally:
            self._running, self._status = None, notifications.status
            self.last_used = time.monotonic()
            self._on_idle(self)
        await self._save_or_log(notifications.with_usage(self.state))

    async def _outcome(self, work: TurnWork, notifications: TurnNotifications) -> TurnEnded:
        """The end of a turn; a bug is an end too."""
        turn_id = notifications.turn_id
        try:
            return await work(on_event=notifications.send, turn_id=turn_id)
        except Exception as bug:
            if isinstance(notifications.status, Idle):
                raise  # the turn has not started: the request that wants it gets the error
            # The outermost frame of a turn: the server goes on, and so may the thread.
            self._log(f"turn {turn_id} failed:\n{traceback.format_exc()}")
            from limner.agent.events import TurnEnded  # noqa: PLC0415 - see above

            return TurnEnded(
                turn_id=turn_id,
                status="failed",
                text="",
                is_cut=False,
                error=LimnerError(redact(f"Internal error: {type(bug).__name__}: {bug}")),
                cost_nano=0,
                spent_nano=0,
            )

    async def _save_or_log(self, state: ThreadState) -> None:
        try:
            await self.save(state)
        except LimnerError as failure:
            self._log(f"the state of thread {self.id} could not be stored: {failure.message}")

    def _turn_context(self) -> TurnContext:
        from limner.frontends.appserver.notifications import TurnContext  # noqa: PLC0415 - see above

        registry = self._setup.registry
        return TurnContext(
            thread_id=self.id,
            cwd=str(self.cwd),
            tools=self._setup.named,
            is_tool=lambda name: registry.get(name) is not None,
            tokens=self.state.extras.tokens or NO_TOKENS,
            read_state=self.state.extras.read_state,
            subscribers=self.subscribers,
        )

    def _running_notifications(self) -> TurnNotifications:
        assert self._running is not None, "tools are called in turns"
        return self._running.notifications

    async def _save_found(self, names: frozenset[str]) -> None:
        await self.save(self.state.with_extras(found=tuple(sorted(names))))
