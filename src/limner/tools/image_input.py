"""A picture in any form that a caller has it -> the stored picture, or the path or handle of one.

`resolve_image` is the only function that reads these forms. No error names the bytes themselves.
"""

from __future__ import annotations

import asyncio
import io
import os
from typing import Any, BinaryIO, Protocol, cast, runtime_checkable

from limner.content import Picture, format_bytes
from limner.errors import CorruptImage, InputInvalid
from limner.pictures.take import Pictures
from limner.storage.blobs import BlobWriter
from limner.tools.handles import names_a_picture
from limner.tools.output_file import GeneratedImage
from limner.wires.incoming_media import parse_data_url

_READ_BYTES = 1 << 20
# A base64 text that was mistaken for a path is not shown at any length.
_MAX_NAME_CHARS = 200
# The first bytes of PNG, JPEG, GIF and WebP in base64.
_BASE64_PICTURES = ("iVBORw0KGgo", "/9j/", "R0lGOD", "UklGR")


@runtime_checkable
class DrawnPicture(Protocol):
    """A picture in memory, as Pillow has them."""

    @property
    def mode(self) -> str:
        """How its pixels are stored."""
        ...

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""
        ...

    def save(self, fp: Any, format: str) -> None:  # noqa: A002 - Pillow's own name for it
        """Write it to a file."""
        ...


ImageInput = (
    str
    | os.PathLike[str]
    | bytes
    | bytearray
    | memoryview
    | BinaryIO
    | Picture
    | GeneratedImage
    | DrawnPicture
)
"""A picture as any call takes it.

A `str` is a path, a handle or a data URL. A `Path` is always a path. The others are bytes, a file
that is open in binary mode, a stored `Picture`, the result of `generate` or `edit`, and a Pillow
image.
"""

WANTED = (
    "a path, a handle, a data URL, bytes, a binary file, a Picture, the result of generate or "
    "edit, or a Pillow image"
)


async def resolve_image(image: ImageInput, *, pictures: Pictures, source: str) -> Picture | str:
    """The stored picture; or, if the caller gave a path or a handle, that text.

    Args:
        image: the picture as the caller has it.
        pictures: stores bytes.
        source: where bytes come from, for the record of the picture.

    Raises:
        TypeError: it is no form of a picture.
        InputInvalid: a data URL is not in base64, a base64 text is no data URL, or a file is not
            open in binary mode.
        ImageError: the bytes are not a picture.
        StorageError: the picture cannot be stored.
    """
    match image:
        case Picture():
            return image
        case GeneratedImage():
            return image.image
        case str():
            if _is_base64_picture(image):
                raise InputInvalid(
                    f"a base64 text of {format_bytes(len(image))} is not a path",
                    hint="Decode it to bytes, or make it a data URL: data:image/png;base64,…",
                )
            if not is_data_url(image):
                return image
            data = parse_data_url(image.strip()).data
        case bytes() | bytearray() | memoryview():
            data = bytes(image)
        case os.PathLike():
            return _path_text(image)
        case DrawnPicture():
            data = await asyncio.to_thread(_saved, image)
        case _ if hasattr(image, "read"):
            return await _take_file(image, pictures=pictures, source=source)
        case _:
            raise TypeError(f"{_type_name(image)} is not a picture: give {WANTED}")
    with pictures.sink() as sink:
        await asyncio.to_thread(sink.write, data)
        return await pictures.take(sink, lineage={"from": source})


def is_data_url(text: str) -> bool:
    """Whether a text is a data URL."""
    return text.lstrip()[:5].lower() == "data:"


def _is_base64_picture(text: str) -> bool:
    """Whether a text is a picture in base64 without the head of a data URL."""
    return len(text) > _MAX_NAME_CHARS and text.startswith(_BASE64_PICTURES)


def describe_image(image: ImageInput) -> str:
    """What a caller gave, in words for an error: never the bytes themselves."""
    match image:
        case bytes() | bytearray() | memoryview():
            return f"the given bytes ({format_bytes(memoryview(image).nbytes)})"
        case str() if is_data_url(image):
            return f"a data URL of {format_bytes(len(image))}"
        case Picture():
            return f"the picture {image.handle}"
        case str() | os.PathLike():
            return repr(os.fspath(image)[:_MAX_NAME_CHARS])
        case _:
            return f"a {_type_name(image)}"


def _path_text(path: os.PathLike[str]) -> str:
    text = os.fspath(path)
    # A `Path` is never a handle, even if its name has only hexadecimal digits.
    return os.path.join(os.curdir, text) if names_a_picture(text) else text  # noqa: PTH118


async def _take_file(file: BinaryIO, *, pictures: Pictures, source: str) -> Picture:
    with pictures.sink() as sink:
        await asyncio.to_thread(_copy, file, sink)
        return await pictures.take(sink, lineage={"from": source})


def _copy(file: BinaryIO, sink: BlobWriter) -> None:
    while part := cast("object", file.read(_READ_BYTES)):
        if not isinstance(part, bytes):
            raise InputInvalid(
                "the picture's file is open as text",
                hint='Open it in binary mode: open(path, "rb")',
            )
        sink.write(part)


def _saved(drawn: DrawnPicture) -> bytes:
    file = io.BytesIO()
    try:
        drawn.save(file, "PNG")
    except (OSError, ValueError) as error:
        raise CorruptImage(f"it cannot be written as PNG: {error}") from error
    return file.getvalue()


def _type_name(value: object) -> str:
    return type(value).__name__
