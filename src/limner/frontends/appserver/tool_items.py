"""A call and its output, as a session keeps them -> the item that clients see, live and later.

Pictures in it are named by handle; `inlining` puts their bytes in.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, cast

import msgspec

from limner.agent.call_items import SAYS_IT_FAILED
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
from limner.tools.image_edit import IMAGE_EDIT
from limner.tools.image_generate import IMAGE_GENERATE
from limner.tools.inspection import TOOL as INSPECT
from limner.wires import item_views
from limner.wires.base import HANDLE_URL
from limner.wires.items import Item

DRAWING = frozenset({IMAGE_GENERATE.name, IMAGE_EDIT.name})


class Called(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a tool, as far as it has come.

    Attributes:
        call_id: what it is known by.
        name: what the model called.
        arguments: what it gave, as JSON.
        spec: the client's tool that the name stands for; None where it is one of ours.
        cwd: what paths in the arguments are relative to.
        output: the item that answers it; None where there is none.
        is_open: an answer may still come.
        started_at_ms, completed_at_ms: when it began and ended.
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


def item_of(called: Called) -> ThreadItem | None:
    """The item of a call; None where there is nothing to show of it before it has ended.

    Pictures that are made and pictures that were looked at have items of their own kinds, so that
    clients show them; what failed to be looked at is a call like any other.
    """
    if called.spec is None and called.name in DRAWING:
        return _drawn(called)
    if called.spec is None and called.name == INSPECT:
        if called.output is None and called.is_open:
            return None
        path = _path(called.arguments, cwd=called.cwd)
        if path is not None and _status(called) == "completed":
            return ImageView(
                id=called.call_id,
                path=path,
                started_at_ms=called.started_at_ms,
                completed_at_ms=called.completed_at_ms,
            )
    return _called(called)


def content_items(output: Item) -> tuple[ContentItem, ...]:
    """What an output says, as a client's tool would say it."""
    found = _parts(output)
    if found and isinstance(found[0], item_views.InputText) and found[0].text == SAYS_IT_FAILED:
        # It was said for the model alone.
        found = found[1:]
    if [part.text for part in found if isinstance(part, item_views.InputText)] == [CANCELLED]:
        return ()  # nobody said that: it stands for the answer that never came
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


def _called(called: Called) -> DynamicToolCall:
    spec, status = called.spec, _status(called)
    ended = status != "inProgress"
    said = () if called.output is None else content_items(called.output)
    return DynamicToolCall(
        id=called.call_id,
        namespace=None if spec is None else spec.namespace,
        tool=called.name if spec is None else spec.name,
        arguments=called.arguments,
        status=status,
        content_items=said if ended else None,
        success=status == "completed" if ended else None,
        duration_ms=_duration_ms(called) if ended else None,
        started_at_ms=called.started_at_ms,
        completed_at_ms=called.completed_at_ms,
    )


def _drawn(called: Called) -> ImageGeneration:
    status = _status(called)
    parts = () if called.output is None else _parts(called.output)
    value = _value(parts)
    handles = [
        p.handle for p in parts if isinstance(p, item_views.InputImage) and p.handle is not None
    ]
    return ImageGeneration(
        id=called.call_id,
        status="in_progress" if status == "inProgress" else status,
        revised_prompt=_text(value.get("prompt_used")),
        result=f"{HANDLE_URL}{handles[0]}" if handles else "",
        saved_path=_text(value.get("path")),
        started_at_ms=called.started_at_ms,
        completed_at_ms=called.completed_at_ms,
    )


def _status(called: Called) -> Any:
    if called.output is None:
        return "inProgress" if called.is_open else "failed"
    return "failed" if called.output.get("success") is False else "completed"


def _duration_ms(called: Called) -> int | None:
    if called.started_at_ms is None or called.completed_at_ms is None:
        return None
    return max(0, called.completed_at_ms - called.started_at_ms)


def _parts(output: Item) -> list[item_views.ContentPart]:
    try:
        seen = item_views.view(output)
    except InputInvalid:
        return []
    is_output = isinstance(seen, item_views.FunctionCallOutput | item_views.CustomToolCallOutput)
    return seen.parts if is_output else []


def _value(parts: list[item_views.ContentPart] | tuple[()]) -> Mapping[str, Any]:
    """What a tool of ours says of itself: the object that its first words are."""
    for part in parts:
        if isinstance(part, item_views.InputText) and part.text.startswith("{"):
            try:
                return msgspec.json.decode(part.text, type=dict[str, Any])
            except (msgspec.DecodeError, RecursionError):
                return {}
    return {}


def _path(arguments: object, *, cwd: str) -> str | None:
    """The file that was to be looked at; of several, the first."""
    if not isinstance(arguments, dict):
        return None
    given = cast("dict[str, Any]", arguments)
    several = given.get("paths")
    named = [given.get("path"), *(cast("list[Any]", several) if isinstance(several, list) else [])]
    path = next((one for one in named if isinstance(one, str)), None)
    return None if path is None or path.startswith(HANDLE_URL) else str(PurePath(cwd, path))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
