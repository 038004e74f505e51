"""A home whose database or pictures are damaged: nothing is paid, deleted or forgotten."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import textwrap
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.conftest import PRICE_NANO, Studio, picture

from limner.errors import NANO_PER_USD, LimnerError, StorageError
from limner.storage.backup import write_backup
from limner.storage.daily_copy import make_copy
from limner.storage.home import Home
from limner.testing.servers.openai_server import OpenAIServer

SIZES = [(1024, 1024), (1024, 1536), (1536, 1024)]


def handle_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


PAID = {handle_of(picture(*size)) for size in SIZES}


async def draw(studio: Studio, size: tuple[int, int] = SIZES[0]) -> str:
    """Draw one picture in a program of its own; its handle."""
    with OpenAIServer(picture(*size)) as server:
        studio.connect(server)
        async with studio.open() as lim:
            drawn = await lim.generate("a fox", size=f"{size[0]}x{size[1]}")
            return handle_of(await lim.pictures.original(drawn.image))


async def fill(studio: Studio) -> None:
    """Draw three pictures that are paid for."""
    for size in SIZES:
        await draw(studio, size)


def home_of(studio: Studio) -> Home:
    return Home(studio.home)


def make_old(studio: Studio) -> None:
    for file in home_of(studio).blobs.rglob("*"):
        if file.is_file():
            moment = file.stat().st_mtime - 9 * 86_400
            os.utime(file, (moment, moment))


def blobs(studio: Studio) -> set[str]:
    return {file.name for file in home_of(studio).blobs.rglob("*") if file.is_file()}


def overwrite_header(studio: Studio) -> None:
    database = home_of(studio).database
    data = bytearray(database.read_bytes())
    data[100:4096] = os.urandom(3996)
    database.write_bytes(data)


def lose_the_wal(studio: Studio) -> None:
    """The mark knows of a write that was only in the -wal file: test_storage_home.py cuts one."""
    mark = home_of(studio).mark
    name, writes = mark.read_text().split()
    mark.write_text(f"{name} {int(writes) + 1:020}\n")


LOSSES: dict[str, Callable[[Studio], object]] = {
    "deleted": lambda studio: home_of(studio).database.unlink(),
    "emptied": lambda studio: home_of(studio).database.write_bytes(b""),
    "header overwritten": overwrite_header,
    "wal lost": lose_the_wal,
}


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("copied", [True, False])
async def test_a_lost_database_stops_everything_and_a_repair_brings_back_every_picture(
    studio: Studio, openai: OpenAIServer, loss: str, copied: bool
) -> None:
    await fill(studio)
    shutil.rmtree(home_of(studio).backups)
    if copied:
        make_copy(home_of(studio), date(2026, 11, 15))
    LOSSES[loss](studio)
    make_old(studio)
    studio.connect(openai)
    async with studio.open() as lim:
        attempts = [
            lambda: lim.generate("a cat"),
            lim.money.spend,
            lim.garbage.collect,
            lambda: lim.sessions.create(cwd="/"),
        ]
        for attempt in attempts:
            with pytest.raises(StorageError) as caught:
                await attempt()
            assert caught.value.code == "DATABASE_DAMAGED"
    assert openai.requests == []
    assert blobs(studio) == PAID

    async with studio.open() as lim:
        repair = await lim.repairer.repair()
        assert (repair.pictures, repair.damaged, repair.missing) == (3, (), ())
        known = copied or loss == "wal lost"
        assert repair.recorded == (0 if known else 3)
        assert repair.database.ledger_rows == (3 if known else 0)
        assert await lim.money.spent() == (3 * PRICE_NANO if known else 0)
        for handle in PAID:
            shown = await lim.picture_info.show(handle, lim.person())
            assert shown.family is not None
            assert shown.family.record.lineage["prompt"] == "a fox"
        # A day or a week later they are still there.
        make_old(studio)
        assert (await lim.garbage.collect(grace_s=0)).files == 0
        assert await lim.generate("a cat")
    assert len(openai.requests) == 1
    assert blobs(studio) >= PAID


async def test_a_damaged_picture_is_not_sent_and_drawing_it_again_heals_it(
    studio: Studio, openai: OpenAIServer
) -> None:
    handle = await draw(studio)
    blob = home_of(studio).blobs / handle[:2] / handle
    whole = blob.read_bytes()
    middle = len(whole) // 2
    blob.write_bytes(whole[:middle] + bytes(64) + whole[middle + 64 :])
    studio.connect(openai)
    async with studio.open() as lim:
        for attempt in (
            lambda: lim.edit(handle, "at night"),
            lambda: lim.inspect(handle, "What is it?", model="openai/gpt-5.4"),
        ):
            with pytest.raises(LimnerError) as caught:
                await attempt()
            assert (caught.value.code, caught.value.billed) == ("PICTURE_DAMAGED", False)
        assert openai.requests == []
        scrub = await lim.repairer.scrub()
        assert (scrub.damaged, scrub.missing, scrub.checked) == ((handle,), (), 1)
        drawn = await lim.generate("a fox")
        assert await lim.pictures.original(drawn.image) == whole
        assert (await lim.repairer.scrub()).damaged == ()


@pytest.mark.slow
async def test_a_repair_restores_bytes_from_the_files_that_limner_wrote(studio: Studio) -> None:
    await fill(studio)
    lost, rotten, _ = sorted(PAID)
    (home_of(studio).blobs / lost[:2] / lost).unlink()
    (home_of(studio).blobs / rotten[:2] / rotten).write_bytes(b"rotten")
    async with studio.open() as lim:
        scrub = await lim.repairer.scrub()
        assert (scrub.damaged, scrub.missing) == ((rotten,), (lost,))
    async with studio.open() as lim:
        repair = await lim.repairer.repair()
        assert (repair.pictures, repair.recorded, repair.restored) == (3, 0, 2)
        assert (repair.damaged, repair.missing, repair.unreadable) == ((), (), ())
        scrub = await lim.repairer.scrub()
        assert (scrub.checked, scrub.damaged, scrub.missing) == (3, (), ())


async def test_a_repaired_picture_counts_as_one_from_outside(studio: Studio) -> None:
    handle = await draw(studio)
    home_of(studio).database.unlink()
    async with studio.open() as lim:
        await lim.repairer.repair()
        assert await lim.pictures.drawn_here([handle]) is False


@pytest.mark.slow
async def test_a_backup_restores_the_whole_home(studio: Studio, tmp_path: Path) -> None:
    await fill(studio)
    steps: list[tuple[int, int]] = []
    file = tmp_path / "home.tar"
    backup = write_backup(
        home_of(studio), file, overwrite=False, progress=lambda *step: steps.append(step)
    )
    assert (backup.pictures, backup.files, backup.damaged) == (3, 8, ())
    assert backup.size_bytes == file.stat().st_size
    assert steps[-1] == (8, 8)
    assert file.stat().st_mode & 0o777 == 0o600
    with pytest.raises(LimnerError) as caught:
        write_backup(home_of(studio), file, overwrite=False, progress=lambda *_: None)
    assert caught.value.code == "OUTPUT_EXISTS"
    restored = tmp_path / "restored"
    with tarfile.open(file) as archive:
        archive.extractall(restored, filter="data")
    studio.env["LIMNER_HOME"] = str(restored)
    async with studio.open() as lim:
        assert await lim.money.spent() == 3 * PRICE_NANO
        scrub = await lim.repairer.scrub()
        assert (scrub.pictures, scrub.damaged, scrub.missing) == (3, (), ())
    assert len(list((restored / "generated").iterdir())) == 3


async def test_a_backup_names_damaged_pictures_and_refuses_a_damaged_database(
    studio: Studio, tmp_path: Path
) -> None:
    handle = await draw(studio)
    home = home_of(studio)
    (home.blobs / handle[:2] / handle).write_bytes(b"rotten")
    file = tmp_path / "home.tar"
    written = write_backup(home, file, overwrite=False, progress=lambda *_: None)
    assert written.damaged == (handle,)
    whole = file.read_bytes()
    overwrite_header(studio)
    with pytest.raises(StorageError) as caught:
        write_backup(home, file, overwrite=True, progress=lambda *_: None)
    assert caught.value.code == "DATABASE_DAMAGED"
    assert file.read_bytes() == whole


READER = """
    import ctypes, os, sys
    if os.geteuid() == 0:  # without these two rights, permissions bind root as well
        for right in (1, 2):
            assert ctypes.CDLL(None).prctl(24, right, 0, 0, 0) == 0
    os.execv(sys.executable, [sys.executable, "-m", "limner", *sys.argv[1:]])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="root gives up its rights by prctl")
