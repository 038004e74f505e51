"""A TOML file of the catalogue -> its rows as values of a type.

A wheel has each file as JSON too, because TOML takes ten times as long to parse; ``hatch_build.py``
makes it. The name of the JSON file has a checksum of the TOML file, so a changed TOML file is
parsed itself.
"""

from __future__ import annotations

import zlib
from decimal import Decimal
from pathlib import Path
from typing import TypeVar

import msgspec

T = TypeVar("T")


def read_rows(file: Path, kind: type[T]) -> T:
    """The content of a TOML file; prices stay decimal, without binary floats."""
    data = file.read_bytes()
    try:
        compiled = file.with_name(f"{file.stem}-{zlib.crc32(data):08x}.json").read_bytes()
    except FileNotFoundError:
        import tomllib  # noqa: PLC0415 - a wheel does without it

        return msgspec.convert(tomllib.loads(data.decode(), parse_float=Decimal), kind)
    return msgspec.json.decode(compiled, type=kind)
