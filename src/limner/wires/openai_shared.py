"""What OpenAI's two APIs share: the header, pictures, schemas, errors and token counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from limner.wires.base import ModelPicture, PictureText, Usage
from limner.wires.stream import Count
from limner.wires.strict_schema import close_schema, is_strict


def bearer(key: str) -> Mapping[str, str]:
    """The header with the key; none if the key is empty."""
    return {"Authorization": f"Bearer {key}"} if key else {}


def data_url(image: ModelPicture) -> PictureText:
    """The data URL of a picture."""
    return image.json_text(f"data:{image.mime};base64,")


def json_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The form of the answer for both APIs; strict if the schema allows it."""
    closed = close_schema(schema)
    if is_strict(closed):
        return {"name": "answer", "schema": closed, "strict": True}
    return {"name": "answer", "schema": schema, "strict": False}


class ErrorBody(msgspec.Struct):
    """An error of the service."""

    message: str | None = None
    # A word at OpenAI, a number at some services with the same API.
    code: str | int | None = None

    @property
    def code_text(self) -> str | None:
        """The code as text."""
        return None if self.code is None else str(self.code)


class InputDetails(msgspec.Struct):
    """What a service says about the input tokens."""

    cached_tokens: Count | None = None
    cache_write_tokens: Count | None = None


class OutputDetails(msgspec.Struct):
    """What a service says about the output tokens."""

    reasoning_tokens: Count | None = None


def to_usage(
    input_tokens: int,
    output_tokens: int,
    input_details: InputDetails | None,
    output_details: OutputDetails | None,
) -> Usage:
    """The counts of either API as a usage."""
    return Usage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cache_read_tokens=input_details and input_details.cached_tokens,
        cache_write_tokens=input_details and input_details.cache_write_tokens,
        reasoning_tokens=output_details and output_details.reasoning_tokens,
    )
