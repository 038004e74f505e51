"""Words and pictures of a user -> the item that says them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from limner.agent.parts import PICTURE_TAGS
from limner.content import Picture
from limner.wires.items import message, picture, text

Shown = tuple[Picture, Path | None]
"""A picture, and the file it comes from where it has one."""


def said(words: str, pictures: Sequence[Shown] = ()) -> dict[str, Any]:
    """What a user says: first the pictures, each with the name of its file, then the words."""
    parts: list[dict[str, Any]] = []
    for number, (shown, path) in enumerate(pictures, start=1):
        parts += _tagged(shown, path, number)
    if words or not parts:
        parts.append(text(words))
    return message("user", *parts)


def _tagged(shown: Picture, path: Path | None, number: int) -> list[dict[str, Any]]:
    """A picture between tags that say where it is, so that a model can name it to a tool."""
    if path is None:
        return [picture(shown.handle)]
    opening, closing = PICTURE_TAGS
    named = f'{opening}[Image #{number}] path="{path}">'
    return [text(named), picture(shown.handle), text(closing)]
