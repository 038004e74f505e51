"""One conversation of one live process runs turns in a session."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.agent.agent_pictures import program
from tests.agent.rollout_samples import said
from tests.databases import change
from tests.servers.namespaces import ANOTHER_CONTAINER, needs_namespaces

from limner.agent.conversation import Conversation
from limner.agent.session_options import SessionOptions
from limner.agent.sessions import Sessions
from limner.agents import Agent
from limner.client import Limner
from limner.errors import InputInvalid, UserError
from limner.storage.store import Store

HOLDS = """
    import asyncio, sys
    from datetime import datetime, UTC
    from pathlib import Path
    from limner.agent.sessions import Sessions
    from limner.errors import UserError
    from limner.storage.store import Store

    async def hold():
        store = Store(Path(sys.argv[1]), url=sys.argv[3] or None)
        sessions = Sessions(store=store, clock=lambda: datetime.now(UTC))
        lease = await sessions.hold(sys.argv[2])
        print("held", flush=True)
        if await asyncio.to_thread(sys.stdin.readline) == "write\\n":
            session = await sessions.open(sys.argv[2])
            try:
                await session.append([{"type": "note"}])
            except UserError as error:
                print(error.code, error.message)
        await sessions.aclose()
        await store.aclose()

    asyncio.run(hold())
