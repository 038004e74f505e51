"""A web socket -> what is said on it, where the optional library for that is installed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from importlib.util import find_spec

MAX_MESSAGE_BYTES = 16 * 1024 * 1024
OPEN_TIMEOUT_S = 10.0


def can_listen() -> bool:
    """Whether the library is there; `pip install limner[comfyui]` brings it."""
    return find_spec("websockets") is not None


async def listen(url: str, hear: Callable[[str | bytes], None], headers: Mapping[str, str]) -> None:
    """Hand over each message until the other side ends or fails; nothing is raised for that.

    What comes over a socket here is news about work whose end is asked for elsewhere, so losing
    it loses nothing.
    """
    # Here, since the library is an extra and takes its time to load.
    from websockets.asyncio.client import connect  # noqa: PLC0415
    from websockets.exceptions import WebSocketException  # noqa: PLC0415

    with contextlib.suppress(OSError, TimeoutError, WebSocketException):
        async with connect(
            url,
            additional_headers=headers,
            open_timeout=OPEN_TIMEOUT_S,
            max_size=MAX_MESSAGE_BYTES,
            # Neither side gains by packing pictures, and unpacking would only cost trust.
            compression=None,
        ) as socket:
            async for message in socket:
                hear(message)
