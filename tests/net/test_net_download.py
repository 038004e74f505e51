"""A provider's output address is followed to its own hosts and nowhere else."""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx2
import pytest

from limner.errors import BadProviderImage, ImageTooLarge, ProviderUnavailable
from limner.net.download import MAX_REDIRECTS, DownloadSource, download, resolve
from limner.net.http import Http
from limner.net.transport import Destination, DirectTransport
from limner.testing.servers.http_server import (
    Gate,
    LocalServer,
    ReceivedRequest,
    Reply,
    bytes_reply,
    cut_short,
    dropped,
)

PEM = Path(__file__).parents[1] / "servers" / "delivery.pem"
HOST = "out.replicate.delivery"
HOSTS = ("*.replicate.delivery", "exact.example")
PUBLIC = "93.184.215.14"


class Files(LocalServer):
    """Serves what the test puts in; the host a request came for decides nothing."""

    def __init__(self, **rest: Any) -> None:
        super().__init__(**rest)
        self.at: dict[str, Reply] = {}

    def answer(self, seen: ReceivedRequest) -> Reply:
        return self.at.get(seen.path, Reply(status=404))


class Bucket:
    def __init__(self, max_bytes: int = 1 << 30) -> None:
        self.data = b""
        self._max_bytes = max_bytes

    def write(self, data: bytes | memoryview) -> None:
        self.data += data
        if len(self.data) > self._max_bytes:
            raise ImageTooLarge("too large")


@pytest.fixture
def files() -> Iterator[Files]:
    with Files() as server:
        yield server


@pytest.fixture
async def client(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[httpx2.AsyncClient]:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    http = Http()
    yield http.client()
    await http.aclose()


def resolving(*addresses: str) -> Callable[[str, int], Any]:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return addresses

    return resolve


def source(server: LocalServer, **rest: Any) -> DownloadSource:
    return DownloadSource(
        base_url=f"{server.origin}/v1",
        hosts=HOSTS,
        headers={"Authorization": "Bearer the-key"},
        **{"resolve": resolving(PUBLIC)} | rest,
    )


async def fetch(url: str, server: LocalServer, client: httpx2.AsyncClient, **rest: Any) -> bytes:
    bucket = Bucket()
    await download(url, bucket, client=client, source=source(server, **rest))
    return bucket.data


async def test_the_base_urls_own_origin_is_fetched_with_the_key(
    files: Files, client: httpx2.AsyncClient
) -> None:
    files.at["/files/a.png"] = bytes_reply(b"picture" * 100_000)
    assert await fetch(f"{files.origin}/files/a.png", files, client) == b"picture" * 100_000
    assert [seen.headers["authorization"] for seen in files.requests] == ["Bearer the-key"]


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://out.replicate.delivery/a.png", "not an https address"),
        ("https://replicate.delivery.evil.example/a.png", "not a host of this service"),
        ("https://evilreplicate.delivery/a.png", "not a host of this service"),
        ("https://below.exact.example/a.png", "not a host of this service"),
        ("https://user:secret@out.replicate.delivery/a.png", "user name"),
        ("https://out.replicate.delivery@evil.example/a.png", "user name"),
        ("https://127.0.0.1/a.png", "private network|not a host|could not be read"),
        ("https://[::1]/a.png", "not a host of this service"),
        ("https://169.254.169.254/latest/meta-data", "not a host of this service"),
        ("ftp://out.replicate.delivery/a.png", "not a web address"),
        ("file:///etc/passwd", "not a web address"),
        ("data:image/png;base64,AAAA", "not a web address"),
        ("https:///a.png", "not a web address"),
        ("https://out.replicate.delivery:99999/a.png", "not a web address"),
        ("//out.replicate.delivery/a.png", "not a web address"),
        ("https://out.replicate.delivery:port/a.png", "is not a URL"),
        ("", "not a web address"),
    ],
)
async def test_an_address_that_is_not_the_services_own_is_not_followed(
    url: str, why: str, files: Files, client: httpx2.AsyncClient
) -> None:
    own_host = url.startswith("https://127.0.0.1")
    with pytest.raises((BadProviderImage, ProviderUnavailable), match=why) as caught:
        await fetch(url, files, client)
    assert isinstance(caught.value, ProviderUnavailable) == own_host
    assert files.requests == []


