"""Who is alive: the very process, not another one with its number."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from limner.agent.sessions import Sessions
from limner.storage import owners
from limner.storage.owners import (
    EXPIRES_S,
    UNKNOWN,
    Owner,
    delete_ended,
    is_alive,
    is_in_use,
    is_this_process,
    this_process,
)
from limner.storage.store import Store

needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells start and boot")


def test_this_process_is_alive() -> None:
    assert is_alive(this_process())


def test_this_process_has_its_own_number() -> None:
    assert this_process().pid == os.getpid()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_is_another_process_than_its_parent() -> None:
    parent = this_process()

    def compare() -> None:
        child = this_process()
        os._exit(0 if child.pid == os.getpid() != parent.pid and is_alive(child) else 1)

    process = multiprocessing.get_context("fork").Process(target=compare)
    process.start()
    process.join(60)
    assert process.exitcode == 0


@needs_proc
def test_another_process_with_the_same_number_is_not_the_owner() -> None:
    assert not is_alive(replace(this_process(), start="1"))


@needs_proc
def test_a_process_of_an_earlier_boot_is_not_alive() -> None:
    earlier = "00000000-0000-0000-0000-000000000000"
    assert not is_alive(replace(this_process(), boot=earlier))


@needs_proc
def test_an_owner_that_could_not_be_told_apart_is_not_taken_for_this_one() -> None:
    assert not is_alive(Owner(pid=os.getpid(), start=UNKNOWN, boot=UNKNOWN))


@needs_proc
def test_a_name_with_brackets_and_spaces_does_not_hide_the_start_time() -> None:
    script = "open('/proc/self/comm','w').write(') Z 1 (');print(1,flush=True);input()"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        stat = Path(f"/proc/{child.pid}/stat").read_text(encoding="utf-8")
        assert ") Z 1 (" in stat
        start = stat.rsplit(")", 1)[1].split()[19]
        assert is_alive(replace(this_process(), pid=child.pid, start=start))
        child.communicate("\n")


def test_a_number_in_use_is_told_from_one_that_is_not() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert is_in_use(child.pid)
        child.communicate(b"\n")
    assert is_in_use(1)
    if sys.platform != "win32":
        assert not is_in_use(child.pid)


def _elsewhere(*, age_s: float = 0, up_age_s: float = 0, **where: Any) -> Owner:
    """An owner whose process cannot be seen from here, with its last heartbeat that long ago."""
    me = replace(this_process(), pid=2**22 + 1)
    return replace(
        me,
        beat_ms=time.time_ns() // 1_000_000 - int(age_s * 1000),
        beat_up_ms=time.monotonic_ns() // 1_000_000 - int(up_age_s * 1000),
        now_ms=time.time_ns() // 1_000_000,
        **where,
    )


@needs_proc
@pytest.mark.parametrize(
    ("facts", "alive"),
    [
        # Another container: the clock since the boot decides, since the wall clock may be set.
        ({"namespace": "pid:[1]", "age_s": 9_999, "up_age_s": EXPIRES_S - 30}, True),
        ({"namespace": "pid:[1]", "age_s": 0, "up_age_s": EXPIRES_S + 1}, False),
        ({"namespace": UNKNOWN}, True),
        # Another host: its time since the boot is not ours.
        ({"boot": "b", "host": "h", "age_s": EXPIRES_S - 30, "up_age_s": 9_999}, True),
        ({"boot": "b", "host": "h", "age_s": EXPIRES_S + 1}, False),
        # Here the process table decides, whatever the heartbeat says.
        ({}, False),
        ({"pid": os.getpid(), "up_age_s": 9_999}, True),
    ],
)
def test_a_heartbeat_decides_only_about_processes_that_cannot_be_seen(
    facts: dict[str, Any], alive: bool
) -> None:
    assert is_alive(_elsewhere(**facts)) is alive


@needs_proc
def test_a_process_with_the_same_number_in_another_container_is_not_this_one() -> None:
    me = this_process()
    assert is_this_process(me)
    assert is_this_process(Owner(pid=me.pid, start=me.start, boot=me.boot))
    assert not is_this_process(replace(me, namespace="pid:[1]"))


async def beats(store: Store) -> list[tuple[str, int]]:
    rows = await store.read(lambda tx: tx.all("owners_all"))
    return [(row["owner"], row["beat_ms"]) for row in rows]


async def renew(store: Store) -> bool:
    return await store.write(store.owner.renew)


async def test_a_lease_is_renewed_only_while_its_owner_holds_something(tmp_path: Path) -> None:
    store = Store(tmp_path / "limner.db")
    sessions = Sessions(store=store, clock=lambda: datetime.now(UTC))
    assert (await renew(store), await beats(store)) == (False, [])
    lease = await sessions.hold((await sessions.create(cwd="/")).id)
    ((owner, first_ms),) = await beats(store)
    assert (owner, await renew(store)) == (store.owner.id, True)
    ((_, second_ms),) = await beats(store)
    assert second_ms >= first_ms
    await lease.release()
    assert await renew(store) is False
    await store.aclose()


async def test_a_thread_renews_the_lease_while_something_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owners, "BEAT_S", 0.005)
    store = Store(tmp_path / "limner.db")
    sessions = Sessions(store=store, clock=lambda: datetime.now(UTC))
    await sessions.hold((await sessions.create(cwd="/")).id)
    first = await beats(store)
    while await beats(store) == first:  # the time limit of the tests ends it
        pass
    assert [owner for owner, _ in await beats(store)] == [store.owner.id]
    await store.aclose()


async def test_owners_that_have_ended_are_deleted_together(tmp_path: Path) -> None:
    store = Store(tmp_path / "limner.db")
    sessions = Sessions(store=store, clock=lambda: datetime.now(UTC))
    await sessions.hold((await sessions.create(cwd="/")).id)
    gone = msgspec.structs.asdict(replace(_elsewhere(), start="1"))
    for number in range(30):
        await store.write(lambda tx, name=f"gone{number}": tx.run("owner_beat", id=name, **gone))
    await store.write(delete_ended)
    assert len(await beats(store)) == 31
    await store.write(lambda tx: tx.run("owner_beat", id="gone30", **gone))
    await store.write(delete_ended)
    assert [owner for owner, _ in await beats(store)] == [store.owner.id]
    await store.aclose()
