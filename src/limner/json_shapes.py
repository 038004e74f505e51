"""Untrusted JSON -> its value; a value -> an object or a list, empty if it is something else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast


def decode_json(text: str) -> Any:
    """The value of a JSON text, or the text itself if it is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def as_object(value: object) -> Mapping[str, Any]:
    """The value if it is a JSON object, else an empty object."""
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """The value if it is a JSON list, else an empty list."""
    return cast("list[Any]", value) if isinstance(value, list) else []
