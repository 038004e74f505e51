"""A program of a page, or an agent -> the row of its run with the scripted model."""

from __future__ import annotations

import os
import re
import tempfile
from functools import cache
from pathlib import Path

import msgspec
from msgspec.structs import replace
from tests.ecosystem.agents import Agent
from tests.ecosystem.environments import (
    ALONE,
    environment,
    installed_version,
    npm_version,
)
from tests.ecosystem.pages import Page, Program
from tests.ecosystem.programs import SCRIPT, picture, run_program, variables
from tests.ecosystem.report import Row
from tests.ecosystem.scripted_model import ScriptedModel

from limner.client import Limner
from limner.frontends.mcp.offers import compiled


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """What is run: an agent, or a program of a page."""

    agent: Agent | None = None
    page: Page = ALONE
    program: Program = Program(code="")


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a program or an agent."""

    row: Row
    printed: str


@cache
def native_tools() -> tuple[str, ...]:
    """The names of the tools that a framework gets."""
    return tuple(tool.name for tool in Limner().registry().definitions())


@cache
def mcp_tools() -> tuple[str, ...]:
    """The names of the tools that an agent gets."""
    return tuple(tool["name"] for tool in compiled().tools)


def run_page(
    page: Page, program: Program, model: ScriptedModel, folder: Path, *, user_says: str | None
) -> Run:
    """Run one program of a page."""
    python = environment(page)
    printed = run_program(program, python=python, model=model, folder=folder, user_says=user_says)
    costs = [float(one) for one in re.findall(r"cost: ([\d.]+) USD", printed)]
    if program.is_shell:
        page = replace(page, title=f"{page.title}, command line")
        costs = [model.seen[-1].cost_usd] if model.seen else []
    row = Row.of(
        page,
        installed_version(page, python),
        model,
        link=f"guides/frameworks/{page.name}.md",
        offered=native_tools(),
        cost_usd=sum(costs),
    )
    return Run(row=row, printed=printed)


def run_agent(agent: Agent, model: ScriptedModel, folder: Path) -> Run:
    """Run an agent that uses ``limner mcp``."""
    version = npm_version(agent.package)
    limner = environment(ALONE).with_name("limner")
    setup = agent.set_up(limner, folder, variables(model, folder), model.origin)
    is_listed = setup.lists_limner()
    printed = setup.run()
    row = Row.of(
        Page(name=agent.name, title=agent.name),
        version,
        model,
        link=f"guides/clients/{agent.client}.md",
        offered=mcp_tools(),
        cost_usd=model.seen[-1].cost_usd if model.seen else 0,
    )
    return Run(row=replace(row, is_listed=is_listed), printed=printed)


def try_once(
    subject: Subject, *, image_wait_s: float = 0, user_says: str | None = None
) -> tuple[Row, int]:
    """Run a program or an agent and print its row; returns the row and the number of requests."""
    is_plain = not image_wait_s and user_says is None
    with (
        tempfile.TemporaryDirectory(prefix="limner-ecosystem-") as name,
        ScriptedModel(
            SCRIPT if is_plain else SCRIPT[1:], picture=picture(), image_wait_s=image_wait_s
        ) as model,
    ):
        if subject.agent is not None:
            run = run_agent(subject.agent, model, Path(name))
        else:
            run = run_page(subject.page, subject.program, model, Path(name), user_says=user_says)
    print(run.row.line(), flush=True)
    if (user_says is None and not run.row.is_good) or os.environ.get("VERBOSE"):
        print(run.printed[-3000:])
        print(*model.seen, sep="\n")
    return run.row, len(model.seen)


def try_slow(subject: Subject, *, image_wait_s: float) -> Row:
    """Run a subject with a slow image service, and note how its picture arrived."""
    row, requests = try_once(subject, image_wait_s=image_wait_s)
    fate = "delivered" if row.picture or row.is_known_drop else "lost"
    calls = f"{requests - 1} calls" if requests > 2 else "1 call"
    return replace(row, slow=f"{image_wait_s:g} s: paid {row.drawn}x, {fate}, {calls}")


def try_approval(subject: Subject) -> Row:
    """Run a program whose user says no, then one whose user says yes, and note what was paid."""
    refused, _ = try_once(subject, user_says="no")
    approved, _ = try_once(subject, user_says="yes")
    note = f"no: paid {refused.drawn}x; yes: paid {approved.drawn}x"
    is_seen = approved.picture is not None or approved.is_known_drop
    is_good = (refused.drawn, approved.drawn, approved.leaked_chars) == (0, 1, 0) and is_seen
    return replace(approved, approval=note if is_good else f"**{note}**")
