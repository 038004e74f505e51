"""The rows of a batch -> JSONL, CSV, Parquet, a folder of pictures or a WebDataset tar.

Rows are written as they are read, so that the length of a batch does not matter.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import msgspec

from limner.batches.records import RowResult
from limner.errors import MissingExtra, OutputExists, UserError
from limner.json_shapes import as_object
from limner.storage.os_errors import disk_errors

# A spreadsheet takes a cell that starts with one of these for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_UNSAFE_NAME = re.compile(r"[^\w -]+")
_PARQUET_ROWS = 1000
FORMATS = ("jsonl", "csv", "parquet", "tar", "pictures")


class RowFile(Protocol):
    """Takes the rows of a batch one after another."""

    def add(self, row: RowResult) -> None:
        """Write one row."""
        ...


def format_of(path: Path) -> str:
    """The format that a name asks for: its suffix, or a folder of pictures if it has none.

    Raises:
        UserError: the suffix is not known.
    """
    suffix = path.suffix.lower().removeprefix(".")
    if not suffix:
        return "pictures"
    if suffix in FORMATS[:-1]:
        return suffix
    raise UserError(
        f"{path.name!r}: a batch is exported as .jsonl, .csv, .parquet, .tar, or into a folder"
    )


def check_export(path: Path | None) -> None:
    """See before a batch runs that its rows can be written there at its end; None is no path.

    The folder of the path is made if it does not exist.

    Raises:
        OutputExists: the path exists.
        UserError: its suffix is not known.
        MissingExtra: it is Parquet, and pyarrow is not installed.
        StorageError: its folder cannot be made or written.
    """
    if path is None:
        return
    if format_of(path) == "parquet":
        _load_pyarrow()
    if path.exists():
        raise OutputExists(f"{str(path)!r} exists", hint="Choose another name.")
    with disk_errors(doing="write", path=path):
        with suppress(FileExistsError):  # if it is a file, the next step says so
            path.parent.mkdir(parents=True)
        partial = _partial_of(path)
        partial.touch()
        partial.unlink()


async def export_rows(
    rows: AsyncIterator[RowResult], path: Path, *, picture_file: Callable[[RowResult], Path | None]
) -> int:
    """Write rows to a file or a folder, and return how many there were.

    ``picture_file`` finds the file of a row's picture. A file that is not complete is removed.

    Raises:
        LimnerError: as `check_export`.
    """
    check_export(path)
    with disk_errors(doing="write", path=path):
        return await _write_rows(rows, path, picture_file)


async def _write_rows(
    rows: AsyncIterator[RowResult], path: Path, picture_file: Callable[[RowResult], Path | None]
) -> int:
    kind, count = format_of(path), 0
    if kind == "pictures":
        folder = _PictureFolder(path, picture_file)
        async for row in rows:
            folder.add(row)
            count += 1
        return count
    partial = _partial_of(path)
    try:
        with ExitStack() as stack:
            file, target = stack.enter_context(partial.open("wb")), None
            async for row in rows:
                target = target or _row_file(kind, file, row, stack, picture_file)
                target.add(row)
                count += 1
        partial.rename(path)
    finally:
        partial.unlink(missing_ok=True)
    return count


def _partial_of(path: Path) -> Path:
    """The name of a file until it is complete."""
    return path.with_name(f".{path.name}.partial")


def _row_file(
    kind: str,
    file: BinaryIO,
    first: RowResult,
    stack: ExitStack,
    picture_file: Callable[[RowResult], Path | None],
) -> RowFile:
    if kind == "jsonl":
        return _JsonFile(file)
    if kind == "tar":
        return _TarFile(file, stack, picture_file)
    columns = _answer_columns(first)
    if kind == "csv":
        return _CsvFile(file, columns, stack)
    return stack.enter_context(_ParquetFile(file, columns))


class _JsonFile:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def add(self, row: RowResult) -> None:
        self._file.write(msgspec.json.encode(row.as_json()) + b"\n")


class _CsvFile:
    """One line for each row: see `cells_of`."""

    def __init__(self, file: BinaryIO, columns: tuple[str, ...], stack: ExitStack) -> None:
        self._columns = columns
        text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        stack.callback(text.detach)
        self._writer = csv.DictWriter(text, [*cells_of(_EMPTY, columns)])
        self._writer.writeheader()

    def add(self, row: RowResult) -> None:
        cells = cells_of(row, self._columns)
        self._writer.writerow({name: _guarded(cell) for name, cell in cells.items()})


def _load_pyarrow() -> tuple[Any, Any]:
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError as error:
        raise MissingExtra(
            "pyarrow is not installed, and limner writes Parquet with it",
            hint="pip install pyarrow, or export JSONL or CSV",
        ) from error


class _ParquetFile(AbstractContextManager["_ParquetFile"]):
    def __init__(self, file: BinaryIO, columns: tuple[str, ...]) -> None:
        self._columns = columns
        self._arrow, parquet = _load_pyarrow()
        kinds: Mapping[str, Any] = {"tries": self._arrow.int64(), "cost_usd": self._arrow.float64()}
        text = self._arrow.string()
        self._schema = self._arrow.schema(
            [(name, kinds.get(name, text)) for name in cells_of(_EMPTY, columns)]
        )
        self._writer: Any = parquet.ParquetWriter(file, self._schema)
        self._waiting: list[dict[str, Any]] = []

    def add(self, row: RowResult) -> None:
        self._waiting.append(cells_of(row, self._columns))
        if len(self._waiting) == _PARQUET_ROWS:
            self._flush()

    def _flush(self) -> None:
        table = self._arrow.Table.from_pylist(self._waiting, schema=self._schema)
        self._writer.write_table(table)
        self._waiting = []

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._flush()
        self._writer.close()


class _TarFile:
    """A WebDataset: for each key its picture and its JSON, one after the other."""

    def __init__(
        self,
        file: BinaryIO,
        stack: ExitStack,
        picture_file: Callable[[RowResult], Path | None],
    ) -> None:
        import tarfile  # noqa: PLC0415 - other formats do without it

        self._tar = stack.enter_context(tarfile.TarFile.open(fileobj=file, mode="w|"))
        self._new_entry = tarfile.TarInfo
        self._picture_file, self._names = picture_file, _Names()

    def add(self, row: RowResult) -> None:
        name = self._names.name_of(row.row_key)
        picture = self._picture_file(row)
        if picture is not None:
            self._put(f"{name}{picture.suffix}", picture.read_bytes())
        self._put(f"{name}.json", msgspec.json.encode(row.as_json()))

    def _put(self, name: str, data: bytes) -> None:
        entry = self._new_entry(name)
        entry.size = len(data)
        self._tar.addfile(entry, io.BytesIO(data))


class _PictureFolder:
    """The pictures of the rows, each under its key."""

    def __init__(self, folder: Path, picture_file: Callable[[RowResult], Path | None]) -> None:
        folder.mkdir()
        self._folder, self._picture_file, self._names = folder, picture_file, _Names()

    def add(self, row: RowResult) -> None:
        picture = self._picture_file(row)
        if picture is not None:
            name = self._names.name_of(row.row_key)
            (self._folder / f"{name}{picture.suffix}").write_bytes(picture.read_bytes())


class _Names:
    """Keys -> names of files, no two alike. A dot would end the key of a WebDataset."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def name_of(self, key: str) -> str:
        plain = _UNSAFE_NAME.sub("_", key).strip() or "_"
        name, number = plain, 2
        while name.casefold() in self._used:
            name, number = f"{plain}_{number}", number + 1
        self._used.add(name.casefold())
        return name


