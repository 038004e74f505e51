"""Pictures and audio of other protocols -> unchecked bytes, or why there are none."""

from __future__ import annotations

import binascii

import msgspec

from limner.content import Discreet
from limner.errors import InputInvalid

# The type and parameters of a data URL are shorter than this.
_MAX_HEAD_CHARS = 200


class RawPicture(Discreet, frozen=True, kw_only=True):
    """Bytes that a sender calls a picture, and the type that it states; both unchecked."""

    unshown = ("data",)

    data: bytes
    mime: str


class RawAudio(Discreet, frozen=True, kw_only=True):
    """An audio clip, as a data URL; limner only passes it on."""

    unshown = ("url",)

    url: str


class Omitted(msgspec.Struct, frozen=True, kw_only=True):
    """Content that is not taken in, and why."""

    why: str

    @property
    def text(self) -> str:
        """The note that replaces it."""
        return f"[not shown: {self.why}]"


Incoming = str | RawPicture | RawAudio | Omitted


def decode_picture(text: str, *, mime: str) -> RawPicture:
    """The bytes of a picture in base64; they are checked later.

    Raises:
        InputInvalid: it is not base64.
    """
    try:
        return RawPicture(data=binascii.a2b_base64(text), mime=mime)
    except ValueError as problem:
        raise InputInvalid("A picture is not in base64", field="image_url") from problem


def parse_data_url(url: str) -> RawPicture:
    """The bytes of a picture in a data URL.

    Raises:
        InputInvalid: it is another kind of URL, which is never followed, or not base64.
    """
    head, comma, packed = url.partition(",")
    scheme, _, kind = head[:_MAX_HEAD_CHARS].partition(":")
    if scheme.lower() != "data" or not comma:
        raise InputInvalid(
            f"A picture must come as a data URL, not as {url[:80]!r}",
            field="image_url",
            hint="URLs of pictures are not followed: send data:image/png;base64,…",
        )
    mime, *parameters = (word.strip().lower() for word in kind.split(";"))
    if "base64" not in parameters:
        raise InputInvalid("A picture's data URL must be in base64", field="image_url")
    return decode_picture(packed, mime=mime)


def parse_picture(url: str) -> RawPicture | Omitted:
    """The picture in a data URL, or why there is none; the rest of the message stays valid."""
    try:
        return parse_data_url(url)
    except InputInvalid as problem:
        return Omitted(why=problem.message)
