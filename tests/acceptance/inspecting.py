"""A desk where `inspect_image` is called, and what was sent from it."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from tests.acceptance.conftest import OPENAI_KEY, Studio

from limner import Limner, ToolCall, ToolContext, ToolResult
from limner.testing.servers.responses_server import ResponsesServer

MODEL = "openai/gpt-5.5"
FORMAT_ERROR = (
    "inspect_image only supports PNG, JPEG, GIF, and WEBP files detected by file content."
)


@pytest.fixture
def openai() -> Iterator[ResponsesServer]:
    with ResponsesServer() as server:
        yield server


@pytest.fixture
def desk(studio: Studio, openai: ResponsesServer) -> Studio:
    """A studio where `openai/gpt-5.5` looks at pictures."""
    studio.env |= {
        "OPENAI_API_KEY": OPENAI_KEY,
        "OPENAI_BASE_URL": openai.base_url,
        "LIMNER_MODEL_ROLES_VISION": MODEL,
    }
    return studio


def picture(width: int = 60, height: int = 40, *, kind: str = "PNG", **options: Any) -> bytes:
    out = io.BytesIO()
    Image.effect_mandelbrot((width, height), (-2, -1.5, 1, 1.5), 60).save(out, kind, **options)
    return out.getvalue()


def put(studio: Studio, name: str = "pic.png", data: bytes | None = None) -> Path:
    path = studio.cwd / name
    path.write_bytes(picture() if data is None else data)
    return path


async def call(studio: Studio, context: ToolContext | None = None, **arguments: Any) -> ToolResult:
    async with studio.open() as lim:
        return await call_with(lim, context or studio.context(), **arguments)


async def call_with(lim: Limner, context: ToolContext, **arguments: Any) -> ToolResult:
    asked = {"path": "pic.png", "question": "What is it?", **arguments}
    calls = [ToolCall(name="inspect_image", arguments=asked)]
    (result,) = await lim.registry().execute_parallel(calls, context)
    return result


def value(result: ToolResult) -> dict[str, Any]:
    assert result.ok, result
    return json.loads(result.value)


def error(result: ToolResult) -> str | None:
    assert not result.ok, result
    return result.error


def sent(openai: ResponsesServer) -> tuple[str, bytes]:
    """The type and the bytes of the picture that was sent."""
    (request,) = openai.sent("ask")
    url = request.json()["input"][-1]["content"][0]["image_url"]
    head, _, data = url.partition(";base64,")
    return head.removeprefix("data:"), base64.b64decode(data)


def size_of(data: bytes) -> tuple[int, int]:
    with Image.open(io.BytesIO(data)) as image:
        return image.size
