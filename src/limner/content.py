"""The items that flow everywhere: text, and pictures by handle; values that carry bytes."""

from __future__ import annotations

from typing import ClassVar

import msgspec


class Text(msgspec.Struct, frozen=True):
    """A piece of text."""

    text: str


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    """A picture that exists: its bytes were decoded in full and are in the blob store.

    The handle is the sha256 of the bytes as received, in hex. It names the picture everywhere;
    the bytes themselves are read from the blob store at the moment they are sent.
    """

    handle: str
    mime: str
    width: int
    height: int
    size_bytes: int


Content = Text | Picture


class Discreet(msgspec.Struct, frozen=True, kw_only=True):
    """A value with something in it that is not for logs: bytes, or a secret.

    Its ``repr`` leaves out the fields that ``unshown`` names.
    """

    unshown: ClassVar[tuple[str, ...]]

    def __repr__(self) -> str:
        shown = (name for name in self.__struct_fields__ if name not in self.unshown)
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{type(self).__name__}({fields})"


def format_bytes(count: int) -> str:
    """A number of bytes for a reader: ``512B``, ``13.4KB``, ``20.0MB``, counted in 1024s."""
    if count < 1024:
        return f"{count}B"
    if count < 1024 * 1024:
        return f"{count / 1024:.1f}KB"
    return f"{count / 1024 / 1024:.1f}MB"