def _answer_columns(row: RowResult) -> tuple[str, ...]:
    """The members of the answers, if the first row has a schema for its answer."""
    schema = as_object(msgspec.json.decode(row.arguments).get("schema"))
    return tuple(as_object(schema.get("properties")))


def cells_of(row: RowResult, columns: tuple[str, ...] = ()) -> dict[str, Any]:
    """The cells of a row. ``answer`` is what a model said; its members are ``columns``."""
    whole = row.as_json()
    result: Any = whole["result"] or {}
    error: Any = whole["error"] or {}
    # The texts in a drawing are a list: only a text is an answer.
    answer = said if isinstance(said := result.get("text"), str) else None
    return {
        "key": row.row_key,
        "state": row.state,
        "tool": row.tool,
        "path": result.get("path"),
        "answer": answer,
        "cost_usd": whole["cost_usd"],
        "cost_source": row.cost_source,
        "tries": row.tries,
        "error": error.get("message"),
        "arguments": row.arguments,
        "result": row.result,
    } | _members(answer, columns)


def _members(answer: str | None, columns: tuple[str, ...]) -> dict[str, str | None]:
    """The members of an answer that is a JSON object, each as a text."""
    found: Mapping[str, object] = {}
    if columns and answer is not None:
        with suppress(msgspec.DecodeError):
            found = as_object(msgspec.json.decode(answer))
    return {
        f"answer.{name}": value
        if (value := found.get(name)) is None or isinstance(value, str)
        else msgspec.json.encode(value).decode()
        for name in columns
    }


def _guarded(cell: object) -> object:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


_EMPTY = RowResult(row_key="", number=0, tool="", state="waiting")
