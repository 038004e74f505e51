"""Messages <-> a pipe: a small JSON header and raw bytes, each with its length in front."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from typing import IO, Any, Protocol

# The exit status of a worker if a job does not fit into its memory.
EXIT_OUT_OF_MEMORY = 70

_LENGTHS = struct.Struct(">IQ")
_LENGTH = struct.Struct(">Q")
_MAX_HEADER_BYTES = 64 << 10


class OpenFile(Protocol):
    """A payload that is a file: its bytes need not be in memory."""

    size_bytes: int

    def send_to(self, pipe: int, /) -> None:
        """Write all bytes to a pipe.

        Raises:
            BrokenPipeError: its reader is gone.
            LimnerError: the bytes cannot be read.
        """
        ...


def send(stream: IO[bytes], header: Mapping[str, Any], payload: bytes | OpenFile = b"") -> None:
    """Write one message and flush it."""
    head = json.dumps(header).encode()
    size_bytes = len(payload) if isinstance(payload, bytes) else payload.size_bytes
    stream.write(_LENGTHS.pack(len(head), size_bytes) + head)
    if isinstance(payload, bytes):
        stream.write(payload)
        stream.flush()
    else:
        stream.flush()
        payload.send_to(stream.fileno())


def receive(stream: IO[bytes], *, max_payload_bytes: int) -> tuple[bytes, bytes]:
    """Read one message: the header, still JSON, and the payload.

    Raises:
        EOFError: the other side is gone.
        OverflowError: it announces more bytes than allowed; the rest of the pipe is unusable.
    """
    header_bytes, payload_bytes = _LENGTHS.unpack(_read_exactly(stream, _LENGTHS.size))
    if header_bytes > _MAX_HEADER_BYTES or payload_bytes > max_payload_bytes:
        raise OverflowError("a message is longer than allowed")
    return _read_exactly(stream, header_bytes), _read_exactly(stream, payload_bytes)


def join(parts: Sequence[bytes]) -> bytes:
    """Several payloads as one; `split` is the inverse."""
    lengths = b"".join(_LENGTH.pack(len(part)) for part in parts)
    return b"".join((_LENGTH.pack(len(parts)), lengths, *parts))


def split(payload: bytes) -> list[bytes]:
    """The payloads that `join` made one of."""
    (count,) = _LENGTH.unpack_from(payload)
    at = _LENGTH.size * (count + 1)
    parts: list[bytes] = []
    for number in range(count):
        (length,) = _LENGTH.unpack_from(payload, _LENGTH.size * (number + 1))
        parts.append(payload[at : at + length])
        at += length
    return parts


def subject(job: Mapping[str, Any]) -> str:
    """What an error about a job calls its payload; most jobs are about a picture."""
    return job.get("subject", "the picture")


def _read_exactly(stream: IO[bytes], size: int) -> bytes:
    data = stream.read(size)
    if len(data) != size:
        raise EOFError("the pipe closed within a message")
    return data
