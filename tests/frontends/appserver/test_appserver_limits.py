"""What a server on a socket allows its clients: number, time and memory."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.frontends.appserver.appserver_process import GREETING, listening
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from limner.frontends.appserver.dispatch import Dispatcher, RpcCall, RpcHandler
from limner.frontends.appserver.handshake import MAX_CLIENT_CHARS
from limner.frontends.appserver.listen_socket import Tcp
from limner.frontends.appserver.websocket import serve_websocket
from limner.frontends.connection_guard import ServerLimits
from limner.frontends.server_token import TokenOptions
from limner.net.jsonrpc_peer import PendingRequests

pytestmark = pytest.mark.no_app_server

GUARD_S = 60.0
SMALL = ServerLimits(
    newcomers=3, connections=2, head_s=3600, request_s=3600, opening_bytes=1_000, held_bytes=100_000
)


async def initialize(call: RpcCall, params: dict[str, Any]) -> dict[str, Any]:
    call.connection.initialize("tests", "1", experimental=False, opted_out=())
    return {}


async def count(call: RpcCall, params: dict[str, Any]) -> int:
    return len(params["text"])


@asynccontextmanager
async def serving(tmp_path: Path, limits: ServerLimits) -> AsyncGenerator[str]:
    """A small server without a token; where it is."""
    said: asyncio.Queue[str] = asyncio.Queue()
    table = {
        "initialize": RpcHandler(serve=initialize, params=dict[str, Any], opening=True),
        "count": RpcHandler(serve=count, params=dict[str, Any]),
    }
    dispatcher = Dispatcher(table, pending=PendingRequests(said.put_nowait), log=said.put_nowait)
    work = asyncio.create_task(
        serve_websocket(
            dispatcher,
            Tcp("127.0.0.1", 0),
            token=TokenOptions(is_off=True),
            home=tmp_path,
            log=said.put_nowait,
            limits=limits,
        )
    )
    try:
        yield (await said.get()).removeprefix("listening on ")
    finally:
        work.cancel()
        with suppress(asyncio.CancelledError):
            await work


async def come(address: str) -> ClientConnection:
    return await connect(address, compression=None, ping_interval=None, proxy=None)


async def ask(client: ClientConnection, method: str, **params: Any) -> Any:
    await client.send(json.dumps({"id": 1, "method": method, "params": params}))
    async with asyncio.timeout(GUARD_S):
        return json.loads(await client.recv())["result"]


async def greet(address: str) -> ClientConnection:
    client = await come(address)
    assert await ask(client, "initialize") == {}
    return client


async def end_of(client: ClientConnection) -> int | None:
    """Wait until the server ends the connection."""
    async with asyncio.timeout(GUARD_S):
        await client.wait_closed()
    return client.close_code


async def test_a_message_before_initialize_is_short_and_later_ones_may_be_long(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, SMALL) as address:
        stranger = await come(address)
        await stranger.send("x" * 1_001)
        assert await end_of(stranger) == 1009
        client = await greet(address)
        assert await ask(client, "count", text="x" * 50_000) == 50_000
        await client.close()


async def test_silent_clients_make_room_for_those_who_speak(tmp_path: Path) -> None:
    async with serving(tmp_path, SMALL) as address:
        silent = [await come(address) for _ in range(10)]
        client = await greet(address)
        assert [await end_of(one) for one in silent[:7]] == [1006] * 7
        assert await ask(client, "count", text="x") == 1
        for one in (*silent, client):
            await one.close()


async def test_a_client_that_never_initializes_is_dropped(tmp_path: Path) -> None:
    async with serving(tmp_path, replace(SMALL, request_s=0.05)) as address:
        assert await end_of(await come(address)) == 1006


async def test_a_handshake_that_does_not_end_is_dropped(tmp_path: Path) -> None:
    async with serving(tmp_path, replace(SMALL, head_s=0.05)) as address:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(address.split(":")[2]))
        writer.write(b"GET / HTTP/1.1\r\nX-a: ")
        async with asyncio.timeout(GUARD_S):
            with suppress(ConnectionError):
                assert await reader.read() == b""
        writer.close()


async def test_more_clients_than_there_is_room_for_are_refused(tmp_path: Path) -> None:
    async with serving(tmp_path, SMALL) as address:
        clients = [await greet(address) for _ in range(2)]
        with pytest.raises(InvalidStatus) as refusal:
            await come(address)
        assert refusal.value.response.status_code == 503
        await clients[0].close()
        again = await greet(address)
        for one in (again, clients[1]):
            await one.close()


async def test_of_clients_that_hold_too_much_together_the_largest_is_dropped(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, replace(SMALL, connections=9)) as address:
        small, large, good = [await greet(address) for _ in range(3)]

        async def unfinished(client: ClientConnection, size: int) -> None:
            async def parts() -> AsyncGenerator[str]:
                yield "x" * size
                await asyncio.get_running_loop().create_future()

            with suppress(ConnectionClosed):
                await client.send(parts())

        sending = [
            asyncio.create_task(unfinished(client, size))
            for client, size in ((small, 45_000), (large, 60_000))
        ]
        assert await end_of(large) == 1006
        assert await ask(good, "count", text="x" * 30_000) == 30_000
        assert small.close_code is None
        for task in sending:
            task.cancel()
        await asyncio.gather(*sending, return_exceptions=True)
        small.transport.abort()
        await good.close()


@pytest.mark.parametrize(
    "params",
    [
        {"clientInfo": {"name": "n" * 201, "version": "1"}},
        {"clientInfo": {"name": "n", "version": "1" * 201}},
        {**GREETING, "capabilities": {"optOutNotificationMethods": ["m"] * 201}},
        {**GREETING, "capabilities": {"optOutNotificationMethods": ["m" * 201]}},
    ],
    ids=["name", "version", "many", "long"],
)
def test_the_names_that_the_server_keeps_are_short(tmp_path: Path, params: dict[str, Any]) -> None:
    assert MAX_CLIENT_CHARS == 200
    with listening(tmp_path) as server, server.client() as client:
        refused = client.call(1, "initialize", params)
        assert refused["error"] == {
            "code": -32600,
            "message": "Invalid initialize: each name may have 200 characters, and a client may "
            "name 200 methods.",
        }
        client.greet()
