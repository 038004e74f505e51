"""The threads of one server: those that are open, and the way to those that are not."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from limner.agent.conversations import TERMS
from limner.agent.leases import Lease
from limner.agent.session import Session, SessionAbout
from limner.agent.terms import read_terms
from limner.client import Limner
from limner.doors.appserver.asking import Asking
from limner.doors.appserver.connection import Connection
from limner.doors.appserver.history import History, Told, kept_turns
from limner.doors.appserver.inlining import Inlining
from limner.doors.appserver.kept import Kept
from limner.doors.appserver.protocol.threads import Active
from limner.doors.appserver.refusals import check_id, not_open, not_stored, refusal, writing
from limner.doors.appserver.specs import names_for_model
from limner.doors.appserver.thread import LiveThread
from limner.errors import InputInvalid, LimnerError
from limner.wires.items import Item

IDLE_S = 30 * 60.0
LAST_WORDS_S = 1.0


class Unfinished(msgspec.Struct, frozen=True, kw_only=True):
    """A turn that an earlier process left, and the calls in it that clients can still answer."""

    turn_id: str
    calls: tuple[Item, ...]


class Threads:
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
        asking: Asking,
        log: Callable[[str], None],
        idle_s: float = IDLE_S,
    ) -> None:
        self.limner, self._asking, self._log, self._idle_s = lim, asking, log, idle_s
        self.history = History(inlining=Inlining(pictures=lim.pictures))
        self.live: dict[str, LiveThread] = {}
        self._opening = asyncio.Lock()
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

    async def begin(self, kept: Kept) -> LiveThread:
        """A new thread.

        Raises:
            LimnerError: it cannot be kept.
        """
        cwd = kept.rest.cwd or str(self.limner.cwd)
        session = await self.limner.sessions.create(cwd=cwd, settings=kept.settings())
        lease = await self.limner.sessions.hold(session.id)
        return self._opened(session, kept, lease=lease, cwd=Path(cwd))

    async def load(self, session: Session, about: SessionAbout) -> LiveThread:
        """The thread of a session, opened where it is not.

        Raises:
            RpcError: it was put away, or another process has it open.
            InputInvalid: nobody can tell what was agreed for it.
        """
        async with self._opening:
            if (live := self.live.get(session.id)) is not None:
                return live
            if about.archived_ms is not None:
                raise refusal(f"session {session.id} is archived. Unarchive it first.")
            # Terms that cannot be read may have forbidden something.
            read_terms(about.settings.get(TERMS, {}))
            with writing(session.id):
                lease = await self.limner.sessions.hold(session.id)
            kept = Kept.read(about.settings)
            return self._opened(session, kept, lease=lease, cwd=Path(about.cwd))

    async def unfinished(self, thread: LiveThread) -> Unfinished | None:
        """The last turn of a thread, where clients can still answer calls in it.

        Calls of our own tools are never made again: they may have been paid for.
        """
        turns = await kept_turns(thread.session)
        if thread.turn_id is not None or not turns or turns[-1].was_aborted:
            return None
        last, names = turns[-1], names_for_model(thread.kept.tools)
        open_calls = [
            one.item
            for one in last.items
            if one.item.get("call_id") in last.unanswered and one.item.get("name") in names
        ]
        return Unfinished(turn_id=last.id, calls=tuple(open_calls)) if open_calls else None

    def told(self, about: SessionAbout) -> Told:
        """What the items of a thread alone do not say, whether it is open or not."""
        if (live := self.live.get(about.id)) is not None:
            return live.told
        kept = Kept.read(about.settings)
        return Told(
            tools=names_for_model(kept.tools),
            cwd=kept.rest.cwd or about.cwd,
            failures=kept.rest.failures,
        )

    def listen(self, thread: LiveThread, client: Connection) -> None:
        """Let a client listen to a thread; what it is told waits until it is released."""
        if client not in thread.audience:
            thread.audience.hold(client)
            client.on_close(lambda: self.leave(thread, client))

    def leave(self, thread: LiveThread, client: Connection) -> None:
        """Let a client hear no more of a thread."""
        thread.audience.leave(client)
        self.rest(thread)

    async def close(self, thread: LiveThread) -> None:
        """Let a thread go; a turn that is under way in it ends."""
        thread.interrupt()
        await thread.ended()
        # Whoever opens it again must find it either open or free.
        async with self._opening:
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

    def _opened(self, session: Session, kept: Kept, *, lease: Lease, cwd: Path) -> LiveThread:
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
        return thread

    def rest(self, thread: LiveThread) -> None:
        """Look again in a while whether anybody still needs a thread."""
        if len(thread.audience) == 0:
            thread.touched = time.monotonic()
            asyncio.get_running_loop().call_later(self._idle_s, self._unload, thread)

    def _unload(self, thread: LiveThread) -> None:
        is_used = len(thread.audience) > 0 or isinstance(thread.status, Active)
        if not is_used and time.monotonic() - thread.touched >= self._idle_s:
            closing = asyncio.ensure_future(self.close(thread))
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
