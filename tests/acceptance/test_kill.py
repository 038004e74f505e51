"""`kill -9` at any moment of many calls: the ledger, the pictures and the files always agree."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import random
import re
import sqlite3
from asyncio.subprocess import Process
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from PIL import Image
from tests.acceptance.conftest import Studio, unlabelled
from tests.acceptance.hardship import collect_a_week_later, kill, limner, start, until
from tests.acceptance.kill_servers import (
    FAILS_EVERY,
    PROMPT,
    Delays,
    SlowOpenAI,
    SlowReplicate,
    handle_of,
    number_of,
)
from tests.fuzz import IS_LONG

from limner.catalogue.images import cost_of_usage, image_models
from limner.testing.servers.openai_server import USAGE

CALLS = 1_000 if IS_LONG else 200
AT_ONCE = 4
SEED = 20261115
FLUX_NANO = 3_000_000
OPENAI_NANO = cost_of_usage(image_models("openai-image")[0], USAGE)

Anchor = Literal["start", "request", "bytes", "blob"]
# How long after each of these moments the blow may fall: between them, every step is hit.
REACH_S: dict[Anchor, float] = {"start": 0.45, "request": 0.9, "bytes": 0.03, "blob": 0.04}
# How many calls are killed, and after which moments.
STORMS: dict[str, tuple[int, list[Anchor]]] = {"any moment": (CALLS, [*REACH_S])}
if IS_LONG:
    STORMS["bytes have come"] = (300, ["bytes"])

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call, and the moment it is killed."""

    number: int
    provider: str
    anchor: Anchor
    delay_s: float
    out: str | None


def planned(rng: random.Random, calls: int, anchors: Sequence[Anchor]) -> Iterator[Call]:
    for number in range(calls):
        anchor = rng.choice(anchors)
        yield Call(
            number=number,
            provider=rng.choice(["replicate-flux", "replicate-flux", "openai-image"]),
            anchor=anchor,
            delay_s=rng.uniform(0, REACH_S[anchor]),
            out=f"out/{number}.png" if rng.random() < 0.5 else None,
        )


@dataclass
class Storm:
    """A home, its services, and processes that are killed while they work there."""

    studio: Studio
    openai: SlowOpenAI
    replicate: SlowReplicate
    arrivals: dict[int, asyncio.Event]
    ends: dict[int, int] = field(default_factory=dict)
    hashes: dict[tuple[Path, int, int], str] = field(default_factory=dict)
    intact: set[str] = field(default_factory=set)

    async def run(self, calls: Iterator[Call]) -> None:
        """Make and kill the calls, a few at a time."""

        async def one_after_the_other() -> None:
            for call in calls:
                self.ends[call.number] = await self._one(call)

        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(one_after_the_other())

    async def _one(self, call: Call) -> int:
        size = "512x512" if call.provider == "replicate-flux" else "1024x1024"
        words = ["generate", PROMPT.format(call.number), "--json", "--size", size]
        words += ["--provider", call.provider]
        words += ["--out", call.out] if call.out else []
        process = await start(*words, env=self.studio.env, cwd=self.studio.cwd)
        ended = asyncio.create_task(process.wait())
        moment = asyncio.create_task(self._moment(call))
        await asyncio.wait([ended, moment], return_when=asyncio.FIRST_COMPLETED)
        moment.cancel()
        await put_to_rest(process)
        return await ended

    async def _moment(self, call: Call) -> None:
        if call.anchor != "start":
            await self.arrivals[call.number].wait()
        handle = handle_of(call.number)
        if call.anchor == "bytes":
            await until(lambda: handle in self.handles_in("incoming/*"))
        if call.anchor == "blob":
            await until((self.studio.home / "blobs" / handle[:2] / handle).exists)
        await asyncio.sleep(call.delay_s)

    async def recover(self) -> list[dict[str, Any]]:
        _, said = await limner("jobs", "recover", env=self.studio.env, cwd=self.studio.cwd)
        return said["jobs"]

    async def collect_a_week_later(self) -> None:
        """Remove all that nothing refers to, as a week from now."""
        await collect_a_week_later(self.studio.home, env=self.studio.env, cwd=self.studio.cwd)

    async def spent_usd(self) -> float:
        """What a fresh process says; it concludes what the dead have left."""
        _, said = await limner("spend", env=self.studio.env, cwd=self.studio.cwd)
        return said["total_usd"]

    def rows(self) -> list[dict[str, Any]]:
        """The ledger as it is on disk, with the number of each call that was journalled."""
        query = """
            SELECT ledger.*, jobs.request, jobs.remote_id
            FROM ledger LEFT JOIN jobs ON jobs.ledger_id = ledger.id
        """
        found = self._query(query)
        for row in found:
            entry = json.loads(row["request"]) if row["request"] else None
            row["number"] = None if entry is None else number_of(entry["request"]["prompt"])
            row["seed"] = None if entry is None else entry["request"]["seed"]
        return found

    def handles_in(self, pattern: str) -> set[str]:
        """The hashes of files in the home: of whole pictures, and of parts."""
        found = set()
        for path in self.studio.home.glob(pattern):
            with suppress(FileNotFoundError):  # its process has just removed it
                found.add(self._hash(path))
        return found

    def _hash(self, path: Path) -> str:
        """Hash a file that is not the same as before; the calls wait for one of many."""
        state = path.stat()
        key = path, state.st_size, state.st_mtime_ns
        if key not in self.hashes:
            self.hashes[key] = hashlib.sha256(path.read_bytes()).hexdigest()
        return self.hashes[key]

    def roots(self) -> dict[str, str]:
        """Of each picture, the one that it was made of, or itself."""
        pictures = self._query("SELECT handle, parent FROM pictures")
        return {row["handle"]: row["parent"] or row["handle"] for row in pictures}

    def files(self) -> list[Path]:
        """Every file where pictures are put."""
        folders = (self.studio.home / "generated", self.studio.cwd)
        return [path for folder in folders for path in folder.rglob("*") if path.is_file()]

    def _query(self, query: str) -> list[dict[str, Any]]:
        path = self.studio.home / "limner.db"
        with closing(sqlite3.connect(path)) as connection:
            connection.row_factory = sqlite3.Row
            return [dict(row) for row in connection.execute(query)]


