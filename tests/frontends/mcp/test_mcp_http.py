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
from tests.frontends.cli_process import CommandLine
from tests.servers.mcp_process import listening

from limner.errors import UserError
from limner.frontends.mcp.http import HttpOptions, OAuth
from limner.frontends.server_token import TokenOptions

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
            assert len((await client.list_tools()).tools) == 7
        async with httpx2.AsyncClient(timeout=30) as http:
            refused = await http.post(server.url, json={})
            wrong = {"Authorization": f"Bearer {token(aud='https://other.example')}"}
            other = await http.post(server.url, json={}, headers=wrong)
    assert (refused.status_code, other.status_code) == (401, 401)
    assert "https://limner.example/.well-known/" in refused.headers["WWW-Authenticate"]


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
        assert len((await client.list_tools()).tools) == 7
