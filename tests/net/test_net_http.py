"""One client for each loop, closed with it; and what the tap shows."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator

import httpx2
import pytest

import limner
from limner.net.http import ChunkedBody, Http
from limner.testing.servers.http_server import (
    LocalServer,
    ReceivedRequest,
    Reply,
    bytes_reply,
    dropped,
    json_reply,
)


class Echo(LocalServer):
    def answer(self, seen: ReceivedRequest) -> Reply:
        return json_reply({"ok": True}, headers={"Set-Cookie": "a=b; Path=/"})


@pytest.fixture
def server() -> Iterator[Echo]:
    with Echo() as server:
        yield server


async def test_a_loop_has_one_client_until_it_is_closed(server: Echo) -> None:
    http = Http()
    first = http.client()
    assert http.client() is first
    await first.get(server.origin)
    await http.aclose()
    assert first.is_closed
    assert http.client() is not first
    await http.aclose()
    await http.aclose()


def test_loops_come_and_go_without_a_warning_and_close_their_clients(server: Echo) -> None:
    http = Http()

    async def ask() -> httpx2.AsyncClient:
        client = http.client()
        assert (await client.get(server.origin)).json() == {"ok": True}
        return client

    # Nobody closes here: each loop does when it ends. Warnings are errors in these tests.
    clients = [asyncio.run(ask()) for _ in range(3)]
    assert len(set(map(id, clients))) == 3
    assert all(client.is_closed for client in clients)


async def test_requests_say_who_we_are_keep_no_cookies_and_follow_no_redirect(
    server: Echo,
) -> None:
    http = Http()
    client = http.client()
    await client.get(server.origin)
    await client.get(server.origin)
    server.script("any", Reply(status=302, headers={"Location": "/elsewhere"}))
    assert (await client.get(server.origin)).status_code == 302
    await http.aclose()
    agent = f"limner/{limner.__version__}"
    assert [
        (seen.path, seen.headers["user-agent"], seen.headers["accept-encoding"])
        for seen in server.requests
    ] == [("/", agent, "identity")] * 3
    assert not any("cookie" in seen.headers for seen in server.requests)


async def test_a_request_is_sent_once_also_when_the_connection_drops(server: Echo) -> None:
    http = Http()
    server.script("any", dropped())
    with pytest.raises(httpx2.RequestError):
        await http.client().post(server.origin, json={})
    await http.aclose()
    assert len(server.requests) == 1


async def test_the_tap_shows_requests_and_answers_without_secrets(server: Echo) -> None:
    lines: list[str] = []
    http = Http(observe=lines.append)
    key = "plain-looking-key"
    server.script("any", json_reply({"echo": f"you sent {key}"}, headers={"X-Id": "7"}))
    answer = await http.client().post(
        f"{server.origin}/v1?token=abc",
        json={"prompt": "a fox"},
        headers={"Authorization": f"Bearer {key}"},
    )
    await http.aclose()
    assert answer.json() == {"echo": f"you sent {key}"}
    sent, got = lines
    assert sent.startswith(f"> POST {server.origin}/v1?token=••• ")
    assert sent.endswith(""" '{"prompt":"a fox"}'""")
    assert "authorization: '•••'" in sent
    assert got.startswith(f"< 200 POST {server.origin}/v1?token=••• ")
    assert "x-id: '•••'" in got
    assert "content-type: 'application/json'" in got
    assert got.endswith(""" '{"echo": "you sent •••"}'""")


async def test_the_tap_shows_the_beginning_of_a_long_answer_and_streams_the_rest(
    server: Echo,
) -> None:
    lines: list[str] = []
    http = Http(observe=lines.append)
    key = "0123456789abcdef"
    # The key straddles the end of what is looked at.
    body = b"x y " * 510 + key.encode() * 3 + b"z" * 100_000
    server.script("any", bytes_reply(body))
    headers = {"Authorization": f"Bearer {key}"}
    assert (await http.client().get(server.origin, headers=headers)).content == body
    await http.aclose()
    assert "x y x y" in lines[1]
    assert lines[1].endswith("…'")
    assert key[:4] not in lines[1]
    assert len(lines[1]) < 3000


@pytest.mark.parametrize("header", ["x-api-key", "x-goog-api-key", "x-key", "x-any-other"])
async def test_the_tap_hides_a_key_wherever_a_vendor_wants_it(header: str, server: Echo) -> None:
    lines: list[str] = []
    http = Http(observe=lines.append)
    server.script("any", bytes_reply(b"you sent plainkey0123"))
    await http.client().get(server.origin, headers={header: "plainkey0123"})
    await http.aclose()
    assert f"{header}: '•••'" in lines[0]
    assert "plainkey" not in "".join(lines)


async def test_the_tap_shows_neither_the_password_of_a_url_nor_its_encoded_form(
    server: Echo,
) -> None:
    lines: list[str] = []
    http = Http(observe=lines.append)
    encoded = base64.b64encode(b"artist:plantedurlpass77").decode()
    server.script("any", bytes_reply(f"Basic {encoded} of plantedurlpass77".encode()))
    await http.client().get(server.origin.replace("://", "://artist:plantedurlpass77@"))
    await http.aclose()
    assert server.requests[0].headers["authorization"] == f"Basic {encoded}"
    assert lines[0].startswith(f"> GET {server.origin}")
    assert lines[1].endswith("'Basic ••• of •••'")
    assert "artist" not in "".join(lines)


async def test_the_tap_reports_an_answer_that_breaks_off(server: Echo) -> None:
    lines: list[str] = []
    http = Http(observe=lines.append)
    server.script("any", Reply(pieces=(b"half",), length=8, ending="close"))
    with pytest.raises(httpx2.RequestError):
        await http.client().get(server.origin)
    await http.aclose()
    assert lines[1].endswith(" 'half'")


async def test_the_tap_shows_the_beginning_of_a_body_that_is_sent_in_pieces(server: Echo) -> None:
    lines: list[str] = []
    http = Http(observe=lines.append)
    body = b"a fox " * 100_000
    request = http.client().build_request("POST", server.origin, content=body)
    request.stream = ChunkedBody([body])
    await http.client().send(request)
    await http.aclose()
    assert server.requests[0].body == body
    assert "a fox a fox" in lines[0]
    assert len(lines[0]) < 3000
