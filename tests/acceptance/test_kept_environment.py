"""A `Limner` holds no variable of the process: not itself, and nothing that it refers to."""

from __future__ import annotations

import gc
import os
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.acceptance.conftest import OPENAI_KEY

from limner import Limner
from limner.frontends.appserver.server import Host
from limner.frontends.mcp.service import McpService
from limner.models.remote import ModelConnection
from limner.providers.base import Connection
from limner.settings import Settings
from limner.settings.custom_models import CustomModel
from limner.testing.servers.openai_server import OpenAIServer

PLANTED = "planted-secret-of-another-program"
# What these refer to belongs to the program, not to the object.
_SHARED = (type, types.ModuleType, types.CodeType, types.BuiltinFunctionType)


def _inside(value: Any) -> list[Any]:
    if isinstance(value, _SHARED):
        return []
    if isinstance(value, types.FunctionType):
        # Not its globals: these are the module's.
        return [value.__closure__, value.__defaults__, value.__kwdefaults__, value.__dict__]
    if isinstance(value, types.FrameType):
        return [value.f_locals]
    return gc.get_referents(value)


def reachable(root: object) -> Iterator[object]:
    """Everything that an object refers to, directly or through other objects."""
    seen, waiting = {id(root): root}, [root]
    while waiting:
        value = waiting.pop()
        yield value
        for inner in _inside(value):
            if id(inner) not in seen:
                seen[id(inner)] = inner
                waiting.append(inner)


def places(root: object, secret: str) -> list[object]:
    return [
        value
        for value in reachable(root)
        if (isinstance(value, str) and secret in value)
        or (isinstance(value, bytes) and secret.encode() in value)
    ]


async def test_neither_a_limner_nor_anything_below_it_holds_the_environment(
    openai: OpenAIServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LIMNER_HOME", str(tmp_path))
    monkeypatch.setenv("SECRET_OF_ANOTHER_PROGRAM", PLANTED)
    monkeypatch.setenv("OPENAI_API_KEY", OPENAI_KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", openai.base_url)
    async with Limner() as lim:
        await lim.generate("a fox", provider="openai-image")
        assert lim.conversations is not None
        assert lim.keys.get("OPENAI_API_KEY") == OPENAI_KEY
        assert openai.requests[0].headers["authorization"] == f"Bearer {OPENAI_KEY}"
        assert OPENAI_KEY not in repr(vars(lim)) + repr(vars(lim.components))
        assert PLANTED not in repr(vars(lim)) + repr(vars(lim.components))
        assert places(lim, PLANTED) == []
        assert places(lim, OPENAI_KEY) == []
        child = lim.components.scoped("one", budget_usd=1)
        assert places(child, PLANTED) == []


def test_the_search_finds_a_secret_wherever_it_is() -> None:
    def closure() -> str:
        return PLANTED * 2

    lim = Limner(env={"HOME": "/nowhere", "ANY": PLANTED})
    assert places(lim, PLANTED)
    assert PLANTED not in repr(vars(lim)) + repr(vars(lim.components))
    assert places([{"a": (closure, bytes(PLANTED, "ascii"))}], PLANTED) != []


async def test_what_connects_to_a_service_shows_neither_its_key_nor_its_address() -> None:
    url, key = f"http://artist:{PLANTED}@127.0.0.1:1/v1", f"sk-{PLANTED}"
    own = CustomModel(name="own/model", base_url=url, key_env="OWN_KEY")
    settings = Settings(home=Path("/nowhere"), models=(own,))
    http = httpx2.AsyncClient()
    connection = Connection(http=http, base_url=url, key=key, illustrate=_illustrate)
    async with Limner(settings, env={"OWN_KEY": key}) as lim, http:
        model = ModelConnection(http=http, base_url=url, key=key)
        shown = [settings, lim.models.known(), connection, model, vars(lim)]
        assert "own/model" in repr(shown)
        assert PLANTED not in repr(shown)


async def _illustrate(_: object) -> tuple[bytes, dict[str, object], None]:
    return b"", {}, None


@pytest.mark.slow
async def test_the_servers_hold_the_environment_no_more_than_a_limner(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SECRET_OF_ANOTHER_PROGRAM", PLANTED)
    monkeypatch.setenv("LIMNER_MCP_TOKEN", PLANTED)
    monkeypatch.setenv("LIMNER_HOME", str(tmp_path))
    service = McpService()
    assert places(service, PLANTED) == []
    assert service.lim.keys.get("LIMNER_MCP_TOKEN") is None
    host = Host(env=os.environ, cwd=tmp_path, config={})
    assert host.limner is not None
    assert places(host.limner, PLANTED) == []
    await host.limner.aclose()
    await service.lim.aclose()
