"""The tools that models are offered: by programs, and over MCP."""

from __future__ import annotations

from tests.golden.record import check


def test_names_types_defaults_enums_and_bounds_of_the_tools_are_as_recorded() -> None:
    check("tools")


def test_what_an_mcp_client_is_offered_is_as_recorded() -> None:
    check("mcp")
