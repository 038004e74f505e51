"""A part of a picture as a model writes it -> a `Region`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from limner.imaging.fit import Region

_EDGES = {"x": 0, "y": 0, "width": 1, "height": 1}


def region_schema(description: str) -> Mapping[str, Any]:
    """The JSON schema of an argument that is a region."""
    return {
        "type": "object",
        "properties": {
            name: {"type": "integer", "minimum": least} for name, least in _EDGES.items()
        },
        "required": [*_EDGES],
        "description": description,
    }


def read_region(arguments: Mapping[str, Any]) -> Region | None:
    """The argument ``region``, if it is there; 1.0 is a whole number in JSON."""
    given = arguments.get("region")
    return None if given is None else Region(**{name: int(given[name]) for name in _EDGES})
