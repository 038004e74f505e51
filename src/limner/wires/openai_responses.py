"""OpenAI's Responses API: turns -> ``POST /responses``; its events -> an answer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, cast

import msgspec

from limner.wires.base import (
    Answer,
    ModelRequest,
    Prompt,
    Stop,
    StreamReader,
    ToolOffer,
    Usage,
    encode_body,
)
from limner.wires.content_parts import (
    AudioClip,
    NativePart,
    Part,
    PartSupport,
    join_text,
    replace_surrogates,
)
from limner.wires.item_views import Reasoning
from limner.wires.openai_shared import (
    ErrorBody,
    InputDetails,
    OutputDetails,
    bearer,
    data_url,
    json_schema,
    to_usage,
)
from limner.wires.stream import Count, ItemBuilder, convert_or_none, event_kind, parse_event
from limner.wires.turns import (
    AssistantTurn,
    CallPart,
    MessagePart,
    OutputPart,
    Step,
    ToolTurn,
    Turn,
    UserTurn,
    build_turns,
)

API = "openai-responses"

# The service does not list the types of audio that it takes: each clip is sent as it came.
_TAKES = PartSupport(count=1500, audio=None, native=True)
_DETAILS = frozenset({"auto", "low", "high", "original"})
# The members of the items that go out as they came, and of their actions.
_NATIVE: Mapping[str, Sequence[str]] = {
    "additional_tools": ("role", "tools"),
    "agent_message": ("author", "recipient", "content"),
    "compaction": ("encrypted_content",),
    "context_compaction": ("encrypted_content",),
    "image_generation_call": ("id", "status", "revised_prompt", "result"),
    "local_shell_call": ("call_id", "status", "action"),
    "tool_search_call": ("call_id", "status", "execution", "arguments"),
    "tool_search_output": ("call_id", "status", "execution", "tools"),
    "web_search_call": ("status", "action"),
}
_ACTIONS: Mapping[str, Sequence[str]] = {
    "exec": ("command", "env", "timeout_ms", "user", "working_directory"),
    "search": ("query", "queries"),
    "open_page": ("url",),
    "find_in_page": ("url", "pattern"),
    "other": (),
}
_SAME_KIND = {"compaction_summary": "compaction"}
# These models refuse a request that asks for reasoning.
_NEVER_REASONS = re.compile(r"gpt-[34]|chatgpt-|.*-chat(-latest)?$")
_PHASES = frozenset({"commentary", "final_answer"})


class OpenAIResponses:
    """The wire of the Responses API."""

    version = None
    batch_api = "openai"

    def headers(self, key: str) -> Mapping[str, str]:
        """The key as a bearer token."""
        return bearer(key)

    def request(self, model: str, prompt: Prompt) -> ModelRequest:
        """A request for one streamed response that the service does not store.

        Raises as `Wire.request`.
        """
        body: dict[str, Any] = {
            "model": model,
            "input": [item for turn in build_turns(prompt, _TAKES) for item in _items(turn)],
            "max_output_tokens": prompt.max_output_tokens,
            "store": False,
            "stream": prompt.stream,
        }
        if prompt.instructions is not None:
            body["instructions"] = replace_surrogates(prompt.instructions)
        if prompt.effort is not None:
            body["reasoning"] = {"effort": prompt.effort}
        if prompt.tools:
            body["tools"] = [_tool(offer) for offer in prompt.tools]
        if prompt.conversation is not None:
            body["prompt_cache_key"] = prompt.conversation
        if _may_reason(model, prompt):
            # The service stores nothing: without this, reasoning would be lost at each call.
            body["include"] = ["reasoning.encrypted_content"]
        if prompt.schema is not None:
            body["text"] = {"format": {"type": "json_schema", **json_schema(prompt.schema)}}
        return ModelRequest(path="/responses", pieces=encode_body(body))

    def reader(self) -> StreamReader:
        """A reader for one response."""
        return _Reader()

    def events(self, whole: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
        """The last event has the whole response in it."""
        kinds = {"failed": "response.failed", "incomplete": "response.incomplete"}
        kind = kinds.get(str(whole.get("status")), "response.completed")
        return [{"type": kind, "response": whole}]


WIRE = OpenAIResponses()


def _may_reason(model: str, prompt: Prompt) -> bool:
    """Whether the reasoning of the answer is part of a later request."""
    goes_on = prompt.conversation is not None or bool(prompt.tools)
    return goes_on and prompt.effort != "none" and _NEVER_REASONS.match(model) is None


def _tool(offer: ToolOffer) -> dict[str, Any]:
    return {
        "type": "function",
        "name": offer.name,
        "description": offer.description,
        "parameters": offer.schema,
        "strict": False,
    }


def _items(turn: Turn) -> list[dict[str, Any]]:
    match turn:
        case UserTurn():
            content = [_part(part) for part in turn.parts]
            return [{"type": "message", "role": turn.role, "content": content}]
        case AssistantTurn():
            return [item for step in turn.trimmed_steps for item in _step(step)]
        case ToolTurn():
            return [_output(output) for output in turn.outputs]


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, str):
        if isinstance(part, NativePart):
            return {key: value for key, value in part.native.items() if value is not None}
        return {"type": "input_text", "text": part}
    if isinstance(part, AudioClip):
        return {"type": "input_audio", "audio_url": part.url}
    detail = part.image.detail if part.image.detail in _DETAILS else "auto"
    return {"type": "input_image", "image_url": data_url(part.image), "detail": detail}


def _step(step: Step) -> list[dict[str, Any]]:
    match step:
        case MessagePart(native=dict() as native) | CallPart(native=dict() as native):
            return [_native(native, step)]
        case MessagePart():
            # Parts would need the id that the service gave them; a plain text needs none.
            message = {"type": "message", "role": "assistant", "content": "".join(step.texts)}
            return [message | ({"phase": step.phase} if step.phase in _PHASES else {})]
        case CallPart():
            call = {"call_id": step.call_id, "name": step.name}
            if step.namespace is not None:
                call["namespace"] = replace_surrogates(step.namespace)
            if step.is_custom:
                return [{"type": "custom_tool_call", **call, "input": step.arguments}]
            return [{"type": "function_call", **call, "arguments": step.arguments}]
        case _:
            return _reasoning(step.reasoning)


def _native(item: Mapping[str, Any], step: MessagePart | CallPart) -> dict[str, Any]:
    """An item of this API as it came, with the members that the API knows.

    The ids of most items are for the store alone. A generated picture has to have its id.
    """
    kind = str(_SAME_KIND.get(item["type"], item["type"]))
    sent: dict[str, Any] = {"type": kind, **_given(item, _NATIVE[kind])}
    if isinstance(step, CallPart):
        sent["call_id"] = step.call_id
    if kind == "image_generation_call" and "id" not in sent:
        sent["id"] = f"ig_{sha256(sent['result']).hexdigest()[:32]}"
    action: Any = sent.get("action")
    if isinstance(action, dict):
        given = cast("dict[str, Any]", action)
        does = str(given.get("type")) if given.get("type") in _ACTIONS else "other"
        sent["action"] = {"type": does, **_given(given, _ACTIONS[does])}
    return sent


def _given(item: Mapping[str, Any], members: Sequence[str]) -> dict[str, Any]:
    """The members of an item that are not null."""
    return {name: item[name] for name in members if item.get(name) is not None}


def _reasoning(reasoning: Reasoning) -> list[dict[str, Any]]:
    """Reasoning of this service, encrypted or as text; not of others."""
    if reasoning.origin not in (None, API):
        return []
    summary = [{"type": "summary_text", "text": part.text} for part in reasoning.summary]
    item: dict[str, Any] = {"type": "reasoning", "summary": summary}
    if not (summary or reasoning.content or reasoning.encrypted_content):
        return []
    texts = [part for part in reasoning.content or () if part.type == "reasoning_text"]
    if texts:
        item["content"] = [{"type": "reasoning_text", "text": part.text} for part in texts]
    return [item | {"encrypted_content": reasoning.encrypted_content}]


def _output(output: OutputPart) -> dict[str, Any]:
    parts, is_custom = output.parts, output.call.is_custom
    return {
        "type": "custom_tool_call_output" if is_custom else "function_call_output",
        **({} if is_custom else output.tool),
        "call_id": output.call.call_id,
        "output": join_text(parts) if output.is_text else [_part(part) for part in parts],
    }


class _Delta(msgspec.Struct):
    delta: str


class _ErrorEvent(ErrorBody):
    # Documented flat, and seen nested as in the body of an error response.
    error: ErrorBody | None = None


class _Incomplete(msgspec.Struct):
    reason: str | None = None


class _Content(msgspec.Struct):
    type: str = ""
    text: str = ""
    refusal: str = ""


class _Output(msgspec.Struct):
    type: str = ""
    content: list[_Content] | None = None


class _ItemEvent(msgspec.Struct):
    item: dict[str, Any]
    output_index: int = 0


class _Response(msgspec.Struct):
    model: str | None = None
    error: ErrorBody | None = None
    incomplete_details: _Incomplete | None = None
    usage: Any = None
    output: list[dict[str, Any]] = []


class _ResponseEvent(msgspec.Struct):
    response: _Response


class _Usage(msgspec.Struct):
    input_tokens: Count
    output_tokens: Count
    input_tokens_details: InputDetails | None = None
    output_tokens_details: OutputDetails | None = None


class _Reader:
    """Reads the events of one response."""

    def __init__(self) -> None:
        self._text = ItemBuilder(API)
        self._items: dict[int, dict[str, Any]] = {}
        self._refusal: list[str] = []
        self._answer: Answer | None = None
        self._handlers = {
            "response.output_text.delta": self._on_text,
            "response.refusal.delta": self._on_refusal,
            "response.output_item.done": self._on_item,
            "response.completed": self._on_end,
            "response.incomplete": self._on_end,
            "response.failed": self._on_failure,
            "error": self._on_error,
        }

    def feed(self, name: str, data: str) -> str:
        handle = self._handlers.get(event_kind(data))
        return "" if handle is None else handle(data)

    @property
    def has_usage(self) -> bool:
        return self._answer is not None and self._answer.usage is not None

    def finish(self) -> Answer | None:
        return self._answer

    def _on_text(self, data: str) -> str:
        return self._text.add_text(parse_event(data, _Delta).delta)

    def _on_refusal(self, data: str) -> str:
        self._refusal.append(parse_event(data, _Delta).delta)
        return ""

    def _on_item(self, data: str) -> str:
        self._text.count_chars(data)
        event = parse_event(data, _ItemEvent)
        self._items[event.output_index] = event.item
        return ""

    def _on_end(self, data: str) -> str:
        response = parse_event(data, _ResponseEvent).response
        late = "" if self._text.text else self._read_final_text(response)
        self._answer = self._build_answer(
            self._stop(response), response, message="".join(self._refusal) or None
        )
        return late

    def _read_final_text(self, response: _Response) -> str:
        """The text of a response whose pieces were not sent one by one."""
        outputs = [output for one in response.output if (output := convert_or_none(one, _Output))]
        contents = [one for output in outputs for one in output.content or ()]
        if not self._refusal:
            self._refusal = [one.refusal for one in contents if one.type == "refusal"]
        text = "".join(one.text for one in contents if one.type == "output_text")
        return self._text.add_text(text)

    def _stop(self, response: _Response) -> Stop:
        cut = response.incomplete_details
        if self._refusal or (cut is not None and cut.reason == "content_filter"):
            return "refusal"
        return "end" if cut is None else "length"

    def _on_failure(self, data: str) -> str:
        response = parse_event(data, _ResponseEvent).response
        self._fail(response, response.error or ErrorBody())
        return ""

    def _on_error(self, data: str) -> str:
        event = parse_event(data, _ErrorEvent)
        self._fail(_Response(), event.error or event)
        return ""

    def _fail(self, response: _Response, error: ErrorBody) -> None:
        self._answer = self._build_answer(
            "error", response, message=error.message, code=error.code_text
        )

    def _build_answer(
        self, stop: Stop, response: _Response, *, message: str | None, code: str | None = None
    ) -> Answer:
        items = tuple(self._items[at] for at in sorted(self._items))
        return Answer(
            text=self._text.text,
            stop=stop,
            model=response.model,
            usage=_usage(response.usage),
            message=message,
            code=code,
            items=items or tuple(response.output) or self._text.build(),
        )


def _usage(raw: Any) -> Usage | None:
    usage = convert_or_none(raw, _Usage)
    return usage and to_usage(
        usage.input_tokens,
        usage.output_tokens,
        usage.input_tokens_details,
        usage.output_tokens_details,
    )
