"""Params as types, in the words that clients know where they are wrong; and what is gated."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.frontends.appserver.appserver_samples import NOTICES, QUESTIONS, RESULTS

from limner.errors import InputInvalid
from limner.frontends.appserver.methods import METHODS
from limner.frontends.appserver.protocol.base import ImageInput, TextInput
from limner.frontends.appserver.protocol.params import (
    decode_params,
    experimental_use,
    read_params,
)
from limner.frontends.appserver.protocol.turns import TurnStartParams

INPUTS = "`text`, `image`, `localImage`, `audio`, `localAudio`, `skill`, `mention`"
WRONG: list[tuple[str, Any, str, str | None]] = [
    ("thread/read", {}, "missing field `threadId`", "threadId"),
    (
        "thread/read",
        {"threadId": 3},
        "invalid type: integer `3`, expected a string, in `threadId`",
        "threadId",
    ),
    (
        "thread/read",
        {"threadId": "x", "includeTurns": "x"},
        'invalid type: string "x", expected a boolean, in `includeTurns`',
        "includeTurns",
    ),
    ("thread/read", [], "invalid type: sequence, expected a map", None),
    (
        "thread/list",
        {"limit": -1},
        "invalid value: integer `-1`, expected u32, in `limit`",
        "limit",
    ),
    (
        "thread/list",
        {"limit": 1.5},
        "invalid type: floating point `1.5`, expected an integer, in `limit`",
        "limit",
    ),
    (
        "thread/list",
        {"sortDirection": "up"},
        "unknown variant `up`, expected `asc` or `desc`, in `sortDirection`",
        "sortDirection",
    ),
    (
        "thread/start",
        {"approvalPolicy": 3},
        "invalid type: integer `3`, expected a string or a map, in `approvalPolicy`",
        "approvalPolicy",
    ),
    ("turn/start", {"threadId": "x"}, "missing field `input`", "input"),
    (
        "turn/start",
        {"threadId": "x", "input": [{"type": "text", "text": ""}, {"type": "film"}]},
        f"unknown variant `film`, expected one of {INPUTS}, in `input[1].type`",
        "input[1].type",
    ),
    ("turn/start", {"threadId": "x", "input": [{"text": "a"}]}, "missing field `type`", "type"),
    (
        "turn/start",
        {"threadId": "x", "input": [{"type": "image"}]},
        "data did not match any variant of untagged enum ImageReference",
        "input[0]",
    ),
    ("account/login/start", {"type": "apiKey"}, "missing field `apiKey`", "apiKey"),
]


@pytest.mark.parametrize(("method", "params", "words", "field"), WRONG)
def test_what_is_wrong_is_said_as_codex_does_and_names_the_member(
    method: str, params: Any, words: str, field: str | None
) -> None:
    with pytest.raises(InputInvalid) as refusal:
        decode_params(METHODS[method].params, msgspec.Raw(json.dumps(params).encode()))
    assert (refusal.value.message, refusal.value.field) == (f"Invalid request: {words}", field)


def used(method: str, params: msgspec.Raw | None) -> str | None:
    """The first experimental thing that a request uses."""
    return experimental_use(method, params, METHODS[method].experimental_fields)


@pytest.mark.parametrize("tail", [b"Infinity", b'"\xff"', b"[" * 5_000])
def test_params_that_are_wrong_and_then_no_json_are_refused(tail: bytes) -> None:
    raw = msgspec.Raw(b'{"threadId": 3, "x": ' + tail + b"}")
    assert used("turn/start", raw) is None
    with pytest.raises(InputInvalid, match=r"^Invalid request: "):
        decode_params(TurnStartParams, raw)


def test_params_that_are_not_there_are_refused() -> None:
    with pytest.raises(InputInvalid, match=r"^Invalid request: missing field `params`$"):
        decode_params(TurnStartParams, None)


def test_unknown_members_are_ignored() -> None:
    params = {"threadId": "a", "input": [{"type": "text", "text": "hi", "new": 1}], "newer": {}}
    assert read_params(TurnStartParams, params) == TurnStartParams(
        thread_id="a", input=(TextInput(text="hi"),)
    )


def test_a_picture_by_url_is_sent_without_a_file_id_and_with_its_detail() -> None:
    sent = msgspec.json.decode(msgspec.json.encode(ImageInput(url="data:,")))
    assert sent == {"type": "image", "url": "data:,", "detail": None}


@pytest.mark.parametrize("message", [*RESULTS.values(), *NOTICES, *QUESTIONS])
def test_what_is_sent_is_read_back_as_it_was(message: Any) -> None:
    assert msgspec.json.decode(msgspec.json.encode(message), type=type(message)) == message


@pytest.mark.parametrize(
    ("method", "params", "needed"),
    [
        ("thread/start", {"dynamicTools": []}, "thread/start.dynamicTools"),
        ("thread/start", {"dynamicTools": None}, None),
        ("thread/start", {"experimentalRawEvents": False}, None),
        ("thread/start", {"experimentalRawEvents": True}, "thread/start.experimentalRawEvents"),
        ("thread/start", {"approvalPolicy": {"granular": {}}}, "askForApproval.granular"),
        ("thread/start", {"approvalPolicy": "never", "model": "x"}, None),
        ("thread/resume", {"threadId": "x", "path": "/x"}, "thread/resume.path"),
        ("thread/resume", {"threadId": "x", "dynamicTools": []}, "thread/resume.dynamicTools"),
        ("thread/fork", {"threadId": "x", "beforeTurnId": "t"}, "thread/fork.beforeTurnId"),
        ("thread/tools/set", {"dynamicTools": []}, "thread/tools/set.dynamicTools"),
        ("thread/read", {"threadId": "x", "dynamicTools": []}, None),
        ("thread/start", [], None),
    ],
)
def test_experimental_use_is_named(method: str, params: Any, needed: str | None) -> None:
    assert used(method, msgspec.Raw(json.dumps(params).encode())) == needed


def test_a_request_without_params_asks_for_nothing_experimental() -> None:
    assert used("thread/start", None) is None


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


@given(
    st.sampled_from([name for name, method in METHODS.items() if method.params is not None]),
    json_values
    | st.dictionaries(
        st.sampled_from(["threadId", "input", "limit", "type", "dynamicTools", "approvalPolicy"]),
        json_values,
    ),
)
def test_any_json_is_read_or_refused_in_one_bounded_sentence_property(
    method: str, params: Any
) -> None:
    raw = msgspec.Raw(json.dumps(params).encode())
    used(method, raw)
    with suppress(InputInvalid):
        decode_params(METHODS[method].params, raw)
        return
    with pytest.raises(InputInvalid, match=r"^Invalid request: .{1,900}$"):
        decode_params(METHODS[method].params, raw)
