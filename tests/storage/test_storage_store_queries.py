"""SQL files: named statements, migrations, and that each statement fits the tables."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limner.storage.database import clock_ms, statements
from limner.storage.queries import POSTGRES_FOLDER, migrations, named_queries


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.sql").write_text(text)
    return folder


def test_statements_are_found_by_name_in_every_file(tmp_path: Path) -> None:
    folder = write(
        tmp_path,
        a="-- About.\n\n-- name: first\n-- Does it.\nSELECT 1;\n\n-- name: second\nSELECT 2;\n",
        b="-- name: third\nSELECT\n    3;\n",
    )
    assert named_queries(folder) == {
        "first": "-- Does it.\nSELECT 1;",
        "second": "SELECT 2;",
        "third": "SELECT\n    3;",
    }


def test_a_name_used_twice_is_a_bug(tmp_path: Path) -> None:
    folder = write(tmp_path, a="-- name: x\nSELECT 1;", b="-- name: x\nSELECT 2;")
    with pytest.raises(ValueError, match=r"b\.sql names the query 'x' a second time"):
        named_queries(folder)


def test_a_statement_without_a_name_is_a_bug(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"a\.sql has a statement before"):
        named_queries(write(tmp_path, a="SELECT 1;\n-- name: x\nSELECT 1;"))


def test_migrations_come_in_order_with_their_numbers(tmp_path: Path) -> None:
    folder = write(tmp_path, **{"0002_more": "SELECT 2;", "0001_start": "SELECT 1;"})
    assert migrations(folder) == ((1, "SELECT 1;"), (2, "SELECT 2;"))


def test_our_migrations_have_one_number_each() -> None:
    numbers = [number for number, _ in migrations()]
    assert numbers == sorted(set(numbers))
    assert numbers[0] == 1


def test_a_migration_comes_in_a_pair() -> None:
    """After a new file in `migrations/`, write the same change in `postgres/migrations/`."""
    numbers = [number for number, _ in migrations(POSTGRES_FOLDER / "migrations")]
    assert numbers == [number for number, _ in migrations() if number >= numbers[0]]


@pytest.fixture(scope="module")
def tables() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.create_function("clock_ms", 0, clock_ms)
        for _, script in migrations():
            for statement in statements(script):
                connection.execute(statement)
        yield connection


@pytest.mark.parametrize("name", sorted(named_queries()))
def test_every_query_fits_the_tables(tables: sqlite3.Connection, name: str) -> None:
    statement = named_queries()[name]
    parameters = dict.fromkeys(re.findall(r":(\w+)", statement))
    tables.execute(f"EXPLAIN {statement}", parameters)


@given(st.lists(st.sampled_from(["'a;b'", "1", "'it''s'", "/* ; */ 2", '"x;y"']), max_size=5))
def test_property_a_script_is_cut_only_between_statements(values: list[str]) -> None:
    script = "-- a comment; with a semicolon\n"
    script += "".join(f"SELECT -- why;\n  {value};\n" for value in values)
    cut = list(statements(script + "-- the end\n"))
    assert "".join(cut) == script + "-- the end\n"
    assert len(cut) == len(values) + 1
