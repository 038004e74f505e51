"""Tools made for one test each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from limner.tools.base import Outcome, Tool, ToolContext

Run = Callable[[Mapping[str, Any], ToolContext], Awaitable[Outcome]]

ANYTHING: dict[str, Any] = {"type": "object"}


def make_tool(name: str, run: Run, **more: Any) -> Tool:
    """A tool with everything said that a test does not care about."""
    given: dict[str, Any] = {"schema": ANYTHING, "max_result_chars": 1_000, **more}
    return Tool(name=name, description=f"The tool {name}.", run=run, toolset="test", **given)


def answering(value: Mapping[str, Any], **more: Any) -> Run:
    """A run that answers at once."""

    async def run(arguments: Mapping[str, Any], context: ToolContext) -> Outcome:
        return Outcome(value=value, **more)

    return run


def raising(error: Exception) -> Run:
    """A run that fails at once."""

    async def run(arguments: Mapping[str, Any], context: ToolContext) -> Outcome:
        raise error

    return run


class Counted:
    """A run that answers at once and counts how often it was called."""

    def __init__(self) -> None:
        self.calls = 0

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> Outcome:
        self.calls += 1
        return Outcome(value={"calls": self.calls})
