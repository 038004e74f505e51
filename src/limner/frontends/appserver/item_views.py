"""The stored items of one turn -> the items that clients see, with pictures named by handle.

Items of types that the protocol does not have stay in the history and are not shown.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from limner.agent.session import StoredItem
from limner.agent.stored_turns import CALLS, OUTPUTS, TOOL_OUTPUT, is_context
from limner.errors import InputInvalid
from limner.frontends.appserver.protocol.base import (
    AudioInput,
    Detail,
    ImageInput,
    LocalImageInput,
    TextInput,
    UserInput,
)
from limner.frontends.appserver.protocol.items import (
    AgentMessage,
    ContextCompaction,
    FunctionCallOutput,
    ImageGeneration,
    Phase,
    Reasoning,
    ThreadItem,
    UserMessage,
)
from limner.frontends.appserver.tool_answers import DEFAULT_DETAIL
from limner.frontends.appserver.tool_items import ToolCallRecord, to_thread_item
from limner.frontends.appserver.tool_specs import ToolSpec
from limner.wires import item_views
from limner.wires.items import Item

_LOCAL_IMAGE = re.compile(r'<image name=\[Image #\d+\] path="(?P<path>.*)">')
_LOCAL_IMAGE_END = "</image>"
_PHASES = frozenset({"commentary", "partial_answer", "final_answer"})


class CallIndex(msgspec.Struct, frozen=True, kw_only=True):
    """What the items of calls do not say.

    Attributes:
        tools: the client's tools, by the names that the model has for them.
        open_calls: the calls that may still be answered.
        cwd: the folder that paths in calls are relative to.
    """

    tools: Mapping[str, ToolSpec] = msgspec.field(default_factory=dict[str, ToolSpec])
    open_calls: Collection[str] = ()
    cwd: str = ""


def to_thread_items(stored: Sequence[StoredItem], calls: CallIndex) -> list[ThreadItem]:
    """The items of a turn as clients see them, in their order."""
    outputs = {one.item.get("call_id"): one for one in stored if one.item.get("type") in OUTPUTS}
    called: set[Any] = set()
    found: list[ThreadItem | None] = []
    for one in stored:
        kind, call_id = one.item.get("type", "message"), one.item.get("call_id")
        if kind in CALLS:
            # A history that was joined from two files may have a call twice.
            if call_id not in called:
                found.append(to_thread_item(_call_record(one, outputs.get(call_id), calls)))
            called.add(call_id)
        elif kind not in OUTPUTS:
            found.append(_view(one))
        elif call_id not in called:
            found.append(_output_without_call(one))
    return [item for item in found if item is not None]


def user_message(stored: StoredItem) -> UserMessage:
    """A user's message as clients see it.

    Raises:
        InputInvalid: the item is not a valid message.
    """
    seen = item_views.view(stored.item)
    assert isinstance(seen, item_views.Message)
    client_id = stored.item.get("client_id")
    return UserMessage(
        id=_id(stored),
        client_id=client_id if isinstance(client_id, str) else None,
        content=tuple(_inputs(seen.parts)),
        started_at_ms=stored.created_ms,
        completed_at_ms=stored.created_ms,
    )


def _call_record(stored: StoredItem, output: StoredItem | None, calls: CallIndex) -> ToolCallRecord:
    item = stored.item
    call_id, name = str(item.get("call_id")), str(item.get("name"))
    return ToolCallRecord(
        call_id=call_id,
        name=name,
        arguments=_arguments(item),
        spec=calls.tools.get(name),
        cwd=calls.cwd,
        output=None if output is None else output.item,
        is_open=call_id in calls.open_calls,
        started_at_ms=stored.created_ms,
        completed_at_ms=None if output is None else output.created_ms,
    )


def _arguments(item: Item) -> Any:
    """The arguments of a call; if they are not JSON, the text that the model wrote."""
    given = item.get("arguments", item.get("input"))
    try:
        return msgspec.json.decode(given) if isinstance(given, str) and given else given
    except (msgspec.DecodeError, RecursionError):
        return given


def _view(stored: StoredItem) -> ThreadItem | None:
    item = stored.item
    if item.get("type") == "compaction" or "compaction" in item:
        return ContextCompaction(id=str(item.get("compaction") or _id(stored)), **_times(stored))
    if item.get("type") == "image_generation_call":
        return _generated(stored)
    try:
        seen = item_views.view(item)
    except InputInvalid:
        return None
    if isinstance(seen, item_views.Message):
        return _message(stored, seen)
    if isinstance(seen, item_views.Reasoning):
        summary, content = [[t.text for t in texts or ()] for texts in (seen.summary, seen.content)]
        return Reasoning(
            id=_id(stored), summary=tuple(summary), content=tuple(content), **_times(stored)
        )
    return None


def _message(stored: StoredItem, seen: item_views.Message) -> ThreadItem | None:
    if seen.role == "assistant":
        return _agent_message(stored, seen)
    if TOOL_OUTPUT in stored.item:
        return _tool_message(stored)
    # Messages of the developer to the model are not for the user.
    if seen.role != "user" or is_context(stored.item):
        return None
    return user_message(stored)


def _agent_message(stored: StoredItem, seen: item_views.Message) -> AgentMessage | None:
    words = [
        part.refusal if isinstance(part, item_views.Refusal) else part.text
        for part in seen.parts
        if isinstance(part, item_views.OutputText | item_views.InputText | item_views.Refusal)
    ]
    if not any(words):
        return None
    phase = cast("Phase", seen.phase) if seen.phase in _PHASES else None
    return AgentMessage(id=_id(stored), text="".join(words), phase=phase, **_times(stored))


def _generated(stored: StoredItem) -> ImageGeneration:
    """A picture that the model's provider generated."""
    item = stored.item
    prompt = item.get("revised_prompt")
    return ImageGeneration(
        id=_id(stored),
        status=str(item.get("status") or "completed"),
        revised_prompt=prompt if isinstance(prompt, str) else None,
        result=str(item.get("result") or ""),
        **_times(stored),
    )


