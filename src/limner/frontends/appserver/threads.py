"""The threads of one server: the open ones by id, and the others through the store."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakValueDictionary

from limner.agent.leases import Lease
from limner.agent.session import Session, SessionAbout
from limner.agent.session_options import OPTIONS_KEY, SessionOptions, parse_options
from limner.client import Limner
from limner.errors import InputInvalid, LimnerError
from limner.frontends.appserver.connection import ClientConnection, Clients
from limner.frontends.appserver.protocol.threads import Active
from limner.frontends.appserver.rpc_errors import (
    check_id,
    invalid_request,
    not_open,
    not_stored,
    single_writer,
)
from limner.frontends.appserver.thread import LiveThread, UnfinishedTurn
from limner.frontends.appserver.thread_state import ThreadState
from limner.frontends.appserver.tool_specs import names_for_model
from limner.net.jsonrpc_peer import PendingRequests
from limner.settings import Settings

if TYPE_CHECKING:
    from limner.frontends.appserver.thread_history import HistoryContext, ThreadHistory

T = TypeVar("T")

IDLE_S = 30 * 60.0
CLOSE_TIMEOUT_S = 1.0


class ThreadTable:
    """Opens threads, and closes those that had no subscriber and no turn for half an hour.

    If hosts share the database, it closes them at once: their clients may come back elsewhere.

    Args:
        lim: stores the sessions.
        pending: the requests to clients.
        log: gets the errors that no client sees.
        clients: every client of the server.
        idle_s: how long an unused thread stays open, if that is not by this rule.

    Attributes:
        limner: stores the sessions.
        clients: every client of the server.
        live: the open threads, by id.
        defaults: the options of new threads, if the settings were changed since the start.
    """

    def __init__(
        self,
        lim: Limner,
        *,
        pending: PendingRequests,
        log: Callable[[str], None],
        clients: Clients,
        idle_s: float | None = None,
    ) -> None:
        self.limner, self._pending, self._log = lim, pending, log
        usual_s = 0.0 if lim.store.is_shared else IDLE_S
        self._idle_s = usual_s if idle_s is None else idle_s
        self.clients = clients
        self.live: dict[str, LiveThread] = {}
        self.defaults = SessionOptions()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._closing: set[asyncio.Future[None]] = set()

    @cached_property
    def history(self) -> ThreadHistory:
        """Reads stored threads for clients."""
        # A new thread has no history, and a client waits for it.
        from limner.frontends.appserver.inline_pictures import PictureInliner  # noqa: PLC0415
        from limner.frontends.appserver.thread_history import ThreadHistory  # noqa: PLC0415

        return ThreadHistory(inliner=PictureInliner(pictures=self.limner.pictures))

    def new_state(self) -> ThreadState:
        """The state of a thread before a client asks for anything."""
        return ThreadState(options=self.defaults)

    def adopt(self, settings: Settings) -> None:
        """Start new threads with the model and the rules of changed settings."""
        before = self.limner.settings
        self.defaults = SessionOptions(
            model=_changed(settings.model_roles.default, before.model_roles.default),
            approval=_changed(settings.approval.policy, before.approval.policy),
            sandbox=_changed(settings.agent.sandbox, before.agent.sandbox),
        )

    def get(self, thread_id: str) -> LiveThread:
        """The open thread with this id.

        Raises:
            RpcError: it is not open, or the id is invalid.
        """
        found = self.live.get(check_id(thread_id))
        if found is None:
            raise not_open(thread_id)
        return found

    async def stored(self, thread_id: str) -> tuple[Session, SessionAbout]:
        """The session of a thread, open or not.

        Raises:
            RpcError: there is none, or the id is invalid.
        """
        exact = check_id(thread_id)
        try:
            session = await self.limner.sessions.open(exact)
            if session.id != exact:
                raise not_stored(thread_id)
            return session, await session.about()
        except InputInvalid:
            raise not_stored(thread_id) from None

    async def create(self, state: ThreadState) -> LiveThread:
        """Create and open a thread.

        Raises:
            LimnerError: it cannot be stored.
        """
        cwd = state.extras.cwd or str(self.limner.cwd)
        session = await self.limner.sessions.create(cwd=cwd, settings=state.to_settings())
        lease = await self.limner.sessions.hold(session.id)
        return self._open(session, state, lease=lease, cwd=Path(cwd))

    async def load(self, session: Session) -> LiveThread:
        """The thread of a session; it is opened if it is not open.

        Raises:
            RpcError: it is archived, or another process has it open.
            InputInvalid: its stored options cannot be read.
        """
        async with self._lock(session.id):
            if (live := self.live.get(session.id)) is not None:
                self.unload_later(live)
                return live
            about = await session.about()  # another request may have archived it meanwhile
            if about.archived_ms is not None:
                raise invalid_request(f"session {session.id} is archived. Unarchive it first.")
            # Options that cannot be read may have forbidden something.
            parse_options(about.settings.get(OPTIONS_KEY, {}))
            with single_writer(session.id):
                lease = await self.limner.sessions.hold(session.id)
            state = ThreadState.from_settings(about.settings)
            return self._open(session, state, lease=lease, cwd=Path(about.cwd))

    async def unfinished_turn(self, thread: LiveThread) -> UnfinishedTurn | None:
        """The last turn of a thread, if clients can still answer calls in it.

        Calls of limner's own tools are never repeated: they may have been paid for.
        """
        from limner.frontends.appserver.thread_history import (  # noqa: PLC0415 - as in `history`
            read_turns,
        )

        turns_before, turns = thread.turns_started, await read_turns(thread.session)
        if thread.turn_id is not None or not turns or turns[-1].was_aborted:
            return None
        last, names = turns[-1], names_for_model(thread.state.tools)
        open_calls = [
            one.item
            for one in last.items
            if one.item.get("call_id") in last.unanswered and one.item.get("name") in names
        ]
        if not open_calls:
            return None
        return UnfinishedTurn(turn_id=last.id, calls=tuple(open_calls), turns_before=turns_before)

    def state_of(self, about: SessionAbout) -> ThreadState:
        """The state of a thread, open or not."""
        live = self.live.get(about.id)
        return ThreadState.from_settings(about.settings) if live is None else live.state

    async def save_state(self, about: SessionAbout, state: ThreadState) -> None:
        """Store a new state of a thread, open or not.

        Raises:
            RpcError: another process has it open.
        """
        live = self.live.get(about.id)
        if live is not None:
            await live.save(state)
            return
        with single_writer(about.id):
            await self.limner.sessions.configure(about.id, state.to_settings())

    def history_context(self, about: SessionAbout) -> HistoryContext:
        """What a reader of a history needs beside the items; the thread may be open or not."""
        if (live := self.live.get(about.id)) is not None:
            return live.history_context
        from limner.frontends.appserver.thread_history import (  # noqa: PLC0415 - as in `history`
            HistoryContext,
        )

        state = ThreadState.from_settings(about.settings)
        return HistoryContext(
            tools=names_for_model(state.tools),
            cwd=state.extras.cwd or about.cwd,
            failures=state.extras.failures,
        )

    def subscribe(self, thread: LiveThread, client: ClientConnection) -> None:
        """Subscribe a client; its notifications are held back until it is released."""
        if client not in thread.subscribers:
            forget = client.on_close(lambda: self.unsubscribe(thread, client))
            thread.subscribers.hold(client, on_leave=forget)

    @contextmanager
    def subscribing(self, thread: LiveThread, client: ClientConnection) -> Generator[None]:
        """Subscribe a client while its response is made; notifications follow the response.

        If the response fails, the client is not subscribed, unless it was before.
        """
        was_subscribed = client in thread.subscribers
        self.subscribe(thread, client)
        try:
            yield
        except BaseException:
            if not was_subscribed:
                self.unsubscribe(thread, client)
            raise
        thread.subscribers.release(client)

    def unsubscribe(self, thread: LiveThread, client: ClientConnection) -> None:
        """Send a client no more notifications of a thread."""
        thread.subscribers.leave(client)
        self.unload_later(thread)

    @asynccontextmanager
    async def closed(self, thread_id: str) -> AsyncGenerator[LiveThread | None]:
        """Close a thread if it is open, and keep it closed until the end of the context."""
        async with self._lock(thread_id):
            if (live := self.live.get(thread_id)) is not None:
                await self._close(live)
            yield live

    async def close(self, thread: LiveThread) -> None:
        """Close a thread; its running turn is interrupted."""
        async with self.closed(thread.id):
            pass

    async def _close(self, thread: LiveThread) -> None:
        await thread.stop()
        self.live.pop(thread.id, None)
        await thread.release()
        if thread.state.extras.ephemeral:
            with contextlib.suppress(LimnerError):  # another process has deleted it
                await self.limner.delete_session(thread.id)

    async def aclose(self) -> None:
        """Close every thread, as far as there is time for it."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await asyncio.gather(*(self.close(thread) for thread in [*self.live.values()]))

    def _open(self, session: Session, state: ThreadState, *, lease: Lease, cwd: Path) -> LiveThread:
        thread = LiveThread(
            session,
            state,
            lease=lease,
            cwd=cwd,
            lim=self.limner,
            pending=self._pending,
            log=self._log,
            on_idle=self.unload_later,
            clients=self.clients,
        )
        self.live[thread.id] = thread
        self.unload_later(thread)
        return thread

    def _lock(self, thread_id: str) -> asyncio.Lock:
        """One task at a time may open or close a thread."""
        return self._locks.setdefault(thread_id, asyncio.Lock())

    def unload_later(self, thread: LiveThread) -> None:
        """Check later whether a thread without subscribers is still used, and close it if not."""
        if len(thread.subscribers) == 0:
            thread.last_used = time.monotonic()
            asyncio.get_running_loop().call_later(self._idle_s, self._unload, thread)

    def _unload(self, thread: LiveThread) -> None:
        if self._is_idle(thread):
            closing = asyncio.ensure_future(self._close_idle(thread))
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    async def _close_idle(self, thread: LiveThread) -> None:
        async with self._lock(thread.id):
            # A client may have subscribed while this task waited for the lock.
            if self.live.get(thread.id) is thread and self._is_idle(thread):
                await self._close(thread)

    def _is_idle(self, thread: LiveThread) -> bool:
        is_used = len(thread.subscribers) > 0 or isinstance(thread.status, Active)
        return not is_used and time.monotonic() - thread.last_used >= self._idle_s


def _changed(now: T, before: T) -> T | None:
    return None if now == before else now
