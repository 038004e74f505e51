"""Sounds in conversations: what comes in is checked, and what goes out is bounded.

limner has no ears: it passes sounds on. They stay in their items as they came, so that only short
ones are taken; and a model that hears gets the newest, for each request carries them again.
"""

from __future__ import annotations

import binascii
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from limner.errors import InputInvalid
from limner.storage.files import open_plain
from limner.storage.os_errors import disk_errors
from limner.wires.audio import NOT_BASE64, DecodedAudio, read_sound
from limner.wires.content_parts import NO_EARS, unheard
from limner.wires.items import Item, Part, with_parts

MAX_SOUND_BYTES = 4_000_000
MAX_SENT_BYTES = 4 * MAX_SOUND_BYTES

TOO_LARGE = f"it is larger than {MAX_SOUND_BYTES:,} bytes; send a shorter one, or one in MP3"
EMPTY = "it has no bytes"
LEFT = "newer ones take up the room"

_SOUND = "input_audio"
_MAGIC: Mapping[bytes, str] = {
    b"ID3": "audio/mpeg",
    b"\xff\xfb": "audio/mpeg",
    b"\xff\xf3": "audio/mpeg",
    b"\xff\xf2": "audio/mpeg",
    b"\xff\xf1": "audio/aac",
    b"\xff\xf9": "audio/aac",
    b"OggS": "audio/ogg",
    b"fLaC": "audio/flac",
}
_CONTAINERS = {(b"RIFF", b"WAVE"): "audio/wav", (b"FORM", b"AIFF"): "audio/aiff"}


def sound(url: str) -> dict[str, Any]:
    """A sound, as a part of a message or an output."""
    return {"type": _SOUND, "audio_url": url}


def is_sound(part: Part) -> bool:
    """Whether a part is a sound."""
    return part.get("type") == _SOUND


def sounds_in(item: Item) -> list[DecodedAudio]:
    """The sounds of an item that can be sent to somebody, in their order."""
    found: list[DecodedAudio] = []

    def look(part: Part) -> Part:
        if is_sound(part) and (one := _read(part)) is not None:
            found.append(one)
        return part

    with_parts(item, look)
    return found


def problem_of(part: Part) -> str | None:
    """Why a sound is not taken in; None where it is. Takes a while for a long one."""
    url: object = part.get("audio_url")
    try:
        one = read_sound(url if isinstance(url, str) else "")
    except InputInvalid as error:
        return error.message
    if one.size_bytes > MAX_SOUND_BYTES + 2:
        return TOO_LARGE
    try:
        data = binascii.a2b_base64(one.base64, strict_mode=True)
    except ValueError:
        return NOT_BASE64
    if len(data) > MAX_SOUND_BYTES:
        return TOO_LARGE
    return None if data else EMPTY


def omitted_sound(reason: str) -> str:
    """The words a model reads where a sound was meant to be."""
    return f"[sound omitted: {reason}]"


def read_file(path: Path) -> str:
    """The data URL of the sound in a file; what it is its first bytes say. Blocks.

    Args:
        path: resolved by ``Reach.resolve_read``.

    Raises:
        InputInvalid: it is too large, or no sound of a known kind.
        ReachDenied: the file has become a symlink.
        StorageError: there is no such file, or it cannot be read.
    """
    with open_plain(path) as file, disk_errors(doing="read", path=path):
        data = file.read(MAX_SOUND_BYTES + 1)
    if len(data) > MAX_SOUND_BYTES:
        raise InputInvalid(TOO_LARGE, field="path")
    mime = _type_of(data)
    if mime is None:
        raise InputInvalid("its first bytes match no known format of sounds", field="path")
    return f"data:{mime};base64,{binascii.b2a_base64(data, newline=False).decode()}"


def audible(items: Sequence[Item], *, takes_audio: bool) -> list[Item]:
    """The items as a model is sent them: the newest sounds, and words in the place of others."""
    found = [one for item in items for one in sounds_in(item)]
    if not found:
        return list(items)
    room, left = MAX_SENT_BYTES if takes_audio else 0, len(found)
    for one in reversed(found):
        room -= one.size_bytes
        if room < 0:
            break
        left -= 1
    return list(_without(items, left, why=LEFT if takes_audio else NO_EARS))


def _without(items: Iterable[Item], count: int, *, why: str) -> Iterable[Item]:
    """The items with words in the place of the first so many sounds."""
    left = count

    def swap(part: Part) -> Part:
        nonlocal left
        if not left or not is_sound(part) or _read(part) is None:
            return part
        left -= 1
        return {"type": "input_text", "text": unheard(why)}

    for item in items:
        yield with_parts(item, swap) if left else item


def _read(part: Part) -> DecodedAudio | None:
    try:
        return read_sound(str(part.get("audio_url")))
    except InputInvalid:
        return None


def _type_of(data: bytes) -> str | None:
    container = _CONTAINERS.get((data[:4], data[8:12]))
    return container or next(
        (mime for magic, mime in _MAGIC.items() if data.startswith(magic)), None
    )
