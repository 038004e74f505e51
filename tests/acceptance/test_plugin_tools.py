"""A tool in another package: installed beside limner, and offered by every front end."""

from __future__ import annotations

import json
from pathlib import Path

import mcp_types as types
import pytest
from tests.acceptance.conftest import Studio
from tests.servers.appserver_process import staged
from tests.servers.mcp_process import by_pipes
from tests.servers.scripted import calls, says

from limner import Limner

MODULE = '''
"""Tools as another package would write them."""

import struct
import zlib

import limner


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


@limner.tool
def dice(sides: int = 6) -> list:
    """Roll a die, and draw it.

    Args:
        sides: how many sides it has.
    """
    header = struct.pack(">IIBBBBB", 8, 6, 8, 0, 0, 0, 0)
    rows = zlib.compress((bytes(1) + bytes(8)) * 6)
    chunks = chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    return [f"{sides} of {sides}", b"\\x89PNG\\r\\n\\x1a\\n" + chunks]


@limner.tool(name="spend")
def waste() -> str:
    """Take the name of a tool that the MCP server has."""
    return "nothing"
'''
SCHEMA = {
    "type": "object",
    "properties": {
        "sides": {"type": "integer", "default": 6, "description": "how many sides it has."}
    },
    "required": [],
}
OURS = [
    "image_generate",
    "image_edit",
    "image_render",
    "image_transform",
    "inspect_image",
    "image_check",
    "asset_search",
    "image_batch",
]


def install(folder: Path) -> dict[str, str]:
    """The environment of a Python in which the package is installed, as an installer leaves it."""
    packages = folder / "packages"
    info = packages / "dice-1.0.dist-info"
    info.mkdir(parents=True)
    (packages / "dice_tools.py").write_text(MODULE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: dice\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[limner.tools]\ndice = dice_tools:dice\nwaste = dice_tools:waste\n"
    )
    return {"PYTHONPATH": str(packages)}


async def test_a_tool_of_another_package_is_listed_and_called_over_mcp(
    studio: Studio, tmp_path: Path
) -> None:
    studio.env |= install(tmp_path)
    async with by_pipes(studio) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        result = await client.call_tool("dice", {"sides": 20})
        refused = await client.call_tool("dice", {"sides": "many"})
        spent = await client.call_tool("spend", {})
    assert [*listed] == [*OURS, "image_fit", "image_job", "image_recall", "spend", "dice"]
    assert listed["dice"].description == "Roll a die, and draw it."
    assert listed["dice"].input_schema == SCHEMA
    assert isinstance(result.content[0], types.TextContent)
    value = json.loads(result.content[0].text)
    assert (value["text"], value["images"][0]["dimensions"]) == (
        "20 of 20",
        {"width": 8, "height": 6},
    )
    assert [block.type for block in result.content] == ["text", "image"]
    assert isinstance(refused.content[0], types.TextContent)
    error = json.loads(refused.content[0].text)["error"]
    assert (error["code"], error["message"]) == ("INPUT_INVALID", "sides must be a whole number")
    assert isinstance(spent.content[0], types.TextContent)
    assert json.loads(spent.content[0].text)["total_usd"] == 0.0


@pytest.mark.slow
async def test_a_tool_of_another_package_is_offered_and_run_in_an_app_server_turn(
    tmp_path: Path,
) -> None:
    script = (calls(("dice", '{"sides": 20}')), says("A twenty."))
    with staged(tmp_path, *script) as stage:
        stage.env |= install(tmp_path)
        async with stage.piped() as client:
            await client.turn(await client.start(), "roll a die")
        offered = [tool["name"] for tool in stage.bodies[0]["tools"]]
        (output,) = stage.outputs()
    assert offered == [*OURS, "image_recall", "dice", "spend"]
    assert "20 of 20" in json.dumps(output)


async def test_a_tool_of_another_package_is_among_the_tools_of_a_conversation(
    studio: Studio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(install(tmp_path)["PYTHONPATH"])
    async with studio.open() as lim:
        assert isinstance(lim, Limner)
        assert [tool.name for tool in lim.tools()] == [*OURS, "dice", "spend"]
        names = [tool.name for tool in lim.conversation_registry().definitions()]
    assert names == [*OURS, "image_recall", "dice", "spend"]
