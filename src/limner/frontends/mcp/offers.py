"""The compiled lists of tools and resources -> what a client gets: what its revision allows.

`offers.json` is compiled from the declarations of the tools, which take long to import. `make
format` compiles it, and a test compares the two.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from limner.frontends.mcp.protocol import WITH_HINTS, WITH_STRUCTURE, ConnectedClient
from limner.frontends.mcp.quirks import quirks_of

COMPILED = Path(__file__).with_name("offers.json")
_TOOLS = Path(__file__).parents[2] / "tools" / "built_in"
_PLUGINS = b"[limner.tools]"
_PACKAGE_ENDS = (".dist-info", ".egg-info")


class Offers(msgspec.Struct, frozen=True, kw_only=True):
    """What the server offers, as the newest revision has it; ``modules`` declare the tools."""

    modules: list[str]
    tools: list[dict[str, Any]]
    templates: list[dict[str, Any]]


@cache
def compiled() -> Offers:
    """Return the compiled lists."""
    return msgspec.json.decode(COMPILED.read_bytes(), type=Offers)


@cache
def offered() -> Mapping[str, Mapping[str, Any]]:
    """Return every tool by name; tools of installed packages come last."""
    if _has_plugins() or compiled().modules != tool_modules():
        return import_module("limner.frontends.mcp.tool_list").offered()
    return {tool["name"]: tool for tool in compiled().tools}


def tools_for(client: ConnectedClient) -> list[Mapping[str, Any]]:
    """Return the tools as a client may receive them."""
    unknown = {"title", "outputSchema"} if client.revision < WITH_STRUCTURE else set[str]()
    if client.revision < WITH_HINTS:
        unknown.add("annotations")
    to_show = quirks_of(client.name).to_show
    return [_for_client(tool, unknown, to_show) for tool in offered().values()]


def templates_for(client: ConnectedClient) -> list[Mapping[str, Any]]:
    """Return the URI templates of pictures."""
    if client.takes_structure:
        return [*compiled().templates]
    return [_without(one, {"title"}) for one in compiled().templates]


def _without(members: Mapping[str, Any], unknown: Collection[str]) -> dict[str, Any]:
    return {key: value for key, value in members.items() if key not in unknown}


def _for_client(tool: Mapping[str, Any], unknown: set[str], to_show: str) -> dict[str, Any]:
    found = _without(tool, unknown)
    # A tool without an output schema may answer with pictures.
    if to_show and "outputSchema" not in tool:
        found["description"] = f"{tool['description']} {to_show}"
    return found


def tool_modules() -> list[str]:
    """The names of the modules with limner's own tools, found without importing one."""
    with os.scandir(_TOOLS) as entries:
        return sorted(one.name for one in entries if one.name.endswith(".py"))


def _has_plugins() -> bool:
    """Whether an installed package may have tools for limner.

    `importlib.metadata` would say so too, but takes as long to import as everything else here.
    """
    for folder in sys.path:
        try:
            with os.scandir(folder or ".") as entries:
                packages = [one.path for one in entries if one.name.endswith(_PACKAGE_ENDS)]
        except OSError:
            continue
        for package in packages:
            with suppress(OSError), open(f"{package}/entry_points.txt", "rb") as file:  # noqa: PTH123 - quicker
                if _PLUGINS in file.read():
                    return True
    return False