"""


@pytest.fixture
def new_program(tmp_path: Path, database: str | None) -> Callable[[], Limner]:
    """Opens one home again and again, with its records in either kind of database."""
    return lambda: program(tmp_path, store=database)


@contextmanager
def another_process(
    lim: Limner, session_id: str, *, where: Sequence[str] = ()
) -> Iterator[subprocess.Popen[str]]:
    """A process that has a session until it is told something, or killed."""
    script = textwrap.dedent(HOLDS)
    words = [*where, sys.executable, "-c", script, str(lim.home.database), session_id]
    words.append(lim.settings.store or "")
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


async def opened(lim: Limner, session_id: str) -> Conversation:
    return await lim.conversations.open(session_id, tools=lim.conversation_registry)


async def new_conversation(lim: Limner) -> Conversation:
    return await lim.conversations.create(
        SessionOptions(), cwd=lim.cwd, tools=lim.conversation_registry
    )


async def refused(lim: Limner, session_id: str) -> UserError:
    with pytest.raises(UserError) as caught:
        await opened(lim, session_id)
    return caught.value


async def test_a_second_conversation_of_the_same_program_is_refused(
    new_program: Callable[[], Limner],
) -> None:
    async with new_program() as lim:
        first = await new_conversation(lim)
        session_id = first.session.id
        error = await refused(lim, session_id)
        await first.aclose()
        assert (await opened(lim, session_id)).session.id == session_id
    assert error.as_json() == {
        "code": "SESSION_IN_USE",
        "message": f"The session {session_id} is open in this program already.",
        "retryable": True,
        "billed": False,
        "cost_usd": 0.0,
        "hint": "Use the conversation that holds it, or close that first.",
        "session": session_id,
        "pid": os.getpid(),
    }


async def test_a_session_of_another_process_is_refused_until_its_release(
    new_program: Callable[[], Limner],
) -> None:
    async with new_program() as lim:
        session = await lim.sessions.create(cwd="/")
        with another_process(lim, session.id) as process:
            error = await refused(lim, session.id)
            process.communicate("done\n", timeout=60)
            assert process.returncode == 0
            assert (await opened(lim, session.id)).session.id == session.id
    assert error.as_json() == {
        "code": "SESSION_IN_USE",
        "message": f"The session {session.id} is in use by process {process.pid}.",
        "retryable": True,
        "billed": False,
        "cost_usd": 0.0,
        "hint": f"Close it there, or continue in a copy: limner sessions fork {session.id}",
        "session": session.id,
        "pid": process.pid,
    }


async def test_the_session_of_a_killed_process_is_free_at_once(
    new_program: Callable[[], Limner],
) -> None:
    async with new_program() as lim:
        session = await lim.sessions.create(cwd="/")
        with another_process(lim, session.id) as process:
            await refused(lim, session.id)
            process.kill()
            process.wait()
            conversation = await opened(lim, session.id)
        assert (await refused(lim, session.id)).extras["pid"] == os.getpid()
        await conversation.aclose()


async def test_a_session_of_another_process_can_be_read_and_copied_but_not_archived(
    new_program: Callable[[], Limner],
) -> None:
    async with new_program() as lim:
        session = await lim.sessions.create(cwd="/", session_id=None)
        await session.append([said("hello")])
        with another_process(lim, session.id):
            assert await (await lim.sessions.open(session.id)).history() == [said("hello")]
            assert [one.id for one in await lim.sessions.list()] == [session.id]
            await lim.export_session(session.id, lim.cwd / "out.jsonl")
            copy = await lim.sessions.fork(session.id)
            assert await copy.history() == [said("hello")]
            await lim.sessions.rename(session.id, "Fox")
            for change in (lim.sessions.archive, lim.sessions.unarchive, lim.delete_session):
                with pytest.raises(UserError) as caught:
                    await change(session.id)
                assert caught.value.code == "SESSION_IN_USE"
            about = await session.about()
            assert (about.name, about.archived_ms, about.items) == ("Fox", None, 1)


async def test_a_program_may_archive_and_delete_a_session_that_it_holds(
    new_program: Callable[[], Limner],
) -> None:
    async with new_program() as lim:
        conversation = await new_conversation(lim)
        session_id = conversation.session.id
        await lim.sessions.archive(session_id)
        await lim.sessions.unarchive(session_id)
        await lim.delete_session(session_id)
        with pytest.raises(InputInvalid, match="There is no session"):
            await opened(lim, session_id)
        await conversation.aclose()


async def test_a_dropped_conversation_holds_no_session(new_program: Callable[[], Limner]) -> None:
    async with new_program() as lim:
        conversation = await new_conversation(lim)
        session_id = conversation.session.id
        del conversation
        gc.collect()
        assert (await opened(lim, session_id)).session.id == session_id


async def test_closing_a_program_lets_go_of_all_its_sessions(
    new_program: Callable[[], Limner],
) -> None:
    async with new_program() as lim:
        first = await new_conversation(lim)
        second = await new_conversation(lim)
    async with new_program() as lim:
        assert (
            await lim.store.read(lambda tx: tx.one("lease_of", session_id=first.session.id)) is None
        )
        again = [await opened(lim, held.session.id) for held in (first, second)]
        # The program they belonged to is gone, and with it what they had.
        await first.aclose()
        assert (await refused(lim, again[0].session.id)).code == "SESSION_IN_USE"


async def test_a_program_that_talked_in_nothing_makes_no_database_by_closing(
    tmp_path: Path,
) -> None:
    async with program(tmp_path) as lim:
        database = lim.home.database
    assert not database.exists()


async def test_of_many_who_want_a_session_at_once_one_gets_it(
    new_store: Callable[[], Store],
) -> None:
    stores = [new_store() for _ in range(4)]
    programs = [Sessions(store=store, clock=lambda: datetime.now(UTC)) for store in stores]
    session = await programs[0].create(cwd="/")
    found = await asyncio.gather(
        *(one.hold(session.id) for one in programs * 8), return_exceptions=True
    )
    refusals = [one for one in found if isinstance(one, UserError)]
    assert (len(found), len(refusals)) == (32, 31)
    for store in stores:
        await store.aclose()


async def test_a_lease_that_was_given_up_does_not_end_the_one_after_it(store: Store) -> None:
    sessions = Sessions(store=store, clock=lambda: datetime.now(UTC))
    session = await sessions.create(cwd="/")
    first = await sessions.hold(session.id)
    await first.release()
    second = await sessions.hold(session.id)
    await first.release()
    with pytest.raises(UserError, match="open in this program"):
        await sessions.hold(session.id)
    await second.release()
    await sessions.hold(session.id)


async def test_an_agent_lets_go_of_its_session_when_it_is_closed(
    new_program: Callable[[], Limner],
) -> None:
    async with new_program() as lim:
        async with Agent(lim, model="limner/offline") as agent:
            conversation = await agent.conversation()
            with pytest.raises(UserError, match="open in this program already"):
                await Agent(lim, session=agent.session_id).conversation()
        async with Agent(lim, session=agent.session_id) as again:
            assert (await again.conversation()).session.id == agent.session_id
        with pytest.raises(UserError) as caught:
            await conversation.run([said("hello")], on_event=lambda _: None)
    assert (caught.value.code, caught.value.hint) == (
        "CONVERSATION_CLOSED",
        f"Open the session {agent.session_id} again.",
    )


async def stop_the_hearts(lim: Limner) -> None:
    """As if every owner had been suspended an hour ago."""
    await change(lim.store, "UPDATE owners SET beat_ms = beat_ms - 3600000")
    await change(lim.store, "UPDATE owners SET beat_up_ms = beat_up_ms - 3600000")


@pytest.mark.slow
@needs_namespaces()
@pytest.mark.parametrize("is_released", [True, False])
async def test_a_session_is_not_taken_from_another_container_before_its_heartbeat_stops(
    new_program: Callable[[], Limner], is_released: bool
) -> None:
    async with new_program() as lim:
        session = await lim.sessions.create(cwd="/")
        with another_process(lim, session.id, where=ANOTHER_CONTAINER) as process:
            assert (await refused(lim, session.id)).code == "SESSION_IN_USE"
            with pytest.raises(UserError, match="is in use by process"):
                await session.append([{"type": "note"}])
            await stop_the_hearts(lim)
            taken = await opened(lim, session.id)
            await taken.session.append([{"type": "note"}])
            if is_released:
                await taken.aclose()
            out, _ = process.communicate("write\n", timeout=60)
        assert out == (
            f"SESSION_IN_USE This process was suspended for so long that it lost the session "
            f"{session.id}.\n"
        )
        assert (await session.about()).items == 1
