"""Every message between limner's app-server and its clients, held to the schemas of the real Codex.

`message_record` writes down what each app-server of the tests and each client of ours sends and
receives, and `tests/conftest.py` calls `check_records` after each test. So every test that talks
to an app-server is a test of its messages, whichever client it uses.
"""

from __future__ import annotations

import atexit
import json
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import fastjsonschema
from tests.servers import message_record
from tests.servers.codex_schema import recorded
from tests.servers.message_record import AT_SERVER, TO_CLIENT

from limner.frontends.appserver.methods import METHODS
from limner.frontends.appserver.protocol.base import Method
from limner.frontends.appserver.protocol.notifications import NOTIFICATIONS
from limner.frontends.appserver.schema import params_name, result_name
from limner.frontends.appserver.v1.types import METHODS as FIRST_METHODS

Message = dict[str, Any]

RECORDS = Path(tempfile.mkdtemp(prefix="limner-messages-"))
atexit.register(shutil.rmtree, RECORDS, ignore_errors=True)
# The words that start limner; its app-server and its clients record their messages.
LIMNER = [sys.executable, message_record.__file__, str(RECORDS)]

# With this environment any Python program records its messages, and those that it starts.
RECORDING = {
    "PYTHONPATH": str(Path(message_record.__file__).with_name("recording")),
    "MESSAGES": str(RECORDS),
}

# The messages that Codex does not have, and why limner has them.
OURS: Mapping[str, str] = {
    "thread/spend/updated": "what a turn has cost; a client gets it if it asks for it",
    "thread/item/stored": "an item with its arguments and its cost; a client gets it if it asks",
    "thread/tools/set": "a client changes its tools while a thread is open",
    "thread/tools/changed": "the answer to that for the other clients; on request only",
    "codex/event/*": "protocol v1, which Codex has removed",
    **dict.fromkeys(FIRST_METHODS, "protocol v1, which Codex has removed"),
}
# The methods of `probe_server`, which shows how messages are carried.
OF_THE_PROBE = frozenset({"flood", "tool/call", "turn/step"})
# The answer of a client of protocol v1; Codex 0.166 has another form for it.
FIRST_NO = {"decision": "denied"}
# Members of params whose values limner accepts and Codex 0.166 does not.
LENIENT = {
    "approvalPolicy": "`on-failure` of earlier releases",
    "dynamicTools": "the flat form of earlier releases, with `exposeToContext`",
    "history": "one bad item never refuses the rest",
}


class Judge:
    """One connection, as one of its two sides has recorded it.

    A client of the tests may send what it likes: its request is checked if the response is a
    result. Our own client has to be right always, but its server may be a hostile one.
    """

    def __init__(self, *, at_server: bool) -> None:
        self._at_server, self.invalid_answers = at_server, False
        self._asked: dict[Any, list[Message]] = {}
        self._answers: Counter[Any] = Counter()
        self._asked_of_client: dict[Any, Message] = {}

    def judge(self, direction: bytes, message: Any) -> None:
        """Check a message.

        Raises:
            AssertionError: it is not one by the schemas of Codex.
        """
        if direction == TO_CLIENT:
            self._judge_to_client(message)
        elif isinstance(message, dict):
            self._judge_to_server(message)

    def _judge_to_client(self, message: Message) -> None:
        match message:
            case {"method": str(method), "id": number}:
                self._asked_of_client[number] = message
                if self._at_server:
                    _check("JSONRPCRequest", message, method)
                    _check_sent("ServerRequest", message)
            case {"method": str()} if self._at_server:
                _check("JSONRPCNotification", message, message["method"])
                _check_sent("ServerNotification", message)
            case {"id": number, "result": result}:
                asked = self._answered(number)
                if asked is not None and self._at_server:
                    _check_result(asked, result)
                    _check_request(asked)
            case _:
                if isinstance(message, dict):
                    self._answered(message.get("id"))
                if self._at_server:
                    _check("JSONRPCError", message, "an error")

    def _judge_to_server(self, message: Message) -> None:
        match message:
            case {"id": int() | str() as number, "method": str()}:
                self._asked.setdefault(number, []).append(message)
                if not self._at_server:
                    _check_request(message)
            case {"method": str()} if not self._at_server:
                _check_sent("ClientNotification", message)
            case {"id": int() | str() as number, "result": result}:
                asked = self._asked_of_client.pop(number, None)
                if asked is not None:
                    self._judge_answer(asked["method"], result)
            case _:
                pass

    def _answered(self, number: Any) -> Message | None:
        """The request that a response answers.

        None if nobody asked, or if a hostile client has given one id to several open requests:
        nothing says which of them comes first.
        """
        asked = self._asked.get(number) if isinstance(number, int | str) else None
        if asked is None:
            return None
        self._answers[number] += 1
        if self._answers[number] == len(asked):
            del self._asked[number], self._answers[number]
        return asked[0] if len(asked) == 1 else None

    def _judge_answer(self, method: str, result: Any) -> None:
        is_free = self._at_server and (self.invalid_answers or result == FIRST_NO)
        name = _names("ServerRequest").get(method)
        if name is not None and not is_free:
            _check(name.removesuffix("Params") + "Response", result, f"the answer to {method}")


