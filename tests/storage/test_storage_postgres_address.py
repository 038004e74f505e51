"""The address of a database for others to use: everything but its password."""

from __future__ import annotations

import pytest

psycopg = pytest.importorskip("psycopg")


@pytest.mark.parametrize(
    ("address", "open_address"),
    [
        (
            "postgresql://ann:secret@db.example:5433/limner",
            {"user": "ann", "dbname": "limner", "host": "db.example", "port": "5433"},
        ),
        (
            "postgresql://ann@/limner?host=/run/pg&password=secret&options=-csearch_path%3Dpics",
            {"user": "ann", "dbname": "limner", "host": "/run/pg", "options": "-csearch_path=pics"},
        ),
        (
            "postgresql://ann:se@cret@db.example/x",
            {"user": "ann", "dbname": "x", "host": "db.example"},
        ),
        ("postgresql://db.example/x?sslpassword=secret", {"dbname": "x", "host": "db.example"}),
    ],
)
def test_an_address_without_its_password_names_the_same_database(
    address: str, open_address: dict[str, str]
) -> None:
    from limner.storage.postgres_engine import without_password

    found = without_password(address)
    assert psycopg.conninfo.conninfo_to_dict(found) == open_address
    assert "secret" not in found
