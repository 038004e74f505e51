"""Which method serves a message, in which order, and what a client is told if none can."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest

from limner.frontends.appserver.connection import ClientConnection, broadcast
from limner.frontends.appserver.dispatch import Dispatcher, RpcCall, RpcHandler
from limner.net.jsonrpc import MAX_VALUES, MessageHead, RpcError
from limner.net.jsonrpc_peer import MAX_UNSENT_BYTES, PendingRequests

pytestmark = pytest.mark.no_app_server

Params = dict[str, Any]


class Recording:
    """A wire whose other end remembers; it can be told to stop reading, or to be gone."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.reading = asyncio.Event()
        self.reading.set()
        self.gone = self.cut_off = False

    async def send(self, messages: Sequence[bytes]) -> None:
        await self.reading.wait()
        if self.gone:
            raise BrokenPipeError
        self.messages += map(json.loads, messages)

    async def receive(self) -> None:
        raise AssertionError("the tests hand over the messages themselves")

    def abort(self) -> None:
        self.cut_off = True


class Stage:
    """A dispatcher with a client that has introduced itself, and its log."""

    def __init__(self, methods: Mapping[str, RpcHandler]) -> None:
        self.log: list[str] = []
        pending = PendingRequests(self.log.append)
        self.dispatcher = Dispatcher(methods, pending=pending, log=self.log.append)
        self.wire, self.client = self.join()

    def join(self, **greeting: Any) -> tuple[Recording, ClientConnection]:
        wire = Recording()
        client = self.dispatcher.connect(wire)
        client.initialize("probe", "1", **{"experimental": False, "opted_out": (), **greeting})
        return wire, client

    async def say(self, *messages: object, client: ClientConnection | None = None) -> list[Any]:
        """Send messages, let everything come to rest, and return all that was received so far."""
        for message in messages:
            await (client or self.client).receive(json.dumps(message).encode())
        await self.rest()
        return self.wire.messages

    async def rest(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)


async def echo(call: RpcCall, params: Params) -> Params:
    return params


def stage(**served: Any) -> Stage:
    return Stage({name: RpcHandler(serve=one, params=Params) for name, one in served.items()})


def request(number: int | str, method: str, params: object = None) -> Params:
    return {"id": number, "method": method, "params": {} if params is None else params}


def untimed(message: Params) -> Params:
    assert isinstance(message.pop("emittedAtMs"), int)
    return message


def error(number: int | str, code: int, message: str, **data: Any) -> Params:
    body: Params = {"code": code, "message": message}
    return {"error": body | ({"data": data} if data else {}), "id": number}


async def test_a_request_is_answered_under_its_own_id() -> None:
    assert await stage(echo=echo).say(request("x", "echo", {"a": 1}), request(7, "echo")) == [
        {"id": "x", "result": {"a": 1}},
        {"id": 7, "result": {}},
    ]


async def test_an_unknown_method_names_those_that_there_are() -> None:
    assert await stage(echo=echo, other=echo).say(request(1, "nope")) == [
        error(1, -32600, "Invalid request: unknown variant `nope`, expected one of `echo`, `other`")
    ]


async def test_a_long_list_of_methods_is_shortened() -> None:
    scene = stage(**{f"m{number}": echo for number in range(99)})
    (answer,) = await scene.say(request(1, "n" * 999))
    named = ", ".join(f"`m{number}`" for number in range(24))
    assert answer["error"]["message"] == (
        f"Invalid request: unknown variant `{'n' * 200}`, expected one of {named}, …"
    )


async def test_what_is_wrong_with_a_request_comes_before_who_sends_it() -> None:
    scene = stage(echo=echo)
    scene.wire = Recording()
    stranger = scene.dispatcher.connect(scene.wire)
    assert await scene.say(
        request(1, "nope"), {"id": 2, "method": "echo"}, request(3, "echo"), client=stranger
    ) == [
        error(1, -32600, "Invalid request: unknown variant `nope`, expected one of `echo`"),
        error(2, -32600, "Invalid request: missing field `params`"),
        error(3, -32600, "Not initialized"),
    ]


