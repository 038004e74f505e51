"""A tool call and its result -> one line, or that line and its details."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

import wcwidth

from limner.agent.events import ToolFinished
from limner.dollars import format_usd
from limner.frontends.cli.terminal_text import (
    OUTPUT_EXPANDED_LINES,
    OUTPUT_LINE_WIDTH,
    QUESTION_PREVIEW_WIDTH,
    clipped,
    output_view,
)
from limner.json_shapes import as_object, decode_json
from limner.tools.base import ToolCall, ToolResult

# The main arguments of limner's own tools.
_MAIN = ("prompt", "question", "path", "image", "handle")
_MIN_CELLS = 12


def title(call: ToolCall) -> str:
    """A call in short: the tool and its main argument."""
    argument = main_argument(call.arguments)
    return f"{call.name}  {argument}" if argument else call.name


def main_argument(arguments: Mapping[str, Any]) -> str:
    """The main argument of a call, on one line."""
    named = (arguments.get(name) for name in _MAIN)
    for value in (*named, *arguments.values()):
        if isinstance(value, str) and value.strip():
            return clipped(" ".join(value.split()), QUESTION_PREVIEW_WIDTH)
    return ""


def collapsed(done: ToolFinished, *, columns: int, whole: bool = False) -> list[str]:
    """The line of a call, and its error or the beginning of its answer in words.

    With ``whole`` the answer is left out, because all of it follows.
    """
    result = done.result
    cost, seconds = format_usd(result.cost_nano), done.duration_ms / 1000
    facts = f" · {cost} · {seconds:.1f} s"
    room = max(columns - wcwidth.width(facts), _MIN_CELLS)
    lines = [clipped(f"{'✓' if result.ok else '✗'} {title(done.call)}", room) + facts]
    if not result.ok:
        lines.append(clipped(f"  {failure_of(result)}", max(columns, _MIN_CELLS)))
    elif not whole:
        lines += [clipped(f"  {line}", max(columns, _MIN_CELLS)) for line in answer_lines(result)]
    return lines


def answer_lines(result: ToolResult) -> list[str]:
    """The first lines of an answer in words, and the model that gave it; none for other results."""
    value = as_object(decode_json(result.value))
    text, details = value.get("text"), as_object(value.get("details"))
    if not isinstance(text, str):
        return []
    facts = [details[name] for name in ("model", "mimeType") if isinstance(details.get(name), str)]
    return output_view(text, footer=" · ".join(facts), expanded=False)


def expanded(done: ToolFinished, *, columns: int) -> list[str]:
    """The same line, the arguments, and the result."""
    width = max(min(columns, OUTPUT_LINE_WIDTH), _MIN_CELLS)
    arguments = [
        f"  {_shown(name)}: {_shown(value)}" for name, value in done.call.arguments.items()
    ]
    result = [f"  {line}" for line in _result_lines(done.result)]
    shown = result[:OUTPUT_EXPANDED_LINES]
    if more := len(result) - len(shown):
        shown.append(f"  … {more} more {'line' if more == 1 else 'lines'}")
    lines = [*arguments, *(["  ->", *shown] if shown else [])]
    return [
        *collapsed(done, columns=columns, whole=True),
        *(clipped(line, width) for line in lines),
    ]


def failure_of(result: ToolResult) -> str:
    """Why a call failed, on one line."""
    error = result.error or "The tool says that it failed."
    return " ".join(" ".join(part for part in (error, result.hint) if part).split())


def _result_lines(result: ToolResult) -> Iterator[str]:
    value = decode_json(result.value)
    if isinstance(value, str):
        yield from value.splitlines()
    elif not isinstance(value, dict):
        yield _shown(value)
    else:
        for name, member in cast("dict[str, Any]", value).items():
            is_prose = name == "text" and isinstance(member, str)
            yield from member.splitlines() if is_prose else [f"{_shown(name)}: {_shown(member)}"]


def _shown(value: object) -> str:
    """A JSON value on one line."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return " ".join(text.split())
