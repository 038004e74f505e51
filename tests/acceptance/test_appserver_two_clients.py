"""Two clients of one server, and one script: the real Codex and limner send both of them the same.

Codex comes with the package `openai-codex`, no part of the ordinary tools:
`pip install --group local`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.appserver_differences import ALLOWED, SETUP, TWO_CLIENTS, common
from tests.acceptance.appserver_shapes import Message, in_fields, in_order, unexplained
from tests.servers.appserver_listening import listening
from tests.servers.appserver_process import Client, Socket
from tests.servers.appserver_side import KINDS, TalkingServer, side_of
from tests.servers.codex_process import MODEL
from tests.servers.components import needs
from tests.servers.scripted import says
from websockets.asyncio.client import connect

pytestmark = [pytest.mark.slow, needs("codex_cli_bin")]

CLIENTS = ("first", "second")
# The notifications that each of them receives.
HEARD = {"first": 56, "second": 26}
SAID = [{"type": "text", "text": "Which colour?"}]

# Who asks for what; `$thread` and `$fork` are the threads of earlier answers.
Step = tuple[str, str, Mapping[str, Any]]
SCRIPT: tuple[Step, ...] = (
    ("first", "thread/start", {"sandbox": "read-only"}),
    ("first", "turn/start", {"threadId": "$thread", "input": SAID}),
    ("first", "thread/name/set", {"threadId": "$thread", "name": "Colours"}),
    ("second", "thread/list", {}),
    ("second", "thread/search", {"searchTerm": "colour"}),
    ("second", "thread/resume", {"threadId": "$thread"}),
    ("second", "thread/settings/update", {"threadId": "$thread", "effort": "low"}),
    ("second", "turn/start", {"threadId": "$thread", "input": SAID}),
    ("first", "thread/fork", {"threadId": "$thread"}),
    ("first", "turn/start", {"threadId": "$fork", "input": SAID}),
    ("second", "thread/name/set", {"threadId": "$fork", "name": "Other colours"}),
    ("first", "thread/archive", {"threadId": "$fork"}),
    ("second", "thread/list", {"archived": True}),
    ("second", "thread/unarchive", {"threadId": "$fork"}),
    ("second", "thread/unsubscribe", {"threadId": "$thread"}),
    ("first", "turn/start", {"threadId": "$thread", "input": SAID}),
)


class Pair:
    """Two clients, and what each of them has received."""

    def __init__(self, clients: Mapping[str, Client]) -> None:
        self.clients = clients
        self.kept: dict[str, str] = {}
        self.received: dict[str, list[Message]] = {name: [] for name in clients}

    async def play(self) -> None:
        for who, method, params in SCRIPT:
            client = self.clients[who]
            filled = {name: self._filled(value) for name, value in params.items()}
            answer = await client.request(method, **filled)
            self.received[who].append({"to": method, "result": answer})
            match method, answer:
                case "thread/start", {"thread": {"id": thread_id}}:
                    self.kept["thread"] = thread_id
                case "thread/fork", {"thread": {"id": thread_id}}:
                    self.kept["fork"] = thread_id
                case "turn/start", {"turn": {"id": turn_id}}:
                    while (await client.until("turn/completed"))["turn"]["id"] != turn_id:
                        pass
                case _:
                    pass
        # What was sent to a client before this answer has come.
        for client in self.clients.values():
            await client.request("thread/loaded/list")

    def _filled(self, value: Any) -> Any:
        is_name = isinstance(value, str) and value.startswith("$")
        return self.kept[value.removeprefix("$")] if is_name else value


async def play(kind: str, folder: Path) -> dict[str, list[Message]]:
    async with AsyncExitStack() as stack:
        model = stack.enter_context(TalkingServer())
        answer = model.streamed(says("Green."), {"model": MODEL})
        model.script("ask", *[answer] * 10)
        side = side_of(kind, folder, model)
        address = await stack.enter_async_context(listening(side, "ws://127.0.0.1:0"))
        clients: dict[str, Client] = {}
        for name in CLIENTS:
            opening = connect(address, max_size=None, compression=None, proxy=None)
            socket = Socket(await stack.enter_async_context(opening))
            clients[name] = Client(socket)
            await clients[name].greet(name=name)
        pair = Pair(clients)
        await pair.play()
    return {name: [*pair.received[name], *clients[name].heard] for name in CLIENTS}


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, list[Message]]]:
    return {kind: asyncio.run(play(kind, tmp_path_factory.mktemp("two"))) for kind in KINDS}


@pytest.mark.parametrize("who", CLIENTS)
def test_a_client_receives_the_same_notifications_in_the_same_order(
    who: str, played: dict[str, dict[str, list[Message]]]
) -> None:
    codex = common(who, played["codex"][who], "by_codex")
    ours = common(who, played["limner"][who], "by_us")
    assert [str(one) for one in in_order(who, codex, ours)] == []
    assert len([one for one in ours if "to" not in one]) == HEARD[who]


@pytest.mark.parametrize("who", CLIENTS)
def test_every_message_has_the_same_members_and_words(
    who: str, played: dict[str, dict[str, list[Message]]]
) -> None:
    found = list(in_fields(who, played["codex"][who], played["limner"][who]))
    assert unexplained(found, (*SETUP, *ALLOWED, *TWO_CLIENTS)) == []
    assert all(any(row.has(one) for one in found) for row in TWO_CLIENTS)
