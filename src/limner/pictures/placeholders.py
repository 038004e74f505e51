"""The error of a picture that could not be loaded -> the text that replaces it."""

from __future__ import annotations

from limner.errors import LimnerError

MAX_REASON_CHARS = 200
BLOCKED = "the setting images.block_images keeps pictures from models"


def reason_of(error: LimnerError) -> str:
    """The message of an error as the end of a sentence: one line, of bounded length."""
    line = " ".join(error.message.split()).rstrip(".")[:MAX_REASON_CHARS]
    return line[:1].lower() + line[1:] if line[1:2].islower() else line


def omitted(reason: str) -> str:
    """The text that a model gets instead of a picture."""
    return f"[image omitted: {reason}]"
