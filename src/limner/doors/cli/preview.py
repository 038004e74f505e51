"""A picture -> what the terminal can show of it: the picture itself, or coloured half blocks."""

from __future__ import annotations

import base64
import os
import shutil
import sys
from collections.abc import Iterator
from typing import Literal

from limner.client import Limner

Protocol = Literal["kitty", "iterm", "blocks"]

MAX_COLUMNS = 60
MAX_ROWS = 24
KITTY_CHUNK = 4096


def can_show() -> bool:
    """Whether the terminal shows real pictures, so that one is worth showing unasked."""
    return sys.stderr.isatty() and _protocol() != "blocks"


async def show(data: bytes, lim: Limner) -> None:
    """Show a PNG on standard error, beside the result on standard output."""
    match _protocol():
        case "kitty":
            _write("".join(_kitty(data)))
        case "iterm":
            _write(_iterm(data))
        case "blocks":
            terminal = shutil.get_terminal_size()
            columns = min(terminal.columns, MAX_COLUMNS)
            rows = min(terminal.lines - 2, MAX_ROWS)
            preview = await lim.imaging.preview(data, columns=columns, rows=2 * rows)
            _write("\n".join(_half_blocks(preview.rgb, preview.width, preview.height)))


def _protocol() -> Protocol:
    env = os.environ
    if "TMUX" in env or env.get("TERM", "").startswith("screen"):
        return "blocks"  # multiplexers swallow the picture protocols
    if "KITTY_WINDOW_ID" in env or env.get("TERM", "") in {"xterm-kitty", "xterm-ghostty"}:
        return "kitty"
    if env.get("TERM_PROGRAM", "") in {"iTerm.app", "WezTerm", "mintty"}:
        return "iterm"
    return "blocks"


def _kitty(png: bytes) -> Iterator[str]:
    text = base64.b64encode(png).decode()
    starts = range(0, len(text), KITTY_CHUNK)
    for start in starts:
        more = 0 if start == starts[-1] else 1
        control = f"a=T,f=100,c={MAX_COLUMNS},m={more}" if start == 0 else f"m={more}"
        yield f"\x1b_G{control};{text[start : start + KITTY_CHUNK]}\x1b\\"


def _iterm(png: bytes) -> str:
    text = base64.b64encode(png).decode()
    return f"\x1b]1337;File=inline=1;size={len(png)};width={MAX_COLUMNS}:{text}\x07"


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


def _write(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
