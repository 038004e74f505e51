"""The app-server: the schemas it publishes, and the methods of both protocols."""

from __future__ import annotations

from tests.golden.record import check


def test_the_published_schemas_are_as_recorded() -> None:
    check("app_server_schemas")


def test_methods_notifications_and_their_types_are_as_recorded() -> None:
    check("app_server_methods")
