"""limner's tools inside a real Codex: it draws and looks here, and pays from our ledger."""

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
from limner.tools.image_recall import IMAGE_RECALL

RECALL = (
    "Look again at a picture that another of these tools gave earlier in this conversation. Give "
    "its whole handle, which is the member `image` of that answer."
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
    """A conversation with the real Codex, whose model can also draw and look with limner's tools.

    What the tools spend is in the ledger under the thread's id. A Codex that dies is started again
    and the thread taken up where it was.

    Args:
        cwd: the folder it works in; by default this process's own.
        tools: more tools of this program, such as `limner.tool` makes them.
        budget_usd: the most that the tools may spend on this thread.
        approve: decides what only the user can decide; by default the answer is no.
        resume: a thread to take up again, by its id.
        codex: the program, by its path or name; by default the one that is installed.
        env: its whole environment; by default this process's own.
        lim: whose pictures, money and settings the tools use.
        options: what is different from Codex's settings.

    Raises:
        MissingExtra: Codex is not installed.
        LimnerError: it cannot be started, or does not take the thread.
    """
    instructions = [words for words in (options.get("developer_instructions"), RULE) if words]
    options["developer_instructions"] = "\n\n".join(instructions)
    async with connect(codex=find_codex(codex), env=env, lim=lim, approve=approve) as client:
        offered = [*_tools_of(client.lim), *tools]
        if resume is None:
            yield await client.thread(tools=offered, cwd=cwd, budget_usd=budget_usd, **options)
        else:
            yield await client.resume(
                resume, tools=offered, cwd=cwd, budget_usd=budget_usd, **options
            )


def _tools_of(lim: Limner) -> list[Tool]:
    """limner's tools, told as they are where the conversation is kept by somebody else."""
    return [
        replace(tool, description=RECALL) if tool.name == IMAGE_RECALL.name else tool
        for tool in lim.conversation_tools()
    ]
