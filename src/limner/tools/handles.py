"""A handle, or its first digits -> the picture."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection

import msgspec

from limner.content import Picture
from limner.errors import InputInvalid
from limner.pictures.take import Pictures
from limner.storage.blobs import is_handle
from limner.wires.base import HANDLE_URL

MIN_PREFIX_CHARS = 8
_PREFIX = re.compile(rf"[0-9a-f]{{{MIN_PREFIX_CHARS},64}}")

KnownHandles = Callable[[str | None], Awaitable[Collection[str]]]
"""The handles that a session knows, by its id; None is a call outside of any session."""


def names_a_picture(name: str) -> bool:
    """Whether a text is a handle, or the beginning of one."""
    return _PREFIX.fullmatch(_digits(name)) is not None


class Handles(msgspec.Struct, frozen=True, kw_only=True):
    """Finds pictures by their handles.

    A whole handle is the picture's sha256: who can name it has seen it, so it is found wherever
    it was taken in. A few digits can be guessed: they are looked up only in the call's session.
    """

    pictures: Pictures
    known: KnownHandles

    async def find(self, name: str, *, session_id: str | None) -> Picture | None:
        """The picture of a handle or of its first digits; None if the text is neither.

        Raises:
            InputInvalid: several pictures of the session begin with these digits.
            StorageError: there is no picture with this handle.
        """
        digits = _digits(name)
        if is_handle(digits):
            return await self.pictures.recall(digits)
        if not names_a_picture(name):
            return None
        found = [one for one in await self.known(session_id) if one.startswith(digits)]
        if len(found) > 1:
            raise InputInvalid(
                f"{len(found)} pictures of this conversation begin with {digits!r}",
                field="handle",
                hint="Give more digits.",
            )
        return await self.pictures.recall(found[0]) if found else None


def _digits(name: str) -> str:
    return name.strip().removeprefix(HANDLE_URL).lower()