_judges: dict[str, Judge] = {}


def drop_records() -> None:
    """Forget the messages since the last call."""
    for file in [*RECORDS.iterdir()]:
        file.unlink()


def check_records(*, invalid_answers: bool = False) -> None:
    """Check every message that was recorded since the last call.

    With ``invalid_answers`` the test shows what becomes of answers that Codex does not have.

    Raises:
        AssertionError: some are not of the schemas of Codex.
    """
    problems: dict[str, None] = {}
    for file in [*RECORDS.iterdir()]:
        judge = _judges.setdefault(file.name, Judge(at_server=file.suffix == f".{AT_SERVER}"))
        judge.invalid_answers = invalid_answers
        for direction, data in _take(file):
            try:
                message = json.loads(data)
            except (ValueError, RecursionError):  # a hostile client
                assert direction != TO_CLIENT or file.suffix != f".{AT_SERVER}"
                continue
            try:
                judge.judge(direction, message)
            except AssertionError as problem:
                problems[str(problem)] = None
    assert not problems, "\n".join(problems)


def _take(file: Path) -> Iterator[tuple[bytes, bytes]]:
    """The messages of a record, which is taken away; a server that goes on begins a new one."""
    taken = file.rename(file.with_suffix(".taken"))
    data = taken.read_bytes()
    taken.unlink()
    at = 0
    while at < len(data):
        end = data.index(b"\n", at)
        length = int(data[at + 1 : end])
        yield data[at : at + 1], data[end + 1 : end + 1 + length]
        at = end + length + 2


def _check_sent(union: str, message: Message) -> None:
    method = message["method"]
    kind = "codex/event/*" if method.startswith("codex/event/") else method
    if kind in OURS or method in OF_THE_PROBE:
        return
    names = _names(union)
    assert method in names, f"Codex has no {union} {method!r}"
    if (name := names[method]) is not None:
        _check(name, message["params"], method)


def _check_result(asked: Message, result: Any) -> None:
    method = _codex_method(asked)
    if method is not None:
        _check(result_name(method), result, f"the result of {asked['method']}")


def _check_request(asked: Message) -> None:
    method = _codex_method(asked)
    name = None if method is None else params_name(method)
    if method is None or name is None:
        return
    params = asked.get("params") or {}
    params = {k: v for k, v in params.items() if k not in method.our_fields}
    try:
        _check(name, params, f"the params of {asked['method']}")
    except AssertionError:
        rest = {k: v for k, v in params.items() if k not in LENIENT}
        if rest == params:
            raise
        _check(name, rest, f"the params of {asked['method']}")


def _codex_method(asked: Message) -> Method | None:
    """The row of a method that Codex has, too."""
    name = asked["method"]
    return None if name in OURS else METHODS.get(name)


def _check(name: str, value: Any, what: str) -> None:
    try:
        _validate()({name: value})
    except fastjsonschema.JsonSchemaException:
        from jsonschema import Draft7Validator
        from jsonschema.exceptions import best_match

        problem = best_match(Draft7Validator(recorded().schema(name)).iter_errors(value))
        where = f"{problem.json_path}: {problem.message}"
        raise AssertionError(f"{what} is not of the schema of Codex: {where}") from None


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
    theirs = [method for name, method in METHODS.items() if name not in OURS]
    names = {result_name(method) for method in theirs} | {params_name(method) for method in theirs}
    asked = {name for name in _names("ServerRequest").values() if name is not None}
    names |= asked | {name.removesuffix("Params") + "Response" for name in asked}
    names |= {_names("ServerNotification").get(method) for method in NOTIFICATIONS}
    names |= {"JSONRPCRequest", "JSONRPCNotification", "JSONRPCError"}
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
