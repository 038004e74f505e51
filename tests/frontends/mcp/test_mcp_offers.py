"""What a client is told of each tool."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator

from limner.frontends.mcp.spend import SPEND
from limner.frontends.mcp.tool_list import DECLARED, offered, schema_of

# The shortest cut that a client of today makes.
MAX_DESCRIPTION_CHARS = 1024

SCHEMAS = {tool.name: tool.schema for tool in DECLARED}
# reads only, may replace something, the same again changes nothing, reaches beyond this machine
HINTS = {
    "image_generate": (False, True, False, True),
    "image_edit": (False, True, False, True),
    "image_render": (False, True, False, False),
    "inspect_image": (True, False, False, True),
    "image_fit": (True, False, True, False),
    "image_job": (False, True, True, True),
    "image_recall": (True, False, True, False),
    "spend": (True, False, True, False),
}


def test_the_tools_are_the_tools_own_in_an_order_that_never_changes() -> None:
    assert {name: tool.input_schema for name, tool in offered().items()} == SCHEMAS
    assert [*offered()] == [*SCHEMAS]


def test_every_tool_says_what_it_may_do() -> None:
    said = {
        name: (
            tool.annotations.read_only_hint,
            tool.annotations.destructive_hint,
            tool.annotations.idempotent_hint,
            tool.annotations.open_world_hint,
        )
        for name, tool in offered().items()
        if tool.annotations is not None
    }
    assert said == HINTS


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_description_is_shorter_than_clients_cut(name: str) -> None:
    assert 0 < len(offered()[name].description or "") <= MAX_DESCRIPTION_CHARS


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_are_schemas_and_promise_no_base64(name: str) -> None:
    tool = offered()[name]
    Draft202012Validator.check_schema(tool.input_schema)
    assert tool.output_schema is not None
    Draft202012Validator.check_schema(tool.output_schema)
    assert "base64" not in json.dumps(tool.output_schema).lower()


def test_the_schema_of_a_tool_is_found_by_its_name() -> None:
    assert schema_of("spend") == SPEND.schema
    assert schema_of("nothing") is None
