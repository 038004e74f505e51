"""Pictures in a bucket, with the whole program: several homes, a server that fails, `kill -9`."""

from __future__ import annotations

import asyncio
import shutil
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.conftest import PRICE_NANO, Studio, picture, unlabelled
from tests.acceptance.hardship import held_back, kill, limner, start
from tests.servers.components import needs
from tests.servers.s3_server import BUCKET, S3Server, needs_s3

from limner import LimnerError
from limner.testing.servers.http_server import Gate
from limner.testing.servers.openai_server import OpenAIServer

pytestmark = [pytest.mark.slow, needs_s3, needs("obstore")]


@pytest.fixture
def s3(tmp_path: Path) -> Iterator[S3Server]:
    with S3Server(tmp_path / "s3") as server:
        yield server


@pytest.fixture
def team(studio: Studio, s3: S3Server) -> Studio:
    """A home whose pictures are in a bucket."""
    studio.env |= {**s3.env, "LIMNER_BLOBS": f"s3://{BUCKET}/team"}
    return studio


def stored(folder: Path) -> set[str]:
    """The handles in the bucket, as the server's own disk has them."""
    return {path.parent.name for path in (folder / "s3" / BUCKET / "team").glob("??/*/*")}


def second_home(team: Studio, folder: Path) -> dict[str, str]:
    """The variables of a home with the same database and no copies of pictures."""
    home = folder / "second-home"
    home.mkdir()
    for file in (*team.home.glob("limner.db*"), team.home / "home-id"):
        shutil.copy(file, home)
    return {**team.env, "LIMNER_HOME": str(home)}


async def spend(team: Studio) -> list[tuple[str, int]]:
    async with team.open() as lim:
        rows = (await lim.money.spend(recent=100)).recent
    return [(row.state, row.cost_nano) for row in rows]


async def test_a_second_home_with_no_copies_shows_edits_inspects_and_collects(
    team: Studio, tmp_path: Path
) -> None:
    _, drawn = await limner("generate", "a fox", env=team.env, cwd=team.cwd)
    handle = drawn["image"]
    assert stored(tmp_path) == {handle}
    assert not (team.home / "blobs").exists()
    env = second_home(team, tmp_path)

    async def run(*words: str) -> Any:
        status, said = await limner(*words, env=env, cwd=team.cwd)
        assert status == 0, said
        return said

    shown = await run("show", handle)
    copy = Path(env["LIMNER_HOME"], "blob-copies", handle[:2], handle)
    assert shown["kept_at"] == str(copy)
    assert copy.read_bytes() == (team.home / "blob-copies" / handle[:2] / handle).read_bytes()
    edited = await run("edit", handle, "make the fox blue")
    assert (await run("inspect", handle, "What is it?"))["text"]
    assert stored(tmp_path) >= {handle, edited["image"]}
    # Everything is young, though the grace period is short: other processes may count on it.
    assert (await run("gc", "--dry-run", "--all"))["pictures"] == 0
    checks = {one["name"]: one for one in (await run("doctor"))["checks"]}
    assert checks["blobs"] == {
        "name": "blobs",
        "ok": True,
        "detail": f"pictures are stored in s3://{BUCKET}/team",
    }


async def test_unused_pictures_leave_the_bucket_when_they_are_old(
    team: Studio, s3: S3Server, tmp_path: Path
) -> None:
    files = [tmp_path / "old.png", tmp_path / "young.png"]
    for number, file in enumerate(files, start=1):
        file.write_bytes(picture(8, 8 * number))
    async with team.open() as lim:
        old, young = [await lim.pictures.take_file(file) for file in files]
        assert stored(tmp_path) == {old.handle, young.handle}
        s3.stop()
        (path,) = (tmp_path / "s3" / BUCKET / "team" / old.handle[:2] / old.handle).iterdir()
        path.rename(path.with_name("20260101T000000Z-00000000"))
        s3.start()

        def age(tx: Any) -> None:
            tx._connection.execute("UPDATE pictures SET created_ms = 0")

        await lim.store.write(age)
        planned = await lim.garbage.collect(grace_s=0, dry_run=True)
        freed = await lim.garbage.collect(grace_s=0)
        assert planned == freed
        assert (freed.pictures, freed.files, freed.size_bytes) == (1, 1, old.size_bytes)
        assert (freed.young, stored(tmp_path)) == (1, {young.handle})
        # The same picture comes again: it is stored again.
        assert await lim.pictures.take_file(files[0]) == old
        assert await lim.pictures.original(old) == files[0].read_bytes()
        assert stored(tmp_path) == {old.handle, young.handle}


