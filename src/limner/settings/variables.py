"""The name of an environment variable -> its value, read when it is needed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Protocol

# The secrets of limner's own servers: they are not settings, and no tool needs them.
SERVER_TOKENS = frozenset({"LIMNER_MCP_TOKEN", "LIMNER_APP_SERVER_TOKEN"})


class Lookup(Protocol):
    """What finds a variable: `Variables`, or any mapping."""

    def get(self, name: str, default: str, /) -> str:
        """The value of a variable, or the default."""
        ...


class Variables:
    """The variables of this process, or given ones.

    Those of the process stay there: an object that is kept, logged or reported after a crash must
    not contain the environment. This is no mapping, because crash reporters show what a mapping
    contains.
    """

    __slots__ = ("_given",)

    def __init__(self, given: Mapping[str, str] | None = None) -> None:
        self._given = None if given is os.environ else given

    def __repr__(self) -> str:
        return f"<Variables {'of this process' if self._given is None else 'given'}>"

    def get(self, name: str, default: str = "", /) -> str:
        """The value of a variable, or the default; the tokens of servers are never found."""
        if name in SERVER_TOKENS:
            return default
        return (os.environ if self._given is None else self._given).get(name, default)
