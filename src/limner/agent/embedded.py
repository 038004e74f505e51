"""Pictures written out as base64 in the middle of texts -> their handles.

Some tools answer with a picture as words, and a history from elsewhere may be full of them: a model
reads nothing in them, and pays for every character.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from limner.agent.ingress import Ingress
from limner.content import Picture
from limner.wires.base import HANDLE_URL
from limner.wires.views import handle_of

# What PNG, JPEG, GIF and WebP files begin with, as base64.
_PICTURE = (
    r"(?:data:image/[\w.+-]{1,40};base64,)?"
    r"(?<![A-Za-z0-9+/])(?:iVBORw0KGgo|/9j/|R0lGOD|UklGR)[A-Za-z0-9+/]{64,}={0,2}"
)

Swap = Callable[[str], str]


async def without_embedded(
    items: Iterable[Mapping[str, Any]], *, ingress: Ingress, source: str
) -> tuple[list[dict[str, Any]], tuple[Picture, ...]]:
    """The items with each picture in their texts replaced by its handle, and those pictures.

    What looks like a picture and is none stays as it is.

    Raises:
        StorageError: a picture cannot be kept.
    """
    given = [dict(item) for item in items]
    found: dict[str, None] = {}

    def note(text: str) -> str:
        found.update(dict.fromkeys(match[0] for match in re.finditer(_PICTURE, text)))
        return text

    for item in given:
        _rewritten(item, note)
    if not found:
        return given, ()
    entered = await ingress.parts([_part(one) for one in found], source=source)
    handles = {
        text: url
        for text, part in zip(found, entered.items, strict=True)
        if isinstance(url := part.get("image_url"), str) and handle_of(url) is not None
    }

    def swap(text: str) -> str:
        return re.sub(_PICTURE, lambda match: handles.get(match[0], match[0]), text)

    return [_rewritten(item, swap) for item in given], entered.pictures


def _part(found: str) -> dict[str, Any]:
    url = found if found.startswith("data:") else f"data:image/*;base64,{found}"
    return {"type": "input_image", "image_url": url}


def _rewritten(value: Any, swap: Swap) -> Any:
    if isinstance(value, str):
        # Most texts are short, or name a picture already.
        return value if value.startswith(HANDLE_URL) else swap(value)
    if isinstance(value, list):
        return [_rewritten(one, swap) for one in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {k: _rewritten(v, swap) for k, v in cast("dict[str, Any]", value).items()}
    return value
