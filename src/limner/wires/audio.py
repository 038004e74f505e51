"""The address of a sound -> its type and its base64, or why nobody can hear it."""

from __future__ import annotations

from collections.abc import Mapping

from limner.content import Discreet
from limner.errors import InputInvalid

# Of a data URL's beginning, more than any type and its parameters need.
_MAX_HEAD_CHARS = 200
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

NO_DATA = "its address is no data URL of a sound"
NOT_BASE64 = "its data is not base64"


class DecodedAudio(Discreet, frozen=True, kw_only=True):
    """A sound where it belongs: its data URL as it came, and its type as services list it."""

    unshown = ("url",)

    url: str
    mime: str

    @property
    def name(self) -> str:
        """How words speak of it."""
        return "a sound"

    @property
    def base64(self) -> str:
        """Its bytes as text."""
        return self.url.partition(",")[2]

    @property
    def size_bytes(self) -> int:
        """How many bytes it has, or up to two more: padding is not looked at."""
        return (len(self.url) - self.url.find(",") - 1) * 3 // 4


def read_sound(url: str) -> DecodedAudio:
    """The sound in a data URL; whether its base64 is any is not looked at here.

    Raises:
        InputInvalid: it is another address, which is never followed, or of another type.
    """
    head, comma, _ = url[:_MAX_HEAD_CHARS].partition(",")
    scheme, _, kind = head.partition(":")
    mime, *parameters = (word.strip().lower() for word in kind.split(";"))
    if not comma or scheme.lower() != "data" or not mime.startswith("audio/"):
        raise InputInvalid(NO_DATA, field="audio_url")
    if "base64" not in parameters:
        raise InputInvalid(NOT_BASE64, field="audio_url")
    return DecodedAudio(url=url, mime=_LISTED_AS.get(mime, mime))
