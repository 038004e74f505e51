"""Audio in a conversation -> the clips that limner takes in, and how many of them a model is sent.

limner does not decode audio; it passes it on. A clip stays in its item as a data URL, so limner
takes in short clips only. Every request carries the history again, so a model that takes audio is
sent the newest clips.
"""

from __future__ import annotations

import binascii
from collections.abc import Mapping, Sequence
from pathlib import Path

from limner.errors import InputInvalid
from limner.storage.files import open_plain
from limner.storage.os_errors import disk_errors
from limner.wires.content_parts import AUDIO_NOT_BASE64, AudioClip, parse_audio_url
from limner.wires.items import Part

MAX_CLIP_BYTES = 4_000_000
MAX_SENT_BYTES = 4 * MAX_CLIP_BYTES

TOO_LARGE = f"it is larger than {MAX_CLIP_BYTES:,} bytes; send a shorter one, or one in MP3"
EMPTY = "it has no bytes"
NO_ROOM = "newer clips use up the room"

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


def parse_clip(part: Part) -> AudioClip | None:
    """The clip of an audio part; None if it is not one that can be sent."""
    try:
        return parse_audio_url(str(part.get("audio_url")))
    except InputInvalid:
        return None


def find_problem(url: str) -> str | None:
    """Why limner does not take in the clip at a URL; None if it does. Slow for a long clip."""
    try:
        clip = parse_audio_url(url)
    except InputInvalid as error:
        return error.message
    if clip.size_bytes > MAX_CLIP_BYTES + 2:
        return TOO_LARGE
    try:
        data = binascii.a2b_base64(clip.base64, strict_mode=True)
    except ValueError:
        return AUDIO_NOT_BASE64
    if len(data) > MAX_CLIP_BYTES:
        return TOO_LARGE
    return None if data else EMPTY


def omission_note(reason: str) -> str:
    """The text that a model reads in place of a clip that limner did not take in."""
    return f"[audio omitted: {reason}]"


def read_file(path: Path) -> str:
    """The data URL of the audio in a file; its first bytes decide its type. Blocks.

    Args:
        path: resolved by ``Reach.resolve_read``.

    Raises:
        InputInvalid: it is too large, or not audio of a known format.
        ReachDenied: the file has become a symlink.
        StorageError: there is no such file, or it cannot be read.
    """
    with open_plain(path) as file, disk_errors(doing="read", path=path):
        data = file.read(MAX_CLIP_BYTES + 1)
    if len(data) > MAX_CLIP_BYTES:
        raise InputInvalid(TOO_LARGE, field="path")
    mime = _detect_type(data)
    if mime is None:
        raise InputInvalid("its first bytes match no known audio format", field="path")
    return f"data:{mime};base64,{binascii.b2a_base64(data, newline=False).decode()}"


def count_unsent(clips: Sequence[AudioClip], *, takes_audio: bool) -> int:
    """How many of the oldest clips a model is not sent."""
    room, unsent = MAX_SENT_BYTES if takes_audio else 0, len(clips)
    for clip in reversed(clips):
        room -= clip.size_bytes
        if room < 0:
            break
        unsent -= 1
    return unsent


def _detect_type(data: bytes) -> str | None:
    container = _CONTAINERS.get((data[:4], data[8:12]))
    return container or next(
        (mime for magic, mime in _MAGIC.items() if data.startswith(magic)), None
    )
