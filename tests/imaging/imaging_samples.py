"""Pictures and processes that the imaging tests share."""

from __future__ import annotations

import asyncio
import os
import struct
import time
import zlib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image


def encoded(image: Image.Image, kind: str, **options: Any) -> bytes:
    out = BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def decoded(data: bytes) -> Image.Image:
    image = Image.open(BytesIO(data))
    image.load()
    return image


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(width: int, height: int, *extra: bytes, pixels: bytes = bytes(64)) -> bytes:
    """A PNG with a true header for 8-bit grey, whatever the pixels are."""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    body = chunk(b"IDAT", zlib.compress(pixels))
    return b"\x89PNG\r\n\x1a\n" + header + b"".join(extra) + body + chunk(b"IEND", b"")


SMALL_PNG = encoded(Image.new("RGB", (3, 2), "red"), "PNG")


def worker_pids(host: int | None = None) -> set[int]:
    """The imaging workers of a process (this one by default), as the system sees them."""
    found: set[int] = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if parent == (host or os.getpid()) and b".worker" in command:
            found.add(int(folder.name))
    return found


def is_stopped(pid: int) -> bool:
    """Whether a stop signal has taken effect, which it does in its own time."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def unread_job_bytes(pid: int) -> int:
    """How much lies in the pipe that a worker reads its jobs from."""
    import fcntl
    import termios

    with Path(f"/proc/{pid}/fd/0").open("rb", buffering=0) as jobs:
        return struct.unpack("i", fcntl.ioctl(jobs, termios.FIONREAD, bytes(4)))[0]


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that another process or thread is about to do."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        await asyncio.sleep(0.001)
