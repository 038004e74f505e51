"""One session, several processes: what each of them can rely on."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from tests.agent.rollout_samples import output, said

from limner.agent.session import Session
from limner.agent.sessions import Sessions
from limner.storage.store import Store

BEFORE = """
    import asyncio, sys
    from datetime import datetime, UTC
    from pathlib import Path
    from limner.agent.sessions import Sessions
    from limner.storage.store import Store

    store = Store(Path(sys.argv[1]))
    sessions = Sessions(store=store, clock=lambda: datetime.now(UTC))
    session = asyncio.run(sessions.open(sys.argv[2]))
"""
ENDLESS = """
    async def turns():
        number = 0
        while True:
            call = {"type": "function_call", "call_id": f"c{number}", "name": "t", "arguments": ""}
            await session.append([{"type": "message", "role": "user", "content": []}, call])
            print(number, flush=True)
            number += 1

    asyncio.run(turns())
"""
EIGHTY = """
    async def turns():
        sys.stdin.readline()
        for number in range(40):
            await session.append([{"by": sys.argv[3], "n": number, "half": h} for h in (1, 2)])

    asyncio.run(turns())
"""


def start(script: str, *arguments: str | Path) -> subprocess.Popen[str]:
    source = textwrap.dedent(BEFORE) + textwrap.dedent(script)
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", source, *map(str, arguments)]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)


async def started(path: Path) -> tuple[Store, Session]:
    store = Store(path)
    sessions = Sessions(store=store, clock=lambda: datetime.now(UTC))
    return store, await sessions.create(cwd="/")


async def test_appended_items_survive_kill_minus_nine(tmp_path: Path) -> None:
    store, session = await started(tmp_path / "limner.db")
    with start(ENDLESS, tmp_path / "limner.db", session.id) as process:
        assert process.stdout is not None
        promised = -1
        while promised < 20:
            promised = int(process.stdout.readline())
        process.kill()
        for line in process.stdout:
            promised = int(line)
    items = [stored.item async for stored in session.items()]
    # All that was promised, at most one more that was about to be, and no half of anything.
    assert len(items) // 2 in (promised + 1, promised + 2)
    assert [item.get("call_id") for item in items[1::2]] == [
        f"c{n}" for n in range(len(items) // 2)
    ]
    assert (await session.about()).items == len(items)
    # Whoever opens it next goes on: the calls that nobody answered are told to be aborted.
    history = await session.history()
    assert history[2] == output("c0", "aborted")
    assert history[-1] == output(items[-1]["call_id"], "aborted")
    assert (await session.append([said("go on")])).first_seq == len(items)
    await store.aclose()


async def test_two_processes_that_append_to_one_session_lose_nothing(tmp_path: Path) -> None:
    store, session = await started(tmp_path / "limner.db")
    writers = [start(EIGHTY, tmp_path / "limner.db", session.id, name) for name in ("a", "b")]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        _, _ = await asyncio.to_thread(writer.communicate, timeout=60)
        assert writer.returncode == 0
    stored = [one async for one in session.items()]
    assert [one.seq for one in stored] == [*range(160)]
    items = [one.item for one in stored]
    assert Counter(item["by"] for item in items) == {"a": 80, "b": 80}
    # What was appended together stands together, and each writer's own in its order.
    pairs = list(zip(items[::2], items[1::2], strict=True))
    assert all({**first, "half": 2} == second for first, second in pairs)
    for name in ("a", "b"):
        assert [first["n"] for first, _ in pairs if first["by"] == name] == [*range(40)]
    await store.aclose()
