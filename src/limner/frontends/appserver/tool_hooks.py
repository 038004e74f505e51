"""A tool of ours -> the same tool, with clients who decide for its user and see its pictures."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from limner.content import Picture
from limner.frontends.appserver.inline_pictures import PictureInliner
from limner.tools.base import Outcome, Question, Tool, ToolContext
from limner.wires.base import HANDLE_URL

Ask = Callable[[Question, str, str, Mapping[str, Any]], Awaitable[bool]]
"""Decides a question of a call: its id, the name of the tool and the arguments come with it."""


class ToolHooks(msgspec.Struct, frozen=True, kw_only=True):
    """What stands between tools and the clients of a thread.

    Attributes:
        ask: decides.
        inlining: loads pictures.
        drew: gets the data URLs of a call's pictures, by the addresses that items name them by.
        is_heard: whether any client listens.
    """

    ask: Ask
    inlining: PictureInliner
    drew: Callable[[str, Mapping[str, str]], None]
    is_heard: Callable[[], bool]

    def tool(self, tool: Tool) -> Tool:
        """The tool, attended."""

        async def run(arguments: Mapping[str, Any], context: ToolContext) -> Outcome:
            call_id = context.call_id or ""

            async def ask(question: Question) -> bool:
                return await self.ask(question, call_id, tool.name, arguments)

            outcome = await tool.run(arguments, replace(context, ask=ask))
            # What was paid for is there by now: no interruption may lose it.
            with contextlib.suppress(asyncio.CancelledError):
                await self._load(call_id, outcome)
            return outcome

        return replace(tool, run=run)

    async def _load(self, call_id: str, outcome: Outcome) -> None:
        shown = [f"{HANDLE_URL}{one.handle}" for one in outcome.content if isinstance(one, Picture)]
        if shown and self.is_heard():
            self.drew(call_id, await self.inlining.loaded(shown))
