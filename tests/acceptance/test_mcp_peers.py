"""Clients of others: FastMCP's, and the command line of the MCP inspector."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from mcp_types import TextContent
from tests.acceptance.conftest import Studio, picture
from tests.acceptance.test_mcp_clients import TOOLS
from tests.servers.mcp_process import WORDS, environment, listening
from tests.servers.npm_peers import needs_npm, program

from limner.testing.servers.openai_server import OpenAIServer

INSPECTOR = "@modelcontextprotocol/inspector@2"
GUARD_S = 120.0


def calls(studio: Studio, handle: str) -> list[tuple[str, dict[str, Any]]]:
    """A call of every tool that needs a picture first."""
    (studio.cwd / "two.png").write_bytes(picture(64, 64))
    return [
        ("image_edit", {"image": handle, "prompt": "make it red"}),
        ("image_render", {"source": '{"type": "pie", "values": {"a": 1, "b": 2}}'}),
        ("image_transform", {"image": handle, "resize": "50%"}),
        ("image_check", {"image": "two.png", "expect": ["is 64 x 64"]}),
        ("asset_search", {"words": "cat"}),
        ("image_batch", {"rows": [{"key": "a", "prompt": "a fox", "provider": "illustrator"}]}),
        ("inspect_image", {"path": "two.png", "question": "How large is it?"}),
        ("image_fit", {"image": handle}),
        ("image_recall", {"handle": handle}),
        ("spend", {}),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("way", ["pipes", "http"])
async def test_the_client_of_fastmcp_lists_and_calls_everything(
    studio: Studio, openai: OpenAIServer, way: str
) -> None:
    studio.connect(openai).env["LIMNER_MODEL_ROLES_VISION"] = "limner/eyes"
    if way == "pipes":
        pipes = StdioTransport(
            command=sys.executable,
            args=[*WORDS],
            env=environment(studio),
            cwd=str(studio.cwd),
            keep_alive=False,
        )
        await use(Client(pipes), studio)
        return
    async with listening(studio) as server:
        await use(Client(server.url), studio)


async def use(client: Client[Any], studio: Studio) -> None:
    async with client:
        assert [tool.name for tool in await client.list_tools()] == TOOLS
        drawn = await client.call_tool("image_generate", {"prompt": "a fox"})
        assert [block.type for block in drawn.content] == ["text", "image"]
        (said, _) = drawn.content
        assert isinstance(said, TextContent)
        about = json.loads(said.text)
        for name, arguments in calls(studio, about["image"]):
            result = await client.call_tool(name, arguments)
            (said, *_) = result.content
            assert isinstance(said, TextContent)
            assert result.structured_content in (None, json.loads(said.text))
        (whole,) = await client.read_resource(f"limner://image/{about['image']}")
        assert whole.mime_type == "image/png"


async def inspector(studio: Studio, *words: str) -> Any:
    """What the inspector prints, which it only does once it is satisfied."""
    process = await asyncio.create_subprocess_exec(
        program(INSPECTOR, "mcp-inspector"),
        "--cli",
        sys.executable,
        *WORDS,
        *words,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment(studio),
        cwd=studio.cwd,
    )
    async with asyncio.timeout(GUARD_S):
        out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return json.loads(out)


@pytest.mark.slow
@needs_npm(INSPECTOR)
async def test_the_inspector_is_satisfied(studio: Studio) -> None:
    listed = await inspector(studio, "--method", "tools/list")
    assert [tool["name"] for tool in listed["tools"]] == TOOLS
    call = ("--method", "tools/call", "--tool-name")
    drawn = await inspector(studio, *call, "image_generate", "--tool-arg", "prompt=a robot")
    assert [block["type"] for block in drawn["content"]] == ["text", "image"]
    uri = f"limner://image/{json.loads(drawn['content'][0]['text'])['image']}"
    read = await inspector(studio, "--method", "resources/read", "--uri", uri)
    assert [(one["uri"], one["mimeType"]) for one in read["contents"]] == [(uri, "image/png")]
    templates = await inspector(studio, "--method", "resources/templates/list")
    assert len(templates["resourceTemplates"]) == 2
