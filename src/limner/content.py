"""The content that every layer passes on: text, and pictures by handle."""

from __future__ import annotations

from typing import ClassVar

import msgspec


class Text(msgspec.Struct, frozen=True):
    """A piece of text."""

    text: str


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    """A stored picture: a worker has decoded all of it, and its bytes are in the blob store.

    The handle is the sha256 of the bytes as received, in hex. It names the picture everywhere. The
    bytes are loaded from the blob store only when they are sent.
    """

    handle: str
    mime: str
    width: int
    height: int
    size_bytes: int


Content = Text | Picture


class Discreet(msgspec.Struct, frozen=True, kw_only=True):
    """A value with bytes or a secret that must not appear in logs.

    Its ``repr`` leaves out the fields that ``unshown`` names.
    """

    unshown: ClassVar[tuple[str, ...]]

    def __repr__(self) -> str:
        shown = (name for name in self.__struct_fields__ if name not in self.unshown)
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{type(self).__name__}({fields})"


def format_bytes(count: int) -> str:
    """A number of bytes for people: ``512B``, ``13.4KB``, ``20.0MB``; 1KB is 1024 bytes."""
    if count < 1024:
        return f"{count}B"
    if count < 1024 * 1024:
        return f"{count / 1024:.1f}KB"
    return f"{count / 1024 / 1024:.1f}MB"