async def put_to_rest(process: Process) -> None:
    if process.returncode is None:
        await kill(process)
    else:
        await process.communicate()


@pytest.fixture
async def storm(studio: Studio) -> AsyncIterator[Storm]:
    loop = asyncio.get_running_loop()
    arrivals = {number: asyncio.Event() for number in range(CALLS)}

    def arrived(number: int) -> None:
        loop.call_soon_threadsafe(arrivals[number].set)

    with (
        SlowOpenAI(Delays(SEED, arrived)) as openai,
        SlowReplicate(Delays(SEED + 1, arrived)) as replicate,
    ):
        studio.connect(openai, replicate)
        yield Storm(studio, openai, replicate, arrivals)


@pytest.mark.slow
@pytest.mark.timeout(4 * CALLS + 400)
@pytest.mark.parametrize("moment", STORMS)
async def test_kill_at_any_moment_loses_no_picture_and_no_money(storm: Storm, moment: str) -> None:
    rng = random.Random(SEED)
    calls, anchors = STORMS[moment]
    await storm.run(planned(rng, calls, anchors))
    logger.info("Phases hit: %s", dict(sorted(phases(storm).items())))
    await assert_the_books_are_right(storm)
    here = storm.handles_in("incoming/*") | storm.handles_in("blobs/*/*")
    await storm.collect_a_week_later()

    for _ in range(calls // 40):
        await kill_a_recovery(storm, after_s=rng.uniform(0.2, 1.5))
        await assert_the_books_are_right(storm)

    await storm.recover()
    await assert_the_books_are_right(storm)
    assert_every_prediction_was_brought_in_once(storm)
    assert_every_picture_that_was_here_is_bought(storm, here)
    blobs = storm.handles_in("blobs/*/*")
    await storm.collect_a_week_later()
    assert storm.handles_in("blobs/*/*") == blobs
    files = {path: path.read_bytes() for path in storm.files()}
    again = await storm.recover()
    assert {job["state"] for job in again} <= {"unknown"}
    assert {path: path.read_bytes() for path in storm.files()} == files


async def kill_a_recovery(storm: Storm, *, after_s: float) -> None:
    words = ("jobs", "recover", "--json")
    process = await start(*words, env=storm.studio.env, cwd=storm.studio.cwd)
    ended = asyncio.create_task(process.wait())
    await asyncio.wait([ended], timeout=after_s)
    await put_to_rest(process)


async def assert_the_books_are_right(storm: Storm) -> None:
    spent_usd = await storm.spent_usd()
    rows = storm.rows()
    assert {row["state"] for row in rows} <= {"settled", "released", "unknown"}
    assert spent_usd == sum(row["cost_nano"] for row in rows) / 1_000_000_000
    for row in rows:
        assert_row_is_right(row)
    assert_nothing_was_bought_twice_or_unseen(storm, rows)
    settled = [row for row in rows if row["state"] == "settled"]
    assert_blobs_are_right(storm, settled)
    assert_files_are_right(storm, settled)


def assert_row_is_right(row: dict[str, Any]) -> None:
    price = FLUX_NANO if row["provider"] == "replicate-flux" else OPENAI_NANO
    match row["state"]:
        case "settled":
            # If the process died before it noted the price, the quote is the price.
            assert row["cost_nano"] in (price, row["quoted_nano"])
            assert row["picture"] == handle_of(row["number"])
        case "released":
            assert (row["cost_nano"], row["picture"], row["path"]) == (0, None, None)
        case "unknown":
            assert (row["cost_nano"], row["picture"]) == (row["quoted_nano"], None)
            assert row["number"] is not None


def assert_nothing_was_bought_twice_or_unseen(storm: Storm, rows: list[dict[str, Any]]) -> None:
    bought = [seen.json()["prompt"] for seen in storm.openai.sent("generate")]
    bought += [seen.json()["input"]["prompt"] for seen in storm.replicate.sent("create")]
    numbers = [number_of(prompt) for prompt in bought]
    assert len(numbers) == len(set(numbers))
    # Whatever reached a service is in the ledger, and counted unless the service says it failed.
    by_number = {row["number"]: row for row in rows if row["number"] is not None}
    for number in numbers:
        row = by_number[number]
        assert row["state"] != "released" or number % FAILS_EVERY == 0


def assert_blobs_are_right(storm: Storm, settled: list[dict[str, Any]]) -> None:
    folder = storm.studio.home / "blobs"
    blobs = [path for path in folder.rglob("*") if path.is_file()]
    for blob in blobs:
        assert hashlib.sha256(blob.read_bytes()).hexdigest() == blob.name
    assert {row["picture"] for row in settled} <= {blob.name for blob in blobs}


def assert_files_are_right(storm: Storm, settled: list[dict[str, Any]]) -> None:
    roots = storm.roots()
    bought = {row["picture"]: row for row in settled}
    found = set()
    for path in storm.files():
        assert re.fullmatch(r"\d+(-\d+)?\.png", path.name), path
        handle = hashlib.sha256(unlabelled(path)).hexdigest()
        if handle not in storm.intact:  # the same pixels need no second look
            with Image.open(path) as image:
                image.load()
                assert image.format == "PNG"
            storm.intact.add(handle)
        row = bought[roots[handle]]
        assert row["path"] in (None, str(path))
        assert row["number"] not in found
        found.add(row["number"])
    for row in settled:
        assert row["path"] is None or Path(row["path"]).is_file()
    beside = {path.name for path in storm.studio.home.iterdir()}
    database = {"limner.db", "limner.db-wal", "limner.db-shm", "home-id", "path-locks", "backups"}
    assert beside <= {"blobs", "incoming", "generated"} | database


def assert_every_prediction_was_brought_in_once(storm: Storm) -> None:
    predictions = storm.replicate.predictions.values()
    assert {one["status"] for one in predictions} <= {"succeeded", "failed"}
    succeeded = [one["input"]["seed"] for one in predictions if one["status"] == "succeeded"]
    settled = [
        row["seed"]
        for row in storm.rows()
        if (row["provider"], row["state"]) == ("replicate-flux", "settled")
    ]
    assert sorted(settled) == sorted(succeeded)


def assert_every_picture_that_was_here_is_bought(storm: Storm, here: set[str]) -> None:
    """Whoever delivered it: what was on disk when its process was killed is a picture now."""
    rows = storm.rows()
    assert {row["state"] for row in rows if handle_of(row["number"] or 0) in here} <= {"settled"}
    blobs = storm.handles_in("blobs/*/*")
    assert {row["picture"] for row in rows if row["state"] == "settled"} <= blobs


def phases(storm: Storm) -> Counter[str]:
    """How far each call had come; told by what it left behind."""
    rows = storm.rows()
    roots = storm.roots()
    written = {roots.get(hashlib.sha256(unlabelled(p)).hexdigest()) for p in storm.files()}
    fetched = {int(seen.path.rpartition("/")[2]) for seen in storm.replicate.sent("file")}
    kept = {path.name for path in (storm.studio.home / "blobs").rglob("*")}
    delivered = storm.handles_in("incoming/*")

    def phase(row: dict[str, Any]) -> str:
        number = row["number"]
        if number is None:
            return "2 reserved"
        if storm.ends[number] != -9:
            return "0 ended before the kill"
        if row["state"] == "settled":
            if row["picture"] not in written:
                return "8 settled, not written"
            return "9 written, not noted" if row["path"] is None else "a noted, not ended"
        if not storm.arrivals[number].is_set():
            return "3 journalled, not arrived"
        if handle_of(number) in kept:
            return "7 kept, not settled"
        if handle_of(number) in delivered:
            return "6b delivered, not verified"
        if row["provider"] == "replicate-flux" and row["remote_id"] is not None:
            return "6 fetching or verifying" if number in fetched else "5 waiting for the service"
        return "4 with the service"

    counted = Counter(phase(row) for row in rows)
    counted["1 before the ledger"] = len(storm.ends) - len(rows)
    return counted
