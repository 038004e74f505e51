"""The package for programs: names, signatures, fields, and errors."""

from __future__ import annotations

from tests.golden.record import check


def test_public_names_signatures_and_fields_are_as_recorded() -> None:
    check("public_api")


def test_error_classes_and_what_they_carry_are_as_recorded() -> None:
    check("errors")
