from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st
from made_tools import Counted, make_tool

from limner.tools.base import ToolCall, ToolContext
from limner.tools.registry import ToolRegistry

names = st.sampled_from("abcdefgh")
name_sets = st.frozensets(names)


@given(name_sets, name_sets, st.none() | name_sets, st.lists(names, max_size=10))
def test_a_tool_runs_only_if_it_exists_is_allowed_and_is_available(
    known: frozenset[str],
    available: frozenset[str],
    allowed: frozenset[str] | None,
    called: list[str],
) -> None:
    runs = {name: Counted() for name in sorted(known)}
    registry = ToolRegistry(
        make_tool(name, run, available=lambda name=name: name in available)
        for name, run in runs.items()
    )
    may_run = known & available & (known if allowed is None else allowed)

    async def batch() -> list[bool]:
        calls = [ToolCall(name=name) for name in called]
        results = await registry.execute_parallel(calls, ToolContext(allowed=allowed))
        return [result.ok for result in results]

    assert [tool.name for tool in registry.definitions(allowed)] == sorted(may_run)
    assert asyncio.run(batch()) == [name in may_run for name in called]
    counts = {name: run.calls for name, run in runs.items()}
    assert counts == {name: called.count(name) if name in may_run else 0 for name in runs}
