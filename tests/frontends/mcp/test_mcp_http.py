"""Who may listen where, and what the command line makes of it."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from tests.acceptance.conftest import Studio
from tests.acceptance.test_mcp_slow import held
from tests.frontends.cli_process import CommandLine
from tests.servers.mcp_process import STATELESS, Listening, listening, post

from limner.errors import UserError
from limner.frontends.mcp.http import HttpOptions, OAuth
from limner.frontends.server_token import TokenOptions
from limner.testing.servers.openai_server import OpenAIServer

ISSUER, RESOURCE = "https://issuer.example", "https://limner.example/mcp"


def test_a_secret_is_not_shown() -> None:
    token = TokenOptions(given="hidden-secret-token")
    assert "hidden-secret" not in repr(HttpOptions(host="::1", port=0, token=token))


def test_a_token_and_an_issuer_are_two_ways_of_which_one_is_taken() -> None:
    oauth = OAuth(issuer=ISSUER, resource=RESOURCE, keys="jwks.json")
    with pytest.raises(UserError, match="not both"):
        HttpOptions(host="127.0.0.1", port=0, token=TokenOptions(given="t" * 20), oauth=oauth)
    with pytest.raises(UserError, match="not both"):
        HttpOptions(host="127.0.0.1", port=0, token=TokenOptions(is_off=True), oauth=oauth)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--http", "8790"], "is not HOST:PORT"),
        (["--http", "127.0.0.1:99999"], "is not HOST:PORT"),
        (["--http", "0.0.0.0:0", "--no-token"], "clients need a token"),
        (["--http", "127.0.0.1:0", "--no-token", "--token-file", "token"], "contradicts"),
        (["--http", "127.0.0.1:0", "--token-file", "short"], "fewer than 16 characters"),
        (["--http", "127.0.0.1:0", "--allow-folder", "token"], "is not a folder"),
        (["--http", "127.0.0.1:0", "--allow-folder", "/etc"], "is closed to models"),
        (["--http", "127.0.0.1:0", "--allow-folder", "~"], "is closed to models"),
        (["--token-file", "token"], "are for --http"),
        (["--no-token"], "are for --http"),
        (["--allow-host", "studio.lan"], "are for --http"),
        (["--allow-folder", "."], "are for --http"),
        (["--http", "127.0.0.1:0", "--token-file", "missing"], "cannot be read"),
        (["--http", "127.0.0.1:0", "--oauth-issuer", ISSUER], "belong together"),
        (["--http", "203.0.113.9:0", "--token-file", "token"], "cannot listen on"),
    ],
)
def test_what_cannot_be_served_is_said_at_once(
    cli: CommandLine, words: list[str], says: str
) -> None:
    (cli.studio.cwd / "token").write_text("a-secret-of-some-length")
    (cli.studio.cwd / "short").write_text("short")
    done = cli.run("mcp", *words, "--json")
    assert done.status == 2
    assert says in done.error["message"]


@pytest.mark.slow
async def test_a_token_of_the_issuer_opens_the_door(studio: Studio, tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    keys = tmp_path / "jwks.json"
    public = {**ECAlgorithm.to_jwk(key.public_key(), as_dict=True), "kid": "k"}
    keys.write_text(json.dumps({"keys": [public]}))
    words = ("--oauth-issuer", ISSUER, "--oauth-resource", RESOURCE, "--oauth-jwks", str(keys))

    def token(**more: Any) -> str:
        claims = {"iss": ISSUER, "aud": RESOURCE, "exp": int(time.time()) + 60, **more}
        return jwt.encode(claims, key, algorithm="ES256", headers={"kid": "k"})

    async with listening(studio, *words) as server:
        headers = {"Authorization": f"Bearer {token()}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=30) as http,
            Client(streamable_http_client(server.url, http_client=http)) as client,
        ):
            assert len((await client.list_tools()).tools) == 12
        async with httpx2.AsyncClient(timeout=30) as http:
            refused = await http.post(server.url, json={})
            wrong = {"Authorization": f"Bearer {token(aud='https://other.example')}"}
            other = await http.post(server.url, json={}, headers=wrong)
    assert (refused.status_code, other.status_code) == (401, 401)
    assert "https://limner.example/.well-known/" in refused.headers["WWW-Authenticate"]


def message(method: str, number: int, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


class Session:
    """A session over HTTP, by plain requests."""

    def __init__(self, server: Listening, http: httpx2.AsyncClient) -> None:
        self.url, self.http = server.url, http
        self.headers = {"Accept": "application/json, text/event-stream"}

    async def greet(self, revision: str) -> Any:
        about = {"name": "tests", "version": "1"}
        opening = message(
            "initialize", 0, protocolVersion=revision, capabilities={}, clientInfo=about
        )
        answer = await self.http.post(self.url, headers=self.headers, json=opening)
        self.headers |= {
            "mcp-session-id": answer.headers["mcp-session-id"],
            "mcp-protocol-version": revision,
        }
        return answer.json()

    async def post(self, sent: object) -> httpx2.Response:
        return await self.http.post(self.url, headers=self.headers, json=sent)


def events(text: str) -> list[tuple[str, str]]:
    """The id and the data of each event."""
    found: list[tuple[str, str]] = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if line[:1] != ":")
        if "data" in fields:
            found.append((fields.get("id", ""), fields["data"]))
    return found


@pytest.mark.slow
async def test_a_client_that_loses_its_stream_fetches_the_rest_and_pays_once(
    studio: Studio, openai: OpenAIServer
) -> None:
    studio.connect(openai)
    gate = held(openai)
    async with listening(studio) as server, httpx2.AsyncClient(timeout=60) as http:
        session = Session(server, http)
        await session.greet("2025-11-25")
        call = message("tools/call", 1, name="image_generate", arguments={"prompt": "a fox"})
        async with http.stream("POST", server.url, headers=session.headers, json=call) as response:
            assert response.headers["content-type"] == "text/event-stream"
            lines = response.aiter_lines()
            first = [await anext(lines) for _ in range(3)]
        assert first[1:] == ["retry: 1000", "data: "]
        last_id = first[0].removeprefix("id: ")
        gate.open()
        resumed = await http.get(server.url, headers={**session.headers, "last-event-id": last_id})
        (_, (_, data)) = events(resumed.text)
        again = await http.get(server.url, headers={**session.headers, "last-event-id": last_id})
    result = json.loads(data)["result"]
    assert [block["type"] for block in result["content"]] == ["text", "image"]
    assert (len(openai.sent("generate")), again.status_code) == (1, 405)


@pytest.mark.slow
async def test_each_kind_of_post_has_its_status(studio: Studio) -> None:
    async with listening(studio) as server, httpx2.AsyncClient(timeout=60) as http:
        session = Session(server, http)
        assert (await session.post(message("ping", 1))).status_code == 400
        await session.greet("2025-03-26")
        ping = message("ping", 1)
        statuses = [
            (await session.post(sent)).status_code
            for sent in (
                ping,
                [ping, message("ping", 2)],
                {"jsonrpc": "2.0", "method": "notifications/initialized"},
                {"jsonrpc": "2.0", "id": 99, "result": {}},
                {},
                "text",
            )
        ]
        assert statuses == [200, 200, 202, 202, 400, 400]
        other = {**session.headers, "mcp-session-id": "none"}
        assert (await http.post(server.url, headers=other, json=ping)).status_code == 404
        plain = {**session.headers, "Accept": "text/html"}
        assert (await http.post(server.url, headers=plain, json=ping)).status_code == 406
        assert (await http.get(server.url, headers=session.headers)).status_code == 405
        assert (await http.put(server.url, headers=session.headers)).status_code == 405
        assert (await http.delete(server.url, headers=session.headers)).status_code == 200
        assert (await session.post(ping)).status_code == 404
        assert (await http.get(f"{server.url}/more")).status_code == 404


@pytest.mark.slow
async def test_requests_that_stand_alone_start_no_session(studio: Studio) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    async with listening(studio) as server:
        found: list[tuple[int, int | None]] = []
        for method in ("initialize", "ping", "tasks/get", "server/discover"):
            sent = json.dumps(message(method, 1, _meta=meta, taskId="x"))
            answer = await post(server, {"Mcp-Method": method}, content=sent)
            found.append((answer.status_code, answer.json().get("error", {}).get("code")))
        wrong = await post(server, {"Mcp-Method": "tools/call"})
        other = {"Mcp-Method": "tasks/get", "Mcp-Name": "y"}
        sent = json.dumps(message("tasks/get", 1, _meta=meta, taskId="x"))
        task = await post(server, other, content=sent)
    assert found == [(404, -32601), (404, -32601), (400, -32021), (200, None)]
    for refused in (wrong, task):
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, -32020)


@pytest.mark.slow
async def test_a_server_that_is_told_to_stop_stops(studio: Studio) -> None:
    async with listening(studio) as server:
        server.process.terminate()
        async with asyncio.timeout(30):
            await server.process.wait()
    assert server.process.returncode is not None


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere 127.0.0.2 is no address at first")
async def test_a_server_may_be_called_by_the_address_it_listens_on(studio: Studio) -> None:
    async with listening(studio, host="127.0.0.2") as server, Client(server.url) as client:
        assert len((await client.list_tools()).tools) == 12
