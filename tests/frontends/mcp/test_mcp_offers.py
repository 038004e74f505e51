"""What a client is told of each tool."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from limner.frontends.mcp.offers import COMPILED, offered, tools_for
from limner.frontends.mcp.protocol import SESSION_REVISIONS, STATELESS, ConnectedClient
from limner.frontends.mcp.tool_list import DECLARED, compile_offers, declared_names, names_paths

# The shortest cut that a client of today makes.
MAX_DESCRIPTION_CHARS = 1024

NAMES = [tool.name for tool in DECLARED]
# reads only, may replace something, the same again changes nothing, reaches beyond this machine
HINTS = {
    "image_generate": (False, True, False, True),
    "image_edit": (False, True, False, True),
    "image_render": (False, True, False, False),
    "image_transform": (False, True, False, False),
    "inspect_image": (True, False, False, True),
    "image_check": (False, False, False, True),
    "asset_search": (False, False, False, False),
    "image_batch": (False, True, True, True),
    "image_fit": (True, False, True, False),
    "image_job": (False, True, True, True),
    "image_recall": (True, False, True, False),
    "spend": (True, False, True, False),
}
STRUCTURED = {"inspect_image", "spend"}


def client(revision: str, name: str = "") -> ConnectedClient:
    return ConnectedClient(revision=revision, capabilities={}, name=name)


def test_the_compiled_list_is_what_the_tools_declare() -> None:
    """Compile it again: python -m limner.frontends.mcp.tool_list"""
    assert COMPILED.read_bytes() == compile_offers()


def test_the_tools_come_in_an_order_that_never_changes() -> None:
    assert [*offered()] == NAMES


def test_every_tool_says_what_it_may_do() -> None:
    said = {
        name: tuple(
            tool["annotations"][hint]
            for hint in ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
        )
        for name, tool in offered().items()
    }
    assert said == HINTS


@pytest.mark.parametrize("name", NAMES)
def test_a_description_is_shorter_than_clients_cut(name: str) -> None:
    (tool,) = (
        one for one in tools_for(client(STATELESS, "codex-mcp-client")) if one["name"] == name
    )
    assert 0 < len(tool["description"]) <= MAX_DESCRIPTION_CHARS


@pytest.mark.parametrize("name", NAMES)
def test_schemas_are_schemas_and_promise_no_base64(name: str) -> None:
    tool = offered()[name]
    Draft202012Validator.check_schema(tool["inputSchema"])
    assert ("outputSchema" in tool) == (name in STRUCTURED)
    if "outputSchema" in tool:
        Draft202012Validator.check_schema(tool["outputSchema"])
        assert "base64" not in json.dumps(tool["outputSchema"]).lower()


@pytest.mark.parametrize(
    ("revision", "unknown"),
    [
        ("2024-11-05", {"title", "outputSchema", "annotations"}),
        ("2025-03-26", {"title", "outputSchema"}),
        ("2025-06-18", set[str]()),
        ("2025-11-25", set[str]()),
        (STATELESS, set[str]()),
    ],
)
def test_a_client_gets_the_fields_that_its_revision_has(revision: str, unknown: set[str]) -> None:
    everything = {"name", "title", "description", "inputSchema", "outputSchema", "annotations"}
    found = {key for tool in tools_for(client(revision)) for key in tool}
    assert found == everything - unknown


def test_every_revision_is_covered() -> None:
    assert len(SESSION_REVISIONS) == 4


def test_codex_is_told_how_its_code_shows_a_picture() -> None:
    told = {
        tool["name"]
        for tool in tools_for(client("2025-06-18", "codex-mcp-client"))
        if "image(result.content[1])" in tool["description"]
    }
    assert told == {*NAMES} - STRUCTURED


@pytest.mark.parametrize(
    ("tool", "given", "declared"),
    [
        ("image_job", {"id": "call_1"}, {"job": "call_1"}),
        ("image_job", {"job": "call_1"}, {"job": "call_1"}),
        ("image_job", {"id": "call_1", "job": "call_2"}, {"job": "call_2"}),
        ("inspect_image", {"output_schema": {}}, {"schema": {}}),
        ("inspect_image", {"schema": {}}, {"schema": {}}),
        ("image_generate", {"id": "1"}, {"id": "1"}),
    ],
)
def test_an_argument_may_have_its_other_name(
    tool: str, given: dict[str, Any], declared: dict[str, Any]
) -> None:
    assert declared_names(tool, given) == declared


def test_the_listed_name_hides_no_method_of_a_class_made_from_the_schema() -> None:
    for tool in offered().values():
        assert "schema" not in tool["inputSchema"]["properties"]


@pytest.mark.parametrize(
    ("tool", "given", "has_paths"),
    [
        ("image_generate", {"prompt": "a fox"}, False),
        ("image_generate", {"prompt": "a fox", "output_path": None}, False),
        ("image_generate", {"prompt": "a fox", "output_path": "fox.png"}, True),
        ("inspect_image", {"path": "fox.png"}, True),
        ("image_edit", {"image": "fox.png"}, True),
        ("spend", {}, False),
        ("a tool of a plug-in", {}, True),
    ],
)
def test_a_call_names_paths_or_not(tool: str, given: dict[str, Any], has_paths: bool) -> None:
    assert names_paths(tool, given) is has_paths
