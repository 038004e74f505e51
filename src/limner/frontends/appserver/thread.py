"""One open thread: its conversation, who listens to it, and the turn that is under way in it."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from limner.agent.conversation import Conversation
from limner.agent.events import TurnEnded
from limner.agent.leases import Lease
from limner.agent.session import Session
from limner.agent.session_options import SessionOptions
from limner.agent.sessions import new_id
from limner.client import Limner
from limner.errors import LimnerError
from limner.frontends.appserver.inputs import ParsedInput
from limner.frontends.appserver.notifications import TurnContext, TurnNotifications
from limner.frontends.appserver.protocol.notifications import (
    ErrorNotification,
    ThreadStatusChangedNotification,
    TokenUsageBreakdown,
    WarningNotification,
)
from limner.frontends.appserver.protocol.threads import Idle, ThreadStatus
from limner.frontends.appserver.rpc_errors import not_open, refusal, turn_error
from limner.frontends.appserver.subscribers import Subscribers
from limner.frontends.appserver.thread_history import HistoryContext
from limner.frontends.appserver.thread_state import ThreadState
from limner.frontends.appserver.thread_tools import ThreadTools
from limner.net.jsonrpc_peer import PendingRequests
from limner.net.redaction import redact
from limner.wires.items import Item

NOTHING = TokenUsageBreakdown(
    total_tokens=0,
    input_tokens=0,
    cached_input_tokens=0,
    output_tokens=0,
    reasoning_output_tokens=0,
)

Begun = Callable[[str], None]
"""Hears the id of the turn, before anybody is told of it."""


class RunningTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn that runs; one that only sums up the conversation cannot be joined."""

    id: str
    task: asyncio.Task[None]
    telling: TurnNotifications
    can_be_joined: bool


class Unfinished(msgspec.Struct, frozen=True, kw_only=True):
    """A turn that an earlier process left, and the calls in it that clients can still answer.

    ``turns_before`` is how many turns had begun in the open thread when this was found out.
    """

    turn_id: str
    calls: tuple[Item, ...]
    turns_before: int


