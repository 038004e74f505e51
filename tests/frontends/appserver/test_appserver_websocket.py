"""A server and its clients over web sockets: an address, or a file."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.frontends.appserver.appserver_process import (
    GREETING,
    GUARD_S,
    Client,
    SocketServer,
    app_server,
    listening,
    running,
)
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as connect_async
from websockets.exceptions import ConnectionClosed, InvalidStatus

from limner.errors import UserError
from limner.frontends.appserver.listen_socket import Tcp, Unix, read_address

TOKEN = "a-token-of-some-length"
APP_SERVER = [*app_server(), "--listen"]


def get(server: SocketServer, path: str, **headers: str) -> tuple[int, str]:
    """An answer over plain HTTP."""
    parts = urlsplit(server.address)
    client = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=GUARD_S)
    try:
        client.request("GET", path, headers=headers)
        answer = client.getresponse()
        return answer.status, answer.read().decode()
    finally:
        client.close()


def refused(server: SocketServer, **headers: str) -> int:
    """The status with which a client is turned away."""
    with (
        pytest.raises(InvalidStatus) as told,
        server.client(additional_headers=headers),
    ):
        pass
    return told.value.response.status_code


async def greeted(server: SocketServer) -> ClientConnection:
    """A client that has introduced itself."""
    options: dict[str, Any] = {"compression": None, "ping_interval": None, "proxy": None}
    client = await connect_async(server.address, additional_headers=server.headers, **options)
    await client.send(json.dumps({"id": 0, "method": "initialize", "params": GREETING}))
    assert b'"userAgent"' in await client.recv(decode=False)
    return client


def read_to_the_end(client: Client) -> None:
    while True:
        client.receive_raw()


def test_each_client_introduces_itself(tmp_path: Path) -> None:
    with (
        listening(tmp_path, words=APP_SERVER) as server,
        server.client() as first,
        server.client() as second,
    ):
        assert first.greet()["userAgent"].startswith("probe/0.166.0 ")
        assert second.call(1, "initialize", {})["error"]["code"] == -32600
        assert second.greet()["codexHome"] == str(server.server.home)


def test_health_is_served_on_the_same_port(tmp_path: Path) -> None:
    with listening(tmp_path) as server:
        assert get(server, "/healthz") == (200, "ok\n")
        assert get(server, "/readyz?deep=1") == (200, "ok\n")
        assert get(server, "/other")[0] == 401
        assert get(server, "/other", **server.headers)[0] == 426


def test_web_pages_are_turned_away(tmp_path: Path) -> None:
    with listening(tmp_path) as server:
        assert refused(server, Origin="http://127.0.0.1") == 403
        assert refused(server, Origin="null") == 403
        assert get(server, "/healthz", Origin="https://example.com")[0] == 403
        with server.client() as client:
            client.greet()


def test_a_server_makes_a_token_that_only_its_owner_can_read(tmp_path: Path) -> None:
    with listening(tmp_path, words=APP_SERVER) as server:
        port = urlsplit(server.address).port
        assert server.token_file == server.server.home / "tokens" / f"app-server-127.0.0.1-{port}"
        assert stat.S_IMODE(server.token_file.stat().st_mode) == 0o600
        assert len(server.token_file.read_text()) >= 32
        assert refused(server) == 401
        with server.client() as client:
            client.greet()
        server.server.terminate()
        assert server.server.end()[0] == 0
    assert not server.token_file.exists()


def test_without_a_token_every_user_of_the_machine_is_served(tmp_path: Path) -> None:
    with (
        listening(tmp_path, "ws://127.0.0.1:0", "--no-token", words=APP_SERVER) as server,
        server.client() as client,
    ):
        client.greet()
        assert not (server.server.home / "tokens").exists()


def test_a_given_token_is_the_one_that_clients_send(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    with listening(tmp_path, "ws://127.0.0.1:0", str(file)) as server:
        assert refused(server) == 401
        assert refused(server, Authorization=f"Bearer {TOKEN}x") == 401
        assert refused(server, Authorization=f"Basic {TOKEN}") == 401
        assert refused(server, Authorization=TOKEN) == 401
        assert get(server, "/healthz") == (200, "ok\n")
        with server.client(additional_headers={"Authorization": f"bearer {TOKEN}"}) as client:
            client.greet()


def test_clients_of_other_machines_need_a_token(tmp_path: Path) -> None:
    with running([*APP_SERVER, "ws://0.0.0.0:0", "--no-token"], tmp_path) as server:
        assert server.end() == (
            2,
            "limner: 0.0.0.0 can be reached from other machines, so clients need a token\n"
            "  Leave out --no-token, or listen on 127.0.0.1.\n",
        )
    env = {"LIMNER_APP_SERVER_TOKEN": TOKEN}
    with listening(tmp_path, "ws://0.0.0.0:0", words=APP_SERVER, env=env) as server:
        server.address = server.address.replace("0.0.0.0", "127.0.0.1")
        assert refused(server) == 401
        with server.client(additional_headers={"Authorization": f"Bearer {TOKEN}"}) as client:
            client.greet()


@pytest.mark.parametrize(
    ("content", "reason"),
    [(None, "cannot be read: [Errno 2] No such file or directory: "), (" \n", "contains no token")],
)
def test_a_token_file_without_a_token_is_a_mistake(
    tmp_path: Path, content: str | None, reason: str
) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_text(content)
    words = [*APP_SERVER, "ws://127.0.0.1:0", "--ws-token-file", str(file)]
    with running(words, tmp_path) as server:
        status, said = server.end()
    assert status == 2
    assert said.startswith(f"limner: the token file {file} {reason}")


def test_an_address_that_is_taken_is_a_mistake(tmp_path: Path) -> None:
    with listening(tmp_path) as first, running([*APP_SERVER, first.address], tmp_path) as second:
        status, said = second.end()
    assert status == 2
    assert said.startswith(f"limner: {first.address} cannot be listened on: ")


def test_without_the_library_the_command_that_installs_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "websockets.py").write_text("raise ImportError\n")
    env = {"PYTHONPATH": str(tmp_path)}
    with running([*APP_SERVER, "ws://127.0.0.1:0"], tmp_path, env=env) as server:
        assert server.end() == (
            2,
            "limner: Web sockets need a library that is not installed\n"
            '  Run: pip install "limner[websocket]"\n',
        )


def test_the_same_question_goes_to_one_client_and_its_answer_back(tmp_path: Path) -> None:
    with listening(tmp_path) as server, server.client() as one, server.client() as other:
        one.greet()
        other.greet()
        assert one.call(5, "ask", {"a": 1})["id"] == 0
        other.send({"id": 0, "result": "forged"})
        server.server.wait_for("an answer to 0, which is not expected, is ignored")
        one.send({"id": 0, "result": "mine"})
        assert one.receive() == {"id": 5, "result": "mine"}


def test_a_client_that_leaves_does_not_disturb_the_others(tmp_path: Path) -> None:
    with listening(tmp_path) as server, server.client() as stays:
        stays.greet()
        with server.client() as leaves:
            leaves.greet()
            leaves.send({"id": 1, "method": "forever", "params": {}})
            assert leaves.call(2, "ask")["method"] == "tool/call"
        assert stays.call(1, "echo", {"a": 1}) == {"id": 1, "result": {"a": 1}}


def test_a_client_that_does_not_read_is_cut_off_and_others_are_not(tmp_path: Path) -> None:
    with listening(tmp_path) as server, server.client() as reads:
        reads.greet()
        with server.client(max_queue=1) as stuck:
            stuck.greet()
            stuck.send({"id": 1, "method": "flood", "params": {"megabytes": 2000}})
            server.server.wait_for("the other side is cut off: it has left 256.0MB unread")
            with pytest.raises(ConnectionClosed):
                read_to_the_end(stuck)
        assert reads.call(1, "echo") == {"id": 1, "result": {}}
        assert server.server.rss_bytes < 700_000_000


@pytest.mark.slow
def test_a_picture_of_30_megabytes_goes_both_ways_in_a_frame(tmp_path: Path) -> None:
    picture = "A" * 30_000_000
    with listening(tmp_path) as server, server.client() as client:
        client.greet()
        assert client.call(1, "echo", {"picture": picture})["result"] == {"picture": picture}


@pytest.mark.slow
def test_a_message_that_is_too_long_ends_its_connection_alone(tmp_path: Path) -> None:
    with listening(tmp_path) as server, server.client() as good, server.client() as bad:
        good.greet()
        bad.greet()
        with contextlib.suppress(ConnectionClosed):
            bad.send_raw(b"x" * (256 * 1024 * 1024 + 1))
        with pytest.raises(ConnectionClosed):
            read_to_the_end(bad)
        assert good.call(1, "echo") == {"id": 1, "result": {}}


def test_sigterm_ends_it_in_good_order(tmp_path: Path) -> None:
    with listening(tmp_path) as server, server.client() as client:
        client.greet()
        client.send({"id": 1, "method": "forever", "params": {}})
        server.server.terminate()
        with pytest.raises(ConnectionClosed) as closed:
            client.receive()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1001
        status, said = server.server.end()
    assert (status, said) == (
        0,
        f"limner: listening on {server.address}\n"
        f"limner: clients send the bearer token in {server.token_file}\n",
    )


@pytest.mark.slow
@pytest.mark.usefixtures("many_files")
async def test_a_thousand_idle_clients_cost_a_task_each_and_are_all_served(tmp_path: Path) -> None:
    count = 1000
    with listening(tmp_path) as server, server.client() as watch:
        watch.greet()
        before = server.server.rss_bytes
        sockets = [await greeted(server) for _ in range(count)]
        about = watch.call(1, "about")["result"]
        assert about["tasks"] <= count + 5
        assert (server.server.rss_bytes - before) / count < 100_000
        for number, client in enumerate(sockets):
            await client.send(json.dumps({"id": number, "method": "nope", "params": {}}))
        answers = await asyncio.gather(*(client.recv() for client in sockets))
        assert all(f'"id":{n}}}' in str(answer) for n, answer in enumerate(answers))
        for client in sockets:
            client.transport.abort()


def test_a_socket_file_is_its_owners_alone_and_goes_with_the_server(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "s.sock"
    with listening(tmp_path, f"unix://{path}", words=APP_SERVER) as server:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) & 0o077 == 0
        with server.client() as client:
            client.greet()
        server.server.terminate()
        assert server.server.end() == (0, f"limner: listening on unix://{path}\n")
    assert not path.exists()


def test_without_a_path_the_socket_is_in_limners_folder(tmp_path: Path) -> None:
    env = {"LIMNER_APP_SERVER_TOKEN": TOKEN}
    with listening(tmp_path, "unix://", words=APP_SERVER, env=env) as server:
        assert server.address == f"unix://{tmp_path}/limner-home/app-server.sock"
        with server.client() as client:
            client.greet()


def test_what_a_killed_server_left_behind_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "s.sock"
    with listening(tmp_path, f"unix://{path}") as server:
        server.server.process.kill()
        server.server.end()
    assert path.is_socket()
    with listening(tmp_path, f"unix://{path}") as server, server.client() as client:
        client.greet()


def test_a_socket_that_is_in_use_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "s.sock"
    with listening(tmp_path, f"unix://{path}") as first:
        with running([*APP_SERVER, f"unix://{path}"], tmp_path) as second:
            assert second.end() == (2, f"limner: Another server is listening on {path}\n")
        with first.client() as client:
            client.greet()


def test_a_file_that_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "precious"
    path.write_text("words")
    with running([*APP_SERVER, f"unix://{path}"], tmp_path) as server:
        status, said = server.end()
    assert (status, path.read_text()) == (2, "words")
    assert said == f"limner: unix://{path} cannot be listened on: Address already in use\n"


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("ws://127.0.0.1:4500", Tcp("127.0.0.1", 4500)),
        ("ws://[::1]:0/", Tcp("::1", 0)),
        ("unix:///tmp/x.sock", Unix(Path("/tmp/x.sock"))),
        ("unix://", Unix(Path("/home/user/app-server.sock"))),
    ],
)
def test_an_address_is_read_and_shown_alike(text: str, address: Tcp | Unix) -> None:
    home = Path("/home/user")
    assert read_address(text, home=home) == address
    assert read_address(str(address), home=home) == address


@pytest.mark.parametrize(
    "text",
    [
        "",
        "off",
        "ws://",
        "ws://localhost:1",
        "ws://127.0.0.1",
        "ws://127.0.0.1:x",
        "ws://127.0.0.1:99999",
        "ws://user@127.0.0.1:1",
        "ws://127.0.0.1:1/path",
        "wss://127.0.0.1:1",
        "http://127.0.0.1:1",
    ],
)
def test_an_invalid_address_is_refused(text: str) -> None:
    with pytest.raises(UserError) as told:
        read_address(text, home=Path("/"))
    assert told.value.hint == "Use stdio://, ws://IP:PORT or unix://PATH."


@given(st.text(max_size=40).map("ws://".__add__) | st.text(max_size=40))
def test_property_an_address_is_read_or_refused(text: str) -> None:
    try:
        address = read_address(text, home=Path("/"))
    except UserError:
        return
    assert isinstance(address, Unix) or 0 <= address.port < 65536


def test_stdio_does_not_load_the_library_for_sockets(tmp_path: Path) -> None:
    script = (
        "import sys; from limner.frontends.cli.main import main; "
        "main(['app-server']); print('websockets' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
        env={"LIMNER_HOME": str(tmp_path)},
        text=True,
    )
    assert done.stdout == "False\n"
