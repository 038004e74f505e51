"""A picture's URL -> its bytes in a sink, only from the service's hosts and public addresses."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from urllib.request import getproxies, proxy_bypass

import httpx2
import msgspec

from limner.errors import BadProviderImage, ProviderUnavailable
from limner.net.sink import Sink

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


async def resolve(host: str, port: int) -> Sequence[str]:
    """Resolve a host name with the system's resolver.

    Raises:
        OSError: the name does not exist, or the resolver cannot be reached.
        UnicodeError: a part of the name is empty or too long.
    """
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def is_public(address: str) -> bool:
    """Whether an IP address is public; an IPv4 address inside an IPv6 one counts as itself."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    inner = _embedded_ipv4(ip)
    if inner is not None:
        return is_public(str(inner))
    # Python treats the deprecated site-local range (fec0::/10) as global.
    is_site_local = isinstance(ip, ipaddress.IPv6Address) and ip.is_site_local
    return ip.is_global and not (is_site_local or ip.is_multicast or ip.is_reserved)


def _embedded_ipv4(ip: IPAddress) -> ipaddress.IPv4Address | None:
    """The IPv4 address inside an IPv6 one, which would get the packets."""
    if isinstance(ip, ipaddress.IPv4Address):
        return None
    if ip in _NAT64:
        return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    teredo = ip.teredo[1] if ip.teredo else None
    return ip.ipv4_mapped or ip.sixtofour or teredo


MAX_REDIRECTS = 5
TOTAL_TIMEOUT_S = 300.0
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class DownloadSource(msgspec.Struct, frozen=True, kw_only=True):
    """The hosts that a service's pictures may come from.

    ``hosts`` are exact names, or ``*.name`` for a name and its subdomains. ``headers`` contain the
    credentials; they are sent only to the origin of the base URL.
    """

    base_url: str
    hosts: Collection[str]
    headers: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    resolve: Resolve = resolve

    def is_own_origin(self, url: httpx2.URL) -> bool:
        """Whether a URL is at the origin that the user configured."""
        return url.origin == httpx2.URL(self.base_url).origin

    def is_own_host(self, url: httpx2.URL) -> bool:
        """Whether a URL is at the host that the user configured, on any port."""
        return url.host == httpx2.URL(self.base_url).host

    def allows(self, host: str) -> bool:
        """Whether the service is known to use this host for pictures."""
        return any(
            host == name.removeprefix("*.")
            or (name.startswith("*.") and host.endswith(name.removeprefix("*")))
            for name in self.hosts
        )


async def download(
    url: str, sink: Sink, *, client: httpx2.AsyncClient, source: DownloadSource
) -> None:
    """Download a URL into a sink.

    Raises:
        BadProviderImage: the URL is not allowed, or nothing is there.
        ProviderUnavailable: the connection failed; the picture is already paid for.
    """
    try:
        async with (
            asyncio.timeout(TOTAL_TIMEOUT_S),
            _open(url, client=client, source=source) as response,
            aclosing(response.aiter_bytes()) as chunks,
        ):
            async for chunk in chunks:
                sink.write(chunk)
    except httpx2.InvalidURL as error:  # a name that no request can be made for
        raise _refused("is not a URL") from error
    except (httpx2.RequestError, TimeoutError) as error:
        raise _unreachable(f"could not be read ({type(error).__name__})") from error


@asynccontextmanager
async def _open(
    url: str, *, client: httpx2.AsyncClient, source: DownloadSource
) -> AsyncGenerator[httpx2.Response]:
    """The response after all redirects; each URL is checked like the first one."""
    target = _parse(url)
    for _ in range(MAX_REDIRECTS + 1):
        _check(target, source)
        response = await _get(target, client=client, source=source)
        try:
            if response.status_code not in _REDIRECTS:
                yield _check_status(response)
                return
            target = _parse(response.headers.get("Location", ""), base=target)
        finally:
            await response.aclose()
    raise _refused(f"redirects more than {MAX_REDIRECTS} times")


def _parse(url: str, *, base: httpx2.URL | None = None) -> httpx2.URL:
    """A web address; ``base`` is the address that redirects to it."""
    try:
        # `join` cannot parse some addresses that have a scheme and no host, as of data.
        parsed = httpx2.URL(url) if base is None else base.join(url)
    except httpx2.InvalidURL:
        raise _refused("is not a URL") from None
    if parsed.scheme not in ("http", "https") or not parsed.host or (parsed.port or 0) > 65535:
        raise _refused("is not a web address")
    return parsed


def _check(url: httpx2.URL, source: DownloadSource) -> None:
    if url.userinfo:
        raise _refused("contains a user name")
    if url.scheme != "https" and not source.is_own_origin(url):
        raise _refused("is not an https address")
    if not source.is_own_host(url) and not source.allows(url.host):
        raise _refused(f"is at {url.host[:100]!r}, which is not a host of this service")


async def _get(
    url: httpx2.URL, *, client: httpx2.AsyncClient, source: DownloadSource
) -> httpx2.Response:
    if source.is_own_host(url) or _is_proxied(url):
        # A proxy resolves names itself, in its own network.
        headers = source.headers if source.is_own_origin(url) else None
        return await client.send(client.build_request("GET", url, headers=headers), stream=True)
    try:
        addresses = await source.resolve(url.host, url.port or 443)
    except (OSError, UnicodeError) as error:  # a name with an empty part
        raise _unreachable(
            f"has a host name that cannot be resolved ({url.host[:100]!r})"
        ) from error
    if not addresses or not all(map(is_public, addresses)):
        raise _refused(f"is at {url.host[:100]!r}, which leads into a private network")
    return await _get_at(url, addresses, client)


async def _get_at(
    url: httpx2.URL, addresses: Collection[str], client: httpx2.AsyncClient
) -> httpx2.Response:
    """Connect to the first checked address that answers; TLS verifies the host name."""
    failure: httpx2.TransportError | None = None
    for address in addresses:
        request = client.build_request(
            "GET",
            url.copy_with(host=address),
            # The pool finds connections by IP address: do not reuse this one for another name.
            headers={"Host": url.netloc.decode("ascii"), "Connection": "close"},
            extensions={"sni_hostname": url.host},
        )
        try:
            return await client.send(request, stream=True)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            failure = error
    assert failure is not None
    raise failure


def _is_proxied(url: httpx2.URL) -> bool:
    proxies = getproxies()
    # httpx2 goes around the proxy for an asterisk among other names, `proxy_bypass` only for one
    # alone.
    direct = {name.strip() for name in proxies.get("no", "").split(",")}
    return (
        ("https" in proxies or "all" in proxies)
        and "*" not in direct
        and not proxy_bypass(url.host)
    )


def _check_status(response: httpx2.Response) -> httpx2.Response:
    status = response.status_code
    if status >= 500 or status in (408, 429):
        raise _unreachable(f"answered {status}")
    if status != 200:
        raise _refused(f"answered {status}; it may have expired")
    return response


def _refused(why: str) -> BadProviderImage:
    return BadProviderImage(f"The service's picture was not fetched: its address {why}")


def _unreachable(why: str) -> ProviderUnavailable:
    return ProviderUnavailable(
        f"The picture was drawn, but its address {why}; it may be billed",
        may_be_billed=True,
        # A second request would be charged again.
        retryable=False,
    )