async def test_the_commands_that_only_read_work_in_a_read_only_home(studio: Studio) -> None:
    handle = await draw(studio)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "home"
        shutil.copytree(studio.home, folder)
        Path(name).chmod(0o755)
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        env = {"LIMNER_HOME": str(folder), "HOME": name}

        def run(*words: str) -> Any:
            command = [sys.executable, "-c", textwrap.dedent(READER), *words, "--json"]
            done = subprocess.run(command, env=env, cwd=name, capture_output=True, check=False)
            assert done.stdout, done.stderr.decode()
            return json.loads(done.stdout)

        spent = await asyncio.to_thread(run, "spend")
        assert spent["total_usd"] == PRICE_NANO / NANO_PER_USD
        shown = await asyncio.to_thread(run, "show", handle)
        assert (shown["handle"], shown["cost_usd"]) == (handle, PRICE_NANO / NANO_PER_USD)
        assert (await asyncio.to_thread(run, "sessions", "list"))["sessions"] == []
        checks = {one["name"]: one for one in (await asyncio.to_thread(run, "doctor"))["checks"]}
        assert checks["database"]["ok"]
        assert checks["pictures"]["detail"].startswith("1 stored; a sample checked")
        refused = await asyncio.to_thread(run, "generate", "a fox", "--out", "fox.png")
        assert refused["error"]["billed"] is False
        folder.chmod(0o755)
