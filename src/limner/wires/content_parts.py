"""The parts of messages and outputs -> text, loaded pictures and audio clips that can be sent.

A part never disappears in silence. A picture is sent, or a text that names it says why not, or it
is an error. An audio clip is sent, or a text says why not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self

import msgspec
from msgspec.structs import replace

from limner.content import Discreet
from limner.errors import InputInvalid
from limner.wires.base import HANDLE_URL, ModelPicture
from limner.wires.item_views import (
    ContentPart,
    EncryptedContent,
    InputAudio,
    InputImage,
    InputText,
    OutputText,
    Refusal,
    Unknown,
)

NO_IMAGES = "this model takes no pictures"
NO_AUDIO = "this model takes none"
NOT_AUDIO = "its URL is not a data URL of audio"
AUDIO_NOT_BASE64 = "its data is not base64"
_IN_MODEL_TEXT = "a model's own text cannot contain one"
_NO_FORMAT = "the service has no format for it"
_UNREADABLE = "only OpenAI can read it"

# The type and parameters of a data URL are shorter than this.
_MAX_HEAD_CHARS = 200
_SHOWN_CHARS = 80
_MAGIC: Mapping[bytes, str] = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
# Other names of the types that services list.
_LISTED_AS: Mapping[str, str] = {
    "audio/mpeg": "audio/mp3",
    "audio/vnd.wave": "audio/wav",
    "audio/wave": "audio/wav",
    "audio/x-aac": "audio/aac",
    "audio/x-aiff": "audio/aiff",
    "audio/x-flac": "audio/flac",
    "audio/x-wav": "audio/wav",
}


class PlacedPicture(msgspec.Struct, frozen=True, kw_only=True):
    """A picture of a request, loaded."""

    handle: str
    image: ModelPicture

    @property
    def name(self) -> str:
        """How a text names it."""
        return f"picture {HANDLE_URL}{self.handle}"


class AudioClip(Discreet, frozen=True, kw_only=True):
    """An audio clip of a request: its data URL as it came, and its type as services list it."""

    unshown = ("url",)

    url: str
    mime: str

    @property
    def name(self) -> str:
        """How a text names it."""
        return "an audio clip"

    @property
    def base64(self) -> str:
        """Its bytes as base64."""
        return self.url.partition(",")[2]

    @property
    def size_bytes(self) -> int:
        """How many bytes it has, or up to two more: the padding is not looked at."""
        return (len(self.url) - self.url.find(",") - 1) * 3 // 4


def parse_audio_url(url: str) -> AudioClip:
    """The clip in a data URL; its base64 is not checked here.

    Raises:
        InputInvalid: it is another kind of URL, which is never followed, or of another type.
    """
    head, comma, _ = url[:_MAX_HEAD_CHARS].partition(",")
    scheme, _, kind = head.partition(":")
    mime, *parameters = (word.strip().lower() for word in kind.split(";"))
    if not comma or scheme.lower() != "data" or not mime.startswith("audio/"):
        raise InputInvalid(NOT_AUDIO, field="audio_url")
    if "base64" not in parameters:
        raise InputInvalid(AUDIO_NOT_BASE64, field="audio_url")
    return AudioClip(url=url, mime=_LISTED_AS.get(mime, mime))


class NativePart(str):
    """A part that its own API gets as it came; the text is for a message of the model itself."""

    native: Mapping[str, Any]

    def __new__(cls, text: str, native: Mapping[str, Any]) -> Self:
        """A part with its text."""
        made = super().__new__(cls, text)
        made.native = native
        return made


Medium = PlacedPicture | AudioClip
Part = str | Medium


class PartSupport(msgspec.Struct, frozen=True, kw_only=True):
    """The pictures and audio that an API takes; None if it states no limit.

    ``audio`` are types as `AudioClip` has them; it is empty if the API has no format for audio.
    ``native`` is true for the API whose items a conversation consists of.
    """

    types: frozenset[str] | None = None
    count: int | None = None
    bytes_each: int | None = None
    audio: frozenset[str] | None = frozenset()
    native: bool = False


class PartWriter:
    """Prepares the parts of one request, and counts its pictures.

    Args:
        pictures: the loaded pictures by handle.
        omitted: the reason for each picture that is not sent, by handle.
        takes: what the API takes.
        takes_images: False if the model is sent no pictures at all.
        takes_audio: False if the model is sent no audio at all.
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

    def write(self, parts: Iterable[ContentPart]) -> list[Part]:
        """The parts as they are sent; blank texts, which some services refuse, are left out.

        Raises:
            InputInvalid: a part cannot be sent, a picture is not loaded, or the API does not take
                it.
        """
        written = map(self._part, parts)
        return [part for part in written if not isinstance(part, str) or part.strip()]

    def write_text(self, parts: Iterable[ContentPart]) -> list[str]:
        """A model's own parts as text: no API takes a picture or audio there.

        Raises:
            InputInvalid: a part cannot be sent.
        """
        return [part for part in self.write(map(_as_model_text, parts)) if isinstance(part, str)]

    def _part(self, part: ContentPart) -> Part:
        match part:
            case InputText() | OutputText():
                return replace_surrogates(part.text)
            case Refusal():
                return replace_surrogates(part.refusal)
            case InputImage(file_id=str() as file_id) if not part.image_url:
                native = {"type": "input_image", "file_id": file_id, "detail": part.detail}
                return self._native(native, f"picture in the file {file_id[:_SHOWN_CHARS]}")
            case InputImage():
                return self._picture(part)
            case EncryptedContent():
                native = {"type": "encrypted_content", "encrypted_content": part.encrypted_content}
                return self._native(native, "encrypted content")
            case InputAudio():
                return self._clip(part)
            case Unknown():
                raise cannot_send(f"a part of the kind {part.kind!r}")

    def _native(self, native: Mapping[str, Any], name: str) -> str:
        """The part for the API that can read it, a text for the others."""
        text = f"[{replace_surrogates(name)} is not shown: {_UNREADABLE}]"
        return NativePart(text, native) if self._takes.native else text

    def _picture(self, part: InputImage) -> Part:
        handle = _handle(part)
        if not self._takes_images:
            return picture_note(handle, NO_IMAGES)
        if handle in self._omitted:
            return picture_note(handle, self._omitted[handle])
        if handle not in self._pictures:
            raise InputInvalid(f"The picture {excerpt(handle)} was not loaded", field="image_url")
        image = self._pictures[handle]
        mime = _detect_type(image.data) or image.mime
        if mime != image.mime or (image.detail is None and part.detail is not None):
            # Services look at the bytes, and refuse a picture that is declared as another type.
            image = replace(image, mime=mime, detail=image.detail or part.detail)
        self._count += 1
        self._check(handle, image)
        return PlacedPicture(handle=handle, image=image)

    def _clip(self, part: InputAudio) -> Part:
        if not self._takes_audio:
            return audio_note(NO_AUDIO)
        try:
            clip = parse_audio_url(part.audio_url or "")
        except InputInvalid as problem:
            return audio_note(problem.message)
        listed = self._takes.audio
        if listed is None or clip.mime in listed:
            return clip
        reason = f"it is {clip.mime[:40]}, and the service takes {', '.join(sorted(listed))}"
        return audio_note(reason if listed else _NO_FORMAT)

    def _check(self, handle: str, image: ModelPicture) -> None:
        problem, takes = None, self._takes
        if takes.types is not None and image.mime not in takes.types:
            problem = f"is {image.mime}, and the service takes {', '.join(sorted(takes.types))}"
        elif takes.bytes_each is not None and len(image.data) > takes.bytes_each:
            problem = f"has {len(image.data):,} bytes; the service takes {takes.bytes_each:,}"
        elif takes.count is not None and self._count > takes.count:
            problem = f"is one too many: the service takes {takes.count:,} in a request"
        if problem is not None:
            raise InputInvalid(f"The picture {excerpt(handle)} {problem}", field="image_url")


