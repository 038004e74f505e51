"""A `Limner` -> the tools of the server; paid tools record which call a reservation belongs to."""

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
from limner.tools.built_in.image_recall import image_recall
from limner.tools.handles import Handles
from limner.tools.image_fit import image_fit
from limner.tools.sources import SourceLoader

FINISH = "finish_call"


class Toolbox(msgspec.Struct, frozen=True, kw_only=True):
    """Builds the tools of one server."""

    lim: Limner
    running: RunningCalls
    calls: CallStore
    resumer: CallResumer

    def tools(self, *, resume: Resume) -> list[Tool]:
        """Return the tools of the `Limner`, then those of the server.

        The last one is not offered to clients: it resumes an earlier call.
        """
        lim = self.lim
        handles = Handles(pictures=lim.pictures, known=self._known)
        own = [
            image_fit(
                SourceLoader(pictures=lim.pictures, handles=handles),
                lim.fitting,
                # Not loaded before the first call: it takes as long as starting the server.
                find_model=lambda name: lim.models.vision_facts(name),  # noqa: PLW0108
            ),
            image_job(
                self.running, resume=resume, answer_within_s=lim.settings.mcp.answer_within_s
            ),
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
        """Return a tool whose calls record reservations and continue the call they repeat."""

        async def run(arguments: Mapping[str, Any], context: ToolContext) -> Outcome:
            call = self._running_call(context)
            assert call.digest is not None, "a paid call can be repeated"
            earlier = await self.resumer.earlier(call.digest, but=call.id)
            if earlier is not None:
                call.answers_for.add(earlier)
                return await self.resumer.finish(earlier, progress=context.progress)
            recording = replace(
                context,
                on_reserved=partial(self._note, call, call.digest),
                on_sending=partial(setattr, call, "sent", True),
            )
            return await tool.run(arguments, recording)

        return replace(tool, run=run)

    async def _note(self, call: RunningCall, digest: str, ledger_id: int) -> None:
        await self.calls.note(call.id, tool=call.tool, digest=digest, ledger_id=ledger_id)
        call.answers_for.add(call.id)

    def _finish(self) -> Tool:
        async def run(arguments: Mapping[str, Any], context: ToolContext) -> Outcome:
            call = self._running_call(context)
            call.answers_for.add(arguments["id"])
            # Fetching is free, but a provider may deliver a result only once: do not cancel it.
            call.sent = True
            return await self.resumer.finish(arguments["id"], progress=context.progress)

        return Tool(
            name=FINISH,
            description="",
            schema={"type": "object"},
            run=run,
            toolset="image",
            max_result_chars=10_000,
        )

    async def _known(self, _: str | None) -> set[str]:
        return self.running.handles()

    def _running_call(self, context: ToolContext) -> RunningCall:
        call = self.running.get(context.call_id or "")
        assert call is not None, "every call of the server is a running call"
        return call
