"""A conversation that must be summarized -> the requests of the user and the pictures.

The notes about pictures are those that `transcript` reads again, so that a conversation that was
summed up goes on with its pictures.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from limner.models.offline.album import AlbumPicture
from limner.models.offline.transcript import ILLUSTRATOR, listen
from limner.wires import items as made
from limner.wires.item_views import Item

MAX_WORDS_CHARS = 300
NOTHING = "Nothing was asked for yet."

# How a conversation is told that is to be summed up, its calls and their outputs in words.
_CALLED = re.compile(r"\[calls (\w{1,64}) with (\{.*\})\]", re.DOTALL)
_ANSWERED = re.compile(r"\[it answered: (.*)\]", re.DOTALL)
_PLACE_OF_PICTURE = re.compile(r"\n\[a picture\]|\[picture [0-9a-f]+[^\]]*\]")
# What would end a note, or the caption in it, too early.
_CLEAN = str.maketrans({"[": "(", "]": ")", ";": ","})


def digest(items: Sequence[Item]) -> str:
    """The conversation in short; its last message is the one that asks for this."""
    talk = listen(_as_called(items))
    asked = [" ".join(request.words.split()) for request in talk.requests[:-1]]
    lines = [
        f"{number}. {words[:MAX_WORDS_CHARS] or '(a picture, without words)'}"
        for number, words in enumerate(asked, start=1)
    ]
    if lines:
        lines.insert(0, "What the user asked for:")
    if talk.album.pictures:
        lines += ["Pictures, oldest first:", *map(_note, talk.album.pictures)]
    return "\n".join(lines) or NOTHING


def _note(picture: AlbumPicture) -> str:
    if picture.handle is None:
        return f"- {picture.path}"
    prompt = str((picture.order or {}).get("prompt", "")).translate(_CLEAN)
    caption = f": {' '.join(prompt.split())[:MAX_WORDS_CHARS]}" if prompt else ""
    is_drawn = caption and picture.provider == ILLUSTRATOR
    at = (
        ""
        if picture.path is None
        else f"; {'drawn offline, ' if is_drawn else ''}at {picture.path}"
    )
    return f"- [picture {picture.handle}{caption}{at}]"


def _as_called(items: Iterable[Item]) -> Iterator[Item]:
    """The items, what is told of calls and outputs being calls and outputs again."""
    waiting: deque[str] = deque()
    for number, item in enumerate(items):
        words, role = _only_words(item), item.get("role")
        if role == "assistant" and (called := _CALLED.fullmatch(words)):
            waiting.append(f"told_{number}")
            yield made.function_call(call_id=waiting[-1], name=called[1], arguments=called[2])
        elif role == "user" and (answered := _ANSWERED.fullmatch(words)):
            value = made.text_part(_PLACE_OF_PICTURE.sub("", answered[1]))
            call_id = waiting.popleft() if waiting else ""
            yield made.function_call_output(call_id=call_id, parts=[value])
        else:
            yield item


def _only_words(item: Item) -> str:
    """The words of a message that is a single text."""
    content: object = item.get("content")
    match content:
        case [{"text": str(words)}]:
            return words
        case _:
            return ""