async def test_what_may_still_change_is_for_those_who_asked() -> None:
    scene = Stage({"new": RpcHandler(serve=echo, params=Params, experimental=True)})
    assert await scene.say(request(1, "new")) == [
        error(1, -32600, "new requires experimentalApi capability")
    ]
    scene.wire, brave = scene.join(experimental=True)
    assert await scene.say(request(1, "new"), client=brave) == [{"id": 1, "result": {}}]
    brave.require_experimental("thread/start.dynamicTools")
    with pytest.raises(RpcError, match=r"^thread/start\.dynamicTools requires experimentalApi"):
        scene.client.require_experimental("thread/start.dynamicTools")


async def test_a_method_without_params_takes_a_request_without_params() -> None:
    async def bare(call: RpcCall, params: object) -> object:
        return params

    scene = Stage({"bare": RpcHandler(serve=bare)})
    assert await scene.say({"id": 1, "method": "bare"}) == [{"id": 1, "result": None}]


async def test_notifications_and_rubbish_are_not_answered() -> None:
    scene = stage(echo=echo)
    assert await scene.say({"method": "echo", "params": {}}, {"method": "initialized"}, 7) == []
    assert scene.log == ["a message is dropped: not a JSON object: Expected `object`, got `int`"]


async def test_an_early_answer_comes_before_what_is_sent_after_it() -> None:
    async def turn(call: RpcCall, params: Params) -> None:
        call.connection.notify("warning", {})
        call.answer({"turn": 1})
        for number in range(3):
            await asyncio.sleep(0)
            call.connection.notify("step", number)

    first, second, *steps = await stage(turn=turn).say(request(1, "turn"))
    assert untimed(first) == {"method": "warning", "params": {}}
    assert second == {"id": 1, "result": {"turn": 1}}
    assert [step["params"] for step in steps] == [0, 1, 2]


async def test_requests_begin_in_order_and_a_slow_one_holds_nobody_up() -> None:
    started: list[int] = []
    go = asyncio.Event()

    async def slow(call: RpcCall, params: Params) -> str:
        started.append(params["n"])
        await go.wait()
        return "slow"

    scene = stage(slow=slow, echo=echo)
    calls = [request(n, "slow", {"n": n}) for n in range(9)]
    assert await scene.say(*calls, request("quick", "echo")) == [{"id": "quick", "result": {}}]
    assert started == [*range(9)]
    go.set()
    await scene.rest()
    assert [message["id"] for message in scene.wire.messages[1:]] == [*range(9)]


async def test_a_client_with_too_many_open_requests_is_told_to_wait() -> None:
    go = asyncio.Event()

    async def wait(call: RpcCall, params: Params) -> None:
        await go.wait()

    scene = stage(wait=wait, echo=echo)
    received = await scene.say(*(request(n, "wait") for n in range(128)), request("late", "echo"))
    assert received == [
        error(
            "late",
            -32001,
            "Server overloaded; retry later.",
            codexErrorInfo="server_overloaded",
        )
    ]
    scene.wire, other = scene.join()
    assert await scene.say(request(1, "echo"), client=other) == [{"id": 1, "result": {}}]
    go.set()
    await scene.rest()
    await scene.say(request("again", "echo"))
    assert scene.client.unanswered == 0


async def test_a_thousand_quick_requests_at_once_are_no_overload() -> None:
    scene = stage(echo=echo)
    received = await scene.say(*(request(n, "echo") for n in range(1000)))
    assert [message["id"] for message in received] == [*range(1000)]


