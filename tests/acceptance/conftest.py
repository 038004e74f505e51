"""The whole program over real sockets, files and processes."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from limner import Limner, ToolCall, ToolContext, ToolResult
from limner.base64_text import encode_base64
from limner.settings import load
from limner.storage.reach import Reach
from limner.testing.servers.openai_server import OpenAIServer
from limner.testing.servers.replicate_server import ReplicateServer

# Before DALL·E 3 was retired: the specification's own world.
SPRING = datetime(2026, 4, 1, 12, tzinfo=UTC)
AUTUMN = datetime(2026, 11, 15, 12, tzinfo=UTC)

OPENAI_KEY = "sk-test-0123456789abcdef0123456789"
REPLICATE_KEY = "r8_test0123456789abcdef0123456789"

# What OpenAI asks for the picture that its server on this machine draws with its newest model.
PRICE_NANO = 13_420_000


def picture(width: int = 1024, height: int = 1024, *, kind: str = "PNG") -> bytes:
    """A real picture of that size, red on the left and blue on the right."""
    image = Image.new("RGB", (width, height), "red")
    image.paste("blue", (width // 2, 0, width, height))
    file = io.BytesIO()
    image.save(file, kind)
    return file.getvalue()


def data_url(data: bytes) -> str:
    """A PNG as models get it."""
    return f"data:image/png;base64,{encode_base64(data)}"


def unlabelled(path: Path) -> bytes:
    """What is in a PNG file beside the words that limner wrote behind its header."""
    data = path.read_bytes()
    tag = data.index(b"limner:handle\0") - 8
    end = tag + 12 + int.from_bytes(data[tag : tag + 4], "big")
    return data[:33] + data[end:]


@pytest.fixture
def openai() -> Iterator[OpenAIServer]:
    with OpenAIServer(picture()) as server:
        yield server


@pytest.fixture
def replicate() -> Iterator[ReplicateServer]:
    with ReplicateServer(picture()) as server:
        yield server


class Studio:
    """A home, a working folder and an environment of their own, and what runs in them."""

    def __init__(self, folder: Path, *, store: str | None = None) -> None:
        self.home, self.cwd = folder / "limner-home", folder / "work"
        self.cwd.mkdir()
        self.env: dict[str, str] = {"HOME": str(folder), "LIMNER_HOME": str(self.home)}
        if store is not None:
            self.env["LIMNER_STORE"] = store

    def connect(self, *servers: OpenAIServer | ReplicateServer) -> Studio:
        for server in servers:
            if isinstance(server, OpenAIServer):
                self.env |= {"OPENAI_API_KEY": OPENAI_KEY, "OPENAI_BASE_URL": server.base_url}
            else:
                self.env |= {
                    "REPLICATE_API_TOKEN": REPLICATE_KEY,
                    "REPLICATE_BASE_URL": server.base_url,
                }
        return self

    def open(
        self, *, at: datetime = AUTUMN, flags: dict[str, Any] | None = None, **rest: Any
    ) -> Limner:
        settings = load(env=self.env, cwd=self.cwd, flags=flags)
        return Limner(settings, env=self.env, cwd=self.cwd, clock=lambda: at, **rest)

    def context(self, **rest: Any) -> ToolContext:
        """The context of a model that works in the folder."""
        reach = Reach.for_model(home=self.home, cwd=self.cwd)
        return ToolContext(**{"cwd": self.cwd, "reach": reach, **rest})

    async def call(
        self, *, at: datetime = AUTUMN, context: ToolContext | None = None, **arguments: Any
    ) -> ToolResult:
        """What a model gets that calls `image_generate` once."""
        async with self.open(at=at) as lim:
            call = ToolCall(name="image_generate", arguments=arguments)
            (result,) = await lim.registry().execute_parallel([call], context or self.context())
            return result

    @property
    def files(self) -> list[Path]:
        """The pictures in the generated folder."""
        folder = self.home / "generated"
        return sorted(folder.iterdir()) if folder.exists() else []


@pytest.fixture
def studio(tmp_path: Path) -> Studio:
    return Studio(tmp_path)


@pytest.fixture
def anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Path]:
    """Changes the process's own folder, to show that nothing depends on it."""

    def go() -> Path:
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        monkeypatch.chdir(elsewhere)
        return elsewhere

    return go