def _as_model_text(part: ContentPart) -> ContentPart:
    match part:
        case InputImage() if part.image_url:
            return InputText(text=picture_note(_handle(part), _IN_MODEL_TEXT))
        case InputAudio():
            return InputText(text=audio_note(_IN_MODEL_TEXT))
        case _:
            return part


def _handle(part: InputImage) -> str:
    if part.handle is None:
        raise cannot_send(f"a picture without a handle, {excerpt(str(part.image_url))},")
    return part.handle


def _detect_type(data: bytes) -> str | None:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for magic, mime in _MAGIC.items() if data.startswith(magic)), None)


def media(parts: Iterable[Part]) -> list[Medium]:
    """The pictures and audio clips among parts."""
    return [part for part in parts if not isinstance(part, str)]


def join_text(parts: Iterable[Part]) -> str:
    """The parts as one text, with a name in place of each picture and audio clip."""
    return "\n".join(part if isinstance(part, str) else f"[{part.name}]" for part in parts)


def replace_surrogates(text: str) -> str:
    """Text that JSON can carry: a lone surrogate, as in odd file names, becomes a question mark."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def picture_note(handle: str, reason: str) -> str:
    """The text that is sent in place of a picture."""
    return f"[picture {HANDLE_URL}{handle} is not shown: {reason}]"


def audio_note(reason: str) -> str:
    """The text that is sent in place of an audio clip."""
    return f"[audio is not sent: {reason}]"


def excerpt(text: str) -> str:
    """The start of a text from outside, quoted for a message."""
    return repr(text[:_SHOWN_CHARS])


def cannot_send(what: str) -> InputInvalid:
    """The error about something that no request can contain."""
    return InputInvalid(f"{what} cannot be sent to a model"[:300], field="items")