async def test_a_request_that_goes_on_after_its_answer_is_not_in_the_way() -> None:
    async def turn(call: RpcCall, params: Params) -> None:
        call.answer({})
        await asyncio.get_running_loop().create_future()

    scene = stage(turn=turn)
    received = await scene.say(*(request(n, "turn") for n in range(500)))
    assert [message["id"] for message in received] == [*range(500)]
    await scene.dispatcher.aclose()


async def test_opted_out_notifications_are_not_sent_and_no_others_are_missed() -> None:
    scene = stage()
    wire, client = scene.join(opted_out=["item/agentMessage/delta"])
    for method in ("item/agentMessage/delta", "item/agentMessage", "item/agentMessage/delta/x"):
        broadcast([client, scene.client], method, {})
    await scene.rest()
    assert [message["method"] for message in wire.messages] == [
        "item/agentMessage",
        "item/agentMessage/delta/x",
    ]
    assert len(scene.wire.messages) == 3


async def test_whoever_has_not_introduced_itself_is_told_nothing() -> None:
    scene = stage()
    wire = Recording()
    scene.dispatcher.connect(wire).notify("m", {})
    await scene.rest()
    assert wire.messages == []


async def test_introducing_oneself_twice_is_refused() -> None:
    with pytest.raises(RpcError, match=r"^Already initialized$"):
        stage().client.initialize("probe", "1", experimental=True, opted_out=())


async def test_questions_count_from_zero_and_are_answered_by_id() -> None:
    async def ask(call: RpcCall, params: Params) -> Any:
        return msgspec.json.decode(await call.connection.request("tool", params))

    scene = stage(ask=ask)
    assert await scene.say(request(0, "ask", {"a": 1}), request(1, "ask", {"b": 2})) == [
        {"method": "tool", "id": 0, "params": {"a": 1}},
        {"method": "tool", "id": 1, "params": {"b": 2}},
    ]
    received = await scene.say({"id": 1, "result": "second"}, {"id": 0, "result": "first"})
    assert received[2:] == [{"id": 1, "result": "second"}, {"id": 0, "result": "first"}]


async def test_a_clients_error_reaches_whoever_asked() -> None:
    scene = stage()
    asked = asyncio.create_task(scene.client.request("tool", {}))
    await scene.say()
    await scene.say({"id": 0, "error": {"code": 5, "message": "no camera"}})
    with pytest.raises(RpcError) as told:
        await asked
    assert (told.value.code, told.value.message) == (5, "no camera")


async def test_of_several_clients_the_first_answer_counts_and_others_may_join_later() -> None:
    scene = stage()
    question = scene.dispatcher.pending.open("tool", {"x": 1})
    question.send_to(scene.client)
    question.send_to(scene.client)
    wire, other = scene.join()
    question.send_to(other)
    waiting = asyncio.create_task(question.result())
    await scene.say()
    expected = [{"method": "tool", "id": 0, "params": {"x": 1}}]
    assert scene.wire.messages == wire.messages == expected
    await scene.say({"id": 0, "result": "mine"}, client=other)
    await scene.say({"id": 0, "result": "late"})
    assert bytes(await waiting) == b'"mine"'
    assert scene.log == ["an answer to 0, which is not expected, is ignored"]
    question.send_to(scene.join()[1])
    assert scene.wire.messages == expected


async def test_only_those_who_were_asked_can_answer() -> None:
    scene = stage()
    question = scene.dispatcher.pending.open("tool", {})
    question.send_to(scene.client)
    waiting = asyncio.create_task(question.result())
    _, stranger = scene.join()
    await scene.say({"id": 0, "result": "forged"}, {"id": "0", "result": 1}, client=stranger)
    assert not waiting.done()
    assert scene.log == [
        "an answer to 0, which is not expected, is ignored",
        "an answer to '0', which is not expected, is ignored",
    ]
    await scene.say({"id": 0, "result": "true"})
    assert bytes(await waiting) == b'"true"'


