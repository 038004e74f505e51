"""The reference page of the events of a turn, from their classes and one sample of each."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from typing import Any, get_args

import msgspec

from limner import (
    Compacted,
    Compacting,
    Event,
    InputAdded,
    ItemAdded,
    Picture,
    Progress,
    RawNotification,
    Reconnected,
    RemoteEvent,
    Retrying,
    TextDelta,
    ToolCall,
    ToolFinished,
    ToolProgress,
    ToolResult,
    ToolStarted,
    TurnEnded,
    TurnResult,
    TurnStarted,
    UsageUpdated,
)
from limner.errors import ProviderUnavailable
from limner.wires.base import Usage

Lines = Iterator[str]

INTRODUCTION = """\
# Events of a turn

`limner.Agent.run` and the threads of `limner.connect` yield these events. Every class is a name of
`limner`; `limner.Event` is the union of those of an agent, `limner.RemoteEvent` of those of a
thread. `event.as_json()` returns the JSON object that is shown here; `limner chat --stream --json`
prints the same objects. Money is in dollars: `cost_usd` is the cost of a call or a turn,
`session_usd` that of the whole session. Later versions may add types and members; the existing ones
keep their meaning.
"""

PATH = "…/generated/1794718126900.png"
HANDLE = "3f2a9c0e" * 8
USAGE = Usage(input_tokens=1200, output_tokens=45, cache_read_tokens=1024, reasoning_tokens=20)
CALL = ToolCall(name="image_generate", arguments={"prompt": "a fox"}, call_id="call_1")
ANSWER = {"type": "output_text", "text": "Here it is."}
ENDED = {
    "turn_id": "turn_1",
    "status": "completed",
    "text": "Here it is.",
    "is_cut": False,
    "error": None,
    "cost_nano": 15_100_000,
    "spent_nano": 42_000_000,
}

SAMPLES: tuple[RemoteEvent, ...] = (
    TurnStarted(turn_id="turn_1"),
    InputAdded(
        item={
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "Draw a fox."}],
        }
    ),
    TextDelta(item_id="msg_1", text="Here "),
    ItemAdded(item={"type": "message", "id": "msg_1", "role": "assistant", "content": [ANSWER]}),
    ToolStarted(call=CALL),
    ToolProgress(call=CALL, progress=Progress(message="drawing", elapsed_s=2.5, fraction=0.5)),
    ToolFinished(
        call=CALL,
        result=ToolResult(
            call_id=CALL.call_id,
            name=CALL.name,
            ok=True,
            value=json.dumps({"path": PATH, "image": HANDLE, "provider": "openai-image"}),
            content=(
                Picture(
                    handle=HANDLE, mime="image/png", width=1024, height=1024, size_bytes=1_400_000
                ),
            ),
            cost_nano=13_400_000,
            cost_source="computed",
        ),
        item={"type": "function_call_output", "call_id": "call_1", "output": "..."},
        duration_ms=8120,
    ),
    UsageUpdated(last=USAGE, total=USAGE, context_tokens=400_000, spent_nano=42_000_000),
    Retrying(error=ProviderUnavailable("The service is overloaded.")),
    Compacting(item_id="compaction_1"),
    Compacted(item_id="compaction_1", summary="The user wants a fox.", dropped=(HANDLE,)),
    TurnEnded(**ENDED),
    TurnResult(**ENDED, usage=USAGE),
    Reconnected(reason="the server ended with status 1", goes_on=True),
    RawNotification(method="thread/name/updated", raw={"threadId": "t1", "threadName": "A fox"}),
)


def events() -> Lines:
    """The page."""
    yield INTRODUCTION
    of_agents, of_threads = get_args(Event), get_args(RemoteEvent)
    assert {type(one) for one in SAMPLES} == {*of_threads, TurnResult}
    for sample in SAMPLES:
        kind = type(sample)
        yield f"\n## {kind.__name__}\n\n{_description(kind)}\n\n"
        if kind not in of_agents:
            yield "Only from a thread of `limner.connect`.\n\n"
        yield "| attribute | type |\n|---|---|\n"
        yield from (f"| `{name}` | `{type_}` |\n" for name, type_ in _attributes(kind))
        shown = json.dumps(sample.as_json(), ensure_ascii=False)
        yield f"\n```json\n{shown}\n```\n"


def _description(kind: type) -> str:
    """The docstring; its list of attributes becomes a list of the page."""
    words = inspect.cleandoc(kind.__doc__ or "")
    head, _, attributes = words.partition("\nAttributes:\n")
    entries = inspect.cleandoc(attributes).replace("\n    ", " ").splitlines()
    named = (entry.split(": ", 1) for entry in entries)
    listed = "".join(f"- `{name}`: {about}\n" for name, about in named)
    return f"{head.strip()}\n\n{listed}".replace("``", "`").strip()


def _attributes(kind: type[msgspec.Struct]) -> Iterator[tuple[str, str]]:
    """The fields and properties, and how their types are written."""
    lineage = [one for one in reversed(kind.__mro__) if one.__module__.startswith("limner.")]
    for one in lineage:
        for name, written in one.__annotations__.items():
            is_shown = name != "raw" and not name.endswith("_nano")
            if is_shown and name in kind.__struct_fields__:
                yield name, _cell(written)
    for one in lineage:
        for name, member in vars(one).items():
            if isinstance(member, property):
                yield name, _cell(member.fget.__annotations__["return"])


def _cell(written: Any) -> str:
    return str(written).replace("|", "\\|")