@pytest.mark.parametrize("kind", ["bucket", "folder"])
async def test_a_home_with_another_database_removes_nothing_from_a_shared_place(
    team: Studio, tmp_path: Path, kind: str
) -> None:
    if kind == "folder":
        (tmp_path / "share").mkdir()
        team.env["LIMNER_BLOBS"] = f"file://{tmp_path}/share"
    file = tmp_path / "picture.png"
    file.write_bytes(picture(8, 8))
    async with team.open() as lim:
        taken = await lim.pictures.take_file(file)
        assert (await lim.garbage.collect(grace_s=0)).pictures == 0
    other = {**team.env, "LIMNER_HOME": str(tmp_path / "other-home")}
    status, said = await limner("gc", "--all", env=other, cwd=team.cwd)
    assert (status, said["error"]["code"]) == (1, "BLOBS_SHARED")
    async with team.open() as lim:
        place = lim.components.blobs
        assert said["error"]["hint"].endswith(
            f"delete {place.place}/databases/{place.claimants().pop()}."
        )
        assert await lim.pictures.original(taken) == file.read_bytes()


async def test_a_server_that_is_down_after_the_answer_loses_nothing_that_was_paid(
    team: Studio, s3: S3Server, openai: OpenAIServer, tmp_path: Path
) -> None:
    gate = Gate()
    openai.script("generate", held_back(openai, gate))
    async with team.connect(openai).open() as lim:
        drawing = asyncio.create_task(lim.generate("a fox", provider="openai-image"))
        await openai.wait_until("generate")
        s3.stop()
        gate.open()
        with pytest.raises(LimnerError) as caught:
            await drawing
    error = caught.value
    assert (error.code, error.billed, error.retryable) == ("BLOBS_UNREACHABLE", True, True)
    assert Path(error.extras["kept_at"]).read_bytes() == openai.picture
    job_id = error.extras["job_id"]
    assert error.hint == (
        f"The bytes are kept: `limner jobs recover {job_id}` goes on without a new payment."
    )
    _, said = await limner("jobs", "recover", env=team.env, cwd=team.cwd)
    assert said["jobs"][0]["error"]["code"] == "BLOBS_UNREACHABLE"
    assert Path(error.extras["kept_at"]).read_bytes() == openai.picture
    s3.start()
    status, said = await limner("jobs", "recover", env=team.env, cwd=team.cwd)
    assert (status, len(stored(tmp_path))) == (0, 1)
    assert unlabelled(Path(said["jobs"][0]["path"])) == openai.picture
    assert await spend(team) == [("settled", error.cost_nano)]
    assert len(openai.requests) == 1
    assert list((team.home / "incoming").iterdir()) == []


@asynccontextmanager
async def stopped_after_uploads(s3: S3Server) -> AsyncGenerator[tuple[int, asyncio.Event]]:
    """A port that leads to the server, until a client asks for what it has just uploaded."""
    uploaded, tasks = asyncio.Event(), set[asyncio.Task[Any]]()
    writers: list[StreamWriter] = []

    async def copy(reader: StreamReader, writer: StreamWriter) -> None:
        with suppress(OSError):
            while piece := await reader.read(1 << 16):
                if piece.startswith(b"HEAD "):
                    uploaded.set()
                    return
                writer.write(piece)
                await writer.drain()

    async def connected(reader: StreamReader, writer: StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", s3.port)
        writers.extend((writer, far_writer))
        for way in (copy(reader, far_writer), copy(far_reader, writer)):
            tasks.add(asyncio.create_task(way))

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], uploaded
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        for writer in writers:
            writer.transport.abort()


async def test_a_process_that_is_killed_between_the_upload_and_the_row_has_paid_once(
    team: Studio, s3: S3Server, openai: OpenAIServer, tmp_path: Path
) -> None:
    team.connect(openai)
    async with stopped_after_uploads(s3) as (port, uploaded):
        env = {**team.env, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}
        words = ("generate", "a fox", "--provider", "openai-image")
        process = await start(*words, env=env, cwd=team.cwd)
        await asyncio.wait_for(uploaded.wait(), 60)
        await kill(process)
    assert (len(stored(tmp_path)), team.files) == (1, [])
    status, said = await limner("jobs", "recover", env=team.env, cwd=team.cwd)
    assert status == 0, said
    assert unlabelled(Path(said["jobs"][0]["path"])) == openai.picture
    assert await spend(team) == [("settled", PRICE_NANO)]
    assert (len(openai.requests), len(stored(tmp_path))) == (1, 1)