@pytest.mark.parametrize(
    "addresses",
    [["127.0.0.1"], ["10.0.0.1"], [PUBLIC, "169.254.169.254"], ["fd00::1", PUBLIC], []],
)
async def test_a_name_that_leads_into_a_private_network_is_not_connected_to(
    addresses: list[str], files: Files, client: httpx2.AsyncClient
) -> None:
    url = f"https://{HOST}:{files.port}/a.png"
    with pytest.raises(BadProviderImage, match="private network"):
        await fetch(url, files, client, resolve=resolving(*addresses))
    assert files.requests == []


@pytest.mark.parametrize("part", ["", "a" * 64])
async def test_a_name_that_no_resolver_takes_is_unavailable(
    part: str, files: Files, client: httpx2.AsyncClient
) -> None:
    with pytest.raises(ProviderUnavailable, match="cannot be resolved"):
        await fetch(f"https://{part}.replicate.delivery/a.png", files, client, resolve=resolve)


async def test_a_name_that_cannot_be_looked_up_is_unavailable(
    files: Files, client: httpx2.AsyncClient
) -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        raise socket.gaierror(socket.EAI_NONAME, "no such name")

    with pytest.raises(ProviderUnavailable, match="cannot be resolved") as caught:
        await fetch(f"https://{HOST}/a.png", files, client, resolve=resolve)
    assert (caught.value.may_be_billed, caught.value.retryable) == (True, False)


async def test_redirects_are_followed_and_each_is_judged(
    files: Files, client: httpx2.AsyncClient
) -> None:
    files.at["/one"] = Reply(status=302, headers={"Location": "/two"})
    files.at["/two"] = Reply(status=307, headers={"Location": f"{files.origin}/three"})
    files.at["/three"] = bytes_reply(b"there")
    assert await fetch(f"{files.origin}/one", files, client) == b"there"
    files.at["/two"] = Reply(status=308, headers={"Location": "https://169.254.169.254/"})
    with pytest.raises(BadProviderImage, match="not a host of this service"):
        await fetch(f"{files.origin}/one", files, client)
    files.at["/two"] = Reply(status=302)
    with pytest.raises(BadProviderImage, match="redirects more than"):
        await fetch(f"{files.origin}/one", files, client)


@pytest.mark.parametrize(
    "location",
    [
        *("data:image/png;base64,AAAA", "file:///etc/passwd", "gopher://x/", "javascript:1"),
        *("mailto:a@b", "//", "http://", "https://[::1", "https://a:port/", "urn:x:y", "\x80://x"),
        *("https://xn--/", "https://\u0660.example:1/", "about:blank", "ws://x/y"),
    ],
)
async def test_a_redirect_to_an_odd_address_is_our_own_error(
    files: Files, client: httpx2.AsyncClient, location: str
) -> None:
    files.at["/one"] = Reply(status=302, headers={"Location": location})
    # The HTTP library reports some of them while it reads the response.
    with pytest.raises((BadProviderImage, ProviderUnavailable), match="its address "):
        await fetch(f"{files.origin}/one", files, client)


async def test_a_redirect_without_end_is_given_up(files: Files, client: httpx2.AsyncClient) -> None:
    files.at["/loop"] = Reply(status=302, headers={"Location": "/loop"})
    with pytest.raises(BadProviderImage, match="redirects more than 5 times"):
        await fetch(f"{files.origin}/loop", files, client)
    assert len(files.requests) == MAX_REDIRECTS + 1


async def test_the_key_is_not_taken_along_to_another_port_of_the_same_host(
    files: Files, client: httpx2.AsyncClient
) -> None:
    with Files() as other:
        other.at["/b.png"] = bytes_reply(b"there")
        files.at["/a.png"] = Reply(status=302, headers={"Location": f"{other.origin}/b.png"})
        with pytest.raises(BadProviderImage, match="not an https address"):
            await fetch(f"{files.origin}/a.png", files, client)
        assert other.requests == []


@pytest.mark.parametrize("status", [204, 304, 401, 403, 404, 410])
async def test_nothing_at_the_address_is_a_bad_answer(
    status: int, files: Files, client: httpx2.AsyncClient
) -> None:
    files.at["/a.png"] = Reply(status=status)
    with pytest.raises(BadProviderImage, match=f"answered {status}"):
        await fetch(f"{files.origin}/a.png", files, client)


