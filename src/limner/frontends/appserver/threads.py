"""The threads of one server: those that are open, and the way to those that are not."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from weakref import WeakValueDictionary

from limner.agent.conversation import TERMS
from limner.agent.leases import Lease
from limner.agent.session import Session, SessionAbout
from limner.agent.session_options import read_terms
from limner.client import Limner
from limner.errors import InputInvalid, LimnerError
from limner.frontends.appserver.connection import ClientConnection
from limner.frontends.appserver.inline_pictures import PictureInliner
from limner.frontends.appserver.protocol.threads import Active
from limner.frontends.appserver.rpc_errors import check_id, not_open, not_stored, refusal, writing
from limner.frontends.appserver.thread import LiveThread, Unfinished
from limner.frontends.appserver.thread_history import HistoryContext, ThreadHistory, kept_turns
from limner.frontends.appserver.thread_state import ThreadState
from limner.frontends.appserver.tool_specs import names_for_model
from limner.net.jsonrpc_peer import PendingRequests

IDLE_S = 30 * 60.0
LAST_WORDS_S = 1.0


class ThreadTable:
    """Opens threads and lets them go: half an hour after nobody listens and nothing happens.

    Args:
        lim: whose sessions they are.
        asking: what clients are asked with.
        log: hears what nobody is told.
        idle_s: how long a thread stays open that nobody needs.

    Attributes:
        limner: whose sessions they are.
        history: reads them for clients.
        live: those that are open, by id.
    """

    def __init__(
        self,
        lim: Limner,
        *,
        asking: PendingRequests,
        log: Callable[[str], None],
        idle_s: float = IDLE_S,
    ) -> None:
        self.limner, self._asking, self._log, self._idle_s = lim, asking, log, idle_s
        self.history = ThreadHistory(inlining=PictureInliner(pictures=lim.pictures))
        self.live: dict[str, LiveThread] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._closing: set[asyncio.Future[None]] = set()

    def get(self, thread_id: str) -> LiveThread:
        """The open thread with that id.

        Raises:
            RpcError: it is not open, or that is no id.
        """
        found = self.live.get(check_id(thread_id))
        if found is None:
            raise not_open(thread_id)
        return found

    async def stored(self, thread_id: str) -> tuple[Session, SessionAbout]:
        """A thread in the store, open or not.

        Raises:
            RpcError: there is none, or that is no id.
        """
        exact = check_id(thread_id)
        try:
            session = await self.limner.sessions.open(exact)
            if session.id != exact:
                raise not_stored(thread_id)
            return session, await session.about()
        except InputInvalid:
            raise not_stored(thread_id) from None

    async def begin(self, kept: ThreadState) -> LiveThread:
        """A new thread.

        Raises:
            LimnerError: it cannot be kept.
        """
        cwd = kept.rest.cwd or str(self.limner.cwd)
        session = await self.limner.sessions.create(cwd=cwd, settings=kept.settings())
        lease = await self.limner.sessions.hold(session.id)
        return self._opened(session, kept, lease=lease, cwd=Path(cwd))

    async def load(self, session: Session) -> LiveThread:
        """The thread of a session, opened where it is not.

        Raises:
            RpcError: it was put away, or another process has it open.
            InputInvalid: nobody can tell what was agreed for it.
        """
        async with self._only_one(session.id):
            if (live := self.live.get(session.id)) is not None:
                self.rest(live)
                return live
            about = await session.about()  # somebody may have put it away in between
            if about.archived_ms is not None:
                raise refusal(f"session {session.id} is archived. Unarchive it first.")
            # Terms that cannot be read may have forbidden something.
            read_terms(about.settings.get(TERMS, {}))
            with writing(session.id):
                lease = await self.limner.sessions.hold(session.id)
            kept = ThreadState.read(about.settings)
            return self._opened(session, kept, lease=lease, cwd=Path(about.cwd))

    async def unfinished(self, thread: LiveThread) -> Unfinished | None:
        """The last turn of a thread, where clients can still answer calls in it.

        Calls of our own tools are never made again: they may have been paid for.
        """
        turns_before, turns = thread.turns_begun, await kept_turns(thread.session)
        if thread.turn_id is not None or not turns or turns[-1].was_aborted:
            return None
        last, names = turns[-1], names_for_model(thread.kept.tools)
        open_calls = [
            one.item
            for one in last.items
            if one.item.get("call_id") in last.unanswered and one.item.get("name") in names
        ]
        if not open_calls:
            return None
        return Unfinished(turn_id=last.id, calls=tuple(open_calls), turns_before=turns_before)

    def told(self, about: SessionAbout) -> HistoryContext:
        """What the items of a thread alone do not say, whether it is open or not."""
        if (live := self.live.get(about.id)) is not None:
            return live.told
        kept = ThreadState.read(about.settings)
        return HistoryContext(
            tools=names_for_model(kept.tools),
            cwd=kept.rest.cwd or about.cwd,
            failures=kept.rest.failures,
        )

    def listen(self, thread: LiveThread, client: ClientConnection) -> None:
        """Let a client listen to a thread; what it is told waits until it is released."""
        if client not in thread.audience:
            forget = client.on_close(lambda: self.leave(thread, client))
            thread.audience.hold(client, at_leave=forget)

    @contextmanager
    def showing(self, thread: LiveThread, client: ClientConnection) -> Generator[None]:
        """Let a client listen to a thread that it is about to be shown.

        Where that fails it does not listen, unless it did before.
        """
        was_there = client in thread.audience
        self.listen(thread, client)
        try:
            yield
        except BaseException:
            if not was_there:
                self.leave(thread, client)
            raise
        thread.audience.release(client)

    def leave(self, thread: LiveThread, client: ClientConnection) -> None:
        """Let a client hear no more of a thread."""
        thread.audience.leave(client)
        self.rest(thread)

    @asynccontextmanager
    async def closed(self, thread_id: str) -> AsyncGenerator[LiveThread | None]:
        """Let a thread go if it is open; nobody opens it again before this is over."""
        async with self._only_one(thread_id):
            if (live := self.live.get(thread_id)) is not None:
                await self._end(live)
            yield live

    async def close(self, thread: LiveThread) -> None:
        """Let a thread go; a turn that is under way in it ends."""
        async with self.closed(thread.id):
            pass

    async def _end(self, thread: LiveThread) -> None:
        await thread.stop()
        self.live.pop(thread.id, None)
        await thread.release()
        if thread.kept.rest.ephemeral:
            with contextlib.suppress(LimnerError):  # somebody deleted it before
                await self.limner.delete_session(thread.id)

    async def aclose(self) -> None:
        """End every turn in good order, as far as there is time for it."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORDS_S):
                await asyncio.gather(*(self.close(thread) for thread in [*self.live.values()]))

    def _opened(
        self, session: Session, kept: ThreadState, *, lease: Lease, cwd: Path
    ) -> LiveThread:
        thread = LiveThread(
            session,
            kept,
            lease=lease,
            cwd=cwd,
            lim=self.limner,
            asking=self._asking,
            log=self._log,
            rested=self.rest,
        )
        self.live[thread.id] = thread
        self.rest(thread)
        return thread

    def _only_one(self, thread_id: str) -> asyncio.Lock:
        """Whoever opens a thread or lets it go does so alone."""
        return self._locks.setdefault(thread_id, asyncio.Lock())

    def rest(self, thread: LiveThread) -> None:
        """Look again in a while whether anybody still needs a thread."""
        if len(thread.audience) == 0:
            thread.touched = time.monotonic()
            asyncio.get_running_loop().call_later(self._idle_s, self._unload, thread)

    def _unload(self, thread: LiveThread) -> None:
        if self._is_idle(thread):
            closing = asyncio.ensure_future(self._close_idle(thread))
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    async def _close_idle(self, thread: LiveThread) -> None:
        async with self._only_one(thread.id):
            # Somebody may have come for it while others were served.
            if self.live.get(thread.id) is thread and self._is_idle(thread):
                await self._end(thread)

    def _is_idle(self, thread: LiveThread) -> bool:
        is_used = len(thread.audience) > 0 or isinstance(thread.status, Active)
        return not is_used and time.monotonic() - thread.touched >= self._idle_s
