"""Why a picture could not be taken in -> the words that stand in its place."""

from __future__ import annotations

from limner.errors import LimnerError

MAX_REASON_CHARS = 200


def reason_of(error: LimnerError) -> str:
    """What went wrong, as the end of a sentence: one line, of bounded length."""
    line = " ".join(error.message.split()).rstrip(".")[:MAX_REASON_CHARS]
    return line[:1].lower() + line[1:] if line[1:2].islower() else line


def omitted(reason: str) -> str:
    """The words a model reads where a picture was meant to be."""
    return f"[image omitted: {reason}]"
