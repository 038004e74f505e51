"""Items and parts from outside, with pictures in them -> the same with handles, and warnings.

Whoever speaks in a conversation, a user, a tool, a client, an imported history, comes in here. A
picture or a sound that is none is replaced by words that say why; everything around it stays as it
came.
"""

from __future__ import annotations

import asyncio
import binascii
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from limner.agent.audio import is_sound, omitted_sound, problem_of, sound
from limner.content import Picture
from limner.errors import CorruptImage, ImageError, MissingExtra, StorageError
from limner.pictures.placeholders import omitted, reason_of
from limner.pictures.take import MAX_PICTURE_BYTES, Pictures
from limner.storage.blobs import is_handle
from limner.wires import items as made
from limner.wires.base import HANDLE_URL
from limner.wires.incoming_media import Incoming, Omitted, RawAudio, RawPicture
from limner.wires.item_views import handle_of
from limner.wires.items import Item, Part, image_parts, is_image, with_parts

AT_ONCE = 4
MAX_BASE64_CHARS = (MAX_PICTURE_BYTES + 2) // 3 * 4
# Of a data URL's beginning, more than any type and its parameters need.
MAX_HEAD_CHARS = 200
DETAILS = ("auto", "low", "high", "original")

NO_ADDRESS = "it has no address"
NO_REMOTE = "pictures are not fetched from the network; send the picture itself as a data URL"
NO_FILES = "files are not read through an address; send the picture itself as a data URL"
NO_DATA = "its address is no data URL of a picture"
NOT_BASE64 = "its data is not base64"
EMPTY = "it has no bytes"
TOO_LARGE = f"it is larger than {MAX_PICTURE_BYTES:,} bytes"
UNKNOWN_HANDLE = "no picture of that handle is stored here"

_GENERATED = "image_generation_call"
_REFUSED_SCHEMES = {"http": NO_REMOTE, "https": NO_REMOTE, "file": NO_FILES}
# Two names for the same type, and names that claim nothing.
_SAME_TYPE = {"image/jpg": "image/jpeg", "image/x-png": "image/png"}
_ANY_TYPE = frozenset({"", "image/*", "application/octet-stream"})


class IngestedItems(msgspec.Struct, frozen=True, kw_only=True):
    """What came in.

    Attributes:
        items: the items, or the parts, each picture in them a handle or words.
        pictures: the pictures, each once, in the order they came.
        warnings: one sentence for each thing that somebody should know.
    """

    items: tuple[dict[str, Any], ...]
    pictures: tuple[Picture, ...] = ()
    warnings: tuple[str, ...] = ()


