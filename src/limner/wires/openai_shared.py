"""What OpenAI's two APIs have in common: the key, pictures as data URLs, schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from limner.wires.base import ModelPicture
from limner.wires.strict_schema import closed, is_strict


def bearer(key: str) -> Mapping[str, str]:
    """The header that names the caller."""
    return {"Authorization": f"Bearer {key}"} if key else {}


def data_url(image: ModelPicture) -> msgspec.Raw:
    """A picture as the JSON text of its data URL, ready to be copied into a body.

    Base64 needs no escaping: the text is made without looking at each character again, which
    takes a third of the time.
    """
    opening = msgspec.json.encode(f"data:{image.mime};base64,")[:-1]
    quoted_base64 = memoryview(msgspec.json.encode(image.data))
    return msgspec.Raw(b"".join((opening, quoted_base64[1:])))


def json_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """How both APIs are told the form of the answer: strictly where the schema allows it."""
    narrow = closed(schema)
    if is_strict(narrow):
        return {"name": "answer", "schema": narrow, "strict": True}
    return {"name": "answer", "schema": schema, "strict": False}