def _tool_message(stored: StoredItem) -> FunctionCallOutput | None:
    """The output of a tool that the model did not call, stored as a message."""
    item = stored.item
    parts = cast("list[dict[str, Any]]", item["content"])[1:]
    is_text = len(parts) == 1 and parts[0].get("type") == "input_text"
    output: Any = parts[0]["text"] if is_text else parts
    return _output_without_call(
        msgspec.structs.replace(stored, item={**item, **item[TOOL_OUTPUT], "output": output})
    )


def _output_without_call(stored: StoredItem) -> FunctionCallOutput | None:
    """The output of a tool that the model did not call; None if its call is gone."""
    item = stored.item
    name, namespace, output = item.get("name"), item.get("namespace"), item.get("output")
    if not isinstance(name, str) or not isinstance(output, str | list):
        return None
    return FunctionCallOutput(
        id=_id(stored),
        name=name,
        namespace=namespace if isinstance(namespace, str) else None,
        output=cast("str | list[dict[str, Any]]", output),
        **_times(stored),
    )


def _inputs(parts: Sequence[item_views.ContentPart]) -> Iterator[UserInput]:
    """The input of a user; a picture between the tags of a file is shown as that file."""
    rest = iter(parts)
    for part in rest:
        match part:
            case item_views.InputText() | item_views.OutputText():
                tag = _LOCAL_IMAGE.fullmatch(part.text)
                yield TextInput(text=part.text) if tag is None else _local(tag["path"], rest)
            case item_views.InputImage() if part.image_url is not None:
                yield ImageInput(url=part.image_url, detail=_detail(part))
            case item_views.InputAudio() if part.audio_url is not None:
                yield AudioInput(url=part.audio_url)
            case _:
                pass


def _local(path: str, rest: Iterator[item_views.ContentPart]) -> LocalImageInput:
    """The file of a picture. The picture, or why it is missing, comes before the end tag."""
    detail = None
    for part in rest:
        if isinstance(part, item_views.InputText) and part.text == _LOCAL_IMAGE_END:
            break
        if isinstance(part, item_views.InputImage):
            detail = _detail(part)
    return LocalImageInput(path=path, detail=detail)


def _detail(part: item_views.InputImage) -> Detail | None:
    """The detail of a picture, if it is not the default."""
    return None if part.detail == DEFAULT_DETAIL else cast("Detail | None", part.detail)


def _id(stored: StoredItem) -> str:
    named = stored.item.get("id")
    return named if isinstance(named, str) else f"item-{stored.seq}"


def _times(stored: StoredItem) -> dict[str, Any]:
    return {"started_at_ms": stored.created_ms, "completed_at_ms": stored.created_ms}
