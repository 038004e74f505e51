"""The parts of messages and outputs -> words, loaded pictures and sounds, each in its place.

A picture is placed, or words stand in its place that name it and say why, or it is an error; a
sound is placed, or words stand in its place: nothing that somebody meant a model to see or to hear
is left out in silence.
"""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from limner.errors import InputInvalid
from limner.wires.audio import DecodedAudio, read_sound
from limner.wires.base import HANDLE_URL, ModelPicture
from limner.wires.item_views import (
    ContentPart,
    InputAudio,
    InputImage,
    InputText,
    OutputText,
    Refusal,
    Unknown,
)

NO_EYES = "this model takes no pictures"
_OWN_WORDS = "a model's own words cannot carry one"
NO_EARS = "this model takes none"
_NO_FORM = "the service has no form for it"

_SHOWN_CHARS = 80
_MAGIC: Mapping[bytes, str] = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


class PartSupport(msgspec.Struct, frozen=True, kw_only=True):
    """The pictures and sounds that an API takes; None where it does not say.

    ``sounds`` are types as `DecodedAudio` has them; empty where the API has no form for a sound.
    """

    types: frozenset[str] | None = None
    count: int | None = None
    bytes_each: int | None = None
    sounds: frozenset[str] | None = frozenset()


class PlacedPicture(msgspec.Struct, frozen=True, kw_only=True):
    """A picture where it belongs, loaded."""

    handle: str
    sight: ModelPicture

    @property
    def name(self) -> str:
        """How words speak of it."""
        return f"picture {HANDLE_URL}{self.handle}"


Medium = PlacedPicture | DecodedAudio
Part = str | Medium


class PartWriter:
    """Places the parts of one request, and counts its pictures.

    Args:
        pictures: the pictures that may be named, by handle.
        omitted: for those that are not sent, by handle, why.
        takes: what the API takes.
        takes_images: False for a model that is sent no picture at all.
        takes_audio: False for a model that is sent no sound at all.
    """

    def __init__(
        self,
        pictures: Mapping[str, ModelPicture],
        *,
        omitted: Mapping[str, str],
        takes: PartSupport,
        takes_images: bool = True,
        takes_audio: bool = False,
    ) -> None:
        self._pictures = pictures
        self._omitted = omitted
        self._takes = takes
        self._takes_images = takes_images
        self._takes_audio = takes_audio
        self._count = 0

    def parts(self, parts: Iterable[ContentPart]) -> list[Part]:
        """Each part in its place; blank words, which some services refuse, are left out.

        Raises:
            InputInvalid: a part has no place, a picture is not there, or the API does not take it.
        """
        placed = map(self._part, parts)
        return [part for part in placed if not isinstance(part, str) or part.strip()]

    def words(self, parts: Iterable[ContentPart]) -> list[str]:
        """What a model said: no API takes a picture or a sound there, so words name it.

        Raises:
            InputInvalid: a part has no place.
        """
        return [part for part in self.parts(map(_in_words, parts)) if isinstance(part, str)]

    def _part(self, part: ContentPart) -> Part:
        match part:
            case InputText() | OutputText():
                return sendable(part.text)
            case Refusal():
                return sendable(part.refusal)
            case InputImage():
                return self._picture(part)
            case InputAudio():
                return self._sound(part)
            case Unknown():
                raise no_place(f"a part of the kind {part.kind!r}")

    def _picture(self, part: InputImage) -> Part:
        handle = _handle(part)
        if not self._takes_images:
            return placeholder(handle, NO_EYES)
        if handle in self._omitted:
            return placeholder(handle, self._omitted[handle])
        if handle not in self._pictures:
            raise InputInvalid(f"The picture {short(handle)} was not loaded", field="image_url")
        sight = self._pictures[handle]
        mime = _shown_type(sight.data) or sight.mime
        if mime != sight.mime or (sight.detail is None and part.detail is not None):
            # Services look at the bytes, and refuse a type that is not theirs.
            sight = replace(sight, mime=mime, detail=sight.detail or part.detail)
        self._count += 1
        self._check(handle, sight)
        return PlacedPicture(handle=handle, sight=sight)

    def _sound(self, part: InputAudio) -> Part:
        if not self._takes_audio:
            return unheard(NO_EARS)
        try:
            sound = read_sound(part.audio_url or "")
        except InputInvalid as problem:
            return unheard(problem.message)
        listed = self._takes.sounds
        if listed is None or sound.mime in listed:
            return sound
        takes = f"it is {sound.mime[:40]}, and the service takes {', '.join(sorted(listed))}"
        return unheard(takes if listed else _NO_FORM)

    def _check(self, handle: str, sight: ModelPicture) -> None:
        problem, takes = None, self._takes
        if takes.types is not None and sight.mime not in takes.types:
            problem = f"is {sight.mime}, and the service takes {', '.join(sorted(takes.types))}"
        elif takes.bytes_each is not None and len(sight.data) > takes.bytes_each:
            problem = f"has {len(sight.data):,} bytes; the service takes {takes.bytes_each:,}"
        elif takes.count is not None and self._count > takes.count:
            problem = f"is one too many: the service takes {takes.count:,} in a request"
        if problem is not None:
            raise InputInvalid(f"The picture {short(handle)} {problem}", field="image_url")


def _in_words(part: ContentPart) -> ContentPart:
    """The part as a model could have said it."""
    match part:
        case InputImage():
            return InputText(text=placeholder(_handle(part), _OWN_WORDS))
        case InputAudio():
            return InputText(text=unheard(_OWN_WORDS))
        case _:
            return part


def _handle(part: InputImage) -> str:
    if part.handle is None:
        raise no_place(f"a picture without a handle, {short(str(part.image_url))},")
    return part.handle


def _shown_type(data: bytes) -> str | None:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for magic, mime in _MAGIC.items() if data.startswith(magic)), None)


def media(parts: Iterable[Part]) -> list[Medium]:
    """The pictures and sounds among parts."""
    return [part for part in parts if not isinstance(part, str)]


def flat(parts: Iterable[Part]) -> str:
    """Parts as words alone; a picture or a sound is named where it stands."""
    return "\n".join(part if isinstance(part, str) else f"[{part.name}]" for part in parts)


def base64_of(sight: ModelPicture) -> str:
    """A picture's bytes as text, for those who put the JSON together later."""
    return b2a_base64(sight.data, newline=False).decode()


def sendable(words: str) -> str:
    """Words that JSON can carry: half a character, as in odd file names, is a question mark."""
    return words if words.isascii() else words.encode(errors="replace").decode()


def placeholder(handle: str, why: str) -> str:
    """The words that stand for a picture."""
    return f"[picture {HANDLE_URL}{handle} is not shown: {why}]"


def unheard(why: str) -> str:
    """The words that stand for a sound."""
    return f"[a sound is not sent: {why}]"


def short(words: str) -> str:
    """Words from outside, for a message."""
    return repr(words[:_SHOWN_CHARS])


def no_place(what: str) -> InputInvalid:
    """The error about something that cannot be sent."""
    return InputInvalid(f"{what} has no place in a request to a model"[:300], field="items")
