"""The calls of processes that died, tested by killing real ones."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import money_child
import pytest
from money_child import CALL, FOUR_CENTS
from money_clock import Clock
from tests.servers.namespaces import ANOTHER_CONTAINER, needs_namespaces

from limner.errors import BudgetExceeded, StorageError
from limner.money.ledger import Caps, Money
from limner.storage.store import Store


@contextmanager
def child_that_is_at(
    state: str, ledger_path: Path, *, where: Sequence[str] = ()
) -> Generator[subprocess.Popen[str]]:
    """A process with one call in that state, waiting; killed at the end if it still lives."""
    with subprocess.Popen(
        [*where, sys.executable, money_child.__file__, str(ledger_path), state],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "1\n"
        yield child
        child.kill()


async def states(money: Money) -> list[tuple[str, int, str | None]]:
    return [(row.state, row.cost_nano, row.error_code) for row in (await money.spend()).recent]


@pytest.mark.parametrize("state", ["reserved", "sent"])
async def test_the_calls_of_a_live_process_are_not_concluded(
    money: Money, ledger_path: Path, state: str
) -> None:
    with child_that_is_at(state, ledger_path):
        assert await money.conclude_dead_calls() == 0
        assert await states(money) == [(state, FOUR_CENTS, None)]


@pytest.mark.parametrize(
    ("state", "becomes"),
    [
        ("reserved", ("released", 0, "OWNER_DIED")),
        ("sent", ("unknown", FOUR_CENTS, "OWNER_DIED")),
    ],
)
async def test_the_calls_of_a_killed_process_are_concluded_once(
    money: Money, ledger_path: Path, state: str, becomes: tuple[str, int, str]
) -> None:
    with child_that_is_at(state, ledger_path) as child:
        child.kill()
        child.wait()
    assert [await money.conclude_dead_calls(), await money.conclude_dead_calls()] == [1, 0]
    assert await states(money) == [becomes]


@pytest.mark.skipif(sys.platform != "linux", reason="only /proc tells a zombie")
async def test_a_zombie_process_is_dead(money: Money, ledger_path: Path) -> None:
    with child_that_is_at("sent", ledger_path) as child:
        child.kill()
        await asyncio.to_thread(os.waitid, os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert await money.conclude_dead_calls() == 1


async def test_the_next_reservation_may_use_what_a_dead_process_never_sent(
    store: Store, clock: Clock, ledger_path: Path
) -> None:
    with child_that_is_at("reserved", ledger_path) as child:
        child.kill()
        child.wait()
    money = Money(store, caps=Caps(session_nano=FOUR_CENTS), clock=clock)
    await money.reserve(FOUR_CENTS, **CALL)


async def test_the_next_reservation_may_not_use_what_a_dead_process_had_sent(
    store: Store, clock: Clock, ledger_path: Path
) -> None:
    with child_that_is_at("sent", ledger_path) as child:
        child.kill()
        child.wait()
    money = Money(store, caps=Caps(session_nano=FOUR_CENTS), clock=clock)
    with pytest.raises(BudgetExceeded):
        await money.reserve(FOUR_CENTS, **CALL)
    assert await money.spent() == FOUR_CENTS


@pytest.mark.parametrize("use", ["spend", "spent", "unfinished_jobs"])
async def test_the_first_read_of_the_ledger_concludes_too(
    money: Money, ledger_path: Path, use: str
) -> None:
    with child_that_is_at("sent", ledger_path) as child:
        child.kill()
        child.wait()
    await getattr(money, use)()
    with closing(sqlite3.connect(ledger_path)) as connection:
        assert connection.execute("SELECT state FROM ledger").fetchall() == [("unknown",)]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells start and boot")
@pytest.mark.parametrize(
    "change",
    [
        "owner_start = '1'",  # the number was given to another process
        "owner = NULL, owner_boot = 'the boot before'",  # by an older version of limner
        "owner = 'one that has ended'",
    ],
)
async def test_a_live_process_with_the_pid_of_the_owner_is_not_the_owner(
    money: Money, ledger_path: Path, change: str
) -> None:
    reservation = await money.reserve(FOUR_CENTS, **CALL)
    await money.mark_sent(reservation, request_json="{}")
    with closing(sqlite3.connect(ledger_path)) as connection, connection:
        connection.execute(f"UPDATE ledger SET {change}")
    assert await money.conclude_dead_calls() == 1
    assert await states(money) == [("unknown", FOUR_CENTS, "OWNER_DIED")]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the start of a process")
async def test_a_free_call_of_a_dead_process_is_released_although_it_was_sent(
    money: Money, ledger_path: Path
) -> None:
    reservation = await money.reserve(0, **CALL)
    await money.mark_sent(reservation, request_json="{}")
    with closing(sqlite3.connect(ledger_path)) as connection, connection:
        connection.execute("UPDATE ledger SET owner_start = '1'")
    assert await money.conclude_dead_calls() == 1
    assert await states(money) == [("released", 0, "OWNER_DIED")]


async def test_the_owner_may_settle_a_call_that_was_concluded_by_mistake(
    money: Money,
) -> None:
    reservation = await money.reserve(FOUR_CENTS, **CALL)
    await money.mark_sent(reservation, request_json="{}")
    await money.mark_unknown(reservation, error_code="OWNER_DIED")
    await money.settle(reservation, cost_nano=FOUR_CENTS, cost_source="table", picture="h")
    assert await states(money) == [("settled", FOUR_CENTS, None)]


async def test_a_process_that_lives_long_concludes_the_dead_before_it_refuses(
    store: Store, clock: Clock, ledger_path: Path
) -> None:
    money = Money(store, caps=Caps(session_nano=FOUR_CENTS), clock=clock)
    await money.spend()
    with child_that_is_at("reserved", ledger_path) as child:
        with pytest.raises(BudgetExceeded, match="calls in flight hold"):
            await money.reserve(FOUR_CENTS, **CALL)
        child.kill()
        child.wait()
    await money.reserve(FOUR_CENTS, **CALL)


async def test_a_call_that_waits_gets_what_a_process_held_that_dies_meanwhile(
    store: Store, clock: Clock, ledger_path: Path
) -> None:
    money = Money(store, caps=Caps(session_nano=FOUR_CENTS), clock=clock)
    with child_that_is_at("reserved", ledger_path) as child:
        waiting = asyncio.ensure_future(money.reserve(FOUR_CENTS, **CALL, wait_s=600))
        await asyncio.wait({waiting}, timeout=0.1)
        assert not waiting.done()
        child.kill()
        child.wait()
        await money.conclude_dead_calls()
        assert (await waiting).quote_nano == FOUR_CENTS


def stop_the_heart(ledger_path: Path) -> None:
    """As if every owner had been suspended an hour ago."""
    with closing(sqlite3.connect(ledger_path)) as connection, connection:
        connection.execute("UPDATE owners SET beat_ms = beat_ms - 3600000")
        connection.execute("UPDATE owners SET beat_up_ms = beat_up_ms - 3600000")


@pytest.mark.slow
@needs_namespaces()
@pytest.mark.parametrize(
    ("state", "becomes"),
    [
        ("reserved", ("released", 0, "OWNER_DIED")),
        ("sent", ("unknown", FOUR_CENTS, "OWNER_DIED")),
    ],
)
async def test_the_calls_of_another_container_end_only_with_its_heartbeat(
    money: Money, ledger_path: Path, state: str, becomes: tuple[str, int, str]
) -> None:
    with child_that_is_at(state, ledger_path, where=ANOTHER_CONTAINER):
        assert await money.conclude_dead_calls() == 0
        assert await states(money) == [(state, FOUR_CENTS, None)]
        stop_the_heart(ledger_path)
        assert await money.conclude_dead_calls() == 1
        assert await states(money) == [becomes]


async def test_a_reservation_that_was_released_as_dead_is_not_sent(money: Money) -> None:
    reservation = await money.reserve(FOUR_CENTS, **CALL)
    await money.release(reservation, error_code="OWNER_DIED")
    with pytest.raises(StorageError) as refused:
        await money.mark_sent(reservation, request_json="{}")
    assert refused.value.as_json() == {
        "code": "STORAGE_FAILED",
        "message": "This process was suspended for so long that another one released its "
        "reservation. Nothing was sent.",
        "retryable": True,
        "billed": False,
        "cost_usd": 0.0,
        "hint": "Call again.",
    }
