"""The tool `image_recall`: the handle of a picture in, the picture itself back in sight."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from limner.content import Picture
from limner.errors import InputInvalid, LimnerError, StorageError
from limner.pictures.take import Pictures
from limner.tools.base import Outcome, Tool, ToolContext
from limner.tools.handles import MIN_PREFIX_CHARS, Handles, names_a_picture

TOOL = "image_recall"
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


def image_recall(pictures: Pictures, *, handles: Handles) -> Tool:
    """The tool, finding pictures by ``handles``."""

    async def run(arguments: Mapping[str, Any], context: ToolContext) -> Outcome:
        name: str = arguments["handle"]
        picture = await handles.find(name, session_id=context.session_id)
        if picture is None:
            raise _no_picture(name)
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


def _no_picture(name: str) -> LimnerError:
    if names_a_picture(name):
        return StorageError(
            f"this conversation has no picture {name[:80]!r}", code="NO_SUCH_PICTURE"
        )
    return InputInvalid(
        f"{name[:80]!r} is not a picture handle",
        field="handle",
        hint=f"Give at least the first {MIN_PREFIX_CHARS} of its hexadecimal digits.",
    )
