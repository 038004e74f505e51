"""The bytes of a settings file -> plain tables, lists and values, or an error that names it."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import BinaryIO

from limner.errors import SettingsError


def read_bounded(file: BinaryIO, *, path: Path, max_bytes: int) -> bytes:
    """All of an open file.

    Raises:
        SettingsError: it is longer than anybody would write.
    """
    data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise SettingsError(f"{path} is longer than {max_bytes:,} bytes")
    return data


def decode(data: bytes, *, path: Path) -> str:
    """The text of a file, without a byte order mark.

    Raises:
        SettingsError: it is not UTF-8.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path} is not text in UTF-8: {error.reason}") from error


def parse_toml(text: str, *, path: Path) -> dict[str, object]:
    """The tables of a TOML file; numbers with a point are decimals, since some are money.

    Raises:
        SettingsError: it is not TOML.
    """
    import tomllib  # noqa: PLC0415 - most commands start without a settings file

    try:
        return tomllib.loads(text, parse_float=Decimal)
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise SettingsError(f"{path} is not valid TOML: {error}") from error
