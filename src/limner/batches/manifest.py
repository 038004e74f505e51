"""A manifest (JSONL, CSV or Parquet) -> its rows, read one by one, however many there are."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from limner.display_text import clean_line
from limner.errors import InputInvalid, MissingExtra, UserError

DEFAULT_TOOL = "image_generate"
MAX_KEY_CHARS = 200
MAX_ROW_BYTES = 16 << 20
FORMATS = (".jsonl", ".ndjson", ".csv", ".parquet")
_READ_BYTES = 1 << 20
_PARQUET_ROWS = 500


class ManifestRow(msgspec.Struct, frozen=True, kw_only=True):
    """One call: its key, the tool, and the tool's arguments. ``number`` counts from 1."""

    key: str
    number: int
    tool: str
    arguments: Mapping[str, Any]


def read_rows(path: Path) -> Iterator[ManifestRow]:
    """The rows of a manifest, in order.

    Raises:
        InputInvalid: a row is not an object with a key; the error names the line.
        UserError: the file cannot be read, or has a suffix that limner does not know.
        MissingExtra: it is Parquet, and pyarrow is not installed.
    """
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise UserError(
            f"{path.name!r} is no manifest: its name must end with {', '.join(FORMATS)}",
            hint='Write one row a line: {"key": "fox", "prompt": "a fox under the moon"}',
        )
    reader = {".csv": _csv_rows, ".parquet": _parquet_rows}.get(suffix, _json_rows)
    try:
        yield from rows_of(reader(path))
    except OSError as error:
        raise UserError(f"{str(path)!r} cannot be read: {error.strerror}") from error


def rows_of(objects: Iterable[Mapping[str, Any]]) -> Iterator[ManifestRow]:
    """The rows that objects describe: ``key``, ``tool`` if given, and the tool's arguments.

    Raises:
        InputInvalid: one has no key.
    """
    for number, given in enumerate(objects, start=1):
        arguments = {name: value for name, value in given.items() if value not in (None, "")}
        key, tool = arguments.pop("key", None), arguments.pop("tool", DEFAULT_TOOL)
        if isinstance(key, int) and not isinstance(key, bool):
            key = str(key)
        if not isinstance(key, str) or key != clean_line(key) or len(key) > MAX_KEY_CHARS:
            raise InputInvalid(
                f"Row {number} needs a key: a text of at most {MAX_KEY_CHARS} characters",
                field="key",
                hint="The key names the row in results, and must not change: it prevents that the "
                "row is paid for twice.",
            )
        if not isinstance(tool, str):
            raise InputInvalid(f"The tool of row {key!r} is not a name", field="tool")
        yield ManifestRow(key=key, number=number, tool=tool.strip(), arguments=arguments)


def digest_of(path: Path) -> str:
    """The SHA-256 of a manifest.

    Raises:
        UserError: it cannot be read.
    """
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(_READ_BYTES):
                digest.update(chunk)
    except OSError as error:
        raise UserError(f"{str(path)!r} cannot be read: {error.strerror}") from error
    return digest.hexdigest()


def _json_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    with path.open("rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(MAX_ROW_BYTES), b""), start=1):
            text = line.removeprefix(b"\xef\xbb\xbf").strip()
            if not text:
                continue
            try:
                yield msgspec.json.decode(text, type=dict[str, Any])
            except msgspec.DecodeError as error:
                raise InputInvalid(f"Line {number} is not a JSON object: {error}") from error


def _csv_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    csv.field_size_limit(MAX_ROW_BYTES)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for cells in csv.DictReader(file):
                if None in cells:
                    raise InputInvalid(f"A row has more cells than the header: {cells.get('key')}")
                yield cells
    except (csv.Error, UnicodeDecodeError) as error:
        raise InputInvalid(f"{path.name} is not CSV in UTF-8: {error}") from error


def _parquet_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError as error:
        raise MissingExtra(
            "pyarrow is not installed, and limner reads Parquet with it",
            hint="pip install pyarrow, or write the manifest as JSONL or CSV",
        ) from error
    try:
        for group in parquet.ParquetFile(path).iter_batches(batch_size=_PARQUET_ROWS):
            yield from group.to_pylist()
    except arrow.ArrowException as error:
        raise InputInvalid(f"{path.name} is not a Parquet file: {error}") from error
