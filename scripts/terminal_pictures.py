"""Make the pictures of `limner chat` for the guide: drive a real terminal, draw what it shows.

usage: python -m scripts.terminal_pictures     (needs tmux, and no key in the environment)
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import captcha
from PIL import Image, ImageDraw, ImageFont
from tests.servers.tmux import Tmux

import limner.imaging

FOLDER = Path(__file__).parent.parent / "docs" / "images"
PROMPT = "\x1b[?2004h> "
COLUMNS, ROWS = 96, 50
CELL = (10, 20)
MARGIN = 16
FONT_SIZE = 16
PAPER, INK, FAINT = (24, 24, 27), (228, 228, 231), (140, 140, 150)
UPPER_HALF = "▀"
# Droid Sans Mono, which a development tool carries, lacks these; limner's own font has them.
ELSEWHERE = "✓✗"

Colour = tuple[int, int, int]
_SGR = re.compile(r"\x1b\[([\d;:]*)m")
_OTHER = re.compile(r"\x1b(?:\[[\d;?]*[a-zA-Z]|[()][A-Z0-9])|[\x0e\x0f]")


class Style(NamedTuple):
    """How a cell looks."""

    ink: Colour = INK
    paper: Colour = PAPER


class Cell(NamedTuple):
    """One character of the screen."""

    text: str
    style: Style


def cells(line: str, style: Style) -> tuple[list[Cell], Style]:
    """The cells of a line that begins in a style, and the style it ends in."""
    found: list[Cell] = []
    at = 0
    for match in _SGR.finditer(line):
        found += [Cell(one, style) for one in _OTHER.sub("", line[at : match.start()])]
        style, at = restyled(style, match[1]), match.end()
    found += [Cell(one, style) for one in _OTHER.sub("", line[at:])]
    return found, style


def restyled(style: Style, codes: str) -> Style:
    """A style after an escape sequence for colours."""
    numbers = iter([int(code or 0) for code in re.split("[;:]", codes)])
    for number in numbers:
        match number:
            case 0:
                style = Style()
            case 2:
                style = style._replace(ink=FAINT)
            case 22 | 39:
                style = style._replace(ink=INK)
            case 38 | 48:
                colour = _true_colour(numbers)
                style = style._replace(**{"ink" if number == 38 else "paper": colour})
            case 49:
                style = style._replace(paper=PAPER)
            case _:
                pass
    return style


def _true_colour(numbers: Iterator[int]) -> Colour:
    assert next(numbers) == 2, "limner's previews are in true colour"
    return next(numbers), next(numbers), next(numbers)


def drawn(screen: str) -> Image.Image:
    """A screen as a picture."""
    lines = screen.split("\n")
    width, height = COLUMNS * CELL[0], len(lines) * CELL[1]
    image = Image.new("RGB", (width + 2 * MARGIN, height + 2 * MARGIN), PAPER)
    draw = ImageDraw.Draw(image)
    mono = ImageFont.truetype(
        str(Path(captcha.__file__).parent / "data" / "DroidSansMono.ttf"), FONT_SIZE
    )
    own = ImageFont.truetype(
        str(Path(limner.imaging.__file__).parent / "fonts" / "Inter-Regular.ttf"), FONT_SIZE
    )
    style = Style()
    for row, line in enumerate(lines):
        found, style = cells(line, style)
        for column, cell in enumerate(found):
            x, y = MARGIN + column * CELL[0], MARGIN + row * CELL[1]
            ink, paper = cell.style
            if paper != PAPER:  # which would cut off what hangs down from the line above
                draw.rectangle((x, y, x + CELL[0] - 1, y + CELL[1] - 1), fill=paper)
            if cell.text == UPPER_HALF:
                draw.rectangle((x, y, x + CELL[0] - 1, y + CELL[1] // 2 - 1), fill=ink)
            elif cell.text != " ":
                font = own if cell.text in ELSEWHERE else mono
                draw.text((x, y), cell.text, fill=ink, font=font)
    return image


def save(terminal: Tmux, name: str) -> None:
    """Keep a picture of what the terminal shows now."""
    image = drawn(terminal.screen(styled=True))
    image.quantize(128, dither=Image.Dither.NONE).save(FOLDER / name, optimize=True)
    print(FOLDER / name)


def say(terminal: Tmux, words: str) -> None:
    """Say something and wait for the end of the turn."""
    terminal.type(words)
    terminal.see("session $")
    terminal.see(PROMPT)


def ask(terminal: Tmux, command: str) -> None:
    """Give a command and wait for the prompt."""
    terminal.type(command)
    terminal.see(PROMPT)


def main() -> None:
    """Draw, look, resume, spend: one picture for each half of it."""
    folder = Path(tempfile.gettempdir()) / "fox"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    env = {"HOME": str(folder), "LIMNER_HOME": str(folder / "limner"), "TERM": "xterm-256color"}
    with Tmux(folder, env=env, columns=COLUMNS, rows=ROWS) as terminal:
        terminal.type("limner chat")
        terminal.see(PROMPT)
        say(terminal, "draw a red fox in the snow")
        say(terminal, "what colours are in it?")
        save(terminal, "chat-draw.png")
        terminal.press("C-d")
        terminal.see("To resume: ")
        terminal.see("$ ")
        terminal.type("clear")
        terminal.see("$ ")
        terminal.type("limner chat --resume")
        terminal.see(PROMPT)
        say(terminal, "how large is it?")
        ask(terminal, "/expand")
        ask(terminal, "/spend")
        ask(terminal, "/modle")
        ask(terminal, "/help")
        save(terminal, "chat-commands.png")
        terminal.press("C-d")
        terminal.see("To resume: ")


if __name__ == "__main__":
    main()
