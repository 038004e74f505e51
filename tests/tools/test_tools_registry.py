from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from typing import Any

import pytest
from made_tools import Counted, answering, make_tool, raising

from limner.content import Picture
from limner.errors import InputInvalid, NoProvider, ProviderRefused
from limner.tools.base import Outcome, Tool, ToolCall, ToolContext, ToolResult
from limner.tools.registry import ToolRegistry

PICTURE = Picture(handle="a" * 64, mime="image/png", width=8, height=8, size_bytes=9)


async def only(registry: ToolRegistry, call: ToolCall, **context: Any) -> ToolResult:
    (result,) = await registry.execute_parallel([call], ToolContext(**context))
    return result


def test_two_tools_of_one_name_are_a_mistake() -> None:
    tool = make_tool("draw", answering({}))
    with pytest.raises(ValueError, match="two tools are named 'draw'"):
        ToolRegistry([tool, tool])


def test_a_registry_that_could_run_nothing_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="concurrency must be at least 1, not 0"):
        ToolRegistry([], concurrency=0)


def test_definitions_are_what_is_available_and_allowed_in_the_order_given() -> None:
    def broken() -> bool:
        raise RuntimeError("who knows")

    first, second = make_tool("b", answering({})), make_tool("a", answering({}))
    absent = make_tool("absent", answering({}), available=lambda: False)
    unsure = make_tool("unsure", answering({}), available=broken)
    registry = ToolRegistry([first, absent, unsure, second])
    assert registry.definitions() == [first, second]
    assert registry.definitions(["a", "absent", "elsewhere"]) == [second]
    assert registry.definitions([]) == []
    assert registry.get("absent") is absent
    assert registry.get("elsewhere") is None


async def test_a_call_is_answered_with_value_content_and_cost() -> None:
    run = answering({"path": "/a.png"}, content=(PICTURE,), cost_nano=5, cost_source="provider")
    result = await only(ToolRegistry([make_tool("draw", run)]), ToolCall(name="draw", call_id="1"))
    assert result == ToolResult(
        call_id="1",
        name="draw",
        ok=True,
        value='{"path":"/a.png"}',
        content=(PICTURE,),
        cost_nano=5,
        cost_source="provider",
        billed=True,
    )


async def test_results_come_in_the_order_of_the_calls_not_of_their_ends() -> None:
    turns = [asyncio.Event() for _ in range(4)]
    turns[3].set()

    async def run(arguments: Mapping[str, Any], context: ToolContext) -> Outcome:
        turn: int = arguments["turn"]
        await turns[turn].wait()
        turns[turn - 1].set()
        return Outcome(value={"turn": turn})

    calls = [ToolCall(name="draw", arguments={"turn": turn}) for turn in range(4)]
    results = await ToolRegistry([make_tool("draw", run)]).execute_parallel(calls, ToolContext())
    assert [json.loads(result.value)["turn"] for result in results] == [0, 1, 2, 3]
    assert [result.call_id for result in results] == [call.call_id for call in calls]


async def test_a_batch_of_nothing_is_answered_with_nothing() -> None:
    assert await ToolRegistry([]).execute_parallel([], ToolContext()) == []


async def test_an_unknown_tool_is_answered_with_the_nearest_name() -> None:
    registry = ToolRegistry([make_tool("image_generate", answering({}))])
    result = await only(registry, ToolCall(name="generate_image", call_id="1"))
    assert result == ToolResult(
        call_id="1",
        name="generate_image",
        ok=False,
        code="not_available",
        domain_code="UNKNOWN_TOOL",
        error="there is no tool 'generate_image'",
        hint="Did you mean image_generate?",
    )


async def test_a_hint_never_names_a_tool_outside_the_toolset() -> None:
    registry = ToolRegistry([make_tool(name, answering({})) for name in ("secret_tool", "draw")])
    allowed = await only(registry, ToolCall(name="secret_tol"), allowed=frozenset({"draw"}))
    nothing = await only(registry, ToolCall(name="secret_tol"), allowed=frozenset[str]())
    assert (allowed.hint, nothing.hint) == ("The tools here: draw.", None)


async def test_a_hostile_name_is_not_repeated_at_any_length() -> None:
    result = await only(ToolRegistry([]), ToolCall(name="x" * 1_000_000))
    assert result.error == f"there is no tool {'x' * 80!r}"


