"""A `Limner` -> the tools of the server, those that pay noting which call they pay for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from limner.client import Limner
from limner.frontends.mcp.calls import CallStore
from limner.frontends.mcp.image_job import Resume, image_job
from limner.frontends.mcp.resume import CallResumer
from limner.frontends.mcp.running_calls import RunningCall, RunningCalls
from limner.frontends.mcp.spend import spend
from limner.frontends.mcp.tool_list import LASTING
from limner.tools.base import Outcome, Tool, ToolContext
from limner.tools.handles import Handles
from limner.tools.image_fit import image_fit
from limner.tools.image_recall import image_recall
from limner.tools.sources import SourceLoader

FINISH = "finish_call"


class Toolbox(msgspec.Struct, frozen=True, kw_only=True):
    """Builds the tools of one server."""

    lim: Limner
    works: RunningCalls
    calls: CallStore
    finishing: CallResumer

    def tools(self, *, resume: Resume) -> list[Tool]:
        """The tools of the `Limner`, then those of the server.

        The last one is not offered to clients: it resumes an earlier call.
        """
        lim = self.lim
        handles = Handles(pictures=lim.pictures, known=self._known)
        own = [
            image_fit(SourceLoader(pictures=lim.pictures, handles=handles), lim.fitting),
            image_job(self.works, resume=resume, answer_within_s=lim.settings.mcp.answer_within_s),
            image_recall(lim.pictures, handles=handles),
            spend(
                lim.money,
                budget=lim.settings.budget,
                session_id=lim.session_id,
                today=lambda: lim.clock().date(),
            ),
            self._finish(),
        ]
        names = {tool.name for tool in own}
        tools = [tool for tool in lim.tools() if tool.name not in names]
        return [self._paid(tool) if tool.name in LASTING else tool for tool in tools] + own

    def _paid(self, tool: Tool) -> Tool:
        """A tool whose calls record their reservations, and continue the call they repeat."""

        async def run(arguments: Mapping[str, Any], context: ToolContext) -> Outcome:
            work = self._work(context)
            assert work.digest is not None, "a call that pays can be repeated"
            earlier = await self.finishing.earlier(work.digest, but=work.id)
            if earlier is not None:
                work.answers_for.add(earlier)
                return await self.finishing.finish(earlier, progress=context.progress)
            followed = replace(
                context,
                on_reserved=partial(self._note, work, work.digest),
                on_sending=partial(setattr, work, "sent", True),
            )
            return await tool.run(arguments, followed)

        return replace(tool, run=run)

    async def _note(self, work: RunningCall, digest: str, ledger_id: int) -> None:
        await self.calls.note(work.id, tool=work.tool, digest=digest, ledger_id=ledger_id)
        work.answers_for.add(work.id)

    def _finish(self) -> Tool:
        async def run(arguments: Mapping[str, Any], context: ToolContext) -> Outcome:
            work = self._work(context)
            work.answers_for.add(arguments["id"])
            # Fetching is free, but what a service hands over once must not be dropped.
            work.sent = True
            return await self.finishing.finish(arguments["id"], progress=context.progress)

        return Tool(
            name=FINISH,
            description="",
            schema={"type": "object"},
            run=run,
            toolset="image",
            max_result_chars=10_000,
        )

    async def _known(self, _: str | None) -> set[str]:
        return self.works.handles()

    def _work(self, context: ToolContext) -> RunningCall:
        work = self.works.get(context.call_id or "")
        assert work is not None, "every call of the server is a work"
        return work
