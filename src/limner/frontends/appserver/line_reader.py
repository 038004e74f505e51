"""Chunks of a stream -> its lines, each in one piece; of a line that is too long, its beginning."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

HEAD_BYTES = 4096


class Oversized(msgspec.Struct, frozen=True):
    """The beginning of a line that was longer than allowed; the rest was not kept."""

    head: bytes


Line: TypeAlias = bytes | bytearray | Oversized


class Lines:
    """Takes a stream apart at its newlines, and never holds more than the longest line."""

    def __init__(self, *, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._head_bytes = min(HEAD_BYTES, max_bytes)
        self._partial = bytearray()
        self._skipping: Oversized | None = None

    def feed(self, chunk: bytes) -> list[Line]:
        """The lines that end in this chunk; blank ones are left out."""
        first, *others = chunk.split(b"\n")
        if not others:
            self._extend(first)
            return []
        *whole, last = others
        lines = self._finish(first)
        for line in whole:
            lines += self._kept(line)
        self._extend(last)
        return lines

    def end(self) -> list[Line]:
        """The line that the end of the stream ends."""
        return self._finish(b"")

    def _finish(self, rest: bytes) -> list[Line]:
        if not self._partial and self._skipping is None:
            return self._kept(rest)
        self._extend(rest)
        # A new one, since views of the line outlive this call.
        line, self._partial = self._partial, bytearray()
        skipped, self._skipping = self._skipping, None
        return self._kept(line) if skipped is None else [skipped]

    def _extend(self, part: bytes) -> None:
        if self._skipping is not None:
            return
        if len(self._partial) + len(part) > self._max_bytes:
            head = bytes(self._partial[: self._head_bytes]) + part[: self._head_bytes]
            self._skipping = Oversized(head[: self._head_bytes])
            self._partial = bytearray()
        else:
            self._partial += part

    def _kept(self, line: bytes | bytearray) -> list[Line]:
        if len(line) > self._max_bytes:
            return [Oversized(bytes(line[: self._head_bytes]))]
        return [line] if line and not line.isspace() else []