class LiveThread:
    """A thread that is open in this process.

    Args:
        session: what happens is kept there.
        kept: what holds for it.
        lease: keeps other processes from writing to it.
        cwd: the folder it was begun in.
        lim: whose models, tools and pictures it uses.
        asking: what clients are asked with.
        log: hears what nobody is told.
        rested: is called when a turn is over.

    Attributes:
        audience: the clients that listen.
        touched: when something last happened, by the monotonic clock.
        turns_begun: how many turns have begun since it was opened.
    """

    def __init__(
        self,
        session: Session,
        kept: ThreadState,
        *,
        lease: Lease,
        cwd: Path,
        lim: Limner,
        asking: PendingRequests,
        log: Callable[[str], None],
        rested: Callable[[LiveThread], None],
    ) -> None:
        self.id, self.session, self.kept = session.id, session, kept
        self.audience = Subscribers()
        self.touched = time.monotonic()
        self.turns_begun = 0
        self._is_closed = False
        self._lim, self._log, self._rested, self._begun_in = lim, log, rested, cwd
        self._status: ThreadStatus = Idle()
        self._under_way: RunningTurn | None = None
        self._task: asyncio.Task[None] | None = None
        self._tools = ThreadTools(
            self.id,
            lim=lim,
            audience=self.audience,
            asking=asking,
            now=self._telling,
            stop=self.interrupt,
            on_found=self._found,
        )
        self._equipment = self._tools.equip(kept)
        conversations = lim.conversations
        self._conversation = Conversation(
            session,
            lease=lease,
            terms=kept.terms,
            cwd=self.cwd,
            tools=lambda: self._equipment.registry,
            standings=conversations.standings,
            parts=conversations.parts,
        )

    @property
    def cwd(self) -> Path:
        """The folder it works in."""
        return self._begun_in if self.kept.rest.cwd is None else Path(self.kept.rest.cwd)

    @property
    def status(self) -> ThreadStatus:
        """What it is doing."""
        return self._status if self._under_way is None else self._under_way.telling.status

    @property
    def turn_id(self) -> str | None:
        """The turn that is under way."""
        return None if self._under_way is None else self._under_way.id

    @property
    def told(self) -> HistoryContext:
        """What its items alone do not say."""
        return HistoryContext(
            tools=self._equipment.named,
            cwd=str(self.cwd),
            running=self.turn_id,
            failures=self.kept.rest.failures,
        )

    async def keep(self, kept: ThreadState) -> None:
        """Let something else hold from the next turn on, once it is in the store."""
        tools_changed = (kept.tools, kept.rest.tools_off) != (
            self.kept.tools,
            self.kept.rest.tools_off,
        )
        self.kept = kept
        await self._lim.sessions.configure(self.id, kept.settings())
        if tools_changed:
            self._equipment = self._tools.equip(kept)

    async def say(
        self, said: Sequence[ParsedInput], *, begun: Begun, schema: Mapping[str, Any] | None = None
    ) -> None:
        """Begin a turn with what a user says, or join the one that is under way.

        Raises:
            RpcError: the thread is being let go.
            LimnerError: no turn can begin, as without a key.
        """
        while (now := self._under_way) is not None:
            if self._joined(now, said):
                begun(now.id)
                return
            # One that is about to begin can be joined in a moment.
            await (asyncio.wait({now.task}) if now.telling.has_begun else asyncio.sleep(0))
        items = [one.item for one in said]
        await self._take(
            lambda telling: self._run(items, telling, schema=schema), said=said, begun=begun
        )

    async def go_on(self, left: Unfinished) -> None:
        """Go on with a turn of an earlier process, unless somebody else came first.

        Where it cannot go on, whoever listens is told: they were shown a turn that is under way.
        """
        if self.turn_id is not None or self.turns_begun != left.turns_before:
            return
        try:
            await self._take(
                lambda telling: self._run((), telling, pending=left.calls),
                begun=lambda _: None,
                turn_id=left.turn_id,
            )
        except LimnerError as failure:
            self.audience.tell(
                ErrorNotification(
                    error=turn_error(failure),
                    will_retry=False,
                    thread_id=self.id,
                    turn_id=left.turn_id,
                )
            )
            status = ThreadStatusChangedNotification(thread_id=self.id, status=self.status)
            self.audience.tell(status)

    async def compact(self, *, begun: Begun) -> None:
        """Have the conversation summed up; a turn that is under way ends for it.

        Raises:
            RpcError: the thread is being let go.
            LimnerError: no turn can begin, as without a key.
        """
        while (now := self._under_way) is not None:
            self.interrupt()
            await asyncio.wait({now.task})
        await self._take(
            lambda telling: self._conversation.compact(tell=telling.tell, turn_id=telling.turn_id),
            begun=begun,
            can_be_joined=False,
        )

    def steer(self, said: Sequence[ParsedInput], *, expected: str) -> str:
        """Say something in the middle of a turn; the id of the turn.

        Raises:
            RpcError: that turn is not under way.
        """
        now = self._under_way
        if now is None:
            raise refusal("no active turn to steer")
        if now.id != expected:
            raise refusal(f"expected active turn id `{expected[:80]}` but found `{now.id}`")
        if not self._joined(now, said):
            raise refusal("no active turn to steer")
        return now.id

    def interrupt(self) -> None:
        """End the turn that is under way, if there is one."""
        if self._conversation.turn is not None:
            self._conversation.turn.interrupt()
        elif self._under_way is not None and not self._under_way.telling.has_begun:
            # Its task has not taken its first step yet.
            asyncio.get_running_loop().call_soon(self.interrupt)

    async def ended(self) -> None:
        """Wait until no turn is under way, and what is to be known of the last one is kept."""
        if self._task is not None:
            await asyncio.wait({self._task})

    async def stop(self) -> None:
        """End the turn that is under way; it takes no more turns."""
        self._is_closed = True
        self.interrupt()
        await self.ended()

    async def release(self) -> None:
        """Let others write to it."""
        await self._conversation.aclose()

    def warn(self, *messages: str) -> None:
        """Tell whoever listens what they should know."""
        for message in messages:
            self.audience.tell(WarningNotification(thread_id=self.id, message=message))

    def _joined(self, now: RunningTurn, said: Sequence[ParsedInput]) -> bool:
        turn = self._conversation.turn
        if not now.can_be_joined or turn is None or turn.is_over:
            return False
        for one in said:
            now.telling.expect(one.item, one.given)
        turn.steer([one.item for one in said])
        return True

    async def _take(
        self,
        work: Callable[[TurnNotifications], Awaitable[TurnEnded]],
        *,
        begun: Begun,
        said: Sequence[ParsedInput] = (),
        turn_id: str | None = None,
        can_be_joined: bool = True,
    ) -> None:
        """Begin a turn; returns when it has begun."""
        if self._is_closed:
            raise not_open(self.id)
        named = new_id() if turn_id is None else turn_id
        running: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def has_begun() -> None:
            self.turns_begun += 1
            begun(named)
            running.set_result(None)

        telling = TurnNotifications(self._scene(), named, begun=has_begun)
        for one in said:
            telling.expect(one.item, one.given)
        self._conversation.terms, self._conversation.cwd = self._terms(), self.cwd
        task = self._task = asyncio.ensure_future(self._follow(work(telling), telling))
        self._under_way = RunningTurn(
            id=named, task=task, telling=telling, can_be_joined=can_be_joined
        )
        await asyncio.wait({running, task}, return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            running.cancel()
            task.result()

    async def _run(
        self,
        items: Sequence[Item],
        telling: TurnNotifications,
        *,
        schema: Mapping[str, Any] | None = None,
        pending: Sequence[Item] = (),
    ) -> TurnEnded:
        return await self._conversation.run(
            items,
            tell=telling.tell,
            ask=self._tools.ask,
            turn_id=telling.turn_id,
            schema=schema,
            pending=pending,
        )

    async def _follow(self, work: Awaitable[TurnEnded], telling: TurnNotifications) -> None:
        """Take a turn to its end, whatever that is, and keep what is to be known of it."""
        try:
            ended = await self._ending(work, telling)
            if ended.error is not None:
                kept = self.kept.failed(telling.turn_id, turn_error(ended.error))
                await self._remember(telling.count(kept))
            telling.conclude(ended)
        finally:
            self._under_way, self._status = None, telling.status
            self.touched = time.monotonic()
            self._rested(self)
        if ended.error is None:
            await self._remember(telling.count(self.kept))

    async def _ending(self, work: Awaitable[TurnEnded], telling: TurnNotifications) -> TurnEnded:
        try:
            return await work
        except Exception as bug:
            if isinstance(telling.status, Idle):
                raise  # it has not even begun, and whoever wants it is told
            # The outermost frame of a turn: the server goes on, and so may the thread.
            self._log(f"turn {telling.turn_id} failed:\n{traceback.format_exc()}")
            return TurnEnded(
                turn_id=telling.turn_id,
                status="failed",
                text="",
                is_cut=False,
                error=LimnerError(redact(f"Internal error: {type(bug).__name__}: {bug}")),
                cost_nano=0,
                spent_nano=0,
            )

    async def _remember(self, kept: ThreadState) -> None:
        try:
            await self.keep(kept)
        except LimnerError as failure:
            self._log(f"what is known of thread {self.id} could not be kept: {failure.message}")

    def _scene(self) -> TurnContext:
        registry = self._equipment.registry
        return TurnContext(
            thread_id=self.id,
            cwd=str(self.cwd),
            tools=self._equipment.named,
            is_tool=lambda name: registry.get(name) is not None,
            counted=self.kept.rest.tokens or NOTHING,
            tell=self.audience.tell,
            show=self.audience.show,
        )

    def _terms(self) -> SessionOptions:
        """The terms for the next turn: what a client brings may be called, whoever speaks."""
        terms, lim = self.kept.terms, self._lim
        if terms.toolset is not None or not self._equipment.brought:
            return terms
        who = lim.personalities.get(terms.personality or lim.settings.agent.personality)
        if who.toolset is None:
            return terms
        return replace(terms, toolset=(*who.toolset, *self._equipment.brought))

    def _telling(self) -> TurnNotifications:
        assert self._under_way is not None, "tools are called in turns"
        return self._under_way.telling

    async def _found(self, names: frozenset[str]) -> None:
        await self.keep(self.kept.but(found=tuple(sorted(names))))
