"""Items of a conversation -> the requests, the pictures and the results of tools.

Only a user's own messages are requests. What tools answered is read as facts about pictures and as
words to pass on, and never for what it asks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from limner.errors import InputInvalid
from limner.json_shapes import as_list, as_object, decode_json
from limner.models.offline.album import Album, AlbumPicture, called
from limner.models.offline.sources import Document, take_document
from limner.wires.item_views import (
    ContentPart,
    FunctionCall,
    FunctionCallOutput,
    InputImage,
    InputText,
    Item,
    Message,
    view,
)

GENERATE, EDIT, INSPECT, RECALL = "image_generate", "image_edit", "inspect_image", "image_recall"
RENDER, SEARCH, TRANSFORM = "image_render", "asset_search", "image_transform"
CHECK = "image_check"
# No rule calls `image_batch`, and no reply names it.
OWN_TOOLS = frozenset(
    {GENERATE, EDIT, INSPECT, RECALL, RENDER, SEARCH, TRANSFORM, CHECK, "image_batch"}
)
ILLUSTRATOR = "illustrator"
"""The provider that draws from words and cannot change a picture."""

ABORTED = "aborted"
COMMENTARY = "commentary"
"""The phase of a message that answers some of the open requests, and not the last."""

# No rule needs more than this, and a message may be a whole book.
MAX_WORDS_CHARS = 8_000

# What stands in place of a picture that is not sent; summaries of `limner/offline` say more.
_NOTE = re.compile(
    r"\[picture (?P<handle>[0-9a-f]{8,64})(?:: (?P<caption>[^\];]*))?"
    r"(?:; (?:(?P<drawn>drawn offline, )?at (?P<path>[^\]]+)|[^\]]*))?\]"
)
# What stands before a picture that comes from a file, and after it.
_FILE = re.compile(r'<image name=[^>]{0,80} path="([^"\n]+)">')
_FILE_END = "</image>"
_FENCED = re.compile(r"<(data-[0-9a-f]+)>\n(.*)\n</\1>", re.DOTALL)


class PastAction(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that was called, and what it answered.

    ``value`` is the JSON object in its words, empty if these are no JSON. ``pictures`` are those
    that it made or was asked about.
    """

    tool: str
    arguments: Mapping[str, Any]
    words: str
    value: Mapping[str, Any]
    ok: bool
    pictures: tuple[AlbumPicture, ...] = ()


class UserRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A message of the user: the words, the pictures and the document in it."""

    words: str
    attached: tuple[AlbumPicture, ...] = ()
    document: Document | None = None


class OpenRequest(msgspec.Struct, kw_only=True):
    """A request that is not answered yet, and what was done about it.

    ``is_told`` if its answer went out already, before a call for a later request.
    """

    request: UserRequest
    deeds: list[PastAction] = msgspec.field(default_factory=list[PastAction])
    is_told: bool = False


class Transcript(msgspec.Struct, kw_only=True):
    """A conversation so far.

    Attributes:
        requests: everything the user asked for, oldest first.
        open: the requests since the last answer, oldest first: a user may type ahead.
        album: the pictures there are.
        album_before: the pictures there were before the first open request.
        has_spoken: whether the model has said anything yet.
    """

    requests: list[UserRequest] = msgspec.field(default_factory=list[UserRequest])
    open: list[OpenRequest] = msgspec.field(default_factory=list[OpenRequest])
    album: Album = msgspec.field(default_factory=Album)
    album_before: Album = msgspec.field(default_factory=Album)
    has_spoken: bool = False


def call_id_of(number: int, digest: str) -> str:
    """The id of a call for an open request, so that its output is known to belong to that."""
    return f"call_{number}_{digest}"


_CALL_ID = re.compile(r"call_(\d{1,4})_[0-9a-f]{24}")


def listen(items: Iterable[Item]) -> Transcript:
    """What a conversation comes down to; items that make no sense are passed over."""
    talk, calls = Transcript(), dict[str, FunctionCall]()
    for item in items:
        try:
            match view(item):
                case Message(role="user") as message:
                    _ask(talk, message.parts)
                case Message(role="assistant") as message:
                    talk.has_spoken = True
                    if message.phase != COMMENTARY:
                        _close(talk)
                case FunctionCall() as call:
                    calls[call.call_id] = call
                    for earlier in talk.open[: _number_of(call.call_id, talk)]:
                        earlier.is_told = True
                case FunctionCallOutput() as output:
                    _do(talk, calls.get(output.call_id), output)
                case _:
                    pass
        except InputInvalid:
            continue
    return talk


def _number_of(call_id: str, talk: Transcript) -> int:
    """The open request that a call is for; that of another model is for the last one."""
    found = _CALL_ID.fullmatch(call_id)
    last = max(len(talk.open) - 1, 0)
    return last if found is None else min(int(found[1]), last)


def _close(talk: Transcript) -> None:
    """Nothing is open any more: all was answered, or the user stopped it."""
    talk.open.clear()
    talk.album_before = talk.album


def _ask(talk: Transcript, parts: Sequence[ContentPart]) -> None:
    text, attached = _read(parts)
    if text.startswith("<") and not text.startswith("<svg"):
        # A program speaks in the user's name, as in a summary: its pictures count, its words not.
        noted = map(_noted, _NOTE.finditer(text[:MAX_WORDS_CHARS]))
        talk.album = talk.album.with_mentioned((*attached, *noted))
        _close(talk)
        return
    words, document = take_document(text)
    if not words.strip() and not attached:
        return
    talk.album = talk.album.with_mentioned(attached)
    request = UserRequest(words=words[:MAX_WORDS_CHARS], attached=attached, document=document)
    talk.requests.append(request)
    talk.open.append(OpenRequest(request=request))


def _do(talk: Transcript, call: FunctionCall | None, output: FunctionCallOutput) -> None:
    words, pictures = _read(output.parts)
    value = as_object(decode_json(words))
    deed = PastAction(
        tool="" if call is None else call.name,
        arguments={} if call is None else as_object(decode_json(call.arguments)),
        words=words,
        value=value,
        ok=output.succeeded is not False and "error" not in value and words != ABORTED,
    )
    if deed.ok:
        deed = replace(deed, pictures=_shown(deed) or pictures)
        talk.album = talk.album.with_mentioned(deed.pictures)
    if talk.open:
        talk.open[_number_of(output.call_id, talk)].deeds.append(deed)


def _shown(deed: PastAction) -> tuple[AlbumPicture, ...]:
    """The pictures that one of limner's own tools made, or was asked about."""
    if deed.tool == INSPECT:
        names = [deed.arguments.get("path"), *as_list(deed.arguments.get("paths"))]
        return tuple(called(name) for name in names if isinstance(name, str) and name)
    if deed.tool not in (GENERATE, EDIT, RECALL, RENDER, TRANSFORM):
        return ()
    made = (_made(one, deed) for one in drawn_in(deed.value))
    return tuple(picture for picture in made if picture.source)


def drawn_in(value: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What a tool says of each picture it made, even if it made only one."""
    return [one for one in map(as_object, as_list(value.get("pictures"))) if one] or [value]


def size_in(value: Mapping[str, Any]) -> tuple[int, int] | None:
    """The width and height that a tool says a picture has."""
    sides = as_object(value.get("dimensions"))
    width, height = sides.get("width"), sides.get("height")
    return (width, height) if isinstance(width, int) and isinstance(height, int) else None


def _made(one: Mapping[str, Any], deed: PastAction) -> AlbumPicture:
    cost = one.get("cost_usd", 0.0 if deed.tool in (RENDER, TRANSFORM) else None)
    return AlbumPicture(
        handle=_string(one.get("image")),
        path=_string(one.get("path")),
        size=size_in(one),
        order=deed.arguments if deed.tool == GENERATE else None,
        provider=_string(deed.value.get("provider")),
        # A document and a transformed picture are always free, and their values have no price.
        cost_usd=float(cost) if isinstance(cost, int | float) else None,
    )


def _read(parts: Iterable[ContentPart]) -> tuple[str, tuple[AlbumPicture, ...]]:
    """The words in an item, and its pictures or the notes that stand in their place."""
    words: list[str] = []
    pictures: list[AlbumPicture] = []
    path: str | None = None
    for part in parts:
        if isinstance(part, InputImage) and part.handle:
            pictures.append(replace(called(part.handle), path=path))
        if not isinstance(part, InputText):
            continue
        text = part.text.encode(errors="replace").decode().strip()
        if note := _NOTE.fullmatch(text):
            seen = _noted(note)
            pictures.append(replace(seen, path=seen.path or path))
        elif file := _FILE.fullmatch(text):
            path = file[1]
        elif text == _FILE_END:
            path = None
        else:
            fenced = _FENCED.fullmatch(text)
            words.append(text if fenced is None else fenced[2])
    return "\n".join(words).strip(), tuple(pictures)


def _noted(note: re.Match[str]) -> AlbumPicture:
    is_drawn = note["drawn"] is not None and note["caption"] is not None
    return AlbumPicture(
        handle=note["handle"],
        path=note["path"],
        order={"prompt": note["caption"]} if is_drawn else None,
        provider=ILLUSTRATOR if is_drawn else None,
    )


def _string(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
