"""Every message of a connection with limner's app-server, held to the schemas of the real Codex.

The clients of the tests pass what they send and receive, so each test that talks to an app-server
is a test of its messages. A request counts as accepted if its answer is a result.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import fastjsonschema
from tests.servers.codex_schema import recorded

from limner.frontends.appserver.methods import METHODS
from limner.frontends.appserver.protocol.base import OUR_NOTIFICATIONS
from limner.frontends.appserver.protocol.notifications import NOTIFICATIONS
from limner.frontends.appserver.schema import params_name, result_name

Message = dict[str, Any]

# Notifications that Codex does not have: limner's own, and those of the first version.
FIRST_NOTIFICATIONS = ("codex/event/",)
# What the server sends that shows how messages are carried.
OF_THE_PROBE = frozenset({"flood", "tool/call", "turn/step"})
# Members of params whose values limner accepts and Codex 0.166 does not.
LENIENT = {
    "approvalPolicy": "`on-failure` of earlier releases",
    "dynamicTools": "the flat form of earlier releases, with `exposeToContext`",
    "history": "one bad item never refuses the rest",
}


class Judge:
    """One connection; with another server than limner's nothing is checked."""

    def __init__(self, *, is_limner: bool = True) -> None:
        self._is_limner = is_limner
        self._asked: dict[Any, Message] = {}

    def send(self, message: Any) -> None:
        """Note a message of the client."""
        match message:
            case {"id": int() | str() as number, "method": str()}:
                self._asked[number] = message
            case _:
                pass

    def receive(self, message: Message) -> None:
        """Check a message of the server.

        Raises:
            AssertionError: it is not one by the schemas of Codex.
        """
        if not self._is_limner:
            return
        match message:
            case {"method": method, "id": _}:
                _check_sent("ServerRequest", method, message)
            case {"method": method}:
                _check_sent("ServerNotification", method, message)
            case {"id": number, "result": result} if number in self._asked:
                _check_answer(self._asked.pop(number), result)
            case _:
                pass


def _check_sent(union: str, method: str, message: Message) -> None:
    if method in OUR_NOTIFICATIONS | OF_THE_PROBE or method.startswith(FIRST_NOTIFICATIONS):
        return
    names = _names(union)
    assert method in names, f"Codex has no {union} {method!r}"
    if (name := names[method]) is not None:
        _check(name, message["params"], method)


def _check_answer(asked: Message, result: Any) -> None:
    method = METHODS.get(asked["method"])
    if method is None or method.is_ours:
        return
    _check(result_name(method), result, f"the result of {asked['method']}")
    name = params_name(method)
    if name is not None:
        params = asked.get("params") or {}
        params = {k: v for k, v in params.items() if k not in method.our_fields}
        try:
            _check(name, params, f"the params of {asked['method']}")
        except AssertionError:
            rest = {k: v for k, v in params.items() if k not in LENIENT}
            if rest == params:
                raise
            _check(name, rest, f"the params of {asked['method']}")


def _check(name: str, value: Any, what: str) -> None:
    try:
        _validate()({name: value})
    except fastjsonschema.JsonSchemaException:
        from jsonschema import Draft7Validator
        from jsonschema.exceptions import best_match

        problem = best_match(Draft7Validator(recorded().schema(name)).iter_errors(value))
        raise AssertionError(f"{what} is not of the schema of Codex: {problem}") from None


@cache
def _names(union: str) -> dict[str, str | None]:
    """The methods of a union, each with the type of its params."""
    return {
        form["properties"]["method"]["enum"][0]: _referred(form["properties"].get("params", {}))
        for form in recorded().types[union]["oneOf"]
    }


def _referred(params: Message) -> str | None:
    return params["$ref"].rpartition("/")[2] if "$ref" in params else None


@cache
def _validate() -> Callable[[Any], Any]:
    """One function for all types: they have most of their parts in common."""
    theirs = [method for method in METHODS.values() if not method.is_ours]
    names = {result_name(method) for method in theirs} | {params_name(method) for method in theirs}
    names |= set(_names("ServerRequest").values())
    names |= {_names("ServerNotification").get(method) for method in NOTIFICATIONS}
    types = recorded().types
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": types,
        "properties": {name: {"$ref": f"#/definitions/{name}"} for name in names - {None}},
        "additionalProperties": False,
    }
    return fastjsonschema.compile(
        schema, use_formats=False, use_default=False, detailed_exceptions=False
    )
