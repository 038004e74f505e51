"""``limner://image/<handle>`` -> the bytes of a picture of this home, full size or scaled."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from limner.base64_text import encode_base64
from limner.content import Picture
from limner.errors import LimnerError
from limner.imaging.fit import FitRequest
from limner.net.jsonrpc import INVALID_PARAMS, RpcError
from limner.pictures.take import Pictures
from limner.wires.base import HANDLE_URL

MAX_WIDTH = 8192
MAX_BYTES = 16_000_000
# Each picture has one URI, and no part of it can escape into a path.
_ADDRESS = re.compile(re.escape(HANDLE_URL) + r"([0-9a-f]{64})(?:\?width=([1-9][0-9]{0,3}))?")


TEMPLATES: Sequence[Mapping[str, Any]] = (
    {
        "uriTemplate": f"{HANDLE_URL}{{handle}}",
        "name": "picture",
        "title": "A picture, as it was received",
        "description": "The handle is in the result of the tool that made or found the picture.",
    },
    {
        "uriTemplate": f"{HANDLE_URL}{{handle}}{{?width}}",
        "name": "picture-of-width",
        "title": "A picture, at most that many pixels wide",
    },
)


class _PictureUri(NamedTuple):
    handle: str
    width: int | None


def handle_of(uri: str) -> str:
    """The handle in the URI of a picture.

    Raises:
        RpcError: it is not the URI of a picture.
    """
    return _parse(uri).handle


async def read(uri: str, pictures: Pictures) -> dict[str, Any]:
    """Read the picture of a URI.

    Raises:
        RpcError: it is not the URI of a picture, or this home has no such picture.
    """
    parsed = _parse(uri)
    try:
        picture = await pictures.recall(parsed.handle)
        mime, data = await _loaded(picture, parsed.width, pictures)
    except LimnerError as error:
        raise _not_found(uri) from error
    return {"contents": [{"uri": uri, "mimeType": mime, "blob": encode_base64(data)}]}


async def _loaded(picture: Picture, width: int | None, pictures: Pictures) -> tuple[str, bytes]:
    if width is None or width >= picture.width:
        return picture.mime, await pictures.original(picture)
    # The URI limits only the width: the height is not limited.
    height = max(picture.height, width)
    request = FitRequest(mode="fast", max_width=width, max_height=height, max_bytes=MAX_BYTES)
    fitted, data = await pictures.give(picture, request)
    return fitted.mime, data


def _parse(uri: str) -> _PictureUri:
    found = _ADDRESS.fullmatch(uri)
    width = None if found is None or found[2] is None else int(found[2])
    if found is None or (width is not None and width > MAX_WIDTH):
        raise _not_found(uri)
    return _PictureUri(found[1], width)


def _not_found(uri: str) -> RpcError:
    return RpcError(INVALID_PARAMS, "There is no such picture.", {"uri": uri[:200]})
