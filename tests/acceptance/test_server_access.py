"""Who may use a server on TCP, and which folders it opens to its callers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx2
import jwt
import mcp_types as types
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm
from mcp.client.client import Client
from mcp.client.session import ClientRequestContext
from pydantic import FileUrl
from tests.acceptance.conftest import Studio
from tests.frontends.appserver.appserver_process import app_server
from tests.frontends.appserver.appserver_process import listening as app_server_listening
from tests.servers.mcp_process import by_pipes, listening, post

STRANGER = 1500
# Started as root, and another user from its third line on.
AS_STRANGER = f"""\
import encodings.idna, http.client, json, os, sys
from urllib.parse import urlsplit
os.setgroups([]); os.setgid({STRANGER}); os.setuid({STRANGER})
url, file, method, body, headers = json.loads(sys.argv[1])
try:
    found = open(file).read()
except PermissionError:
    found = "denied"
parts = urlsplit(url)
client = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
client.request(method, parts.path or "/", body, headers)
print(json.dumps([found, client.getresponse().status]))
"""
GREETING = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "stranger", "version": "1"},
        },
    }
)
JSON_HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
}
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
}
needs_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become another user"
)


def ask_as_stranger(*request: Any) -> list[Any]:
    """What another user of the machine can read of the token, and the status of a request."""
    words = [sys.executable, "-c", AS_STRANGER, json.dumps(request)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@needs_root
@pytest.mark.slow
async def test_another_user_of_the_machine_cannot_call_the_mcp_server(
    studio: Studio,
) -> None:
    async with listening(studio, is_open=False) as server:
        (file,) = map(str, (studio.home / "tokens").iterdir())
        found = ask_as_stranger(server.url, file, "POST", GREETING, JSON_HEADERS)
    assert found == ["denied", 401]


@needs_root
@pytest.mark.slow
def test_another_user_of_the_machine_cannot_call_the_app_server(tmp_path: Path) -> None:
    with app_server_listening(tmp_path, words=[*app_server(), "--listen"]) as server:
        url, file = server.address, str(server.token_file)
        assert ask_as_stranger(url, file, "GET", None, UPGRADE) == ["denied", 401]


def with_root(folder: Path) -> Any:
    async def roots(_: ClientRequestContext) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri=FileUrl(folder.as_uri()))])

    return roots


@pytest.mark.slow
async def test_roots_open_a_folder_over_stdio_and_not_over_http(
    studio: Studio, tmp_path: Path
) -> None:
    folder, temporary = tmp_path / "project", tmp_path / "tmp"
    folder.mkdir()
    temporary.mkdir()
    studio.env["TMPDIR"] = str(temporary)  # every model may write there
    drawn: list[bool] = []
    options: dict[str, Any] = {"mode": "legacy", "list_roots_callback": with_root(folder)}
    for number, words in enumerate(((), ("--allow-folder", str(folder)))):
        async with listening(studio, *words) as server, Client(server.url, **options) as client:
            call = {"prompt": "a fox", "output_path": str(folder / f"{number}.png")}
            drawn.append(not (await client.call_tool("image_generate", call)).is_error)
    async with by_pipes(studio, **options) as client:
        call = {"prompt": "a fox", "output_path": str(folder / "2.png")}
        drawn.append(not (await client.call_tool("image_generate", call)).is_error)
    assert drawn == [False, True, True]
    assert sorted(path.name for path in folder.iterdir()) == ["1.png", "2.png"]


@pytest.mark.slow
async def test_an_issuer_can_be_asked_for_scopes(studio: Studio, tmp_path: Path) -> None:
    issuer, resource = "https://issuer.example", "https://limner.example/mcp"
    key = ec.generate_private_key(ec.SECP256R1())
    keys = tmp_path / "jwks.json"
    public = {**ECAlgorithm.to_jwk(key.public_key(), as_dict=True), "kid": "k"}
    keys.write_text(json.dumps({"keys": [public]}))
    oauth = ("--oauth-issuer", issuer, "--oauth-resource", resource, "--oauth-jwks", str(keys))
    scopes = ("--oauth-scope", "draw", "--oauth-scope", "look")

    def header(**more: Any) -> dict[str, str]:
        claims = {"iss": issuer, "aud": resource, "exp": int(time.time()) + 60, **more}
        token = jwt.encode(claims, key, algorithm="ES256", headers={"kid": "k"})
        return {"Authorization": f"Bearer {token}"}

    async with listening(studio, *oauth, *scopes) as server:
        answers = [
            (await post(server, header(**claims))).status_code
            for claims in (
                {},
                {"scope": "draw"},
                {"scope": "draw look more"},
                {"scp": ["look", "draw"]},
                {"scope": "draw look", "nonce": "n"},
            )
        ]
        metadata = f"http://127.0.0.1:{server.port}/.well-known/oauth-protected-resource/mcp"
        async with httpx2.AsyncClient(timeout=30) as client:
            published = (await client.get(metadata)).json()
    assert answers == [403, 403, 200, 200, 401]
    assert published["scopes_supported"] == ["draw", "look"]
