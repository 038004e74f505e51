"""The tool `image_recall`: the handle of a picture in, the picture itself back in sight."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

from limner.content import Picture
from limner.errors import InputInvalid, StorageError
from limner.pictures.take import Pictures
from limner.storage.blobs import is_handle
from limner.tools.base import Outcome, Tool, ToolContext
from limner.wires.base import HANDLE_URL

TOOL = "image_recall"
MIN_PREFIX_CHARS = 8
MAX_RESULT_CHARS = 1_000

DESCRIPTION = (
    "Look again at a picture from earlier in this conversation. Where a picture is no longer sent, "
    "a note like [picture 3f2a91bc04de: …] stands in its place: give what names it there, and the "
    "picture comes back. It costs as much as any picture, so ask only for what you need to see."
)

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "handle": {
            "type": "string",
            "description": "The picture's handle, or at least the first 8 digits of it.",
        },
    },
    "required": ["handle"],
}

KnownHandles = Callable[[str | None], Awaitable[Collection[str]]]
"""The handles that a session knows, by its id; None is a call outside of any session."""


def image_recall(pictures: Pictures, *, known: KnownHandles) -> Tool:
    """The tool, finding pictures among ``pictures``.

    A whole handle is the picture's sha256: who can name it has seen it, so it is found wherever
    it was taken in. A few digits could be guessed, and are looked up only in the call's session.
    """

    async def run(arguments: Mapping[str, Any], context: ToolContext) -> Outcome:
        name = arguments["handle"].strip().removeprefix(HANDLE_URL).lower()
        if not is_handle(name):
            name = _whole(name, await known(context.session_id))
        picture = await pictures.recall(name)
        untrusted = not await pictures.drawn_here([picture.handle])
        return Outcome(value=as_value(picture), content=(picture,), untrusted=untrusted)

    return Tool(
        name=TOOL,
        description=DESCRIPTION,
        schema=SCHEMA,
        run=run,
        toolset="image",
        max_result_chars=MAX_RESULT_CHARS,
    )


def as_value(picture: Picture) -> dict[str, Any]:
    """What a tool says about a picture that it gives back."""
    return {
        "image": picture.handle,
        "mime": picture.mime,
        "dimensions": {"width": picture.width, "height": picture.height},
    }


def _whole(prefix: str, handles: Collection[str]) -> str:
    if len(prefix) < MIN_PREFIX_CHARS or set(prefix) - set("0123456789abcdef"):
        raise InputInvalid(
            f"{prefix[:80]!r} is not a picture handle",
            field="handle",
            hint=f"Give at least the first {MIN_PREFIX_CHARS} of its hexadecimal digits.",
        )
    found = [handle for handle in handles if handle.startswith(prefix)]
    if not found:
        raise StorageError(
            f"this conversation has no picture {prefix[:80]!r}", code="NO_SUCH_PICTURE"
        )
    if len(found) > 1:
        raise InputInvalid(
            f"{len(found)} pictures of this conversation begin with {prefix!r}",
            field="handle",
            hint="Give more digits.",
        )
    return found[0]
