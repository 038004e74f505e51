"""The kind of a message, how messages are encoded, and how a stream is split into them."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from limner.net.jsonrpc import (
    MAX_VALUES,
    ErrorResponse,
    InvalidMessage,
    MessageHead,
    Notification,
    OversizedMessage,
    Response,
    RpcError,
    RpcRequest,
    encode_error,
    encode_notification,
    encode_request,
    encode_response,
    glance,
    parse,
)
from limner.net.jsonrpc_lines import Line, LineSplitter


def plain(message: object) -> object:
    """A message as values that can be compared."""
    match message:
        case RpcRequest(number, method, params):
            return "request", number, method, params and json.loads(bytes(params))
        case Notification(method, params):
            return "notification", method, params and json.loads(bytes(params))
        case Response(number, result):
            return "response", number, json.loads(bytes(result))
        case ErrorResponse(number, error):
            data = json.loads(bytes(error.data)) if isinstance(error.data, Raw) else error.data
            return "error", number, error.code, error.message, data
        case _:
            return message


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ('{"id":1,"method":"m","params":{"a":[1]}}', ("request", 1, "m", {"a": [1]})),
        ('{"jsonrpc":"2.0","id":"x","method":"m"}', ("request", "x", "m", None)),
        ('{"id":-3,"method":"m","params":null,"trace":{}}', ("request", -3, "m", None)),
        ('{"id":"","method":"m","result":1}', ("request", "", "m", None)),
        ('{"method":"initialized"} \r', ("notification", "initialized", None)),
        ('{"id":null,"method":"m","params":7}', ("notification", "m", 7)),
        ('{"id":1.5,"method":"m"}', ("notification", "m", None)),
        ('{"id":true,"method":"m"}', ("notification", "m", None)),
        ('{"id":1180591620717411303424,"method":"m"}', ("notification", "m", None)),
        ('{"id":[[]],"method":"m"}', ("notification", "m", None)),
        ('{"id":0,"result":null}', ("response", 0, None)),
        ('{"id":0,"result":{"a":"ä"}}', ("response", 0, {"a": "ä"})),
        ('{"id":0,"error":{"code":1,"message":"m"}}', ("error", 0, 1, "m", None)),
        ('{"id":0,"error":{"code":1,"message":"m","data":[2]}}', ("error", 0, 1, "m", [2])),
    ],
)
def test_a_message_is_told_by_its_members(line: str, kind: object) -> None:
    assert plain(parse(line.encode())) == kind
    assert plain(parse(bytearray(line.encode()))) == kind


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"garbage", "not a JSON object: JSON is malformed: invalid character (byte 0)"),
        (b"\xff\xfe", "not a JSON object: JSON is malformed: invalid character (byte 0)"),
        (b"\xef\xbb\xbf{}", "not a JSON object: JSON is malformed: invalid character (byte 0)"),
        (b"[]", "not a JSON object: Expected `object`, got `array`"),
        (b'{"id":1', "not a JSON object: Input data was truncated"),
        (b'{"x":' + b"[" * 99_999 + b"]" * 99_999 + b"}", "nested too deeply"),
        (b"{}", "neither a request nor an answer"),
        (b'{"id":9}', "an id without method, result or error"),
        (b'{"id":9,"method":7}', "an id without method, result or error"),
        (b'{"id":9,"error":1}', "an id without method, result or error"),
        (b'{"id":9,"error":{"code":"1","message":"m"}}', "an id without method, result or error"),
    ],
    ids=lambda value: str(value[:24]),
)
def test_what_is_no_message_says_why(line: bytes, reason: str) -> None:
    assert parse(line) == InvalidMessage(reason)


def test_a_message_of_too_many_values_is_not_read() -> None:
    line = b'{"id":1,"result":[' + b"[]," * MAX_VALUES + b"0]}"
    assert parse(line) == OversizedMessage("more than 2,000,000 values")


def test_a_long_text_is_no_structure() -> None:
    picture = "A" * 4_000_000
    line = json.dumps({"id": 0, "result": {"imageUrl": f"data:image/png;base64,{picture}"}})
    assert plain(parse(line.encode()))[2]["imageUrl"].endswith(picture)  # type: ignore[index]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
MEMBERS = st.fixed_dictionaries(
    {},
    optional={
        "id": JSON | st.integers(0, 9),
        "method": JSON | st.just("m"),
        "params": JSON,
        "result": JSON,
        "error": JSON | st.just({"code": 1, "message": "m"}),
    },
)


@given(MEMBERS)
def test_property_every_object_is_a_message_or_says_why_not(members: dict[str, Any]) -> None:
    assert isinstance(
        parse(json.dumps(members).encode("utf-8", "replace")),
        RpcRequest | Notification | Response | ErrorResponse | InvalidMessage,
    )


@given(st.binary(max_size=200))
def test_property_no_bytes_break_the_parser(data: bytes) -> None:
    assert parse(data) is not None
    glance(data)


class Person(msgspec.Struct):
    name: str
    age: int = 0


def test_messages_are_encoded_without_the_member_jsonrpc() -> None:
    assert (
        encode_response(1, {"a": Person("Ada", 3)})
        == b'{"id":1,"result":{"a":{"name":"Ada","age":3}}}'
    )
    assert encode_error("x", RpcError(-1, "no")) == b'{"error":{"code":-1,"message":"no"},"id":"x"}'
    assert json.loads(encode_error(2, RpcError(-1, "no", {"why": 1}))) == {
        "error": {"code": -1, "message": "no", "data": {"why": 1}},
        "id": 2,
    }
    assert encode_request(0, "m", {}) == b'{"method":"m","id":0,"params":{}}'
    assert encode_notification("m") == b'{"method":"m"}'
    assert (
        encode_notification("m", {"a": 1}, sentAtMs=7)
        == b'{"method":"m","params":{"a":1},"sentAtMs":7}'
    )


def test_half_a_character_in_a_file_name_becomes_a_question_mark() -> None:
    assert (
        encode_response(1, ["caf\udce9", Person("ä")])
        == '{"id":1,"result":["caf?",{"name":"ä","age":0}]}'.encode()
    )


@pytest.mark.parametrize(
    ("head", "found"),
    [
        (b'{"id":5,"method":"m","params":{"x', RpcRequest(5, "m")),
        (b'{ "jsonrpc": "2.0", "method": "m", "id": "a", "params": [', RpcRequest("a", "m")),
        (b'{"id":0,"result":{"contentItems', Response(0, Raw(b""))),
        (b'{"id":0,"error":{', Response(0, Raw(b""))),
        (b'{"result":{"id":7', None),
        (b'{"id":0,"other":{', None),
        (b'{"id":99999999999999999999,"method":"m","params":', None),
        (b'{"id":0', None),
        (b'{"params":{"id":5,"method":"m",', None),
        (b"garbage", None),
        (b"", None),
    ],
)
def test_the_beginning_of_a_message_may_tell_whose_it_is(
    head: bytes, found: RpcRequest | Response | None
) -> None:
    seen = glance(head)
    assert type(seen) is type(found)
    if isinstance(found, RpcRequest):
        assert seen == found
    elif isinstance(found, Response):
        assert isinstance(seen, Response)
        assert seen.id == found.id


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


@given(
    data=st.lists(st.sampled_from([b"\n", b"a", b"bcd", b" ", b"\r", b"x" * 9])).map(b"".join),
    places=st.lists(st.integers(0, 200), max_size=9),
)
def test_property_lines_do_not_depend_on_how_they_arrive(data: bytes, places: list[int]) -> None:
    lines = LineSplitter(max_bytes=12)
    found: list[Line] = [line for chunk in cut(data, places) for line in lines.feed(chunk)]
    found += lines.end()
    expected = [line for line in data.split(b"\n") if line.strip() or len(line) > 12]
    assert found == [line if len(line) <= 12 else MessageHead(line[:12], 12) for line in expected]


def test_of_a_line_that_is_too_long_only_the_beginning_is_kept() -> None:
    lines = LineSplitter(max_bytes=100_000)
    assert lines.feed(b'{"id":5,') == []
    for _ in range(9):
        assert lines.feed(b"x" * 65_536) == []
    *_, long, short = lines.feed(b"\nnext\n")
    assert isinstance(long, MessageHead)
    assert long.head == b'{"id":5,' + b"x" * 4088
    assert short == b"next"
