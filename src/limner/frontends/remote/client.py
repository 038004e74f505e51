"""`limner.connect`: one app-server, limner's own or the real Codex, for as long as it is needed."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self, Unpack

from limner.client import Limner
from limner.content import Discreet
from limner.dollars import usd_to_nano
from limner.errors import LimnerError, UserError
from limner.frontends.remote import approvals
from limner.frontends.remote.approvals import Approve, decline
from limner.frontends.remote.connection import Params, Request, ServerConnection
from limner.frontends.remote.discovery import find_codex
from limner.frontends.remote.output_parts import OutputParts
from limner.frontends.remote.threads import Thread, ThreadOptions, named_in_protocol
from limner.frontends.remote.tool_calls import ToolCallServer, specs
from limner.frontends.remote.transports import ServerAddress, ServerCommand, Target
from limner.json_shapes import as_list, as_object
from limner.net.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, RpcError
from limner.storage.reach import Reach
from limner.tools.base import Tool, ToolContext
from limner.tools.function_tools import kept_in
from limner.tools.registry import ToolRegistry

# -P: a folder named limner, where this happens to run, is not what is meant.
OWN_SERVER = (sys.executable, "-P", "-m", "limner", "app-server")


class ThreadInfo(Discreet, frozen=True, kw_only=True):
    """A thread as a list shows it; the times are in seconds since 1970."""

    unshown = ("raw",)

    id: str
    preview: str
    cwd: str
    created_at: int
    updated_at: int
    raw: Mapping[str, Any]


class Client:
    """The threads at one app-server. Use it as ``async with limner.connect(…) as client``.

    A server that dies is started again, a connection that drops is opened again, and the threads
    are taken up: their next events begin with `Reconnected`.

    Args:
        target: where the server is.
        lim: whose pictures, money and settings the tools use; by default one of its own.
        approve: decides what only the user can decide; by default the answer is no.
    """

    def __init__(
        self, target: Target, *, lim: Limner | None = None, approve: Approve = decline
    ) -> None:
        self._given_lim, self._approve = lim, approve
        self._connection = ServerConnection(target, self)
        self._is_local = target.is_local
        self._showing = OutputParts(lambda: self.lim, is_local=target.is_local)
        self._threads: dict[str, Thread] = {}

    @cached_property
    def lim(self) -> Limner:
        """Whose pictures, money and settings the tools use."""
        return Limner() if self._given_lim is None else self._given_lim

    @property
    def server(self) -> str:
        """What the server says it is."""
        return str(self._connection.server.get("userAgent", ""))

    async def thread(
        self,
        *,
        tools: Sequence[Tool] = (),
        cwd: str | Path | None = None,
        budget_usd: Decimal | float | str | None = None,
        **options: Unpack[ThreadOptions],
    ) -> Thread:
        """Start a conversation.

        Args:
            tools: what its model may call of this program: made by `limner.tool`, or any other.
            cwd: the folder it works in; by default this process's own.
            budget_usd: the most that the tools may spend on it.
            options: what is different from the server's settings.

        Raises:
            LimnerError: the server refuses, or is gone.
        """
        thread = self._made("", tools=tools, cwd=cwd, budget_usd=budget_usd, options=options)
        await thread.open(self.request)
        self._threads[thread.id] = thread
        return thread

    async def resume(
        self,
        thread_id: str,
        *,
        tools: Sequence[Tool] = (),
        cwd: str | Path | None = None,
        budget_usd: Decimal | float | str | None = None,
        **options: Unpack[ThreadOptions],
    ) -> Thread:
        """Take up a conversation again, by its id; the arguments are those of `thread`.

        The tools that its model knows are those it was started with, where the server takes no new
        ones: give the same.

        Raises:
            UserError: it is in use here.
            LimnerError: the server does not have it, or is gone.
        """
        if thread_id in self._threads:
            raise UserError(f"The thread {thread_id} is in use here.")
        thread = self._made(thread_id, tools=tools, cwd=cwd, budget_usd=budget_usd, options=options)
        # Known before the server is asked: it may call at once for what was never answered.
        self._threads[thread_id] = thread
        try:
            await thread.open(self.request)
        except BaseException:
            del self._threads[thread_id]
            raise
        return thread

    async def fork(
        self,
        thread_id: str,
        *,
        tools: Sequence[Tool] = (),
        cwd: str | Path | None = None,
        budget_usd: Decimal | float | str | None = None,
        **options: Unpack[ThreadOptions],
    ) -> Thread:
        """A new conversation that begins as the one with that id has gone so far.

        Raises:
            LimnerError: the server does not have it, or is gone.
        """
        thread = self._made("", tools=tools, cwd=cwd, budget_usd=budget_usd, options=options)
        await thread.open_fork(thread_id, self.request)
        self._threads[thread.id] = thread
        return thread

    async def list(self, *, limit: int = 50, archived: bool = False) -> tuple[ThreadInfo, ...]:
        """The server's threads, the last one used first.

        Raises:
            LimnerError: the server refuses, or is gone.
        """
        answer = await self.request("thread/list", {"limit": limit, "archived": archived})
        return tuple(_info(as_object(one)) for one in as_list(answer.get("data")))

    async def request(self, method: str, params: Params) -> Mapping[str, Any]:
        """Ask the server for anything that has no method here.

        Raises:
            LimnerError: SERVER_REFUSED with the server's words, or SERVER_GONE.
        """
        return await self._connection.request(method, params)

    def on_notification(self, method: str, params: Params) -> None:
        """Take a notice of the server; one that is about no thread of ours is none of ours."""
        named: object = params.get("threadId")
        if isinstance(named, str) and (thread := self._threads.get(named)) is not None:
            thread.on_notification(method, params)

    async def on_request(self, method: str, params: Params) -> Any:
        """Answer a request of the server.

        Raises:
            RpcError: this client cannot.
        """
        if approvals.asks(method):
            return await approvals.answer(method, params, self._approve)
        if method != "item/tool/call":
            raise RpcError(METHOD_NOT_FOUND, f"This client does not answer {method[:80]}.")
        thread = self._threads.get(str(params.get("threadId")))
        if thread is None:
            raise RpcError(INVALID_PARAMS, "This client has no such thread.")
        return await thread.call_tool(params)

    async def on_reconnect(self, reason: str, request: Request) -> None:
        """Take up the threads again over a new link.

        Raises:
            LimnerError: the link is lost again.
        """
        for thread in tuple(self._threads.values()):
            await thread.on_reconnect(reason, request)
        # One that had never run was started anew, under another id.
        self._threads = {thread.id: thread for thread in self._threads.values()}

    def on_lost(self, error: LimnerError) -> None:
        """The server will not come back."""
        for thread in self._threads.values():
            thread.on_lost(error)

    async def __aenter__(self) -> Self:
        await self._connection.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            await self._connection.aclose()
            self.on_lost(LimnerError("The connection was closed.", code="SERVER_GONE"))
            await asyncio.gather(*(thread.aclose() for thread in self._threads.values()))
        finally:
            if self._given_lim is None and "lim" in vars(self):
                await self.lim.aclose()

    def _made(
        self,
        thread_id: str,
        *,
        tools: Sequence[Tool],
        cwd: str | Path | None,
        budget_usd: Decimal | float | str | None,
        options: ThreadOptions,
    ) -> Thread:
        folder = Path.cwd() if cwd is None else Path(cwd).absolute()
        params = named_in_protocol(options)
        if cwd is not None or self._is_local:
            params["cwd"] = str(folder)
        if tools:
            params["dynamicTools"] = specs(tools)
        budget_nano = None if budget_usd is None else usd_to_nano(budget_usd)
        return Thread(
            thread_id,
            request=self.request,
            ready=self._connection.ready,
            showing=self._showing,
            cwd=folder,
            params=params,
            desk=lambda thread: self._desk(thread, tools, budget_nano),
        )

    def _desk(
        self, thread: Thread, tools: Sequence[Tool], budget_nano: int | None
    ) -> ToolCallServer:
        def context() -> ToolContext:
            return ToolContext(
                session_id=thread.id,
                cwd=thread.cwd,
                reach=Reach.for_model(home=self.lim.home.folder, cwd=thread.cwd),
                budget_nano=budget_nano,
                ask=approvals.asker(thread.id, self._approve),
            )

        kept = [kept_in(lambda: self.lim.pictures, tool) for tool in tools]
        registry = ToolRegistry(kept, timeout_s=self.lim.settings.tools.timeout_s)
        return ToolCallServer(registry, context, self._showing, tell=thread.happened)


def connect(
    url: str | None = None,
    *,
    codex: str | Path | None = None,
    command: Sequence[str | Path] | None = None,
    token: str | None = None,
    env: Mapping[str, str] | None = None,
    lim: Limner | None = None,
    approve: Approve = decline,
) -> Client:
    """A client of an app-server: limner's own where nothing else is said.

    Args:
        url: a server that runs already: ``ws://HOST:PORT``, ``wss://…`` or ``unix:///PATH``.
        codex: the real Codex, by its path or its name on the PATH.
        command: any other program that speaks the protocol on its standard streams.
        token: what a server at a ``url`` wants to see.
        env: the whole environment of a program that is started; by default this process's own.
        lim: whose pictures, money and settings the tools of this program use.
        approve: decides what only the user can decide; by default the answer is no.

    Raises:
        UserError: more than one server is named, or there is no such Codex.
    """
    if sum(given is not None for given in (url, codex, command)) > 1:
        raise UserError("Name one app-server: a url, a codex or a command.")
    if url is not None:
        return Client(ServerAddress(url=url, token=token), lim=lim, approve=approve)
    words: Sequence[str | Path] = OWN_SERVER if command is None else command
    if codex is not None:
        words = (find_codex(codex), "app-server")
    return Client(
        ServerCommand(words=[str(word) for word in words], env=env), lim=lim, approve=approve
    )


def _info(raw: Mapping[str, Any]) -> ThreadInfo:
    return ThreadInfo(
        id=str(raw.get("id")),
        preview=str(raw.get("preview") or ""),
        cwd=str(raw.get("cwd") or ""),
        created_at=_seconds(raw.get("createdAt")),
        updated_at=_seconds(raw.get("updatedAt")),
        raw=raw,
    )


def _seconds(value: object) -> int:
    return int(value) if isinstance(value, int | float) else 0
