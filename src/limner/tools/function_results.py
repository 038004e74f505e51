"""What a Python function returned -> a tool's outcome, with every picture in it stored."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from limner.content import Content, Picture, Text
from limner.errors import ImageError, MissingExtra
from limner.pictures.placeholders import omitted, reason_of
from limner.pictures.take import Pictures
from limner.tools.base import Outcome, ToolContext
from limner.tools.built_in.image_recall import as_value
from limner.tools.image_input import DrawnPicture, resolve_image
from limner.tools.output_file import GeneratedImage
from limner.wires.base import HANDLE_URL

_PICTURES = (
    *(bytes, bytearray, memoryview, io.IOBase),
    *(os.PathLike, Picture, GeneratedImage, DrawnPicture),
)
# Any other text is words: a path has to be a `Path`.
_PICTURE_URL = re.compile(rf"data:image/[^,]{{1,100}};base64,|{HANDLE_URL}[0-9a-f]{{64}}$")


class FunctionResults(msgspec.Struct, frozen=True, kw_only=True):
    """Turns what a tool's function returns into outcomes; ``pictures`` stores its pictures.

    Outcomes are untrusted unless the tool is ``trusted``: a function may read from anywhere.
    """

    tool: str
    pictures: Callable[[], Pictures]
    context: ToolContext
    trusted: bool = False

    async def outcome(self, answer: Any) -> Outcome:
        """The outcome of a call.

        Words, a picture (every `ImageInput`; a text only as a data URL or ``limner://image/…``), or
        a list that contains one of these are content. A mapping, or anything else that JSON can
        express, is the value. A picture that cannot be decoded is replaced by words that say why;
        the rest stays.

        Raises:
            ReachDenied: the caller may not read a path.
            StorageError: a file does not exist, or a picture cannot be stored.
            TypeError: JSON cannot express the answer.
        """
        return replace(await self._outcome(answer), untrusted=not self.trusted)

    async def _outcome(self, answer: Any) -> Outcome:
        if _is_content(answer):
            return await self._content([answer])
        if isinstance(answer, list | tuple):
            parts = cast("Sequence[Any]", answer)
            if any(isinstance(part, Text) or _is_picture(part) for part in parts):
                return await self._content(parts)
        return Outcome(value=_value(answer))

    async def _content(self, parts: Sequence[Any]) -> Outcome:
        gathered = _Gathered()
        for part in parts:
            gathered.add(await self._part(part))
        return gathered.outcome()

    async def _part(self, part: Any) -> Content | ImageError | MissingExtra:
        if isinstance(part, Text):
            return part
        if not _is_picture(part):
            return Text(part if isinstance(part, str) else _json(part))
        try:
            return await self._taken(part)
        except (ImageError, MissingExtra) as problem:
            return problem

    async def _taken(self, part: Any) -> Picture:
        pictures = self.pictures()
        found = await resolve_image(part, pictures=pictures, source=self.tool)
        if isinstance(found, Picture):
            return found
        if isinstance(part, str):
            return await pictures.recall(part.removeprefix(HANDLE_URL))
        return await pictures.take_file(
            self.context.reach.resolve_read(found, cwd=self.context.cwd)
        )


class _Gathered(msgspec.Struct):
    """The content of an answer while it is collected."""

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
    return isinstance(answer, str | Text) or _is_picture(answer)


def _is_picture(part: Any) -> bool:
    if isinstance(part, str):
        return _PICTURE_URL.match(part) is not None
    return isinstance(part, _PICTURES)


def _json(part: Any) -> str:
    return msgspec.json.encode(_value(part)).decode()


def _value(answer: Any) -> Mapping[str, Any]:
    """An answer as a JSON object. It may not contain bytes: a picture is returned by itself."""
    plain = msgspec.to_builtins(answer, builtin_types=(bytes, bytearray, memoryview), str_keys=True)
    json.dumps(plain)  # raises for bytes, which msgspec would write as base64
    return cast("dict[str, Any]", plain) if isinstance(plain, dict) else {"result": plain}
