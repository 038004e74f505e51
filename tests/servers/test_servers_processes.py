"""The local servers as processes of their own, as benchmarks and kill tests use them."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

ROOT = Path(__file__).parents[2]


@asynccontextmanager
async def serving(service: str, *arguments: str) -> AsyncIterator[str]:
    """The origin of a server that runs for as long as the context lasts."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.servers.process",
        service,
        *arguments,
        cwd=ROOT,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(await process.stdout.readline())}"
    finally:
        process.kill()
        await process.communicate()


async def buy(client: httpx2.AsyncClient, url: str, body: Any) -> Any:
    answer = await client.post(url, json=body, headers={"Authorization": "Bearer k"})
    return answer.raise_for_status().json()


@pytest.fixture
def picture(tmp_path: Path) -> str:
    path = tmp_path / "picture.png"
    path.write_bytes(b"a picture")
    return str(path)


async def test_the_openai_server_draws_the_picture_it_was_given(picture: str) -> None:
    async with (
        serving("openai", "--port", "0", "--picture", picture) as origin,
        httpx2.AsyncClient() as client,
    ):
        body = {"model": "dall-e-3", "prompt": "a fox"}
        answer = await buy(client, f"{origin}/v1/images/generations", body)
        assert answer["data"][0]["b64_json"] == "YSBwaWN0dXJl"
        (seen,) = (await client.get(f"{origin}/_seen")).json()
        assert (seen["method"], seen["target"]) == ("POST", "/v1/images/generations")
        assert json.loads(seen["body"]) == body


async def test_the_replicate_server_takes_as_many_looks_as_it_was_told(picture: str) -> None:
    async with (
        serving("replicate", "--picture", picture, "--looks", "2") as origin,
        httpx2.AsyncClient(headers={"Authorization": "Bearer k"}) as client,
    ):
        started = await buy(client, f"{origin}/v1/models/a/b/predictions", {"input": {}})
        looks = [(await client.get(started["urls"]["get"])).json() for _ in range(2)]
        assert [look["status"] for look in looks] == ["processing", "succeeded"]
        assert (await client.get(looks[1]["output"][0])).content == b"a picture"


async def test_a_held_server_takes_the_request_and_says_nothing(picture: str) -> None:
    async with (
        serving("openai", "--picture", picture, "--hold") as origin,
        httpx2.AsyncClient() as client,
    ):
        with pytest.raises(httpx2.ReadTimeout):
            await client.post(f"{origin}/v1/images/generations", json={}, timeout=0.5)
        assert len((await client.get(f"{origin}/_seen")).json()) == 1
