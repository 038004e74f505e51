"""The pictures of a conversation -> the one that the user means by "it"."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from limner.wires.base import HANDLE_URL

WHOLE_HANDLE_CHARS = 64
_HANDLE = re.compile(r"[0-9a-f]{8,64}")


class AlbumPicture(msgspec.Struct, frozen=True, kw_only=True):
    """A picture of the conversation, as far as it is known.

    Attributes:
        handle: its handle, or the first digits of it.
        path: the file it is in.
        size: width and height in pixels.
        order: the arguments of the call that drew it from words alone.
        provider: who drew it.
        cost_usd: what that cost.
    """

    handle: str | None = None
    path: str | None = None
    size: tuple[int, int] | None = None
    order: Mapping[str, Any] | None = None
    provider: str | None = None
    cost_usd: float | None = None

    @property
    def name(self) -> str:
        """What a person would call it by."""
        return self.path or (self.handle or "")[:12]

    @property
    def source(self) -> str:
        """What a tool that reads files finds it by."""
        return self.path or self.handle or ""

    @property
    def lasting(self) -> str:
        """What a tool that takes handles finds it by, even when the file is overwritten."""
        is_whole = self.handle is not None and len(self.handle) == WHOLE_HANDLE_CHARS
        return self.handle or "" if is_whole else self.source

    def is_same(self, other: AlbumPicture) -> bool:
        """Whether both are one picture, each known in its own way."""
        if self.handle and other.handle:
            return self.handle.startswith(other.handle) or other.handle.startswith(self.handle)
        if self.path is None or other.path is None:
            return False
        # A person says "robot.png" of what a tool calls "/somewhere/robot.png".
        said, known = sorted((self.path, other.path), key=len)
        return known == said or known.endswith("/" + said.removeprefix("./"))

    def joined(self, other: AlbumPicture) -> AlbumPicture:
        """What both know of the same picture."""
        return replace(
            self,
            handle=max(self.handle or "", other.handle or "", key=len) or None,
            path=max(self.path or "", other.path or "", key=len) or None,
            size=other.size or self.size,
            order=self.order or other.order,
            provider=self.provider or other.provider,
            cost_usd=self.cost_usd if other.cost_usd is None else other.cost_usd,
        )


def called(name: str) -> AlbumPicture:
    """The picture of a name in a message: a handle or a path."""
    bare = name.removeprefix(HANDLE_URL)
    if _HANDLE.fullmatch(bare):
        return AlbumPicture(handle=bare)
    return AlbumPicture(path=name.removeprefix("file://"))


class Album(msgspec.Struct, frozen=True, kw_only=True):
    """The pictures of a conversation: in the order they came, and in the order last spoken of."""

    pictures: tuple[AlbumPicture, ...] = ()
    by_mention: tuple[int, ...] = ()

    def with_mentioned(self, pictures: Iterable[AlbumPicture]) -> Album:
        """The album after these were shown or spoken of."""
        known, order = list(self.pictures), list(self.by_mention)
        for picture in pictures:
            at = _place(known, picture)
            if at is None:
                at = len(known)
                known.append(picture)
            else:
                known[at] = known[at].joined(picture)
            order = [number for number in order if number != at] + [at]
        return Album(pictures=tuple(known), by_mention=tuple(order))

    def find(self, picture: AlbumPicture) -> AlbumPicture:
        """All that is known of a picture."""
        at = _place(self.pictures, picture)
        return picture if at is None else self.pictures[at].joined(picture)

    @property
    def newest(self) -> AlbumPicture | None:
        """The one that was last spoken of."""
        return self.pictures[self.by_mention[-1]] if self.by_mention else None

    def newest_two(self) -> tuple[AlbumPicture, ...]:
        """The last two, in the order they came; fewer if there are no two."""
        return tuple(self.pictures[number] for number in sorted(self.by_mention[-2:]))

    def at(self, number: int) -> AlbumPicture | None:
        """By its place, from 0, or from the end if that is negative."""
        is_there = -len(self.pictures) <= number < len(self.pictures)
        return self.pictures[number] if is_there else None


def _place(known: Sequence[AlbumPicture], picture: AlbumPicture) -> int | None:
    """Where a picture is; of two files with one name the later one is meant."""
    numbers = reversed(range(len(known)))
    return next((number for number in numbers if known[number].is_same(picture)), None)
