"""What others send as pictures -> bytes that nobody has looked at yet, or why there are none."""

from __future__ import annotations

import binascii

import msgspec

from limner.content import Discreet
from limner.errors import InputInvalid

# Of a data URL's beginning, more than any type and its parameters need.
_MAX_HEAD_CHARS = 200


class RawPicture(Discreet, frozen=True, kw_only=True):
    """Bytes that somebody says are a picture, and the type they say it has."""

    unshown = ("data",)

    data: bytes
    mime: str


class RawAudio(Discreet, frozen=True, kw_only=True):
    """A sound, as a data URL; limner only passes it on."""

    unshown = ("url",)

    url: str


class Omitted(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is not taken in, and why."""

    why: str

    @property
    def text(self) -> str:
        """The words that stand for it."""
        return f"[not shown: {self.why}]"


Incoming = str | RawPicture | RawAudio | Omitted


def from_base64(text: str, *, mime: str) -> RawPicture:
    """The bytes of a picture in base64.

    Raises:
        InputInvalid: it is no base64 that can be read; what can is looked at later anyway.
    """
    try:
        return RawPicture(data=binascii.a2b_base64(text), mime=mime)
    except ValueError as problem:
        raise InputInvalid("A picture is not in base64", field="image_url") from problem


def from_data_url(url: str) -> RawPicture:
    """The bytes of a picture in a data URL.

    Raises:
        InputInvalid: it is another address, which is never followed, or no base64.
    """
    head, comma, packed = url.partition(",")
    scheme, _, kind = head[:_MAX_HEAD_CHARS].partition(":")
    if scheme.lower() != "data" or not comma:
        raise InputInvalid(
            f"A picture must come as a data URL, not as {url[:80]!r}",
            field="image_url",
            hint="Addresses of pictures are not followed: send data:image/png;base64,…",
        )
    mime, *parameters = (word.strip().lower() for word in kind.split(";"))
    if "base64" not in parameters:
        raise InputInvalid("A picture's data URL must be in base64", field="image_url")
    return from_base64(packed, mime=mime)


def picture_of(url: str) -> RawPicture | Omitted:
    """The picture in a data URL, or why there is none: what is beside it must not suffer."""
    try:
        return from_data_url(url)
    except InputInvalid as problem:
        return Omitted(why=problem.message)
