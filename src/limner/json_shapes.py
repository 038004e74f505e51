"""A value of untrusted JSON -> an object or a list, empty if it is something else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast


def as_object(value: object) -> Mapping[str, Any]:
    """The value if it is a JSON object, else an empty object."""
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """The value if it is a JSON list, else an empty list."""
    return cast("list[Any]", value) if isinstance(value, list) else []
