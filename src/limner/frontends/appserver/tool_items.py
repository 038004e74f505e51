"""A stored tool call and its output -> the item that clients see.

Pictures in it are named by handle; `inline_pictures` puts their bytes in.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, cast

import msgspec

from limner.agent.call_items import SAYS_IT_FAILED
from limner.agent.rollout_events import DRAWING
from limner.errors import InputInvalid
from limner.frontends.appserver.protocol.base import ContentItem, InputAudio, InputImage, InputText
from limner.frontends.appserver.protocol.items import (
    DynamicToolCall,
    ImageGeneration,
    ImageView,
    ThreadItem,
)
from limner.frontends.appserver.tool_answers import CANCELLED
from limner.frontends.appserver.tool_specs import ToolSpec
from limner.tools.inspection import TOOL as INSPECT
from limner.wires import item_views
from limner.wires.base import HANDLE_URL
from limner.wires.items import Item


class ToolCallRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One tool call, with its output if there is one.

    Attributes:
        call_id: its id.
        name: the name that the model called.
        arguments: the arguments, as JSON.
        spec: the client's tool of that name; None for a tool of limner.
        cwd: the folder that paths in the arguments are relative to.
        output: the item with the output, if there is one.
        is_open: an answer may still come.
        started_at_ms, completed_at_ms: when it started and ended.
    """

    call_id: str
    name: str
    arguments: Any
    spec: ToolSpec | None = None
    cwd: str = ""
    output: Item | None = None
    is_open: bool = False
    started_at_ms: int | None = None
    completed_at_ms: int | None = None


def to_thread_item(call: ToolCallRecord) -> ThreadItem | None:
    """The item of a call; None if there is nothing to show before it has ended.

    Generated pictures and pictures that the model looked at have item types of their own, so that
    clients show them. A failed look is shown as a plain tool call.
    """
    if call.spec is None and call.name in DRAWING:
        return _generation(call)
    if call.spec is None and call.name == INSPECT:
        if call.output is None and call.is_open:
            return None
        path = _path(call.arguments, cwd=call.cwd)
        if path is not None and _status(call) == "completed":
            return ImageView(
                id=call.call_id,
                path=path,
                started_at_ms=call.started_at_ms,
                completed_at_ms=call.completed_at_ms,
            )
    return _dynamic_call(call)


def content_items(output: Item) -> tuple[ContentItem, ...]:
    """The content of an output, in the form of a client's tool."""
    found = _parts(output)
    if found and isinstance(found[0], item_views.InputText) and found[0].text == SAYS_IT_FAILED:
        # This mark is for the model alone.
        found = found[1:]
    if [part.text for part in found if isinstance(part, item_views.InputText)] == [CANCELLED]:
        return ()  # limner wrote this text, because no answer came
    return tuple(item for part in found if (item := _content_item(part)) is not None)


def _content_item(part: item_views.ContentPart) -> ContentItem | None:
    match part:
        case item_views.InputText() | item_views.OutputText():
            return InputText(text=part.text)
        case item_views.InputImage() if part.handle is not None:
            return InputImage(image_url=f"{HANDLE_URL}{part.handle}")
        case item_views.InputAudio() if part.audio_url is not None:
            return InputAudio(audio_url=part.audio_url)
        case _:
            return None


def _dynamic_call(call: ToolCallRecord) -> DynamicToolCall:
    spec, status = call.spec, _status(call)
    ended = status != "inProgress"
    output = () if call.output is None else content_items(call.output)
    return DynamicToolCall(
        id=call.call_id,
        namespace=None if spec is None else spec.namespace,
        tool=call.name if spec is None else spec.name,
        arguments=call.arguments,
        status=status,
        content_items=output if ended else None,
        success=status == "completed" if ended else None,
        duration_ms=_duration_ms(call) if ended else None,
        started_at_ms=call.started_at_ms,
        completed_at_ms=call.completed_at_ms,
    )


def _generation(call: ToolCallRecord) -> ImageGeneration:
    status = _status(call)
    parts = () if call.output is None else _parts(call.output)
    value = _value(parts)
    handles = [
        p.handle for p in parts if isinstance(p, item_views.InputImage) and p.handle is not None
    ]
    return ImageGeneration(
        id=call.call_id,
        status="in_progress" if status == "inProgress" else status,
        revised_prompt=_text(value.get("prompt_used")),
        result=f"{HANDLE_URL}{handles[0]}" if handles else "",
        saved_path=_text(value.get("path")),
        started_at_ms=call.started_at_ms,
        completed_at_ms=call.completed_at_ms,
    )


def _status(call: ToolCallRecord) -> Any:
    if call.output is None:
        return "inProgress" if call.is_open else "failed"
    return "failed" if call.output.get("success") is False else "completed"


def _duration_ms(call: ToolCallRecord) -> int | None:
    if call.started_at_ms is None or call.completed_at_ms is None:
        return None
    return max(0, call.completed_at_ms - call.started_at_ms)


def _parts(output: Item) -> list[item_views.ContentPart]:
    try:
        seen = item_views.view(output)
    except InputInvalid:
        return []
    is_output = isinstance(seen, item_views.FunctionCallOutput | item_views.CustomToolCallOutput)
    return seen.parts if is_output else []


def _value(parts: list[item_views.ContentPart] | tuple[()]) -> Mapping[str, Any]:
    """The JSON object that a tool of limner returns as its first text."""
    for part in parts:
        if isinstance(part, item_views.InputText) and part.text.startswith("{"):
            try:
                return msgspec.json.decode(part.text, type=dict[str, Any])
            except (msgspec.DecodeError, RecursionError):
                return {}
    return {}


def _path(arguments: object, *, cwd: str) -> str | None:
    """The file that the model wanted to look at; the first one, if there are several."""
    if not isinstance(arguments, dict):
        return None
    given = cast("dict[str, Any]", arguments)
    several = given.get("paths")
    named = [given.get("path"), *(cast("list[Any]", several) if isinstance(several, list) else [])]
    path = next((one for one in named if isinstance(one, str)), None)
    return None if path is None or path.startswith(HANDLE_URL) else str(PurePath(cwd, path))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
