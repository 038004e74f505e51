"""The bytes of a settings file -> plain tables, lists and values, or an error that names it."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import BinaryIO

from limner.errors import SettingsError

_MAX_FILE_BYTES = 256 * 1024


def read_settings_file(path: Path, *, max_bytes: int = _MAX_FILE_BYTES) -> bytes | None:
    """Read a settings file; None if there is none.

    Raises:
        SettingsError: it cannot be read, or is too long.
    """
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            return read_bounded(file, path=path, max_bytes=max_bytes)
    except (OSError, ValueError) as error:
        raise SettingsError(f"{path} cannot be read: {error}") from error


def read_bounded(file: BinaryIO, *, path: Path, max_bytes: int) -> bytes:
    """Read a whole file.

    Raises:
        SettingsError: it is longer than ``max_bytes``.
    """
    data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise SettingsError(f"{path} is longer than {max_bytes:,} bytes")
    return data


def decode(data: bytes, *, path: Path) -> str:
    """Decode the text of a file, without a byte order mark.

    Raises:
        SettingsError: it is not UTF-8.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path} is not text in UTF-8: {error.reason}") from error


def parse_toml(text: str, *, path: Path) -> dict[str, object]:
    """Parse a TOML file; numbers with a point become decimals, because some are money.

    Raises:
        SettingsError: it is not TOML.
    """
    if (texts := _plain_texts(text)) is not None:
        return {**texts}
    import tomllib  # noqa: PLC0415 - most commands start without a settings file

    try:
        return tomllib.loads(text, parse_float=Decimal)
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise SettingsError(f"{path} is not valid TOML: {error}") from error


def _plain_texts(text: str) -> dict[str, str] | None:
    """The values of a document with nothing but keys and plain texts; None if it has more.

    Such documents, as the personalities of limner have, are read without the parser, which takes
    longer to load than all of them to read.
    """
    found: dict[str, str] = {}
    for line in filter(None, text.split("\n")):
        key, _, quoted = line.partition(" = ")
        value = quoted[1:-1]
        is_quoted = quoted == f'"{value}"' and not {'"', "\\"} & {*value}
        if not (is_quoted and value.isprintable() and key.isascii() and key.isidentifier()):
            return None
        if key in found:
            return None
        found[key] = value
    return found