@pytest.mark.parametrize("status", [408, 429, 500, 503])
async def test_a_host_that_fails_is_unavailable(
    status: int, files: Files, client: httpx2.AsyncClient
) -> None:
    files.at["/a.png"] = Reply(status=status)
    with pytest.raises(ProviderUnavailable, match=f"answered {status}.*may be billed"):
        await fetch(f"{files.origin}/a.png", files, client)


@pytest.mark.parametrize("reply", [dropped(), cut_short(bytes_reply(b"x" * 1000))])
async def test_a_download_that_breaks_off_is_unavailable(
    reply: Reply, files: Files, client: httpx2.AsyncClient
) -> None:
    files.at["/a.png"] = reply
    with pytest.raises(ProviderUnavailable, match="could not be read"):
        await fetch(f"{files.origin}/a.png", files, client)


async def test_a_sink_that_is_full_stops_the_download(
    files: Files, client: httpx2.AsyncClient
) -> None:
    gate = Gate()
    files.at["/a.png"] = Reply(pieces=(b"x" * 2000, gate), length=10**12)
    with pytest.raises(ImageTooLarge):
        await download(f"{files.origin}/a.png", Bucket(1000), client=client, source=source(files))
    gate.open()


class Detour(DirectTransport):
    """Notes where connections are to go, and leads them all to one local server."""

    def __init__(self, port: int, *, unreachable: Sequence[str] = ()) -> None:
        trusted = ssl.create_default_context(cafile=str(PEM))
        super().__init__(tls=trusted, max_connections=10, max_idle=10)
        self.asked: list[tuple[str, int]] = []
        self._port, self._unreachable = port, unreachable

    async def connect(self, origin: Destination, timeout_s: float | None) -> Any:
        self.asked.append((origin.host, origin.port))
        if origin.host in self._unreachable:
            raise httpx2.ConnectError("unreachable")
        return await super().connect(origin._replace(host="127.0.0.1", port=self._port), timeout_s)


@pytest.fixture
def tls_files() -> Iterator[Files]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(PEM)
    with Files(tls=context) as server:
        yield server


async def test_the_connection_goes_to_the_judged_address_under_the_hosts_own_name(
    tls_files: Files, files: Files
) -> None:
    tls_files.at["/a.png"] = bytes_reply(b"there")
    detour = Detour(tls_files.port, unreachable=["2606:4700::1111"])
    addresses = ["2606:4700::1111", PUBLIC]
    async with httpx2.AsyncClient(transport=detour) as client:
        for _ in range(2):
            found = await fetch(
                f"https://{HOST}/a.png?x=1", files, client, resolve=resolving(*addresses)
            )
            assert found == b"there"
    assert detour.asked == [(address, 443) for address in addresses] * 2
    assert [
        (
            seen.target,
            seen.headers["host"],
            seen.headers["connection"],
            "authorization" in seen.headers,
        )
        for seen in tls_files.requests
    ] == [("/a.png?x=1", HOST, "close", False)] * 2


async def test_a_server_without_the_hosts_certificate_is_not_believed(
    tls_files: Files, files: Files
) -> None:
    async with httpx2.AsyncClient(transport=Detour(tls_files.port)) as client:
        with pytest.raises(ProviderUnavailable, match="could not be read"):
            await fetch("https://replicate.delivery/a.png", files, client)
    assert tls_files.requests == []


async def test_behind_a_proxy_the_name_is_left_to_the_proxy(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Proxy(LocalServer):
        def answer(self, seen: ReceivedRequest) -> Reply:
            return Reply(status=403)

    with Proxy() as proxy:
        monkeypatch.setenv("https_proxy", proxy.origin)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        http = Http()
        with pytest.raises(ProviderUnavailable, match="could not be read"):
            await fetch(
                f"https://{HOST}/a.png", files, http.client(), resolve=resolving("10.0.0.1")
            )
        await http.aclose()
        assert [(s.method, s.target) for s in proxy.requests] == [("CONNECT", f"{HOST}:443")]


@pytest.mark.parametrize("names", ["*", "localhost, *"])
async def test_around_a_proxy_the_address_is_checked(
    names: str, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", names)
    http = Http()
    with pytest.raises(BadProviderImage, match="leads into a private network"):
        await fetch(f"https://{HOST}/a.png", files, http.client(), resolve=resolving("10.0.0.1"))
    await http.aclose()
