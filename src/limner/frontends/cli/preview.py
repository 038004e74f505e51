"""A picture -> what the terminal can show: the picture itself, or coloured half blocks."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Literal, NamedTuple

from limner.client import Limner
from limner.content import Picture
from limner.errors import ImageError
from limner.frontends.cli.stderr import CLEAR_LINE, is_live, say, write
from limner.frontends.cli.stderr import size as terminal_size
from limner.frontends.cli.terminal import Waiting
from limner.pictures.request import Progress

Protocol = Literal["kitty", "iterm", "blocks"]

MAX_COLUMNS = 60
MAX_ROWS = 24
KITTY_CHUNK = 4096


class CellBox(NamedTuple):
    """The cells a picture may take; a cell is about twice as high as wide."""

    columns: int
    rows: int


def shows_pictures() -> bool:
    """Whether the terminal shows real pictures, so that one is shown without --show."""
    return is_live() and _protocol() != "blocks"


def can_show() -> bool:
    """Whether the terminal shows pictures in some way, and the user wants colours."""
    return is_live() and (_protocol() != "blocks" or not os.environ.get("NO_COLOR"))


async def show(picture: Picture, lim: Limner, *, max_rows: int = MAX_ROWS) -> None:
    """Show a stored picture on standard error, beside the result on standard output."""
    size = (picture.width, picture.height)
    data = await lim.pictures.original(picture)
    await show_bytes(data, mime=picture.mime, size=size, lim=lim, max_rows=max_rows)


async def show_bytes(
    data: bytes, *, mime: str, size: tuple[int, int], lim: Limner, max_rows: int = MAX_ROWS
) -> None:
    """The same for a picture that decodes, stored or not."""
    if not can_show():
        why = "NO_COLOR is set" if is_live() else "standard error is not a terminal that can"
        say(f"The picture is not shown: {why}.")
        return
    terminal = terminal_size()
    # Two lines are left for the path and the prompt that follows it.
    box = CellBox(min(terminal.columns, MAX_COLUMNS), min(max(terminal.lines - 2, 1), max_rows))
    match _protocol():
        case "kitty":
            png = data if mime == "image/png" else await lim.imaging.convert(data)
            write("".join(_kitty(png, size, box)) + "\n")
        case "iterm":
            write(_iterm(data, box) + "\n")
        case "blocks":
            preview = await lim.imaging.preview(data, columns=box.columns, rows=2 * box.rows)
            for line in _half_blocks(preview.rgb, preview.width, preview.height):
                write(line + "\n")


@asynccontextmanager
async def showing_partial_pictures(
    waiting: Waiting, lim: Limner
) -> AsyncGenerator[Callable[[Progress], None]]:
    """Yields a function that reports progress, and shows unfinished pictures at a terminal."""
    showing: set[asyncio.Task[None]] = set()

    async def show_one(data: bytes) -> None:
        with suppress(ImageError):  # as untrusted as the finished one
            facts = await lim.imaging.verify(data)
            write(CLEAR_LINE)
            await show_bytes(data, mime=facts.mime, size=(facts.width, facts.height), lim=lim)

    def progress(news: Progress) -> None:
        waiting.progress(news)
        if news.picture is not None and is_live():
            showing.add(asyncio.create_task(show_one(news.picture)))

    try:
        yield progress
    finally:
        for task in showing:
            await asyncio.wait([task])


def _protocol() -> Protocol:
    env = os.environ
    if "TMUX" in env or env.get("TERM", "").startswith(("screen", "tmux")):
        return "blocks"  # multiplexers drop the picture protocols
    if "KITTY_WINDOW_ID" in env or env.get("TERM", "") in {"xterm-kitty", "xterm-ghostty"}:
        return "kitty"
    if env.get("TERM_PROGRAM", "") in {"iTerm.app", "WezTerm", "mintty"}:
        return "iterm"
    return "blocks"


def _kitty(png: bytes, size: tuple[int, int], box: CellBox) -> Iterator[str]:
    """The picture in chunks; given one side of the box, the terminal keeps the proportions."""
    width, height = size
    is_tall = height * box.columns > 2 * box.rows * width
    side = f"r={box.rows}" if is_tall else f"c={box.columns}"
    text = base64.b64encode(png).decode()
    starts = range(0, len(text), KITTY_CHUNK)
    for start in starts:
        more = 0 if start == starts[-1] else 1
        control = f"a=T,f=100,{side},m={more}" if start == 0 else f"m={more}"
        yield f"\x1b_G{control};{text[start : start + KITTY_CHUNK]}\x1b\\"


def _iterm(data: bytes, box: CellBox) -> str:
    """The picture in one piece; the terminal fits it into the box in proportion."""
    place = f"inline=1;size={len(data)};width={box.columns};height={box.rows}"
    return f"\x1b]1337;File={place}:{base64.b64encode(data).decode()}\x07"


def _half_blocks(rgb: bytes, width: int, height: int) -> Iterator[str]:
    """Two pixels a character: the upper half as foreground, the lower as background."""
    stride = 3 * width
    for top in range(0, height, 2):
        upper = rgb[top * stride : (top + 1) * stride]
        # An odd last row has nothing below it; it is shown on black.
        lower = rgb[(top + 1) * stride : (top + 2) * stride] or bytes(stride)
        cells = (
            f"\x1b[38;2;{upper[i]};{upper[i + 1]};{upper[i + 2]}m"
            f"\x1b[48;2;{lower[i]};{lower[i + 1]};{lower[i + 2]}m▀"
            for i in range(0, stride, 3)
        )
        yield "".join(cells) + "\x1b[0m"
