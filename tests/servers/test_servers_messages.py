"""The check of all messages of the tests finds what Codex would not know."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.frontends.appserver.appserver_process import app_server, piped
from tests.servers.codex_messages import OURS, RECORDS, Judge
from tests.servers.message_record import TO_CLIENT, TO_SERVER

from limner.frontends.appserver.methods import METHODS
from limner.frontends.appserver.protocol.base import OUR_NOTIFICATIONS
from limner.frontends.appserver.v1.types import METHODS as FIRST_METHODS

THREAD = "01a1e3f9-864a-7baf-a5bd-779ede2ae650"
ASKED = {
    "id": 0,
    "method": "item/fileChange/requestApproval",
    "params": {"threadId": THREAD, "turnId": "t", "itemId": "i", "startedAtMs": 1},
}
SENT = {"id": 1, "method": "thread/archive", "params": {"threadId": THREAD}}
DONE = {"id": 1, "result": {}}
STATUS = {"threadId": THREAD, "status": {"type": "idle"}}


def test_a_message_that_codex_lacks_is_in_the_table() -> None:
    methods = {name for name, method in METHODS.items() if method.is_ours}
    assert set(OURS) == methods | OUR_NOTIFICATIONS | set(FIRST_METHODS) | {"codex/event/*"}


def test_every_message_of_a_connection_is_recorded(tmp_path: Path) -> None:
    with piped(tmp_path, words=app_server()) as client:
        client.greet()
        client.call(1, "thread/list")
        (record,) = RECORDS.iterdir()
        lines = record.read_bytes().splitlines()[1::2]
    assert [line[:12] for line in lines] == [
        b'{"id": "hell',
        b'{"id":"hello',
        b'{"method": "',
        b'{"id": 1, "m',
        b'{"id":1,"res',
    ]


ROWS = {
    "a result": (
        [(TO_SERVER, SENT), (TO_CLIENT, DONE)],
        [(TO_SERVER, SENT), (TO_CLIENT, {"id": 1, "result": []})],
    ),
    "an error": (
        [(TO_SERVER, SENT), (TO_CLIENT, {"id": 1, "error": {"code": 1, "message": "no"}})],
        [(TO_SERVER, SENT), (TO_CLIENT, {"id": 1, "error": {"code": 1}})],
    ),
    "a notification": (
        [(TO_CLIENT, {"method": "thread/status/changed", "params": STATUS})],
        [(TO_CLIENT, {"method": "thread/status/changed", "params": {"threadId": THREAD}})],
    ),
    "a request of the server": (
        [(TO_CLIENT, ASKED)],
        [(TO_CLIENT, {**ASKED, "params": {}})],
    ),
    "an answer to it": (
        [(TO_CLIENT, ASKED), (TO_SERVER, {"id": 0, "result": {"decision": "accept"}})],
        [(TO_CLIENT, ASKED), (TO_SERVER, {"id": 0, "result": {"decision": "perhaps"}})],
    ),
    "a request with a result": (
        [(TO_SERVER, SENT), (TO_CLIENT, DONE)],
        [(TO_SERVER, {**SENT, "params": {}}), (TO_CLIENT, DONE)],
    ),
    "a name": (
        [(TO_CLIENT, {"method": "thread/spend/updated", "params": {}})],
        [(TO_CLIENT, {"method": "thread/spend/changed", "params": {}})],
    ),
}


def judge(messages: list[tuple[bytes, Any]], *, at_server: bool = True) -> None:
    connection = Judge(at_server=at_server)
    for direction, message in messages:
        connection.judge(direction, message)


@pytest.mark.parametrize(("good", "bad"), ROWS.values(), ids=ROWS)
def test_a_message_that_codex_would_not_know_is_found(
    good: list[tuple[bytes, Any]], bad: list[tuple[bytes, Any]]
) -> None:
    judge(good)
    with pytest.raises(AssertionError, match="Codex"):
        judge(bad)


def test_each_request_of_our_own_client_is_checked() -> None:
    judge([(TO_SERVER, SENT)], at_server=False)
    with pytest.raises(AssertionError, match="the params of thread/archive"):
        judge([(TO_SERVER, {**SENT, "params": {}})], at_server=False)


def test_an_id_of_several_open_requests_says_nothing_of_their_results() -> None:
    other = {"id": SENT["id"], "method": "echo"}
    judge([(TO_SERVER, SENT), (TO_SERVER, other), (TO_CLIENT, {**DONE, "result": None})])
    with pytest.raises(AssertionError, match="Codex"):
        judge(
            [
                *[(TO_SERVER, SENT), (TO_SERVER, other), (TO_CLIENT, DONE), (TO_CLIENT, DONE)],
                *[(TO_SERVER, SENT), (TO_CLIENT, {**DONE, "result": None})],
            ]
        )
