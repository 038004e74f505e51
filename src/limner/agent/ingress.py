"""Items and parts from outside, with pictures in them -> the same with handles, and warnings.

Everything that enters a conversation passes here: the messages of a user, the outputs of tools, the
items of a client, an imported history. A note replaces a picture or an audio clip that is not
valid; everything else stays as it came.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from limner.agent.audio import find_problem, omission_note
from limner.base64_text import decode_base64
from limner.content import Picture
from limner.errors import CorruptImage, ImageError, MissingExtra, StorageError
from limner.pictures.placeholders import omitted, reason_of
from limner.pictures.take import MAX_PICTURE_BYTES, Pictures
from limner.storage.blobs import is_handle
from limner.wires.incoming_media import Incoming, Omitted, RawAudio, RawPicture
from limner.wires.item_views import handle_of
from limner.wires.items import (
    Item,
    Part,
    audio_part,
    image_part,
    is_audio,
    is_image,
    iter_parts,
    map_parts,
    text_part,
)

MAX_CONCURRENT = 4
MAX_BASE64_CHARS = (MAX_PICTURE_BYTES + 2) // 3 * 4
# The type and parameters of a data URL are shorter than this.
MAX_HEAD_CHARS = 200
DETAILS = ("auto", "low", "high", "original")

NO_URL = "it has no URL"
NO_REMOTE = "pictures are not fetched from the network; send the picture itself as a data URL"
NO_FILES = "files are not read through a URL; send the picture itself as a data URL"
NO_DATA = "its URL is not a data URL of a picture"
NOT_BASE64 = "its data is not base64"
EMPTY = "it has no bytes"
TOO_LARGE = f"it is larger than {MAX_PICTURE_BYTES:,} bytes"
UNKNOWN_HANDLE = "no picture with that handle is stored here"

_REFUSED_SCHEMES = {"http": NO_REMOTE, "https": NO_REMOTE, "file": NO_FILES}
# Two names for the same type, and names that claim nothing.
_SAME_TYPE = {"image/jpg": "image/jpeg", "image/x-png": "image/png"}
_ANY_TYPE = frozenset({"", "image/*", "application/octet-stream"})


class IngestedItems(msgspec.Struct, frozen=True, kw_only=True):
    """What came in.

    Attributes:
        items: the items, or the parts, with a handle or a note in place of each picture.
        pictures: the pictures, each once, in the order they came.
        warnings: one sentence for each picture or clip that was left out or changed.
    """

    items: tuple[dict[str, Any], ...]
    pictures: tuple[Picture, ...] = ()
    warnings: tuple[str, ...] = ()


class _Taken(msgspec.Struct, frozen=True, kw_only=True):
    """The result for one URL: a picture, or the reason for none; a picture may have a problem."""

    picture: Picture | None = None
    problem: str | None = None

    @property
    def part(self) -> dict[str, Any]:
        if self.picture is not None:
            return image_part(self.picture.handle)
        return text_part(omitted(self.problem or NO_URL))


class _FoundMedia(msgspec.Struct, frozen=True, kw_only=True):
    """The URLs of all pictures, and the problem of each audio URL; both as often as they occur."""

    image_urls: Sequence[str]
    audio_problems: Sequence[tuple[str, str | None]]

    @property
    def audio_notes(self) -> dict[str, str]:
        """The note for each audio URL that is not taken in."""
        return {url: omission_note(why) for url, why in self.audio_problems if why is not None}

    def audio_warnings(self, source: str) -> tuple[str, ...]:
        return tuple(
            f"An audio clip from {source} was left out: {why}."
            for _, why in self.audio_problems
            if why is not None
        )


class Ingress(msgspec.Struct, frozen=True, kw_only=True):
    """Takes pictures and audio from outside into conversations."""

    pictures: Pictures

    async def items(self, items: Iterable[Item], *, source: str) -> IngestedItems:
        """Take in every picture of these items, and check their audio.

        Args:
            items: as they arrived, in the shape of OpenAI's Responses API.
            source: who sends them, for the pictures' lineage and the warnings.

        Raises:
            StorageError: a picture cannot be stored, as on a full disk.
        """
        arrived = list(items)
        found = await _find_media(arrived)
        taken = await self._take_all(list(dict.fromkeys(found.image_urls)), source)
        pictures = {one.picture.handle: one.picture for one in taken.values() if one.picture}
        notes = found.audio_notes
        return IngestedItems(
            items=tuple(_replace_media(item, taken, notes) for item in arrived),
            pictures=tuple(pictures.values()),
            warnings=_picture_warnings([taken[url] for url in found.image_urls], source)
            + found.audio_warnings(source),
        )

    async def parts(self, parts: Sequence[Part], *, source: str) -> IngestedItems:
        """Like `items`, for the parts of one message or output."""
        ingested = await self.items([{"content": list(parts)}], source=source)
        return IngestedItems(
            items=tuple(ingested.items[0]["content"]),
            pictures=ingested.pictures,
            warnings=ingested.warnings,
        )

    async def contents(self, contents: Iterable[Incoming], *, source: str) -> IngestedItems:
        """Like `parts`, for the content of another protocol."""
        arrived = list(contents)
        known = {one.data: one.mime for one in arrived if isinstance(one, RawPicture)}
        taken = {
            data: await self._take_bytes(partial(bytes, data), mime.lower(), source)
            for data, mime in known.items()
        }
        results = [_to_part(one, taken) for one in arrived]
        takes = [one for one in results if isinstance(one, _Taken)]
        pictures = {one.picture.handle: one.picture for one in takes if one.picture}
        parts = [one.part if isinstance(one, _Taken) else one for one in results]
        found = await _find_media([{"content": parts}])
        notes = found.audio_notes
        return IngestedItems(
            items=tuple(_replace_audio(part, notes) for part in parts),
            pictures=tuple(pictures.values()),
            warnings=_picture_warnings(takes, source) + found.audio_warnings(source),
        )

    async def _take_all(self, urls: Sequence[str], source: str) -> dict[str, _Taken]:
        """The result for each URL; the URLs are all different."""
        gate = asyncio.Semaphore(MAX_CONCURRENT)

        async def take(url: str) -> _Taken:
            async with gate:
                return await self._take(url, source)

        results = await asyncio.gather(*(take(url) for url in urls))
        return dict(zip(urls, results, strict=True))

    async def _take(self, url: str, source: str) -> _Taken:
        if (handle := handle_of(url)) is not None:
            return await self._find_stored(handle)
        scheme = url[:16].partition(":")[0].strip().lower()
        if scheme != "data":
            problem = _REFUSED_SCHEMES.get(scheme, NO_DATA)
            return _Taken(problem=problem if url else NO_URL)
        head, _, body = url.partition(",")
        declared, *settings = head[len("data:") : MAX_HEAD_CHARS].lower().split(";")
        if "base64" not in settings:
            return _Taken(problem=NOT_BASE64)
        if not body or len(body) > MAX_BASE64_CHARS:
            return _Taken(problem=TOO_LARGE if body else EMPTY)
        return await self._take_bytes(partial(_decode_base64, body), declared, source)

    async def _take_bytes(self, data: Callable[[], bytes], declared: str, source: str) -> _Taken:
        try:
            with self.pictures.sink() as sink:
                # A thread decodes and writes tens of megabytes, so that the event loop is free.
                await asyncio.to_thread(lambda: sink.write(data()))
                # The item that names the picture is stored next, and synced.
                picture = await self.pictures.take(sink, lineage={"from": source}, synced=False)
        except (ImageError, MissingExtra) as error:
            return _Taken(problem=reason_of(error))
        if declared in _ANY_TYPE or _SAME_TYPE.get(declared, declared) == picture.mime:
            return _Taken(picture=picture)
        shown = declared[:40]
        return _Taken(
            picture=picture,
            problem=f"it was declared as {shown!r} and is {picture.mime}, which limner uses",
        )

    async def _find_stored(self, handle: str) -> _Taken:
        """A picture that is stored here: a sender who knows its sha256 has had it before."""
        if is_handle(handle):
            try:
                return _Taken(picture=await self.pictures.recall(handle))
            except StorageError as error:
                if error.code != "NO_SUCH_PICTURE":
                    raise
        return _Taken(problem=UNKNOWN_HANDLE)


async def _find_media(items: Iterable[Item]) -> _FoundMedia:
    """Collect the pictures and check the audio of items."""
    parts = [part for item in items for part in iter_parts(item)]
    clips = [_audio_url(part) for part in parts if is_audio(part)]
    # A long clip takes a while; few items have one.
    problems = await asyncio.to_thread(lambda: [*map(find_problem, clips)]) if clips else []
    return _FoundMedia(
        image_urls=[_image_url(part) for part in parts if is_image(part)],
        audio_problems=list(zip(clips, problems, strict=True)),
    )


def _replace_media(
    item: Item, taken: Mapping[str, _Taken], audio_notes: Mapping[str, str]
) -> dict[str, Any]:
    """The item with a handle or a note in place of each picture, and a note for each bad clip."""

    def replace(part: Part) -> Part:
        if not is_image(part):
            return _replace_audio(part, audio_notes)
        new = taken[_image_url(part)].part
        if not is_image(new):
            return new
        # A service would refuse the whole request because of an unknown detail.
        kept = {k: v for k, v in part.items() if k != "detail" or v in DETAILS}
        return kept | new

    return map_parts(item, replace)


def _replace_audio(part: Part, notes: Mapping[str, str]) -> dict[str, Any]:
    note = notes.get(_audio_url(part)) if is_audio(part) else None
    return dict(part) if note is None else text_part(note)


def _image_url(part: Part) -> str:
    """The URL of a picture; empty if it has none."""
    url: object = part.get("image_url")
    return url.strip() if isinstance(url, str) else ""


def _audio_url(part: Part) -> str:
    url: object = part.get("audio_url")
    return url if isinstance(url, str) else ""


def _decode_base64(body: str) -> bytes:
    try:
        return decode_base64(body)
    except ValueError as error:
        raise CorruptImage(NOT_BASE64) from error


def _to_part(one: Incoming, taken: Mapping[bytes, _Taken]) -> _Taken | dict[str, Any]:
    match one:
        case RawPicture():
            return taken[one.data]
        case Omitted():
            return _Taken(problem=one.why)
        case RawAudio():
            return audio_part(one.url)
        case str():
            return text_part(one)


def _picture_warnings(taken: Sequence[_Taken], source: str) -> tuple[str, ...]:
    """One warning for each picture that was left out or has another type than declared."""
    return tuple(
        f"Picture {number} of {len(taken)} from {source} was "
        f"{'left out' if one.picture is None else 'taken in'}: {one.problem}."
        for number, one in enumerate(taken, start=1)
        if one.problem is not None
    )
