"""The name of a client -> the form of results that its model can use.

A client gives its name in `initialize`, or with each request. A client without a row gets what
every client can use.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from limner.settings.values import PictureForm

# Every model service and every local runner decodes these. Not every local runner decodes WebP.
COMMON = ("image/png", "image/jpeg")
WITH_WEBP = (*COMMON, "image/webp")


class ClientQuirks(msgspec.Struct, frozen=True, kw_only=True):
    """How a client treats results.

    Attributes:
        formats: the types of pictures that its models take.
        pictures: inline, or the path of the file, or none.
        to_show: what a model has to do so that it sees the picture of a result.
    """

    formats: tuple[str, ...] = COMMON
    pictures: PictureForm = "inline"
    to_show: str = ""


KNOWN: Mapping[str, ClientQuirks] = {
    "claude-ai": ClientQuirks(formats=WITH_WEBP),
    "claude-code": ClientQuirks(formats=WITH_WEBP),
    # In its code mode a model sees only what its program shows.
    "codex-mcp-client": ClientQuirks(
        formats=WITH_WEBP,
        to_show="From code, show the picture with image(result.content[1]).",
    ),
    "gemini-cli-mcp-client": ClientQuirks(formats=WITH_WEBP),
    "opencode": ClientQuirks(formats=WITH_WEBP),
}
_UNKNOWN = ClientQuirks()


def quirks_of(name: str) -> ClientQuirks:
    """The quirks of a client; some add the name of the server to their own."""
    known = (quirks for client, quirks in KNOWN.items() if name.startswith(client))
    return next(known, _UNKNOWN)
