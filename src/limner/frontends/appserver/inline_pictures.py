"""Items that name pictures by handle -> items with the pictures inline, up to a size.

The newest pictures are inlined first. When the response is full, older ones keep the URL of their
handle. Sounds are always inline and have no handle: older ones become a text.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from limner.base64_text import encode_base64
from limner.errors import StorageError
from limner.frontends.appserver.protocol.base import (
    AudioInput,
    ContentItem,
    ImageInput,
    InputAudio,
    InputImage,
    InputText,
    TextInput,
    UserInput,
)
from limner.frontends.appserver.protocol.items import (
    DynamicToolCall,
    FunctionCallOutput,
    ImageGeneration,
    ThreadItem,
    UserMessage,
)
from limner.pictures.take import Pictures
from limner.wires.item_views import handle_of
from limner.wires.items import image_urls, is_audio, replace_images, text_part

MAX_INLINE_CHARS = 32 * 1024 * 1024
LEFT_OUT = "[A sound was left out of this long answer: thread/items/list has it.]"


class PictureInliner(msgspec.Struct, frozen=True, kw_only=True):
    """Inlines pictures. ``max_chars`` limits their base64 in one response, and that of sounds."""

    pictures: Pictures
    max_chars: int = MAX_INLINE_CHARS

    async def inline(self, items: Sequence[ThreadItem]) -> list[ThreadItem]:
        """The items, given with the oldest first, with as many pictures and sounds as fit."""
        urls = await self.load([url for item in items for url in _urls(item)])
        return [inline_urls(item, urls) for item in self._with_sounds(items)]

    def _with_sounds(self, items: Sequence[ThreadItem]) -> list[ThreadItem]:
        room, fitting = self.max_chars, list[ThreadItem]()
        for item in reversed(items):
            chars = _sound_chars(item)
            fits = chars <= room
            room -= chars if fits else 0
            fitting.append(item if fits else _without_sounds(item))
        return fitting[::-1]

    async def load(self, wanted: Sequence[str]) -> dict[str, str]:
        """The data URLs of pictures by the URLs of their handles; the last one is loaded first."""
        loaded: dict[str, str] = {}
        room, times = self.max_chars, Counter(wanted)
        for url in dict.fromkeys(reversed(wanted)):
            try:
                picture = await self.pictures.recall(handle_of(url) or "")
                chars = (picture.size_bytes + 2) // 3 * 4 * times[url]
                if chars > room:
                    continue
                data = await self.pictures.original(picture)
            except StorageError:
                continue  # its bytes are gone: only its handle is left
            room -= chars
            text = await asyncio.to_thread(encode_base64, data)
            loaded[url] = f"data:{picture.mime};base64,{text}"
        return loaded


def _urls(item: ThreadItem) -> list[str]:
    """The URLs of an item's pictures that are handles."""
    match item:
        case UserMessage():
            found = [one.url for one in item.content if isinstance(one, ImageInput)]
        case DynamicToolCall():
            found = [
                one.image_url for one in item.content_items or () if isinstance(one, InputImage)
            ]
        case FunctionCallOutput():
            found = image_urls({"output": item.output})
        case ImageGeneration():
            found = [item.result]
        case _:
            found = []
    return [url for url in found if isinstance(url, str) and handle_of(url) is not None]


def inline_urls(item: ThreadItem, urls: Mapping[str, str]) -> ThreadItem:
    """The item with those of its pictures inline that have a data URL."""
    match item:
        case UserMessage():
            return replace(item, content=tuple(_with_image(one, urls) for one in item.content))
        case DynamicToolCall() if item.content_items is not None:
            found = tuple(_with_picture(one, urls) for one in item.content_items)
            return replace(item, content_items=found)
        case FunctionCallOutput():
            swaps = {
                url: {"type": "input_image", "image_url": urls[url]}
                for url in _urls(item)
                if url in urls
            }
            inlined = replace_images({"output": item.output}, swaps)
            return replace(item, output=cast("str | list[dict[str, Any]]", inlined["output"]))
        case ImageGeneration() if handle_of(item.result) is not None:
            # This member cannot have a URL: it is base64 or empty.
            return replace(item, result=urls.get(item.result, "").partition(",")[2])
        case _:
            return item


def _sound_chars(item: ThreadItem) -> int:
    """How many characters the sounds of an item take."""
    match item:
        case UserMessage():
            return sum(len(one.url) for one in item.content if isinstance(one, AudioInput))
        case DynamicToolCall():
            content = item.content_items or ()
            return sum(len(one.audio_url) for one in content if isinstance(one, InputAudio))
        case FunctionCallOutput() if not isinstance(item.output, str):
            return sum(len(str(part.get("audio_url"))) for part in item.output if is_audio(part))
        case _:
            return 0


def _without_sounds(item: ThreadItem) -> ThreadItem:
    """The item with a text in place of each sound."""
    match item:
        case UserMessage():
            left_out = TextInput(text=LEFT_OUT)
            content = (left_out if isinstance(one, AudioInput) else one for one in item.content)
            return replace(item, content=tuple(content))
        case DynamicToolCall():
            content = item.content_items or ()
            left_out = InputText(text=LEFT_OUT)
            rest = (left_out if isinstance(one, InputAudio) else one for one in content)
            return replace(item, content_items=tuple(rest))
        case FunctionCallOutput() if not isinstance(item.output, str):
            parts = [text_part(LEFT_OUT) if is_audio(part) else part for part in item.output]
            return replace(item, output=parts)
        case _:
            return item


def _with_image(one: UserInput, urls: Mapping[str, str]) -> UserInput:
    if isinstance(one, ImageInput) and isinstance(one.url, str) and one.url in urls:
        return replace(one, url=urls[one.url])
    return one


def _with_picture(one: ContentItem, urls: Mapping[str, str]) -> ContentItem:
    if isinstance(one, InputImage) and one.image_url in urls:
        return replace(one, image_url=urls[one.image_url])
    return one
