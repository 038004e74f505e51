"""`limner.codex_thread` -> a thread of the real Codex whose model has limner's tools."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path
from typing import Unpack

from msgspec.structs import replace

from limner.agent.untrusted import RULE
from limner.client import Limner
from limner.frontends.remote.approvals import Approve, decline
from limner.frontends.remote.client import connect
from limner.frontends.remote.discovery import find_codex
from limner.frontends.remote.threads import Thread, ThreadOptions
from limner.tools.base import Tool
from limner.tools.built_in.image_recall import IMAGE_RECALL

RECALL = (
    "Look again at a picture that another of these tools returned earlier in this conversation. "
    "Give its whole handle, which is the member `image` of that result."
)


@asynccontextmanager
async def codex_thread(
    *,
    cwd: str | Path | None = None,
    tools: Sequence[Tool] = (),
    budget_usd: Decimal | float | str | None = None,
    approve: Approve = decline,
    resume: str | None = None,
    codex: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    lim: Limner | None = None,
    **options: Unpack[ThreadOptions],
) -> AsyncGenerator[Thread]:
    """Talk with the real Codex; its model can also draw and inspect pictures with limner's tools.

    The ledger records what the tools spend under the thread's id. If Codex dies, it is started
    again and the thread is resumed.

    Args:
        cwd: the folder it works in; by default this process's own.
        tools: more tools of this program, such as `limner.tool` makes.
        budget_usd: the most that the tools may spend on this thread.
        approve: asks the user for approval; by default the answer is no.
        resume: the id of a thread to resume.
        codex: the program, by its path or name; by default the installed one.
        env: its whole environment; by default this process's own.
        lim: has the pictures, money and settings that the tools use.
        options: what differs from Codex's settings.

    Raises:
        MissingExtra: Codex is not installed.
        LimnerError: it cannot be started, or refuses the thread.
    """
    instructions = [text for text in (options.get("developer_instructions"), RULE) if text]
    options["developer_instructions"] = "\n\n".join(instructions)
    async with connect(codex=find_codex(codex), env=env, lim=lim, approve=approve) as client:
        every_tool = [*_tools_of(client.lim), *tools]
        if resume is None:
            yield await client.thread(tools=every_tool, cwd=cwd, budget_usd=budget_usd, **options)
        else:
            yield await client.resume(
                resume, tools=every_tool, cwd=cwd, budget_usd=budget_usd, **options
            )


def _tools_of(lim: Limner) -> list[Tool]:
    """limner's tools; image_recall is described for a conversation that Codex stores."""
    return [
        replace(tool, description=RECALL) if tool.name == IMAGE_RECALL.name else tool
        for tool in lim.conversation_tools()
    ]
