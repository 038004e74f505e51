"""A JSON schema of items -> a history with every kind, action and content form that it has."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from tests.acceptance.client_script import DATA_URL

Json = dict[str, Any]

AUDIO_URL = "data:audio/wav;base64,UklGRiQAAABXQVZFZm10IBAAAAABAAEAgD4AAAB9AAACABAAZGF0YQAAAAA="
# Strings that mean something; all others are their own names.
_TEXTS: Mapping[str, str] = {
    "arguments": '{"target":"window"}',
    "audio_url": AUDIO_URL,
    "effort": "low",
    "encrypted_content": base64.b64encode(b"only its service reads this").decode(),
    "execution": "client",
    "image_url": DATA_URL,
    "result": DATA_URL.partition(",")[2],
    "status": "completed",
    "url": "https://example.com/page",
}
_ROLES = ("user", "assistant", "developer", "system")
# Each call, and the kind of its output.
OUTPUTS: Mapping[str, str] = {
    "custom_tool_call": "custom_tool_call_output",
    "function_call": "function_call_output",
    "local_shell_call": "function_call_output",
    "tool_search_call": "tool_search_output",
}


def whole_history(types: Mapping[str, Any], *, first_call: int) -> list[Json]:
    """The items in a legal order: each call has its own id and its output after it."""
    forms = [item for kind in types["ResponseItem"]["oneOf"] for item in _forms(kind, types, "")]
    calls = [item for item in forms if item["type"] in OUTPUTS]
    outputs = [item for item in forms if item["type"] in set(OUTPUTS.values())]
    others = [item for item in forms if item not in calls and item not in outputs]
    numbers = count(first_call)
    messages = [one for item in others for one in _in_every_role(item)]
    return [*messages, *_paired(calls, outputs, numbers)]


def _in_every_role(item: Json) -> Iterator[Json]:
    for role in _ROLES if item["type"] == "message" else ("",):
        yield {**item, **({"role": role} if role else {})}


def _paired(calls: list[Json], outputs: list[Json], numbers: Iterator[int]) -> Iterator[Json]:
    """Every call with a plain output, then every output with a plain call."""
    for call in calls:
        yield from _pair(call, _first(outputs, OUTPUTS[call["type"]]), next(numbers))
    for output in outputs:
        kind = next(call for call, kind in OUTPUTS.items() if kind == output["type"])
        kind = "function_call" if output["type"] == "function_call_output" else kind
        yield from _pair(_first(calls, kind), output, next(numbers))


def _pair(call: Json, output: Json, number: int) -> Iterator[Json]:
    call_id = {"call_id": f"call_{number}"}
    yield {**call, **call_id}
    yield {**output, **call_id}


def _first(items: list[Json], kind: str) -> Json:
    return next(item for item in items if item["type"] == kind)


def _forms(schema: Any, types: Mapping[str, Any], name: str) -> list[Any]:
    """Values of a schema: together they have every member, every alternative and every word."""
    if schema is True:
        return [{"name": name}]
    if "$ref" in schema:
        return _forms(types[schema["$ref"].rpartition("/")[2]], types, name)
    if "enum" in schema:
        return list(schema["enum"])
    for word in ("oneOf", "anyOf"):
        if word in schema:
            chosen = [one for form in schema[word] for one in _forms(form, types, name)]
            if "properties" not in schema:
                return chosen
            more = _objects({k: v for k, v in schema.items() if k != word}, types)
            return [one | more[-1] for one in chosen] + [chosen[0] | one for one in more]
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return [one for kind in kinds for one in _of_type(kind, schema, types, name)]


def _of_type(kind: str, schema: Any, types: Mapping[str, Any], name: str) -> list[Any]:
    match kind:
        case "null":
            return [None]
        case "boolean":
            return [True, False]
        case "integer":
            return [1000]
        case "string":
            return [_TEXTS.get(name, f"a {name}")]
        case "array":
            inside = _forms(schema["items"], types, name)
            return [inside] if not isinstance(inside[0], dict) else [[one] for one in inside]
        case _:
            return _objects(schema, types)


def _objects(schema: Any, types: Mapping[str, Any]) -> list[Json]:
    """The members that are needed alone, all members, and all with each form of each member."""
    if "properties" not in schema:
        return [{"A": "b"}]
    forms = {name: _forms(one, types, name) for name, one in schema["properties"].items()}
    plain = {name: values[0] for name, values in forms.items()}
    least = {name: value for name, value in plain.items() if name in schema.get("required", ())}
    changed = [{**plain, name: one} for name, values in forms.items() for one in values[1:]]
    return [least, *([plain] if plain != least else []), *changed]


# What is not quite in order: each is followed by more of the conversation.
ODD: tuple[Json, ...] = (
    {"type": "from_the_future", "text": "a text"},
    {"type": "compaction_summary", "encrypted_content": "c3Vt"},
    {"type": "function_call_output", "call_id": "call_of_none", "output": "a stray output"},
    {"type": "function_call", "call_id": "call_open", "name": "shot", "arguments": "{}"},
    {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_image", "image_url": "https://example.com/a.png"}],
    },
    {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_image", "image_url": "data:image/png;base64,AAA"}],
    },
    {"type": "web_search_call", "status": "completed", "action": {"type": "fly"}},
)


def as_on_the_wire(item: Json) -> Json:
    """An output as Codex reads it: without the envelope of the published schema."""
    match item:
        case {"output": {"body": body}}:
            return {**item, "output": body}
        case _:
            return item