class _Taken(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one address: a picture, or the reason why not; and what is odd about it."""

    picture: Picture | None = None
    problem: str | None = None

    @property
    def part(self) -> dict[str, Any]:
        if self.picture is not None:
            return made.picture(self.picture.handle)
        return made.text(omitted(self.problem or NO_ADDRESS))


class Ingress(msgspec.Struct, frozen=True, kw_only=True):
    """The door through which pictures enter conversations."""

    pictures: Pictures

    async def items(self, items: Iterable[Item], *, source: str) -> IngestedItems:
        """Take in every picture of these items, and check their sounds.

        Args:
            items: as they arrived, in the shape of OpenAI's Responses API.
            source: who sends them, for the pictures' lineage and the warnings.

        Raises:
            StorageError: a picture cannot be kept, as on a full disk.
        """
        arrived, unheard = await asyncio.to_thread(_with_sounds, items, source)
        addresses = [url for item in arrived for url in _addresses(item)]
        taken = await self._take_all(list(dict.fromkeys(addresses)), source)
        pictures = {one.picture.handle: one.picture for one in taken.values() if one.picture}
        return IngestedItems(
            items=tuple(_with_handles(item, taken) for item in arrived),
            pictures=tuple(pictures.values()),
            warnings=_warnings([taken[url] for url in addresses], source) + unheard,
        )

    async def parts(self, parts: Sequence[Part], *, source: str) -> IngestedItems:
        """As `items`, for the parts of one message or output."""
        entered = await self.items([{"content": list(parts)}], source=source)
        return IngestedItems(
            items=tuple(entered.items[0]["content"]),
            pictures=entered.pictures,
            warnings=entered.warnings,
        )

    async def contents(self, contents: Iterable[Incoming], *, source: str) -> IngestedItems:
        """As `parts`, for what a client of another protocol sent."""
        arrived = list(contents)
        known = {one.data: one.mime for one in arrived if isinstance(one, RawPicture)}
        taken = {
            data: await self._take_bytes(partial(bytes, data), mime.lower(), source)
            for data, mime in known.items()
        }
        found = [_incoming(one, taken) for one in arrived]
        results = [one for one in found if isinstance(one, _Taken)]
        pictures = {one.picture.handle: one.picture for one in results if one.picture}
        parts = [one.part if isinstance(one, _Taken) else one for one in found]
        (item,), unheard = await asyncio.to_thread(_with_sounds, [{"content": parts}], source)
        return IngestedItems(
            items=tuple(item["content"]),
            pictures=tuple(pictures.values()),
            warnings=_warnings(results, source) + unheard,
        )

    async def _take_all(self, urls: Sequence[str], source: str) -> dict[str, _Taken]:
        """What became of each address; one that is there twice is looked at once."""
        gate = asyncio.Semaphore(AT_ONCE)

        async def one(url: str) -> _Taken:
            async with gate:
                return await self._take(url, source)

        found = await asyncio.gather(*(one(url) for url in urls))
        return dict(zip(urls, found, strict=True))

    async def _take(self, url: str, source: str) -> _Taken:
        if (handle := handle_of(url)) is not None:
            return await self._known(handle)
        scheme = url[:16].partition(":")[0].strip().lower()
        if scheme != "data":
            problem = _REFUSED_SCHEMES.get(scheme, NO_DATA)
            return _Taken(problem=problem if url else NO_ADDRESS)
        head, _, body = url.partition(",")
        declared, *settings = head[len("data:") : MAX_HEAD_CHARS].lower().split(";")
        if "base64" not in settings:
            return _Taken(problem=NOT_BASE64)
        if not body or len(body) > MAX_BASE64_CHARS:
            return _Taken(problem=TOO_LARGE if body else EMPTY)
        return await self._take_bytes(partial(_decoded, body), declared, source)

    async def _take_bytes(self, data: Callable[[], bytes], declared: str, source: str) -> _Taken:
        try:
            with self.pictures.sink() as sink:
                # Tens of megabytes are decoded and written where no event loop waits for them.
                await asyncio.to_thread(lambda: sink.write(data()))
                picture = await self.pictures.take(sink, lineage={"from": source})
        except (ImageError, MissingExtra) as error:
            return _Taken(problem=reason_of(error))
        if declared in _ANY_TYPE or _SAME_TYPE.get(declared, declared) == picture.mime:
            return _Taken(picture=picture)
        shown = declared[:40]
        return _Taken(
            picture=picture,
            problem=f"it was declared as {shown!r} and is {picture.mime}, which it is taken for",
        )

    async def _known(self, handle: str) -> _Taken:
        """A picture that is here already: who knows its sha256 has had it before."""
        if is_handle(handle):
            try:
                return _Taken(picture=await self.pictures.recall(handle))
            except StorageError as error:
                if error.code != "NO_SUCH_PICTURE":
                    raise
        return _Taken(problem=UNKNOWN_HANDLE)


def _decoded(body: str) -> bytes:
    try:
        return binascii.a2b_base64(body, strict_mode=True)
    except ValueError as error:
        raise CorruptImage(NOT_BASE64) from error


def _address(part: Part) -> str:
    url: object = part.get("image_url")
    return url.strip() if isinstance(url, str) else ""


def _addresses(item: Item) -> list[str]:
    """The addresses of the pictures in an item; an empty one where a picture has none."""
    found = [_address(part) for part in image_parts(item)]
    return found if (result := _generated(item)) is None else [*found, result]


def _generated(item: Item) -> str | None:
    """The picture that a service drew by itself, as an address: there it is base64 alone."""
    result: object = item.get("result")
    if item.get("type") != _GENERATED or not isinstance(result, str) or not result:
        return None
    return result if handle_of(result) is not None else f"data:;base64,{result}"


def _with_handles(item: Item, taken: Mapping[str, _Taken]) -> dict[str, Any]:
    def swap(part: Part) -> Part:
        if not is_image(part):
            return part
        new = taken[_address(part)].part
        if not is_image(new):
            return new
        # A detail that no service knows would have the whole request refused.
        kept = {k: v for k, v in part.items() if k != "detail" or v in DETAILS}
        return kept | new

    kept = with_parts(item, swap)
    if (result := _generated(item)) is not None:
        picture = taken[result].picture
        kept["result"] = "" if picture is None else f"{HANDLE_URL}{picture.handle}"
    return kept


def _with_sounds(
    items: Iterable[Item], source: str
) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """The items with words in the place of sounds that are none; and a warning for each."""
    warnings: list[str] = []

    def swap(part: Part) -> Part:
        problem = problem_of(part) if is_sound(part) else None
        if problem is None:
            return part
        warnings.append(f"A sound from {source} was left out: {problem}.")
        return made.text(omitted_sound(problem))

    checked = [with_parts(item, swap) for item in items]
    return checked, tuple(warnings)


def _incoming(one: Incoming, taken: Mapping[bytes, _Taken]) -> _Taken | dict[str, Any]:
    match one:
        case RawPicture():
            return taken[one.data]
        case Omitted():
            return _Taken(problem=one.why)
        case RawAudio():
            return sound(one.url)
        case str():
            return made.text(one)


def _warnings(taken: Sequence[_Taken], source: str) -> tuple[str, ...]:
    """One for each picture that was left out or is not what it was said to be."""
    return tuple(
        f"Picture {number} of {len(taken)} from {source} was "
        f"{'left out' if one.picture is None else 'taken in'}: {one.problem}."
        for number, one in enumerate(taken, start=1)
        if one.problem is not None
    )