async def test_a_question_outlives_its_client_but_not_its_time() -> None:
    scene = stage()
    question = scene.dispatcher.pending.open("tool", {})
    question.send_to(scene.client)
    waiting = asyncio.create_task(question.result())
    scene.client.close()
    scene.wire, heir = scene.join()
    question.send_to(heir)
    assert await scene.say({"id": 0, "result": 1}, client=heir) == [
        {"method": "tool", "id": 0, "params": {}}
    ]
    assert bytes(await waiting) == b"1"
    with pytest.raises(TimeoutError):
        await scene.dispatcher.pending.open("tool", {}).result(timeout_s=0.01)
    await scene.say({"id": 1, "result": 1}, client=heir)
    assert scene.log == ["an answer to 1, which is not expected, is ignored"]


async def test_asking_a_client_that_leaves_fails() -> None:
    scene = stage()
    asked = asyncio.create_task(scene.client.request("tool", {}))
    await scene.rest()
    scene.client.close()
    with pytest.raises(ConnectionError):
        await asked
    with pytest.raises(ConnectionError):
        await scene.client.request("tool", {})


async def test_an_answer_too_long_to_be_read_fails_its_question() -> None:
    scene = stage()
    asked = asyncio.create_task(scene.client.request("tool", {}))
    await scene.rest()
    await scene.client.receive(MessageHead(b'{"id":0,"result":{"contentItems":['))
    with pytest.raises(RpcError, match=r"^Invalid request: longer than 268,435,456 bytes$"):
        await asked
    await scene.client.receive(MessageHead(b'{"id":4,"method":"m","params":"'))
    await scene.client.receive(MessageHead(b'{"params":"'))
    await scene.rest()
    assert scene.wire.messages[1:] == [
        error(4, -32600, "Invalid request: longer than 268,435,456 bytes")
    ]
    assert scene.log == ["a message is dropped: longer than 268,435,456 bytes"]


async def test_a_client_that_does_not_read_is_cut_off() -> None:
    scene = stage()
    scene.wire.reading.clear()
    told: list[str] = []
    scene.client.on_close(lambda: told.append("gone"))
    text = "x" * (MAX_UNSENT_BYTES // 4)
    for _ in range(4):
        scene.client.notify("m", text)
    assert not scene.client.closed
    scene.client.notify("m", "one more")
    assert (scene.client.closed, scene.wire.cut_off, told) == (True, True, ["gone"])
    (line,) = scene.log
    assert line == "the other side is cut off: it has left 256.0MB unread"
    scene.client.notify("m", "nobody hears this")
    scene.wire.reading.set()
    await scene.client.flush()


async def test_a_client_that_is_gone_is_closed_when_it_is_written_to() -> None:
    scene = stage(echo=echo)
    scene.wire.gone = True
    assert await scene.say(request(1, "echo"), request(2, "echo")) == []
    assert scene.client.closed
    told: list[str] = []
    scene.client.on_close(lambda: told.append("at once"))
    assert told == ["at once"]


async def test_closing_tells_only_those_who_still_want_to_know() -> None:
    scene = stage()
    told: list[str] = []
    scene.client.on_close(lambda: told.append("kept"))
    scene.client.on_close(lambda: told.append("undone"))()
    scene.client.close()
    scene.client.close()
    assert told == ["kept"]


async def test_a_message_with_too_much_in_it_leaves_nobody_waiting() -> None:
    scene = stage()
    asked = asyncio.create_task(scene.client.request("tool", {}))
    await scene.rest()
    much = b"[" + b"[]," * MAX_VALUES + b"0]}"
    await scene.client.receive(b'{"id":0,"result":' + much)
    with pytest.raises(RpcError, match=r"^Invalid request: more than 2,000,000 values$"):
        await asked
    await scene.client.receive(b'{"id":4,"method":"m","params":' + much)
    await scene.rest()
    assert scene.wire.messages[1:] == [
        error(4, -32600, "Invalid request: more than 2,000,000 values")
    ]
