"""The tool `image_recall`: the handle of a picture in, the picture itself back in sight."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from limner.content import Picture
from limner.errors import InputInvalid, LimnerError, NotFound
from limner.pictures.take import Pictures
from limner.tools.base import Outcome, Tool, ToolContext, ToolHints
from limner.tools.built_in import ToolParts
from limner.tools.declaration import Dimensions, Handle, ToolDeclaration
from limner.tools.handles import MIN_PREFIX_CHARS, Handles, names_a_picture

READS = ToolHints(read_only=True, destructive=False, idempotent=True, open_world=False)


class RecallArguments(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of `image_recall`."""

    handle: Annotated[
        str, Meta(description="The picture's handle, or at least the first 8 digits of it.")
    ]


class RecallAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool says about a picture that it gives back."""

    image: Handle
    mime: str
    dimensions: Dimensions


IMAGE_RECALL = ToolDeclaration(
    name="image_recall",
    title="Look at a picture again",
    description="Look again at a picture from earlier in this conversation. If a picture is no "
    "longer sent, a note like [picture 3f2a91bc04de: …] is in its place: give what names it there, "
    "and the picture comes back. It costs as much as any picture, so ask only for what you need to "
    "see.",
    arguments=RecallArguments,
    answer=RecallAnswer,
    hints=READS,
    max_result_chars=1_000,
    in_conversation=True,
)


def build(parts: ToolParts) -> Tool:
    """Build the tool."""
    return image_recall(parts.pictures, handles=parts.handles)


def image_recall(pictures: Pictures, *, handles: Handles) -> Tool:
    """The tool, which finds pictures by ``handles``."""

    async def run(arguments: RecallArguments, context: ToolContext) -> Outcome:
        picture = await handles.find(arguments.handle, session_id=context.session_id)
        if picture is None:
            raise _no_picture(arguments.handle)
        untrusted = not await pictures.drawn_here([picture.handle])
        return Outcome(value=as_value(picture), content=(picture,), untrusted=untrusted)

    return IMAGE_RECALL.tool(run)


def as_value(picture: Picture) -> dict[str, Any]:
    """What a tool says about a picture that it gives back."""
    answer = RecallAnswer(
        image=picture.handle,
        mime=picture.mime,
        dimensions=Dimensions(width=picture.width, height=picture.height),
    )
    return msgspec.to_builtins(answer)


def _no_picture(name: str) -> LimnerError:
    if names_a_picture(name):
        return NotFound(f"this conversation has no picture {name[:80]!r}", code="NO_SUCH_PICTURE")
    return InputInvalid(
        f"{name[:80]!r} is not a picture handle",
        field="handle",
        hint=f"Give at least the first {MIN_PREFIX_CHARS} of its hexadecimal digits.",
    )
