"""What a Python function returned -> a tool's outcome, with every picture in it taken in."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast, runtime_checkable

import msgspec
from msgspec.structs import replace

from limner.content import Content, Picture, Text
from limner.errors import CorruptImage, ImageError, MissingExtra
from limner.pictures.placeholders import omitted, reason_of
from limner.pictures.take import Pictures
from limner.tools.base import Outcome, ToolContext
from limner.tools.built_in.image_recall import as_value


@runtime_checkable
class DrawnPicture(Protocol):
    """A picture in memory, as Pillow has them."""

    mode: str
    size: tuple[int, int]

    def save(self, fp: Any, format: str) -> None:  # noqa: A002 - Pillow's own name for it
        """Write it to a file."""
        ...


_PICTURES = (bytes, bytearray, memoryview, Path, Picture, DrawnPicture)


class FunctionResults(msgspec.Struct, frozen=True, kw_only=True):
    """Makes outcomes of what one tool's function returns; its pictures are kept in ``pictures``.

    They are untrusted unless the tool is ``trusted``: nobody knows where a function has read them.
    """

    tool: str
    pictures: Callable[[], Pictures]
    context: ToolContext
    trusted: bool = False

    async def outcome(self, answer: Any) -> Outcome:
        """The outcome of a call.

        Words, a picture, or a list with one of these in it are content. A mapping, or anything
        else that can be written as JSON, is the value. A picture that is none is replaced by words
        that say why, and the rest stays.

        Raises:
            ReachDenied: a path is outside what the caller may read.
            StorageError: a file is not there, or a picture cannot be kept.
            TypeError: the answer cannot be written as JSON.
        """
        return replace(await self._outcome(answer), untrusted=not self.trusted)

    async def _outcome(self, answer: Any) -> Outcome:
        if _is_content(answer):
            return await self._content([answer])
        if isinstance(answer, list | tuple):
            parts = cast("Sequence[Any]", answer)
            if any(isinstance(part, (*_PICTURES, Text)) for part in parts):
                return await self._content(parts)
        return Outcome(value=_value(answer))

    async def _content(self, parts: Sequence[Any]) -> Outcome:
        gathered = _Gathered()
        for part in parts:
            gathered.add(await self._part(part))
        return gathered.outcome()

    async def _part(self, part: Any) -> Content | ImageError | MissingExtra:
        match part:
            case str():
                return Text(part)
            case Text() | Picture():
                return part
            case _ if not isinstance(part, _PICTURES):
                return Text(msgspec.json.encode(_value(part)).decode())
            case _:
                pass
        try:
            return await self._taken(part)
        except (ImageError, MissingExtra) as problem:
            return problem

    async def _taken(self, part: Any) -> Picture:
        pictures = self.pictures()
        if isinstance(part, Path):
            path = self.context.reach.resolve_read(part, cwd=self.context.cwd)
            return await pictures.take_file(path)
        data = (
            await asyncio.to_thread(_saved, part) if isinstance(part, DrawnPicture) else bytes(part)
        )
        with pictures.sink() as sink:
            await asyncio.to_thread(sink.write, data)
            return await pictures.take(sink, lineage={"from": self.tool})


class _Gathered(msgspec.Struct):
    """The content of an answer as it comes together."""

    content: list[Content] = msgspec.field(default_factory=list[Content])
    problems: list[str] = msgspec.field(default_factory=list[str])

    def add(self, part: Content | ImageError | MissingExtra) -> None:
        if isinstance(part, ImageError | MissingExtra):
            reason = reason_of(part)
            self.problems.append(reason)
            part = Text(omitted(reason))
        self.content.append(part)

    def outcome(self) -> Outcome:
        value: dict[str, Any] = {}
        if texts := [part.text for part in self.content if isinstance(part, Text)]:
            value["text"] = "\n".join(texts)
        if pictures := [as_value(part) for part in self.content if isinstance(part, Picture)]:
            value["images"] = pictures
        if self.problems:
            value["warnings"] = [f"A picture was left out: {one}." for one in self.problems]
        return Outcome(value=value, content=tuple(self.content))


def _is_content(answer: Any) -> bool:
    return isinstance(answer, (str, Text, *_PICTURES))


def _saved(drawn: DrawnPicture) -> bytes:
    file = io.BytesIO()
    try:
        drawn.save(file, "PNG")
    except (OSError, ValueError) as error:
        raise CorruptImage(f"it cannot be written as PNG: {error}") from error
    return file.getvalue()


def _value(answer: Any) -> Mapping[str, Any]:
    """An answer as an object of JSON. Bytes in it are none: a picture is returned by itself."""
    plain = msgspec.to_builtins(answer, builtin_types=(bytes, bytearray, memoryview), str_keys=True)
    json.dumps(plain)  # raises where they are, which msgspec would write as base64
    return cast("dict[str, Any]", plain) if isinstance(plain, dict) else {"result": plain}
