"""What can be called in a thread: our tools, and those that its clients bring and answer for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from limner.client import Limner
from limner.frontends.appserver.approvals import Approvals, Asker
from limner.frontends.appserver.client_calls import ClientCalls
from limner.frontends.appserver.client_tools import ClientTools, OnFound
from limner.frontends.appserver.inline_pictures import PictureInliner
from limner.frontends.appserver.notifications import TurnNotifications
from limner.frontends.appserver.protocol.notifications import WarningNotification
from limner.frontends.appserver.subscribers import Subscribers
from limner.frontends.appserver.thread_state import ThreadState
from limner.frontends.appserver.tool_answers import ToolAnswers
from limner.frontends.appserver.tool_hooks import ToolHooks
from limner.frontends.appserver.tool_specs import ToolSpec
from limner.net.jsonrpc_peer import PendingRequests
from limner.tools.base import Outcome, Question, ToolContext
from limner.tools.registry import ToolRegistry

CALLS_AT_ONCE = 32
# Beside what a client may take: its pictures have to be taken in.
TAKING_IN_S = 120.0


class ToolSetup(msgspec.Struct, frozen=True, kw_only=True):
    """The tools of a turn.

    Attributes:
        registry: all of them.
        named: the client's, by the names that the model has for them.
        brought: the names that are there because of the client.
    """

    registry: ToolRegistry
    named: Mapping[str, ToolSpec]
    brought: tuple[str, ...]


class ThreadTools:
    """Equips the turns of one thread.

    Args:
        thread_id: the thread.
        lim: whose tools are ours.
        audience: who answers for the others, and decides for the user.
        asking: what they are asked with.
        now: the turn that is under way.
        stop: ends it.
        on_found: hears which deferred tools the model has found.
    """

    def __init__(
        self,
        thread_id: str,
        *,
        lim: Limner,
        audience: Subscribers,
        asking: PendingRequests,
        now: Callable[[], TurnNotifications],
        stop: Callable[[], None],
        on_found: OnFound,
    ) -> None:
        self._thread_id, self._lim, self._audience = thread_id, lim, audience
        self._now, self._stop, self._on_found = now, stop, on_found
        self._timeout_s = lim.settings.appserver.tool_timeout_s
        self._approvals = Approvals(thread_id, audience=audience, asking=asking)
        self._calls = ClientCalls(
            thread_id,
            audience=audience,
            asking=asking,
            answers=ToolAnswers(ingress=lim.ingress),
            timeout_s=self._timeout_s,
        )
        self._attending = ToolHooks(
            ask=self.ask,
            inlining=PictureInliner(pictures=lim.pictures),
            drew=self._drew,
            is_heard=lambda: len(audience) > 0,
        )

    def equip(self, kept: ThreadState) -> ToolSetup:
        """The tools that hold; where a client's has the name of one of ours, it is the client's."""
        client = ClientTools(
            kept.tools,
            call=self._call,
            found=kept.rest.found,
            on_found=self._on_found,
            timeout_s=self._timeout_s + TAKING_IN_S,
        )
        theirs = client.tools()
        brought = tuple(tool.name for tool in theirs)
        ours = [
            self._attending.tool(tool)
            for tool in self._lim.conversation_tools()
            if tool.name not in brought and tool.name not in kept.rest.tools_off
        ]
        timeout_s = self._lim.settings.tools.timeout_s
        registry = ToolRegistry([*ours, *theirs], concurrency=CALLS_AT_ONCE, timeout_s=timeout_s)
        return ToolSetup(registry=registry, named=client.named, brought=brought)

    async def ask(
        self,
        question: Question,
        call_id: str = "",
        tool: str = "",
        arguments: Mapping[str, Any] | None = None,
    ) -> bool:
        """Have clients decide what only the user can; without a call, the turn itself asks."""
        telling = self._now()
        asker = Asker(
            turn_id=telling.turn_id,
            item_id=call_id or telling.turn_id,
            cwd=telling.cwd,
            tool=tool,
            arguments=arguments or {},
        )
        decision = await self._approvals.decide(question, asker, waiting=telling.waiting)
        if decision == "cancel":
            self._stop()
        return decision in ("accept", "acceptForSession")

    def _drew(self, call_id: str, pictures: Mapping[str, str]) -> None:
        self._now().drew(call_id, pictures)

    async def _call(
        self, spec: ToolSpec, arguments: Mapping[str, Any], context: ToolContext
    ) -> Outcome:
        telling, call_id = self._now(), context.call_id or ""
        turn_id = telling.turn_id
        answer = await self._calls.put(spec, arguments, call_id=call_id, turn_id=turn_id)
        telling.answered(call_id, answer.content_items)
        for warning in answer.warnings:
            self._audience.tell(WarningNotification(thread_id=self._thread_id, message=warning))
        return answer.outcome
