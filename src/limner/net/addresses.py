"""A host name -> the addresses it may be reached at: none of them inside somebody's network."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


async def resolve(host: str, port: int) -> Sequence[str]:
    """Look a name up, as the system does.

    Raises:
        OSError: there is no such name, or nobody to ask.
    """
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def is_public(address: str) -> bool:
    """Whether an address is one of the open internet, also behind a translation to IPv6."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    inner = _translated(ip)
    if inner is not None:
        return is_public(str(inner))
    # Python counts the retired site-local range (fec0::/10) as global.
    local = isinstance(ip, ipaddress.IPv6Address) and ip.is_site_local
    return ip.is_global and not (local or ip.is_multicast or ip.is_reserved)


def _translated(ip: IPAddress) -> ipaddress.IPv4Address | None:
    """The IPv4 address inside an IPv6 one, which is where a packet would end up."""
    if isinstance(ip, ipaddress.IPv4Address):
        return None
    if ip in _NAT64:
        return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    teredo = ip.teredo[1] if ip.teredo else None
    return ip.ipv4_mapped or ip.sixtofour or teredo