@pytest.mark.parametrize(
    ("allowed", "available", "domain_code", "error"),
    [
        ([], True, "TOOL_NOT_ALLOWED", "draw is not among the tools of this turn"),
        (["else"], False, "TOOL_NOT_ALLOWED", "draw is not among the tools of this turn"),
        (["draw"], False, "TOOL_UNAVAILABLE", "draw is not available right now"),
        (None, False, "TOOL_UNAVAILABLE", "draw is not available right now"),
    ],
)
async def test_a_tool_that_may_not_run_does_not_run(
    allowed: list[str] | None, available: bool, domain_code: str, error: str
) -> None:
    run = Counted()
    registry = ToolRegistry([make_tool("draw", run, available=lambda: available)])
    result = await only(
        registry,
        ToolCall(name="draw", call_id="1", arguments={"any": "thing"}),
        allowed=None if allowed is None else frozenset(allowed),
    )
    assert result == ToolResult(
        call_id="1",
        name="draw",
        ok=False,
        code="not_available",
        domain_code=domain_code,
        error=error,
    )
    assert run.calls == 0


async def test_arguments_are_checked_before_the_tool_runs() -> None:
    run = Counted()
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    registry = ToolRegistry([make_tool("draw", run, schema=schema)])
    result = await only(registry, ToolCall(name="draw", call_id="1", arguments={"n": "x"}))
    assert result == ToolResult(
        call_id="1",
        name="draw",
        ok=False,
        code="input_invalid",
        domain_code="INPUT_INVALID",
        error="n must be a whole number",
        field="n",
    )
    assert run.calls == 0


async def test_an_error_of_ours_arrives_with_everything_it_knows() -> None:
    error = ProviderRefused(
        "the prompt was refused", hint="Rephrase it.", extras={"categories": ["violence"]}
    )
    error.charge(40_000_000, "table")
    result = await only(
        ToolRegistry([make_tool("draw", raising(error))]), ToolCall(name="draw", call_id="1")
    )
    assert result == ToolResult(
        call_id="1",
        name="draw",
        ok=False,
        cost_nano=40_000_000,
        code="execution_failed",
        domain_code="IMAGE_GEN_REJECTED",
        error="the prompt was refused",
        hint="Rephrase it.",
        billed=True,
        extras={"categories": ["violence"]},
    )


async def test_the_tool_itself_can_say_not_available_or_invalid() -> None:
    registry = ToolRegistry(
        [
            make_tool("draw", raising(NoProvider("no key is set"))),
            make_tool("look", raising(InputInvalid("no such file", field="path"))),
        ]
    )
    draw, look = await registry.execute_parallel(
        [ToolCall(name="draw"), ToolCall(name="look")], ToolContext()
    )
    assert (draw.code, draw.domain_code) == ("not_available", "IMAGE_GEN_NO_PROVIDER")
    assert (look.code, look.field) == ("input_invalid", "path")


async def test_a_crash_is_told_without_traceback_or_key_and_logged_with_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    crash = KeyError("sk-proj-abcdefghijklmnop is not in the table")
    registry = ToolRegistry(
        [make_tool("draw", raising(crash)), make_tool("look", answering({"ok": True}))]
    )
    with caplog.at_level(logging.ERROR, logger="limner"):
        draw, look = await registry.execute_parallel(
            [ToolCall(name="draw", call_id="1"), ToolCall(name="look")], ToolContext()
        )
    assert draw == ToolResult(
        call_id="1",
        name="draw",
        ok=False,
        code="execution_failed",
        domain_code="TOOL_CRASHED",
        error="draw crashed: KeyError: '••• is not in the table'",
        untrusted=True,
    )
    assert look.value == '{"ok":true}'
    assert "Traceback" in caplog.text


async def test_a_process_without_memory_for_a_thread_is_told_so_and_nothing_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    run = raising(RuntimeError("can't start new thread"))
    with caplog.at_level(logging.ERROR, logger="limner"):
        result = await only(
            ToolRegistry([make_tool("draw", run)]), ToolCall(name="draw", call_id="1")
        )
    assert result == ToolResult(
        call_id="1",
        name="draw",
        ok=False,
        code="execution_failed",
        domain_code="NO_MEMORY",
        error="The system gives limner no more resources: Cannot allocate memory.",
        hint="Raise the limits of this process (ulimit -n, ulimit -v), and try again.",
    )
    assert caplog.text == ""


async def test_an_error_that_cannot_even_be_printed_is_a_crash_like_any() -> None:
    class UnprintableError(Exception):
        def __str__(self) -> str:
            raise ValueError

    result = await only(
        ToolRegistry([make_tool("draw", raising(UnprintableError()))]), ToolCall(name="draw")
    )
    assert (result.ok, result.domain_code) == (False, "TOOL_CRASHED")


@pytest.mark.parametrize("value", [{(1, 2): "a tuple as key"}, {"self": None}])
async def test_an_answer_that_is_not_json_keeps_its_cost(value: dict[Any, Any]) -> None:
    if "self" in value:
        value["self"] = value
    run = answering(value, cost_nano=40_000_000)
    result = await only(ToolRegistry([make_tool("draw", run)]), ToolCall(name="draw", call_id="1"))
    assert result == ToolResult(
        call_id="1",
        name="draw",
        ok=False,
        cost_nano=40_000_000,
        billed=True,
        code="execution_failed",
        domain_code="TOOL_CRASHED",
        error="draw answered with something that is not JSON",
    )


