"""A number of threads and of idle clients -> how one app-server fares with all of them at once.

Every client is a web socket. The model holds its answers back until each thread's question has
arrived, so that all turns are in flight at the same moment; then every turn has to end with its own
words, and every idle client has to be answered still.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from benchmarks.app_server_client import HELLO, Head, thread_params, turn_params
from benchmarks.app_server_model import TOGETHER
from benchmarks.app_server_peers import Peer
from benchmarks.metered import cpu_ns
from benchmarks.processes import memory_mb

CONNECTING_AT_ONCE = 50
GUARD_S = 300.0
QUESTIONS = 20
DELTA, COMPLETED = "item/agentMessage/delta", "turn/completed"


class Crowd(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a crowd; times are in seconds."""

    lost_turns: int
    lost_clients: int
    turns_s: list[float]
    idle_s: list[float]
    idle_mb: float
    busy_mb: float


async def crowd(peer: Peer, *, threads: int, idle: int, rounds: int) -> Crowd:
    """Let so many threads work at once, so many times, while so many clients just listen."""
    import resource  # not on Windows

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    async with asyncio.timeout(GUARD_S), _server(peer) as (url, pid), _guests() as guests:
        listeners = await guests.arrive(url, idle)
        workers = await guests.arrive(url, threads)
        params = thread_params(str(peer.cwd))
        started = await asyncio.gather(*(one.request("thread/start", params) for one in workers))
        places = list(zip(workers, [one["thread"]["id"] for one in started], strict=True))
        before_mb = memory_mb(pid)
        turns: list[float | None] = []
        for number in range(rounds):
            turns += await asyncio.gather(
                *(
                    one.turn(thread_id, f"{TOGETHER}: {number} of {index}")
                    for index, (one, thread_id) in enumerate(places)
                )
            )
        answered = await asyncio.gather(
            *(one.timed("thread/loaded/list") for one in listeners), return_exceptions=True
        )
        after_mb = memory_mb(pid)
    idle_s = [taken for taken in answered if isinstance(taken, float)]
    turns_s = [taken for taken in turns if taken is not None]
    return Crowd(
        lost_turns=len(turns) - len(turns_s),
        lost_clients=idle - len(idle_s),
        turns_s=turns_s,
        idle_s=idle_s,
        idle_mb=before_mb,
        busy_mb=after_mb,
    )


async def waits(peer: Peer, *, idle: int, rounds: int) -> list[float]:
    """The processor time of the server for a question of one client while others just listen."""
    async with asyncio.timeout(GUARD_S), _server(peer) as (url, pid), _guests() as guests:
        await guests.arrive(url, idle - 1)
        (asking,) = await guests.arrive(url, 1)
        taken_s: list[float] = []
        for _ in range(rounds):
            before_ns = cpu_ns(pid)[pid]
            for _ in range(QUESTIONS):
                await asking.request("thread/loaded/list", {})
            taken_s.append((cpu_ns(pid)[pid] - before_ns) / QUESTIONS / 1e9)
    return taken_s


class Guest:
    """One client of the crowd. It reads all the time: every client hears of every thread."""

    _heads = msgspec.json.Decoder(Head)

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._answers: dict[int | str | None, asyncio.Future[Head]] = {}
        self._heard: asyncio.Queue[Head] = asyncio.Queue()
        self._reading = asyncio.ensure_future(self._read())

    async def greet(self) -> None:
        await self.request("initialize", HELLO)
        await self._socket.send('{"method":"initialized"}')

    async def request(self, method: str, params: dict[str, Any]) -> Any:
        head = await self._ask(method, params)
        assert head.result, bytes(head.error)
        return msgspec.json.decode(head.result)

    async def timed(self, method: str) -> float:
        started = time.perf_counter()
        await self.request(method, {})
        return time.perf_counter() - started

    async def turn(self, thread_id: str, words: str) -> float | None:
        """The seconds a turn took; None where it did not end with the words it should."""
        started, heard = time.perf_counter(), ""
        if (await self._ask("turn/start", turn_params(thread_id, words))).error:
            return None
        while (head := await self._heard.get()).method == DELTA:
            heard += msgspec.json.decode(head.params)["delta"]
        status = msgspec.json.decode(head.params)["turn"]["status"]
        is_whole = (status, heard) == ("completed", words)
        return time.perf_counter() - started if is_whole else None

    async def _ask(self, method: str, params: dict[str, Any]) -> Head:
        number = next(self._numbers)
        self._answers[number] = answer = asyncio.get_running_loop().create_future()
        message = {"id": number, "method": method, "params": params}
        await self._socket.send(msgspec.json.encode(message), text=True)
        return await answer

    async def _read(self) -> None:
        async for message in self._socket:
            head = self._heads.decode(message)
            if head.method is None:
                self._answers.pop(head.id).set_result(head)
            elif head.method in (DELTA, COMPLETED):
                self._heard.put_nowait(head)
        for answer in self._answers.values():
            answer.set_exception(ConnectionError("the server is gone"))


class Guests:
    """Lets clients in, and sees all of them off at the end."""

    def __init__(self, leaving: contextlib.AsyncExitStack) -> None:
        self._leaving = leaving
        self._door = asyncio.Semaphore(CONNECTING_AT_ONCE)

    async def arrive(self, url: str, count: int) -> list[Guest]:
        return list(await asyncio.gather(*(self._arrive(url) for _ in range(count))))

    async def _arrive(self, url: str) -> Guest:
        from websockets.asyncio.client import connect

        async with self._door:
            opening = connect(url, compression=None, max_size=None, ping_interval=None, proxy=None)
            guest = Guest(await self._leaving.enter_async_context(opening))
            await guest.greet()
            return guest


@asynccontextmanager
async def _guests() -> AsyncGenerator[Guests]:
    async with contextlib.AsyncExitStack() as leaving:
        yield Guests(leaving)


@asynccontextmanager
async def _server(peer: Peer) -> AsyncGenerator[tuple[str, int]]:
    """The address of a running server, and its process."""
    process = await asyncio.create_subprocess_exec(
        *peer.command,
        *("--listen", "ws://127.0.0.1:0"),
        *(["--no-token"] if peer.name == "limner" else []),  # Codex asks for none either
        stderr=asyncio.subprocess.PIPE,
        cwd=peer.cwd,
        env=peer.env,
    )
    assert process.stderr is not None
    try:
        line = (await process.stderr.readline()).decode()
        _, found, url = line.partition("listening on ")
        assert found, line
        reading = asyncio.ensure_future(process.stderr.read())
        yield url.strip(), process.pid
    finally:
        process.terminate()
        await process.wait()
    await reading
