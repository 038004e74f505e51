"""The one place here that names modules inside `limner`: the command line and protocol tables."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
_SCRIPTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
    "scripts"
]

_COMMAND_MODULE, _, _COMMAND_NAME = _SCRIPTS["limner"].partition(":")
_APP_SERVER = _COMMAND_MODULE.rpartition(".cli.")[0] + ".appserver"


class Tables(NamedTuple):
    """The tables of the app-server protocol, each by the name of a method.

    ``requests`` and ``first_requests`` (those of the first protocol) have rows with the types
    ``params`` and ``result``; ``server_requests`` has rows with ``params`` and ``response``.
    """

    requests: Mapping[str, Any]
    notifications: Mapping[str, Any]
    server_requests: Mapping[str, Any]
    first_requests: Mapping[str, Any]
    first_notifications: Mapping[str, Any]


def command() -> Callable[[list[str]], int]:
    """The function that the program `limner` runs."""
    return getattr(import_module(_COMMAND_MODULE), _COMMAND_NAME)


def tables() -> Tables:
    """What clients and server can say to each other."""
    return Tables(
        requests=_table("methods", "METHODS"),
        notifications=_table("protocol.notifications", "NOTIFICATIONS"),
        server_requests=_table("protocol.server_requests", "SERVER_REQUESTS"),
        first_requests=_table("v1.types", "METHODS"),
        first_notifications=_table("v1.events", "NOTIFICATIONS"),
    )


def _table(module: str, name: str) -> Mapping[str, Any]:
    return getattr(import_module(f"{_APP_SERVER}.{module}"), name)
