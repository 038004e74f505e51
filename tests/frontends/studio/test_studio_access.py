"""Who may use the studio: its own page and programs with its token, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from itertools import product

import pytest
from tests.acceptance.conftest import Studio
from tests.servers.studio_server import RunningStudio, running

from limner.frontends.studio.api import ENDPOINTS

POLICY = "default-src 'none'"
PATHS = ["/", "/static/app.js", "/api/pictures", "/api/openapi.json"]


@pytest.fixture
async def visitor(studio: Studio) -> AsyncGenerator[RunningStudio]:
    """A studio whose address was not opened yet."""
    async with studio.open() as lim, running(lim, enters=False) as server:
        yield server


async def test_the_token_is_exchanged_once_for_a_cookie(visitor: RunningStudio) -> None:
    answer = await visitor.http.get(visitor.url)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    name, *rules = answer.headers["set-cookie"].split("; ")
    assert name.startswith("limner-studio-")
    assert rules == ["Max-Age=2592000", "Path=/", "HttpOnly", "SameSite=Strict"]
    assert (await visitor.http.get("/")).status_code == 200
    # A person who finds the address later, as in the history of a browser, gets nothing.
    visitor.http.cookies.clear()
    replayed = await visitor.http.get(visitor.url)
    assert (replayed.status_code, "set-cookie" in replayed.headers) == (401, False)


async def test_the_address_can_be_loaded_again_by_the_browser_that_has_the_cookie(
    visitor: RunningStudio,
) -> None:
    await visitor.enter()
    await visitor.enter()


async def test_nothing_is_served_without_a_cookie(visitor: RunningStudio) -> None:
    for path in PATHS:
        answer = await visitor.http.get(path)
        assert answer.status_code == 401
        assert POLICY in answer.headers["content-security-policy"]


async def test_a_wrong_token_gets_nothing(visitor: RunningStudio) -> None:
    for token in ("", "wrong", "x" * 43, "%00", "é", "a&token=b", "../../etc/passwd"):
        answer = await visitor.http.get(f"/?token={token}")
        assert (answer.status_code, "set-cookie" in answer.headers) == (401, False)


async def test_a_forged_cookie_gets_nothing(visitor: RunningStudio) -> None:
    port = visitor.origin.rpartition(":")[2]
    for value in ("", "1.2", "9999999999.0", "²³.x", "-1.x", "9" * 30 + ".x"):
        cookie = f"limner-studio-{port}={value}".encode()
        answer = await visitor.http.get("/api/pictures", headers={b"cookie": cookie})
        assert answer.status_code == 401


async def test_a_cookie_of_another_port_or_home_gets_nothing(
    visitor: RunningStudio, studio: Studio
) -> None:
    async with studio.open() as lim, running(lim) as other:
        (cookie,) = other.http.cookies.jar
        port = visitor.origin.rpartition(":")[2]
        for name in (cookie.name, f"limner-studio-{port}"):
            answer = await visitor.http.get(
                "/api/pictures", headers={"cookie": f"{name}={cookie.value}"}
            )
            assert answer.status_code == 401


async def test_a_cookie_outlives_the_server(studio: Studio) -> None:
    async with studio.open() as lim:
        async with running(lim) as before:
            (cookie,) = before.http.cookies.jar
        (key,) = lim.home.tokens.iterdir()
        assert (key.name, key.stat().st_mode & 0o777) == ("studio-cookies", 0o600)
        port = int(cookie.name.rpartition("-")[2])
        async with running(lim, enters=False, port=port) as after:
            headers = {"cookie": f"{cookie.name}={cookie.value}"}
            assert (await after.http.get("/api/pictures", headers=headers)).status_code == 200


async def test_the_cookies_of_other_servers_of_this_machine_do_no_harm(
    visitor: RunningStudio,
) -> None:
    """Cookies of one host are shared by all its ports, and some servers write odd ones."""
    await visitor.enter()
    (cookie,) = visitor.http.cookies.jar
    visitor.http.cookies.clear()
    ours = f"{cookie.name}={cookie.value}"
    for theirs in ('state={"page": 1}', "a=b c", "list[0]=x", "user@host=1", '"', "=", "é=ü"):
        for both in (f"{theirs}; {ours}", f"{ours}; {theirs}"):
            headers = {b"cookie": both.encode()}
            answer = await visitor.http.get("/api/pictures", headers=headers)
            assert (both, answer.status_code) == (both, 200)


async def test_another_host_name_is_refused_even_with_the_cookie(visitor: RunningStudio) -> None:
    """A page whose name was rebound to this machine gets nothing."""
    await visitor.enter()
    port = visitor.origin.rpartition(":")[2]
    for name in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.2:{port}", ""):
        for path in ("/api/pictures", visitor.url):
            answer = await visitor.http.get(path, headers={"host": name})
            assert (answer.status_code, "set-cookie" in answer.headers) == (421, False)


async def test_a_page_of_another_origin_gets_nothing(visitor: RunningStudio) -> None:
    await visitor.enter()
    origins = ("http://evil.example", "null", "https://127.0.0.1", "file://")
    for path, origin in product(PATHS, origins):
        answer = await visitor.http.get(path, headers={"origin": origin})
        assert answer.status_code == 403
        assert "access-control-allow-origin" not in answer.headers


async def test_a_page_of_another_port_gets_nothing(visitor: RunningStudio) -> None:
    await visitor.enter()
    del visitor.http.headers["origin"]  # as for an <img>
    for site in ("same-site", "cross-site"):
        answer = await visitor.http.get("/api/pictures", headers={"sec-fetch-site": site})
        assert answer.status_code == 403


async def test_a_change_without_an_origin_is_refused(visitor: RunningStudio) -> None:
    await visitor.enter()
    del visitor.http.headers["origin"]
    for endpoint, method in product(ENDPOINTS, ("POST", "PUT", "DELETE", "PATCH")):
        path = endpoint.path.replace("{handle}", "0" * 64)
        assert (await visitor.http.request(method, path)).status_code == 403


async def test_a_program_sends_the_token_of_the_server(visitor: RunningStudio) -> None:
    del visitor.http.headers["origin"]
    own = {"authorization": f"Bearer {visitor.token}"}
    assert (await visitor.http.get("/api/pictures", headers=own)).status_code == 200
    for wrong in ("Bearer x", "Basic x", f"Bearer {visitor.token}x"):
        answer = await visitor.http.get("/api/pictures", headers={"authorization": wrong})
        assert answer.status_code == 401


async def test_every_response_forbids_the_browser_what_the_page_does_not_need(
    visitor: RunningStudio,
) -> None:
    await visitor.enter()
    for path in [*PATHS, "/none", "/api/none", "/static/../app.py", "/static/none.js"]:
        answer = await visitor.http.get(path)
        policy = answer.headers["content-security-policy"]
        assert policy.startswith(POLICY)
        assert "unsafe" not in policy
        assert "http" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"


OTHER_FILES = (
    "/static/../app.py",
    "/static/%2e%2e/app.py",
    "/static/..%2fapp.py",
    "/static//etc/passwd",
    "/static/",
    "/static/vendor",
)


async def test_only_files_of_the_page_are_served(visitor: RunningStudio) -> None:
    await visitor.enter()
    host, port = visitor.origin.removeprefix("http://").split(":")
    (cookie,) = visitor.http.cookies.jar
    # A client of HTTP would shorten these paths itself.
    for path in OTHER_FILES:
        reader, writer = await asyncio.open_connection(host, int(port))
        head = (f"GET {path} HTTP/1.1", f"Host: {host}:{port}", "Connection: close")
        lines = (*head, f"Cookie: {cookie.name}={cookie.value}", "", "")
        writer.write("\r\n".join(lines).encode())
        answer = await reader.read()
        writer.close()
        assert answer.startswith(b"HTTP/1.1 404 ")
