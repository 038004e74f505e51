"""A client's tools as tools of a model: called by name, the deferred ones once they are found."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from limner.frontends.appserver.client_tools import DESCRIPTION, ClientTools
from limner.frontends.appserver.tool_specs import ToolSpec, read_specs
from limner.tools.base import Outcome, ToolCall, ToolContext
from limner.tools.registry import ToolRegistry

SCHEMA = {"type": "object", "properties": {"target": {"type": "string"}}}


def function(name: str, description: str = "", **more: Any) -> dict[str, Any]:
    return {
        "type": "function",
        "name": name,
        "description": description,
        "inputSchema": SCHEMA,
        **more,
    }


SPECS = read_specs(
    [
        function("shot", "Take a screenshot"),
        {
            "type": "namespace",
            "name": "printer",
            "description": "Paper",
            "tools": [
                function("print_page", "Put a picture on paper", deferLoading=True),
                function("ink_level", "How much ink is left", deferLoading=True),
                function("status", "Whether it is on"),
            ],
        },
    ]
)


class Client:
    """Who answers the calls, and remembers what was found."""

    def __init__(self) -> None:
        self.calls: list[tuple[ToolSpec, Mapping[str, Any]]] = []
        self.found: list[frozenset[str]] = []

    def tools(self, found: frozenset[str] = frozenset()) -> ToolRegistry:
        own = ClientTools(SPECS, call=self._call, found=found, on_found=self._on_found)
        return ToolRegistry(own.tools())

    async def _call(
        self, spec: ToolSpec, arguments: Mapping[str, Any], context: ToolContext
    ) -> Outcome:
        self.calls.append((spec, arguments))
        return Outcome(value={"ok": True})

    async def _on_found(self, names: frozenset[str]) -> None:
        self.found.append(names)


def offered(registry: ToolRegistry) -> list[str]:
    return [tool.name for tool in registry.definitions()]


async def search(registry: ToolRegistry, query: str) -> Any:
    call = ToolCall(name="tool_search", arguments={"query": query})
    (result,) = await registry.execute_parallel([call], ToolContext())
    return json.loads(result.value)


async def test_a_tool_of_a_namespace_is_called_by_both_names() -> None:
    client = Client()
    call = ToolCall(name="printer__status", arguments={"target": "a"})
    await client.tools().execute_parallel([call], ToolContext())
    assert client.calls == [(SPECS[3], {"target": "a"})]


async def test_a_deferred_tool_is_offered_and_callable_once_it_was_found() -> None:
    client = Client()
    registry = client.tools()
    assert offered(registry) == ["shot", "printer__status", "tool_search"]
    page = ToolCall(name="printer__print_page")
    (early,) = await registry.execute_parallel([page], ToolContext())
    assert early.domain_code == "TOOL_UNAVAILABLE"

    assert await search(registry, "printing a photo") == {
        "tools": [
            {
                "name": "printer__print_page",
                "description": "Put a picture on paper",
                "parameters": SCHEMA,
            }
        ]
    }
    assert client.found == [frozenset({"printer__print_page"})]
    assert offered(registry) == ["shot", "printer__print_page", "printer__status", "tool_search"]
    (late,) = await registry.execute_parallel([page], ToolContext())
    assert late.ok


async def test_a_search_for_one_tool_finds_it_first_and_tells_once() -> None:
    client = Client()
    registry = client.tools()
    for _ in range(2):
        found = await search(registry, "how much ink")
        assert [tool["name"] for tool in found["tools"]] == ["printer__ink_level"]
    assert client.found == [frozenset({"printer__ink_level"})]


async def test_a_search_that_finds_nothing_says_what_there_is() -> None:
    assert await search(Client().tools(), "weather") == {
        "tools": [],
        "there_are": ["printer__ink_level", "printer__print_page"],
    }


async def test_what_was_found_before_is_still_known() -> None:
    registry = Client().tools(found=frozenset({"printer__ink_level", "gone"}))
    assert offered(registry) == ["shot", "printer__ink_level", "printer__status", "tool_search"]


def test_there_is_no_search_where_nothing_is_deferred() -> None:
    client = Client()
    own = ClientTools(SPECS[:1], call=client._call, on_found=client._on_found)
    assert [tool.name for tool in own.tools()] == ["shot"]


def test_a_client_may_have_a_tool_search_of_its_own() -> None:
    client = Client()
    specs = (ToolSpec(name="tool_search", description="mine", schema=SCHEMA), *SPECS)
    own = ClientTools(specs, call=client._call, on_found=client._on_found)
    described = {tool.name: tool.description for tool in own.tools()}
    assert (described["tool_search"], described["tool_search_"]) == ("mine", DESCRIPTION)


def test_what_a_client_says_reaches_the_model_word_for_word() -> None:
    client = Client()
    own = ClientTools(SPECS, call=client._call, on_found=client._on_found, timeout_s=7)
    shot = own.tools()[0]
    assert (shot.foreign, shot.timeout_s, shot.schema) == (True, 7, SCHEMA)
