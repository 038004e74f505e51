"""The tools that a client describes: every rule with its words, both forms, names for a model."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.servers.codex_process import Codex
from tests.servers.components import needs

from limner.errors import InputInvalid
from limner.frontends.appserver.tool_specs import (
    RESERVED_NAMESPACES,
    ToolSpec,
    names_for_model,
    read_specs,
    write_specs,
)
from limner.testing.servers.responses_server import ResponsesServer

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
MIXED = "Invalid request: dynamic tools must use either canonical or legacy format consistently"
UNSUPPORTED = "dynamic tool input schema is not supported for t: "


def function(name: str = "t", **more: Any) -> dict[str, Any]:
    return {"type": "function", "name": name, "description": "d", "inputSchema": SCHEMA, **more}


def namespace(name: str = "ns", tools: list[Any] | None = None, **more: Any) -> dict[str, Any]:
    inside = [function()] if tools is None else tools
    return {"type": "namespace", "name": name, "description": "n", "tools": inside, **more}


def legacy(name: str = "t", **more: Any) -> dict[str, Any]:
    return {"name": name, "description": "d", "inputSchema": SCHEMA, **more}


LONG, LONGER = "a" * 129, "a" * 65
BROKEN: dict[str, tuple[list[Any], str]] = {
    "no name": ([function("")], "dynamic tool name must not be empty"),
    "space around": ([function(" a")], "dynamic tool name has leading/trailing whitespace:  a"),
    "characters": (
        [function("a b")],
        "dynamic tool name must match ^[a-zA-Z0-9_-]+$ to match Responses API: a b",
    ),
    "letters of others": (
        [function("é")],
        r"dynamic tool name must match ^[a-zA-Z0-9_-]+$ to match Responses API: \u{e9}",
    ),
    "length": (
        [function(LONG)],
        f"dynamic tool name must be at most 128 characters to match Responses API: {LONG}",
    ),
    "mcp": ([function("mcp")], "dynamic tool name is reserved: mcp"),
    "mcp__": ([function("mcp__x")], "dynamic tool name is reserved: mcp__x"),
    "twice": ([function(), function()], "duplicate dynamic tool name: t"),
    "deferred": (
        [function(deferLoading=True)],
        "deferred dynamic tool must include a namespace: t",
    ),
    "namespace without name": ([namespace("")], "dynamic tool namespace must not be empty"),
    "space around namespace": (
        [namespace(" a")],
        "dynamic tool namespace has leading/trailing whitespace:  a",
    ),
    "characters of namespace": (
        [namespace("a.b")],
        "dynamic tool namespace must match ^[a-zA-Z0-9_-]+$ to match Responses API: a.b",
    ),
    "length of namespace": (
        [namespace(LONGER)],
        f"dynamic tool namespace must be at most 64 characters to match Responses API: {LONGER}",
    ),
    "length of description": (
        [namespace(description="x" * 1025)],
        "dynamic tool namespace description must be at most 1024 characters",
    ),
    "namespace mcp": ([namespace("mcp")], "dynamic tool namespace is reserved: mcp"),
    "namespace mcp__": ([namespace("mcp__a")], "dynamic tool namespace is reserved: mcp__a"),
    "reserved namespace": (
        [namespace("browser")],
        "dynamic tool namespace collides with a reserved Responses API namespace: browser",
    ),
    "namespace twice": ([namespace(), namespace()], "duplicate dynamic tool namespace: ns"),
    "empty namespace": (
        [namespace(tools=[])],
        "dynamic tool namespace must contain at least one tool: ns",
    ),
    "twice in a namespace": (
        [namespace(tools=[function(), function()])],
        "duplicate dynamic tool name in namespace ns: t",
    ),
    "name in a namespace": (
        [namespace(tools=[function("mcp")])],
        "dynamic tool name is reserved: mcp",
    ),
    "both forms": ([function(), legacy("b")], MIXED),
    "older form within": ([namespace(tools=[legacy("b")])], MIXED),
    "older member": ([function(namespace="q")], MIXED),
    "older member that hides": ([function(exposeToContext=True)], MIXED),
    "older, deferred": (
        [legacy(deferLoading=True)],
        "deferred dynamic tool must include a namespace: t",
    ),
    "older, hidden": (
        [legacy(exposeToContext=False)],
        "deferred dynamic tool must include a namespace: t",
    ),
    "older, twice": (
        [legacy(namespace="q"), legacy(namespace="q")],
        "duplicate dynamic tool name in namespace q: t",
    ),
    "older, namespace without name": (
        [legacy(namespace="")],
        "dynamic tool namespace must not be empty",
    ),
    "no description": (
        [{"type": "function", "name": "t", "inputSchema": {}}],
        "Invalid request: missing field `description`",
    ),
    "no schema": (
        [{"name": "t", "description": "d"}],
        "Invalid request: missing field `inputSchema`",
    ),
    "no tools": (
        [{"type": "namespace", "name": "t", "description": "d"}],
        "Invalid request: missing field `tools`",
    ),
    "kind": (
        [function() | {"type": "film"}],
        "Invalid request: unknown variant `film`, expected `function` or `namespace`, "
        "in `dynamicTools[0].type`",
    ),
    "namespace in a namespace": (
        [namespace(tools=[namespace()])],
        "Invalid request: unknown variant `namespace`, expected `function`, "
        "in `dynamicTools[0].tools[0].type`",
    ),
    "no object": (
        [3],
        "Invalid request: invalid type: integer `3`, expected a map, in `dynamicTools[0]`",
    ),
    "null": (
        [function(deferLoading=None)],
        "Invalid request: invalid type: null, expected a boolean, "
        "in `dynamicTools[0].deferLoading`",
    ),
}


@pytest.mark.parametrize("rule", BROKEN)
def test_a_broken_rule_has_the_error_message_of_codex(rule: str) -> None:
    tools, words = BROKEN[rule]
    with pytest.raises(InputInvalid) as refusal:
        read_specs(tools)
    assert refusal.value.message == words


NO_SCHEMA = "invalid type: {}, expected struct JsonSchema"
SCHEMAS: list[tuple[Any, str | None]] = [
    ({}, None),
    (True, None),
    ({"type": "film"}, None),
    ({"$ref": "http://x/y"}, None),
    ({"type": "object", "pattern": "(", "minLength": "x"}, None),
    (None, NO_SCHEMA.format("null")),
    ("x", NO_SCHEMA.format('string "x"')),
    ([], NO_SCHEMA.format("sequence")),
    ({"type": "null"}, "tool input schema must not be a singleton null type"),
    ({"properties": 3}, "invalid type: integer `3`, expected a map"),
    ({"properties": {"a": None}}, NO_SCHEMA.format("null")),
    ({"properties": {"a": {"items": 3}}}, NO_SCHEMA.format("integer `3`")),
    ({"required": "a"}, 'invalid type: string "a", expected a sequence'),
    ({"required": [3]}, "invalid type: integer `3`, expected a string"),
    ({"anyOf": 3}, "invalid type: integer `3`, expected a sequence"),
    ({"enum": 3}, "invalid type: integer `3`, expected a sequence"),
    ({"description": 3}, "invalid type: integer `3`, expected a string"),
    (
        {"additionalProperties": 3},
        "data did not match any variant of untagged enum AdditionalProperties",
    ),
]


@pytest.mark.parametrize(("schema", "problem"), SCHEMAS)
def test_schemas_are_taken_and_refused_as_codex_does(schema: Any, problem: str | None) -> None:
    tools = [function(inputSchema=schema)]
    if problem is None:
        (spec,) = read_specs(tools)
        assert spec.schema == schema
        return
    with pytest.raises(InputInvalid) as refusal:
        read_specs(tools)
    assert refusal.value.message == UNSUPPORTED + problem


def test_a_schema_that_is_nested_without_end_is_refused() -> None:
    schema: dict[str, Any] = {}
    for _ in range(200):
        schema = {"items": schema}
    with pytest.raises(InputInvalid, match="nested deeper than 100 levels"):
        read_specs([function(inputSchema=schema)])


def test_todays_form_is_read_with_its_namespaces() -> None:
    tools = [function("a"), namespace("ns", [function("a", deferLoading=True, new=1)], new=2)]
    assert read_specs(tools) == (
        ToolSpec(name="a", description="d", schema=SCHEMA),
        ToolSpec(
            name="a",
            description="d",
            schema=SCHEMA,
            namespace="ns",
            deferred=True,
            namespace_description="n",
        ),
    )


def test_the_older_form_becomes_todays() -> None:
    tools = [
        legacy("a"),
        legacy("b", namespace="q"),
        legacy("c", namespace=None),
        legacy("d", namespace="q", exposeToContext=False),
    ]
    about = "Tools in the q namespace."
    assert write_specs(read_specs(tools)) == [
        function("a"),
        namespace("q", [function("b"), function("d", deferLoading=True)], description=about),
        function("c"),
    ]


@pytest.mark.parametrize("nothing", [None, []])
def test_no_tools_are_no_mistake(nothing: Any) -> None:
    assert read_specs(nothing) == ()


def test_a_model_calls_tools_of_a_namespace_by_both_names() -> None:
    specs = read_specs([function("look"), namespace("screen", [function("look")])])
    assert {name: (s.namespace, s.name) for name, s in names_for_model(specs).items()} == {
        "look": (None, "look"),
        "screen__look": ("screen", "look"),
    }


def test_a_model_gets_an_object_with_properties_of_known_types() -> None:
    def parameters(schema: Any) -> Any:
        return read_specs([function(inputSchema=schema)])[0].parameters

    assert parameters(True) == {"type": "object", "properties": {}}
    assert parameters({"type": "film"}) == {"type": "object", "properties": {}}
    odd = {"properties": {"type": True, "a": {"type": 3, "enum": [{"type": "x"}]}}}
    assert parameters(odd) == {
        "type": "object",
        "properties": {"type": True, "a": {"enum": [{"type": "x"}]}},
    }


def test_a_schema_leads_nowhere_outside_of_itself() -> None:
    schema = {
        "$id": "http://127.0.0.1/",
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {"a": {"$ref": "http://127.0.0.1/x"}, "b": {"$ref": "#/$defs/b"}, "$ref": {}},
        "$defs": {"b": {"type": "string", "items": [{"$ref": "file:///etc/passwd"}]}},
    }
    (spec,) = read_specs([function(inputSchema=schema)])
    assert spec.parameters == {
        "type": "object",
        "properties": {"a": {}, "b": {"$ref": "#/$defs/b"}, "$ref": {}},
        "$defs": {"b": {"type": "string", "items": [{}]}},
    }


names = st.from_regex(r"[a-zA-Z0-9_-]{1,128}", fullmatch=True).filter(
    lambda name: not name.startswith("mcp")
)
short_names = st.from_regex(r"[a-zA-Z0-9_-]{1,64}", fullmatch=True).filter(
    lambda name: not name.startswith("mcp") and name not in RESERVED_NAMESPACES
)
described = st.fixed_dictionaries(
    {
        "functions": st.sets(names, max_size=4),
        "namespaces": st.dictionaries(
            short_names,
            st.dictionaries(names, st.booleans(), min_size=1, max_size=3),
            max_size=3,
        ),
    }
)


def tools_of(drawn: Any) -> list[Any]:
    return [function(name) for name in sorted(drawn["functions"])] + [
        namespace(
            name,
            [function(t, **({"deferLoading": True} if d else {})) for t, d in inside.items()],
        )
        for name, inside in drawn["namespaces"].items()
    ]


@given(described)
def test_tools_are_kept_and_read_again_as_they_were_property(drawn: Any) -> None:
    tools = tools_of(drawn)
    assert write_specs(read_specs(tools)) == tools


@given(described)
def test_every_tool_has_a_name_of_its_own_that_services_take_property(drawn: Any) -> None:
    specs = read_specs(tools_of(drawn))
    named = names_for_model(specs)
    assert sorted(map(repr, named.values())) == sorted(map(repr, specs))
    assert all(named[name].name == name for name in drawn["functions"])
    assert all(len(name) <= 64 for name, spec in named.items() if spec.namespace is not None)


def test_names_that_would_collide_are_made_different() -> None:
    specs = read_specs([function("a__b"), namespace("a", [function("b")])])
    first, second = names_for_model(specs)
    assert first == "a__b"
    assert second.startswith("a__b_")


@needs("codex_cli_bin")
@pytest.mark.slow
async def test_the_real_codex_says_the_same_to_every_broken_rule(tmp_path: Path) -> None:
    rules = BROKEN.keys() - {"no object"}  # there it names a type of its own
    theirs = {}
    with ResponsesServer() as server:
        async with Codex(tmp_path, server).app_server() as talk:
            for rule in rules:
                # What is refused, the client of the tests takes for a failure of its own.
                with pytest.raises(AssertionError) as refusal:
                    await talk.request("thread/start", dynamicTools=BROKEN[rule][0])
                theirs[rule] = refusal.value.args[0]["error"]["message"]
    # Which member it is, only we say.
    assert theirs == {r: re.sub(", in `dynamicTools.*$", "", BROKEN[r][1]) for r in rules}