async def test_a_tool_that_is_no_coroutine_or_answers_nonsense_is_a_crash() -> None:
    async def nothing(arguments: Mapping[str, Any], context: ToolContext) -> Any:
        return None

    def plain(arguments: Mapping[str, Any], context: ToolContext) -> Any:
        return {}

    registry = ToolRegistry([make_tool("nothing", nothing), make_tool("plain", plain)])
    results = await registry.execute_parallel(
        [ToolCall(name="nothing"), ToolCall(name="plain")], ToolContext()
    )
    assert [result.domain_code for result in results] == ["TOOL_CRASHED", "TOOL_CRASHED"]


async def test_a_long_answer_stays_json_within_a_thousand_characters_and_keeps_its_cost() -> None:
    value = {"path": "/a.png", "cost_usd": 0.04, "prompt_used": "a fox " * 1_000}
    run = answering(value, content=(PICTURE,), cost_nano=40_000_000)
    result = await only(ToolRegistry([make_tool("draw", run)]), ToolCall(name="draw"))
    shown = json.loads(result.value)
    assert len(result.value) <= 1_000
    assert (shown["path"], shown["cost_usd"]) == ("/a.png", 0.04)
    assert shown["prompt_used"].endswith(f"… [{result.cut_chars:,} characters cut]")
    assert (result.cost_nano, result.content) == (40_000_000, (PICTURE,))


async def test_an_error_of_a_megabyte_does_not_reach_the_model() -> None:
    error = ProviderRefused("no " * 350_000)
    error.charge(1, "unknown")
    result = await only(ToolRegistry([make_tool("draw", raising(error))]), ToolCall(name="draw"))
    assert result.error is not None
    assert len(result.error) == 1_000
    assert result.error.endswith(f"… [{result.cut_chars:,} characters cut]")
    assert (result.cost_nano, result.cost_source, result.billed) == (1, "unknown", True)


async def test_what_short_answers_leave_of_the_turn_goes_to_long_ones() -> None:
    registry = ToolRegistry(
        [
            make_tool("short", answering({"text": "hi"}), max_result_chars=9_000),
            make_tool("long", answering({"text": "word " * 1_000}), max_result_chars=9_000),
            make_tool("capped", answering({"text": "word " * 1_000}), max_result_chars=200),
        ]
    )
    calls = [ToolCall(name=name) for name in ("short", "long", "capped")]
    results = await registry.execute_parallel(calls, ToolContext(result_budget_chars=1_000))
    assert [len(result.value) for result in results] == [13, 787, 200]


async def test_no_more_calls_run_at_once_than_were_allowed() -> None:
    running = peak = 0

    async def run(arguments: Mapping[str, Any], context: ToolContext) -> Outcome:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        for _ in range(5):
            await asyncio.sleep(0)
        running -= 1
        return Outcome(value={})

    registry = ToolRegistry([make_tool("draw", run)], concurrency=3)
    batches = [[ToolCall(name="draw") for _ in range(7)] for _ in range(3)]
    await asyncio.gather(*(registry.execute_parallel(calls, ToolContext()) for calls in batches))
    assert (running, peak) == (0, 3)


def test_one_registry_serves_several_event_loops() -> None:
    async def run(arguments: Mapping[str, Any], context: ToolContext) -> Outcome:
        await asyncio.sleep(0)
        return Outcome(value={})

    registry = ToolRegistry([make_tool("draw", run)], concurrency=1)
    calls = [ToolCall(name="draw") for _ in range(3)]
    for _ in range(3):
        results = asyncio.run(registry.execute_parallel(calls, ToolContext()))
        assert [result.ok for result in results] == [True, True, True]


async def test_the_schema_of_a_foreign_tool_is_never_made_into_code() -> None:
    ran: list[Any] = []

    async def run(arguments: Mapping[str, Any], context: ToolContext) -> Outcome:
        ran.append(arguments)
        return Outcome(value={})

    hostile = {"type": "object", "properties": {"x": {"$ref": "http://127.0.0.1:9/evil.json"}}}
    tool = Tool(
        name="theirs",
        description="Run elsewhere.",
        schema=hostile,
        run=run,
        toolset="client",
        max_result_chars=100,
        foreign=True,
    )
    call = ToolCall(name="theirs", arguments={"x": 1})
    (result,) = await ToolRegistry([tool]).execute_parallel([call], ToolContext())
    assert (result.ok, ran) == (True, [{"x": 1}])
