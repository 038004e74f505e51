"""What is known of a picture anyway -> a few words that name it where it is not shown.

Nothing is asked or paid for: a caption is the prompt a picture was drawn from, what a model once
answered about it, the name of its file, or the words it came with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any, cast

import msgspec

from limner.agent.parts import first_words
from limner.agent.untrusted import is_untrusted
from limner.wires.items import Item

MAX_CAPTION_CHARS = 80
# Brackets would end the note that a caption stands in.
_CLEAN = str.maketrans({"[": "(", "]": ")"})
_OUTPUTS = ("function_call_output", "custom_tool_call_output")


def caption(
    lineage: Mapping[str, Any] | None, *, answer: str | None = None, beside: str = ""
) -> str | None:
    """A few words for a picture, or None where nothing is known of it.

    Args:
        lineage: what was written down when it came in, if it did.
        answer: what a model said about it.
        beside: the words of the item it is in.
    """
    prompt, file = (None if lineage is None else lineage.get(k) for k in ("prompt", "file"))
    named = PurePath(file).name if isinstance(file, str) else None
    known = (prompt, answer, named, beside)
    return next((line for words in known if (line := _one_line(words))), None)


def answers(items: Iterable[Item]) -> dict[str, str]:
    """What `inspect_image` answered in a conversation, by the handle it was asked about.

    The first answer stays: a caption that changed would change what requests begin with. What a
    stranger may have written into a picture is left out, since captions stand outside of all tags.
    """
    found: dict[str, str] = {}
    for item in items:
        if item.get("type") in _OUTPUTS and not is_untrusted(item):
            output: object = item.get("output")
            told = _inspection(output if isinstance(output, str) else first_words(item))
            if told is not None:
                found.setdefault(*told)
    return found


def _inspection(output: str) -> tuple[str, str] | None:
    """The handle and the answer in an output of `inspect_image`."""
    if not output.startswith('{"text":'):
        return None
    try:
        value = msgspec.json.decode(output, type=dict[str, Any])
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError):
        return None
    details: object = value.get("details")
    if not isinstance(details, dict) or not isinstance(value["text"], str):
        return None
    handle = cast("dict[str, Any]", details).get("image")
    return (handle, value["text"]) if isinstance(handle, str) else None


def _one_line(words: object) -> str | None:
    """The first line that says something, printable and of bounded length."""
    if not isinstance(words, str):
        return None
    line = words.strip().partition("\n")[0].translate(_CLEAN)
    shown = " ".join("".join(c if c.isprintable() else " " for c in line).split())
    if len(shown) > MAX_CAPTION_CHARS:
        shown = f"{shown[: MAX_CAPTION_CHARS - 1].rstrip()}…"
    return shown or None
