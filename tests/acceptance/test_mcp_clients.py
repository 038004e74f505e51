"""The official client, in both eras and over both transports, lists and calls everything."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import methods
from PIL import Image
from tests.acceptance.conftest import Studio, picture
from tests.servers.mcp_process import LEGACY, STATELESS, Mode, by_pipes, inside, listening

from limner.testing.servers.openai_server import OpenAIServer

pytestmark = pytest.mark.slow

TOOLS = [
    "image_generate",
    "image_edit",
    "image_render",
    "image_transform",
    "inspect_image",
    "image_check",
    "asset_search",
    "image_batch",
    "image_fit",
    "image_job",
    "image_recall",
    "spend",
]


@asynccontextmanager
async def connected(studio: Studio, way: str, mode: Mode) -> AsyncGenerator[Client]:
    if way == "pipes":
        async with by_pipes(studio, mode=mode) as client:
            yield client
        return
    async with listening(studio) as server, Client(server.url, mode=mode) as client:
        yield client


def blocks(result: types.CallToolResult) -> list[str]:
    return [block.type for block in result.content]


def value_of(result: types.CallToolResult) -> Any:
    """The tool's value, which is the first block; a result without pictures has it twice."""
    assert isinstance(result.content[0], types.TextContent)
    value = json.loads(result.content[0].text)
    assert result.structured_content in (None, value)
    return value


def seen(result: types.CallToolResult) -> Image.Image:
    """The picture that a model sees."""
    (block,) = [one for one in result.content if isinstance(one, types.ImageContent)]
    return Image.open(io.BytesIO(base64.b64decode(block.data)))


def is_valid(method: str, version: str, result: types.Result) -> bool:
    """Whether the protocol's own schema of that revision accepts a result."""
    dumped = result.model_dump(by_alias=True, mode="json", exclude_none=True)
    methods.validate_server_result(method, version, dumped)
    return True


@pytest.mark.parametrize("way", ["pipes", "http"])
@pytest.mark.parametrize(("mode", "version"), [("legacy", LEGACY), ("auto", STATELESS)])
async def test_the_official_client_lists_and_calls_everything(
    studio: Studio, openai: OpenAIServer, way: str, mode: Mode, version: str
) -> None:
    studio.connect(openai)
    async with connected(studio, way, mode) as client:
        assert client.session.protocol_version == version
        listed = await client.list_tools()
        assert [tool.name for tool in listed.tools] == TOOLS
        assert is_valid("tools/list", version, listed)

        drawn = await client.call_tool(
            "image_generate", {"prompt": "a fox", "output_path": "fox.png"}
        )
        about = value_of(drawn)
        assert about["path"] == str(studio.cwd / "fox.png")
        assert about["dimensions"] == {"width": 1024, "height": 1024}
        assert blocks(drawn) == ["text", "image"]
        assert seen(drawn).size == (1024, 1024)
        assert is_valid("tools/call", version, drawn)
        handle = about["image"]

        edited = await client.call_tool("image_edit", {"image": handle, "prompt": "make it red"})
        assert blocks(edited) == ["text", "image"]

        fitted = await client.call_tool("image_fit", {"image": handle, "model": "openai/gpt-5.5"})
        assert value_of(fitted)["original"]["image"] == handle
        assert blocks(fitted) == ["text", "image"]

        recalled = await client.call_tool("image_recall", {"handle": handle[:12]})
        assert value_of(recalled)["image"] == handle

        spent = value_of(await client.call_tool("spend", {}))
        assert spent["total_usd"] == pytest.approx(2 * about["cost_usd"], rel=0.5)
        assert spent["session_usd"] == spent["today_usd"] == spent["total_usd"]

        lost = await client.call_tool("image_job", {"job": "call_" + "0" * 32})
        assert lost.is_error
        assert value_of(lost)["error"]["code"] == "NO_SUCH_JOB"

        templates = await client.list_resource_templates()
        assert [one.uri_template for one in templates.resource_templates] == [
            "limner://image/{handle}",
            "limner://image/{handle}{?width}",
        ]
        assert (await client.list_resources()).resources == []
        whole = await client.read_resource(f"limner://image/{handle}")
        assert isinstance(whole.contents[0], types.BlobResourceContents)
        assert base64.b64decode(whole.contents[0].blob) == picture()
        assert is_valid("resources/read", version, whole)
        small = await client.read_resource(f"limner://image/{handle}?width=64")
        assert isinstance(small.contents[0], types.BlobResourceContents)
        smaller = Image.open(io.BytesIO(base64.b64decode(small.contents[0].blob)))
        assert smaller.size == (64, 64)


async def test_a_question_about_a_picture_is_answered_without_a_key(studio: Studio) -> None:
    (studio.cwd / "red.png").write_bytes(picture(64, 64))
    async with by_pipes(studio) as client:
        asked = await client.call_tool(
            "inspect_image", {"path": "red.png", "question": "How large is it?"}
        )
    about = value_of(asked)
    assert "64 x 64" in about["text"]
    assert about["details"]["model"] == "limner/eyes"
    assert blocks(asked) == ["text"]


async def test_a_server_started_in_the_top_folder_writes_only_where_every_model_may(
    studio: Studio,
) -> None:
    studio.cwd = Path("/")
    async with by_pipes(studio) as client:
        relative = await client.call_tool(
            "image_generate", {"prompt": "a robot", "output_path": "robot.png"}
        )
        top = await client.call_tool(
            "image_generate", {"prompt": "a robot", "output_path": "/robot.png"}
        )
    assert value_of(relative)["path"] == str(studio.home / "generated" / "robot.png")
    assert value_of(top)["error"]["code"] == "OUTPUT_PATH_DENIED"


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_wrong_settings_are_told_to_whoever_calls(studio: Studio, mode: Mode) -> None:
    studio.env["LIMNER_BUDGET_DAY_USD"] = "plenty"
    async with inside(studio, mode=mode) as client:
        assert len((await client.list_tools()).tools) == len(TOOLS)
        with pytest.raises(MCPError, match=r"LIMNER_BUDGET_DAY_USD: budget\.day_usd must be"):
            await client.call_tool("spend", {})
