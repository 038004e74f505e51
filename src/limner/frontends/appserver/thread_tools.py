"""The tools of a thread: limner's, and those that its clients bring and answer for."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from limner.client import Limner
from limner.content import Picture
from limner.frontends.appserver.approvals import Approvals, ApprovalSource
from limner.frontends.appserver.client_calls import ClientCalls
from limner.frontends.appserver.client_tools import ClientTools, OnFound
from limner.frontends.appserver.inline_pictures import PictureInliner
from limner.frontends.appserver.notifications import TurnNotifications
from limner.frontends.appserver.protocol.notifications import WarningNotification
from limner.frontends.appserver.subscribers import Subscribers
from limner.frontends.appserver.thread_state import ThreadState
from limner.frontends.appserver.tool_answers import ToolAnswers
from limner.frontends.appserver.tool_specs import ToolSpec
from limner.net.jsonrpc_peer import PendingRequests
from limner.tools.base import Outcome, Question, Tool, ToolContext
from limner.tools.registry import ToolRegistry
from limner.wires.base import HANDLE_URL

CALLS_AT_ONCE = 32
# Added to the time of a client's tool, for storing the pictures of its answer.
STORING_S = 120.0


class ToolSetup(msgspec.Struct, frozen=True, kw_only=True):
    """The tools of a turn.

    Attributes:
        registry: all of them.
        named: the client's tools, by the names that the model has for them.
        client_names: the names that are there because of the client, with the search tool's.
    """

    registry: ToolRegistry
    named: Mapping[str, ToolSpec]
    client_names: tuple[str, ...]


class ThreadTools:
    """Sets up the tools for the turns of one thread.

    Args:
        thread_id: the thread.
        lim: has limner's own tools.
        subscribers: the clients that answer for their tools and decide for the user.
        pending: the requests to clients.
        running: the notifications of the running turn.
        interrupt: interrupts the running turn.
        on_found: gets the names of the deferred tools that the model has found.
    """

    def __init__(
        self,
        thread_id: str,
        *,
        lim: Limner,
        subscribers: Subscribers,
        pending: PendingRequests,
        running: Callable[[], TurnNotifications],
        interrupt: Callable[[], None],
        on_found: OnFound,
    ) -> None:
        self._thread_id, self._lim, self._subscribers = thread_id, lim, subscribers
        self._running, self._interrupt, self._on_found = running, interrupt, on_found
        self._timeout_s = lim.settings.appserver.tool_timeout_s
        self._inliner = PictureInliner(pictures=lim.pictures)
        self._approvals = Approvals(thread_id, subscribers=subscribers, pending=pending)
        self._calls = ClientCalls(
            thread_id,
            subscribers=subscribers,
            pending=pending,
            answers=ToolAnswers(ingress=lim.ingress),
            timeout_s=self._timeout_s,
        )

    def setup(self, state: ThreadState) -> ToolSetup:
        """The tools for a state. A client's tool replaces a tool of limner with its name."""
        client = ClientTools(
            state.tools,
            call=self._call_client,
            found=state.extras.found,
            on_found=self._on_found,
            timeout_s=self._timeout_s + STORING_S,
        )
        theirs = client.tools()
        client_names = tuple(tool.name for tool in theirs)
        ours = [
            self._with_clients(tool)
            for tool in self._lim.conversation_tools()
            if tool.name not in client_names and tool.name not in state.extras.tools_off
        ]
        timeout_s = self._lim.settings.tools.timeout_s
        registry = ToolRegistry([*ours, *theirs], concurrency=CALLS_AT_ONCE, timeout_s=timeout_s)
        return ToolSetup(registry=registry, named=client.named, client_names=client_names)

    async def ask(
        self,
        question: Question,
        call_id: str = "",
        tool: str = "",
        arguments: Mapping[str, Any] | None = None,
    ) -> bool:
        """Let the user decide through a client; without a call, the turn itself asks."""
        notifications = self._running()
        source = ApprovalSource(
            turn_id=notifications.turn_id,
            item_id=call_id or notifications.turn_id,
            cwd=notifications.cwd,
            tool=tool,
            arguments=arguments or {},
        )
        decision = await self._approvals.decide(
            question, source, on_waiting=notifications.set_waiting
        )
        if decision == "cancel":
            self._interrupt()
        return decision in ("accept", "acceptForSession")

    def _with_clients(self, tool: Tool) -> Tool:
        """A tool of limner that asks the user through clients, and shows them its pictures."""

        async def run(arguments: Mapping[str, Any], context: ToolContext) -> Outcome:
            call_id = context.call_id or ""

            async def ask(question: Question) -> bool:
                return await self.ask(question, call_id, tool.name, arguments)

            outcome = await tool.run(arguments, replace(context, ask=ask))
            # The outcome may have been paid for: an interruption must not lose it.
            with contextlib.suppress(asyncio.CancelledError):
                await self._load_pictures(call_id, outcome)
            return outcome

        return replace(tool, run=run)

    async def _load_pictures(self, call_id: str, outcome: Outcome) -> None:
        urls = [f"{HANDLE_URL}{one.handle}" for one in outcome.content if isinstance(one, Picture)]
        if urls and len(self._subscribers) > 0:
            self._running().note_pictures(call_id, await self._inliner.load(urls))

    async def _call_client(self, spec: ToolSpec, arguments: Any, context: ToolContext) -> Outcome:
        notifications, call_id = self._running(), context.call_id or ""
        answer = await self._calls.call(
            spec, arguments, call_id=call_id, turn_id=notifications.turn_id
        )
        notifications.note_answer(call_id, answer.content_items)
        for warning in answer.warnings:
            notice = WarningNotification(thread_id=self._thread_id, message=warning)
            self._subscribers.notify(notice)
        return answer.outcome
