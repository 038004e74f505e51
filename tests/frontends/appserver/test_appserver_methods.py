"""The method table: every row names a handler that fits the types of the row."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any, get_type_hints

import pytest

from limner.frontends.appserver.dispatch import RpcCall
from limner.frontends.appserver.methods import METHODS
from limner.frontends.appserver.protocol.base import Method
from limner.frontends.appserver.server import Host
from limner.frontends.appserver.threads import ThreadTable
from limner.frontends.appserver.v1.types import METHODS as V1_METHODS

ROWS = {**METHODS, **V1_METHODS}


def handler_of(row: Method) -> Any:
    module, _, name = row.handler.partition(":")
    return getattr(import_module(f"limner.frontends.appserver.{module}"), name)


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.answer is None])
def test_a_handler_takes_what_the_table_gives_it_and_returns_the_result_or_replies_itself(
    name: str,
) -> None:
    row = ROWS[name]
    hints = get_type_hints(handler_of(row))
    result = hints.pop("return")
    given = {"host": Host, "threads": ThreadTable, "call": RpcCall, "params": row.params}
    assert {**given, **hints} == given
    assert inspect.iscoroutinefunction(handler_of(row))
    if result is type(None):
        assert "call" in hints, "a handler that returns nothing replies through the call"
    else:
        assert issubclass(row.result, result)


def test_fields_that_only_limner_has_are_experimental() -> None:
    assert [n for n, row in ROWS.items() if not row.our_fields <= row.experimental_fields] == []
