"""`limner.connect` -> a client of one app-server, limner's own or the real Codex."""

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
from limner.frontends.remote.threads import Thread, ThreadOptions, in_camel_case
from limner.frontends.remote.tool_calls import ToolCallServer, tool_specs
from limner.frontends.remote.transports import ServerAddress, ServerCommand, Target
from limner.json_shapes import as_list, as_object
from limner.net.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, RpcError
from limner.storage.reach import Reach
from limner.tools.base import Tool, ToolContext
from limner.tools.function_tools import kept_in
from limner.tools.registry import ToolRegistry

# -P: Python must not import a folder named limner from the current folder.
OWN_SERVER = (sys.executable, "-P", "-m", "limner", "app-server")


class ThreadInfo(Discreet, frozen=True, kw_only=True):
    """A thread in a list; the times are in seconds since 1970."""

    unshown = ("raw",)

    id: str
    preview: str
    cwd: str
    created_at: int
    updated_at: int
    raw: Mapping[str, object]


class Client:
    """The threads at one app-server. Use it as ``async with limner.connect(…) as client``.

    If the server dies it is started again; if the connection drops it is opened again. The threads
    are resumed: their next events begin with `Reconnected`.

    Args:
        target: where the server is.
        lim: has the pictures, money and settings that the tools use; by default a new one.
        approve: asks the user for approval; by default the answer is no.
    """

    # `connect` makes it, and the connection calls the others.
    _internal = frozenset({"__init__", "on_notification", "on_request", "on_reconnect", "on_lost"})

    def __init__(
        self, target: Target, *, lim: Limner | None = None, approve: Approve = decline
    ) -> None:
        self._given_lim, self._approve = lim, approve
        self._connection = ServerConnection(target, self)
        self._is_local = target.is_local
        self._output = OutputParts(lambda: self.lim, is_local=target.is_local)
        self._threads: dict[str, Thread] = {}

    @cached_property
    def lim(self) -> Limner:
        """Has the pictures, money and settings that the tools use."""
        return Limner() if self._given_lim is None else self._given_lim

    @property
    def server(self) -> str:
        """The name and version that the server gives itself."""
        return str(self._connection.server.get("userAgent", ""))

    async def thread(
        self,
        *,
        tools: Sequence[Tool] = (),
        cwd: str | Path | None = None,
        budget_usd: Decimal | float | str | None = None,
        **options: Unpack[ThreadOptions],
    ) -> Thread:
        """Start a thread.

        Args:
            tools: tools of this program that the model may call, such as `limner.tool` makes.
            cwd: the folder it works in; by default this process's own.
            budget_usd: the most that the tools may spend on it.
            options: what differs from the server's settings.

        Raises:
            LimnerError: the server refuses, or is gone.
        """
        thread = self._make_thread("", tools, cwd=cwd, budget_usd=budget_usd, options=options)
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
        """Resume a thread by its id; the arguments are those of `thread`.

        Give the same tools as at its start: a server may not accept new ones.

        Raises:
            UserError: this client already uses it.
            LimnerError: the server does not have it, or is gone.
        """
        if thread_id in self._threads:
            raise UserError(f"This client already uses the thread {thread_id}.")
        thread = self._make_thread(
            thread_id, tools, cwd=cwd, budget_usd=budget_usd, options=options
        )
        # Before the request: the server may call a tool at once that has not answered yet.
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
        """Start a thread as a copy of the one with that id.

        Raises:
            LimnerError: the server does not have it, or is gone.
        """
        thread = self._make_thread("", tools, cwd=cwd, budget_usd=budget_usd, options=options)
        await thread.open_fork(thread_id, self.request)
        self._threads[thread.id] = thread
        return thread

    async def list(self, *, limit: int = 50, archived: bool = False) -> tuple[ThreadInfo, ...]:
        """List the server's threads, the last one used first.

        Raises:
            LimnerError: the server refuses, or is gone.
        """
        response = await self.request("thread/list", {"limit": limit, "archived": archived})
        return tuple(_thread_info(as_object(one)) for one in as_list(response.get("data")))

    async def request(self, method: str, params: Mapping[str, object]) -> Mapping[str, object]:
        """Send a request for which this class has no method.

        Raises:
            LimnerError: SERVER_REFUSED with the server's message, or SERVER_GONE.
        """
        return await self._connection.request(method, params)

    def on_notification(self, method: str, params: Params) -> None:
        """Pass a notification to its thread; others are ignored."""
        thread_id: object = params.get("threadId")
        if isinstance(thread_id, str) and (thread := self._threads.get(thread_id)) is not None:
            thread.on_notification(method, params)

    async def on_request(self, method: str, params: Params) -> Any:
        """Answer a request of the server.

        Raises:
            RpcError: this client cannot.
        """
        if approvals.is_approval(method):
            return await approvals.respond(method, params, self._approve)
        if method != "item/tool/call":
            raise RpcError(METHOD_NOT_FOUND, f"This client does not answer {method[:80]}.")
        thread = self._threads.get(str(params.get("threadId")))
        if thread is None:
            raise RpcError(INVALID_PARAMS, "This client has no such thread.")
        return await thread.call_tool(params)

    async def on_reconnect(self, reason: str, request: Request) -> None:
        """Resume the threads over a new connection.

        Raises:
            LimnerError: the connection is lost again.
        """
        for thread in tuple(self._threads.values()):
            await thread.on_reconnect(reason, request)
        # A thread without a turn was started again, under another id.
        self._threads = {thread.id: thread for thread in self._threads.values()}

    def on_lost(self, error: LimnerError) -> None:
        """The connection will not come back."""
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

    def _make_thread(
        self,
        thread_id: str,
        tools: Sequence[Tool],
        *,
        cwd: str | Path | None,
        budget_usd: Decimal | float | str | None,
        options: ThreadOptions,
    ) -> Thread:
        folder = Path.cwd() if cwd is None else Path(cwd).absolute()
        params = in_camel_case(options)
        if cwd is not None or self._is_local:
            params["cwd"] = str(folder)
        if tools:
            params["dynamicTools"] = tool_specs(tools)
        budget_nano = None if budget_usd is None else usd_to_nano(budget_usd)
        return Thread(
            thread_id,
            request=self.request,
            ready=self._connection.ready,
            output=self._output,
            cwd=folder,
            params=params,
            make_tools=lambda thread: self._make_tools(thread, tools, budget_nano),
        )

    def _make_tools(
        self, thread: Thread, tools: Sequence[Tool], budget_nano: int | None
    ) -> ToolCallServer:
        def context() -> ToolContext:
            return ToolContext(
                session_id=thread.id,
                cwd=thread.cwd,
                reach=Reach.for_model(home=self.lim.home, cwd=thread.cwd),
                budget_nano=budget_nano,
                ask=approvals.ask_with(self._approve, thread.id),
            )

        stored = [kept_in(lambda: self.lim.pictures, tool) for tool in tools]
        registry = ToolRegistry(stored, timeout_s=self.lim.settings.tools.timeout_s)
        return ToolCallServer(registry, context, self._output, report=thread.report)


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
    """Make a client of an app-server: limner's own by default.

    Args:
        url: a running server: ``ws://HOST:PORT``, ``wss://…`` or ``unix:///PATH``.
        codex: the real Codex, by its path or its name on the PATH.
        command: any other program that speaks the protocol on its standard streams.
        token: the bearer token of a server at a ``url``.
        env: the whole environment of a program that is started; by default this process's own.
        lim: has the pictures, money and settings that the tools of this program use.
        approve: asks the user for approval; by default the answer is no.

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


def _thread_info(raw: Mapping[str, Any]) -> ThreadInfo:
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
