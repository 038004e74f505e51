"""Which connections stay if there are too many, too slow or too large ones."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limner.frontends.connection_guard import ConnectionGuard, GuardedConnection, ServerLimits

LIMITS = ServerLimits(newcomers=3, connections=2, head_s=3600, request_s=7200, held_bytes=100)


class Crowd:
    """Connections of one guard, by number; it notes which are dropped."""

    def __init__(self, limits: ServerLimits = LIMITS) -> None:
        self.guard = ConnectionGuard(limits)
        self.dropped: list[int] = []
        self.all: list[GuardedConnection] = []

    def come(self, *, settles: bool = False) -> GuardedConnection:
        number = len(self.all)
        connection = self.guard.admit(lambda: self.dropped.append(number))
        self.all.append(connection)
        if settles:
            connection.settle()
        return connection


async def test_the_oldest_newcomer_makes_room_for_the_next() -> None:
    crowd = Crowd()
    for _ in range(5):
        crowd.come()
    assert crowd.dropped == [0, 1]


async def test_newcomers_never_displace_a_client_that_is_served() -> None:
    crowd = Crowd()
    crowd.come(settles=True)
    crowd.come(settles=True)
    for _ in range(100):
        crowd.come()
    assert crowd.guard.is_full
    assert 0 not in crowd.dropped
    assert 1 not in crowd.dropped
    crowd.all[0].leave()
    assert not crowd.guard.is_full


async def test_what_does_not_arrive_in_time_is_dropped() -> None:
    gone = asyncio.Event()
    guard = ConnectionGuard(ServerLimits(head_s=0.01))
    guard.admit(gone.set)
    async with asyncio.timeout(60):
        await gone.wait()


async def test_the_time_for_one_thing_does_not_start_again_with_every_byte() -> None:
    gone = asyncio.Event()
    connection = ConnectionGuard(ServerLimits(head_s=0.05)).admit(gone.set)
    async with asyncio.timeout(60):
        while not gone.is_set():
            connection.expect(0.05)
            await asyncio.sleep(0)


@pytest.mark.parametrize("ends", ["settle", "leave"])
async def test_what_arrived_has_no_deadline(ends: str) -> None:
    dropped: list[None] = []
    connection = ConnectionGuard(ServerLimits(head_s=0.01)).admit(lambda: dropped.append(None))
    getattr(connection, ends)()
    passed = asyncio.Event()
    asyncio.get_running_loop().call_later(0.02, passed.set)
    await passed.wait()
    assert dropped == []


async def test_the_connection_that_holds_the_most_is_dropped() -> None:
    crowd = Crowd()
    small, large = crowd.come(settles=True), crowd.come(settles=True)
    small.hold(40)
    large.hold(60)
    assert crowd.dropped == []
    small.hold(1)
    assert crowd.dropped == [1]
    assert crowd.guard.held_bytes == 41
    large.hold(1000)
    small.hold(-41)
    assert crowd.guard.held_bytes == 0


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(-50, 120)), max_size=60))
def test_property_the_total_is_the_sum_and_never_above_the_limit(
    steps: list[tuple[int, int]],
) -> None:
    async def run() -> None:
        crowd = Crowd(ServerLimits(newcomers=5, held_bytes=100))
        for _ in range(10):
            crowd.come(settles=len(crowd.all) % 2 == 0)
        for number, change in steps:
            connection = crowd.all[number]
            connection.hold(max(change, -connection.held_bytes))
            assert crowd.guard.held_bytes == sum(one.held_bytes for one in crowd.all)
            assert crowd.guard.held_bytes <= 100
        for connection in crowd.all:
            connection.leave()
        assert crowd.guard.held_bytes == 0

    asyncio.run(run())
