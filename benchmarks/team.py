"""What a picture costs a database and a bucket; a million pictures on fifty hosts, simulated.

Real programs make a few hundred pictures: PostgreSQL, an S3 server (rclone), worker processes, and
a service that answers at once with a photograph of its own for each request. The simulation then
runs the whole batch through queues whose service times are those numbers.
"""

from __future__ import annotations

import asyncio
import base64
import heapq
import io
import json
import os
import random
import resource
import secrets
import subprocess
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from tests.servers.postgres_server import PostgresServer, running_postgres
from tests.servers.s3_server import BUCKET, S3Server

from benchmarks.photos import photo
from limner import Limner
from limner.metrics import FAMILIES
from limner.testing.servers.openai_server import OpenAIServer
from limner.tools.batches import BatchManifest

PICTURES = 400
WORKERS = 2
SIDE = 1024
PIXELS = (SIDE, SIDE)
STORED_ROWS = 1_000_000
# What the simulation assumes; every other number is measured in the run.
HOSTS = 50
HOST_CORES = 4
DATABASE_CORES = 8
ROUND_TRIP_S = 0.0005
DRAWING_S = 20.0
# Amazon S3 Standard, us-east-1, https://aws.amazon.com/s3/pricing: dollars for a request by kind,
# and for a gigabyte in a month. List prices; look them up before you rely on them.
REQUEST_USD = {
    "list": 0.005 / 1000,
    "put": 0.005 / 1000,
    "head": 0.0004 / 1000,
    "get": 0.0004 / 1000,
}
GIGABYTE_MONTH_USD = 0.023


class Measured(NamedTuple):
    """What one picture takes."""

    transactions: float
    round_trips: float
    locked_round_trips: float
    rows_written: float
    wal_bytes: float
    database_bytes: float
    database_cpu_s: float
    host_cpu_s: float
    object_bytes: float
    requests: Mapping[str, float]
    price_usd: float
    sync_s: float
    count_s: float
    claim_s: float
    load_s: float


class Simulated(NamedTuple):
    """What the whole batch took."""

    hours: float
    database_busy: float
    lock_busy: float
    host_busy: float
    transactions_per_s: float


def main(
    pictures: int = PICTURES, stored_rows: int = STORED_ROWS, simulated: int = 1_000_000
) -> None:
    """Measure, simulate, and print both as tables."""
    if sys.argv[1:2] == ["service"]:
        _serve()
        return
    if sys.argv[1:2] == ["worker"]:
        asyncio.run(_work())
        return
    found = measure(pictures, stored_rows)
    print(_table_of(found, pictures, stored_rows))
    print()
    print(_table_of_runs(found, simulated))


def measure(pictures: int, stored_rows: int) -> Measured:
    """Let real programs make pictures, and count."""
    with (
        tempfile.TemporaryDirectory(prefix="limner-team-") as folder,
        running_postgres() as postgres,
        S3Server(Path(folder, "s3")) as bucket,
        _service() as service,
    ):
        env = {
            **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
            **bucket.env,
            "LIMNER_STORE": postgres.new_url(),
            "LIMNER_BLOBS": f"s3://{BUCKET}/team",
            "OPENAI_API_KEY": "fake-key-of-the-benchmark",
            "OPENAI_BASE_URL": service,
        }
        trace = asyncio.run(_trace({**env, "LIMNER_HOME": f"{folder}/trace"}, Path(folder)))
        counted = _draw(env, Path(folder), pictures, postgres)
        large = asyncio.run(
            _measure_large(
                {**env, "LIMNER_HOME": f"{folder}/large"}, Path(folder), postgres, stored_rows
            )
        )
        facts: dict[str, Any] = {**counted, **trace, **large}
        return Measured(**facts, sync_s=_sync_s(Path(folder)))


def _draw(
    env: Mapping[str, str], folder: Path, pictures: int, postgres: PostgresServer
) -> dict[str, Any]:
    """Run worker processes on a batch; what each picture took, but for the trace."""
    began_s = time.perf_counter()
    asyncio.run(_load({**env, "LIMNER_HOME": f"{folder}/load"}, folder, pictures))
    load_s = (time.perf_counter() - began_s) / pictures
    before = _database(postgres, env["LIMNER_STORE"])
    command = [sys.executable, "-m", "benchmarks.team", "worker"]
    workers = [
        subprocess.Popen(
            command, env={**env, "LIMNER_HOME": f"{folder}/worker-{number}"}, stdout=subprocess.PIPE
        )
        for number in range(WORKERS)
    ]
    told = [json.loads(worker.communicate()[0]) for worker in workers]
    after = _database(postgres, env["LIMNER_STORE"])
    used = {name: (after[name] - before[name]) / pictures for name in after}
    requests = Counter[str]()
    for one in told:
        requests.update(one["requests"])
    drawn = sum(one["pictures"] for one in told)
    assert drawn == pictures, f"{drawn} of {pictures} pictures are there"
    return {
        **used,
        "host_cpu_s": sum(one["cpu_s"] for one in told) / pictures,
        "requests": {kind: count / pictures for kind, count in sorted(requests.items())},
        "object_bytes": sum(one["bytes"] for one in told) / len(told),
        "price_usd": sum(one["usd"] for one in told) / pictures,
        "load_s": load_s,
    }


def _database(postgres: PostgresServer, url: str) -> dict[str, float]:
    """What the database has done so far."""
    postgres.run("CHECKPOINT")
    (stats,) = postgres.run(
        "SELECT xact_commit, tup_inserted + tup_updated + tup_deleted, "
        "pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8, pg_database_size(datname)::float8 "
        "FROM pg_stat_database WHERE datname = current_database()",
        url=url,
    )
    ((pid_file,),) = postgres.run("SELECT pg_read_file('postmaster.pid')")
    names = ("transactions", "rows_written", "wal_bytes", "database_bytes")
    numbers = [float(str(one)) for one in stats]
    cpu_s = _cpu_s(int(str(pid_file).split("\n")[0]))
    return {**dict(zip(names, numbers, strict=True)), "database_cpu_s": cpu_s}


def _cpu_s(postmaster: int) -> float:
    """The processor time of the server: of itself, its children that ended, and those that run."""
    ticks = 0
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, rest = int(place.parent.name), place.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if pid == postmaster:
            ticks += sum(map(int, rest[11:15]))
        elif int(rest[1]) == postmaster:
            ticks += sum(map(int, rest[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _rows(count: int) -> BatchManifest:
    size = f"{SIDE}x{SIDE}"
    more = {"provider": "openai-image", "size": size}
    return BatchManifest.of_rows(
        [{"key": f"k{n}", "prompt": f"a landscape, number {n}", **more} for n in range(count)]
    )


async def _load(env: Mapping[str, str], folder: Path, count: int) -> None:
    async with Limner(env=env, cwd=folder) as lim:
        await lim.batches.open(_rows(count), lim.person(), budget_nano=10**15, approved=True)


async def _work() -> None:
    """Run rows of the batch, and print what this process counted."""
    async with Limner() as lim:
        await lim.batches.work()
        found = await lim.batches.queue.store.read(
            lambda tx: tx.raw("SELECT coalesce(avg(size_bytes), 0) AS bytes FROM pictures")
        )
    samples = {
        (family.name, *sorted(labels.values())): value
        for family in FAMILIES
        for _, labels, value in family.samples()
    }
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    facts = {
        "cpu_s": sum(one.ru_utime + one.ru_stime for one in used),
        "requests": {
            kind: samples.get(("limner_blob_requests_total", *sorted((kind, "ok"))), 0)
            for kind in REQUEST_USD
        },
        "pictures": samples.get(("limner_pictures_stored_total", "drawn"), 0),
        "usd": sum(
            value
            for key, value in samples.items()
            if key[0] == "limner_ledger_usd_total" and "settled" in key
        ),
        "bytes": float(found[0]["bytes"]),
    }
    print(json.dumps(facts))


async def _trace(env: Mapping[str, str], folder: Path) -> dict[str, float]:
    """The round trips to the database of a picture, and those under the lock of the budget."""
    statements: list[tuple[int, str]] = []
    execute = psycopg.Connection.execute

    def noted(connection: Any, query: Any, *words: Any, **more: Any) -> Any:
        statements.append((id(connection), query.decode() if isinstance(query, bytes) else query))
        return execute(connection, query, *words, **more)

    rows = 8
    async with Limner(env=env, cwd=folder) as lim:
        await lim.batch(
            [{"key": "first", "prompt": "warm up", "provider": "openai-image"}], budget_usd=1
        )
        psycopg.Connection.execute = noted  # type: ignore[method-assign]
        try:
            status = await lim.batch([dict(msg) for msg in _trace_rows(rows)], budget_usd=10)
        finally:
            psycopg.Connection.execute = execute  # type: ignore[method-assign]
    assert status.counts.done == rows
    budget = f", {zlib.crc32(f'session {status.batch.id}'.encode()) // 2})"
    locked, held = 0, set[int]()
    for connection, text in statements:
        if "pg_advisory_xact_lock(" in text and text.endswith(budget):
            held.add(connection)
        elif connection in held:
            locked += 1
            if text in ("COMMIT", "ROLLBACK"):
                held.discard(connection)
    return {"round_trips": len(statements) / rows, "locked_round_trips": locked / rows}


def _trace_rows(count: int) -> Iterator[dict[str, object]]:
    for number in range(count):
        yield {"key": f"t{number}", "prompt": f"traced {number}", "provider": "openai-image"}


async def _measure_large(
    env: Mapping[str, str], folder: Path, postgres: PostgresServer, stored_rows: int
) -> dict[str, float]:
    """The time of a count and of a claim in a batch of many rows."""
    async with Limner(env=env, cwd=folder) as lim:
        batch = await lim.batches.open(_rows(1), lim.person(), budget_nano=0, approved=True)
        postgres.run(
            "INSERT INTO batch_rows SELECT batch_id, 'large' || n, n, load, tool, arguments, "
            "CASE WHEN n % 2 = 0 THEN 'waiting' ELSE 'done' END, 0, 0, NULL, 0, 'table', NULL, "
            f"NULL, NULL, updated_ms FROM batch_rows, generate_series(1, {stored_rows}) AS n "
            f"WHERE batch_id = '{batch.id}'",
            url=env["LIMNER_STORE"],
        )
        postgres.run("ANALYZE batch_rows", url=env["LIMNER_STORE"])
        queue = lim.batches.queue
        return {
            "count_s": await _best_s(lambda: queue.counts(batch)),
            "claim_s": await _best_s(lambda: queue.claim(batch, count=8)),
        }


async def _best_s(work: Any) -> float:
    took: list[float] = []
    for _ in range(5):
        began_s = time.perf_counter()
        await work()
        took.append(time.perf_counter() - began_s)
    return sorted(took)[len(took) // 2]


def _sync_s(folder: Path) -> float:
    """The median time of a small write that is synced, as for a commit."""
    took: list[float] = []
    with (folder / "synced").open("wb", buffering=0) as file:
        for _ in range(101):
            file.write(bytes(8192))
            began_s = time.perf_counter()
            os.fdatasync(file.fileno())
            took.append(time.perf_counter() - began_s)
    return sorted(took)[len(took) // 2]


class _Photographs(OpenAIServer):
    """Answers each request with another picture: one photograph, each time another comment."""

    @property
    def _base64(self) -> bytes:
        text = b"Comment\0" + secrets.token_hex(16).encode()
        sum_of = zlib.crc32(b"tEXt" + text).to_bytes(4, "big")
        chunk = len(text).to_bytes(4, "big") + b"tEXt" + text + sum_of
        end = len(self.picture) - 12
        return base64.b64encode(self.picture[:end] + chunk + self.picture[end:])


def _serve() -> None:
    made = io.BytesIO()
    photo(PIXELS, seed=1).save(made, "PNG")
    with _Photographs(made.getvalue()) as server:
        print(server.base_url, flush=True)
        sys.stdin.read()


@contextmanager
def _service() -> Iterator[str]:
    command = [sys.executable, "-m", "benchmarks.team", "service"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield process.stdout.readline().strip()
        process.stdin.close()


class Station:
    """Servers behind one queue: first come, first served."""

    def __init__(self, servers: int) -> None:
        self.busy_s = 0.0
        self._free_s = [0.0] * servers
        self.servers = servers

    def serve(self, now_s: float, seconds: float) -> float:
        """Serve one who arrives now, after all who came before; returns the end."""
        start_s = max(now_s, heapq.heappop(self._free_s))
        heapq.heappush(self._free_s, start_s + seconds)
        self.busy_s += seconds
        return start_s + seconds


def simulate(found: Measured, *, pictures: int, at_once: int, drawing_s: float) -> Simulated:
    """Let all hosts draw until every picture is there; ``at_once`` are drawn on each host."""
    dice = random.Random(1)
    # One commit is synced while the lock is held, and the statements before it travel one by one.
    locked_s = found.locked_round_trips * ROUND_TRIP_S + found.sync_s
    statement_s = found.database_cpu_s / found.round_trips
    locked_s += found.locked_round_trips * statement_s
    lock, database = Station(1), Station(DATABASE_CORES)
    hosts = [Station(HOST_CORES) for _ in range(HOSTS)]
    travel_s = found.round_trips * ROUND_TRIP_S
    # Each waiting picture is an event: when, which host, and what comes next.
    events = [(0.0, number, number % HOSTS, 0) for number in range(HOSTS * at_once)]
    begun, ended, now_s, order = len(events), 0, 0.0, len(events)
    while events:
        now_s, _, host, stage = heapq.heappop(events)
        if stage == 0:
            then_s = lock.serve(now_s, locked_s)
        elif stage == 1:
            then_s = now_s + dice.expovariate(1 / drawing_s)
        elif stage == 2:
            then_s = hosts[host].serve(now_s, found.host_cpu_s)
        elif stage == 3:
            then_s = database.serve(now_s, found.database_cpu_s) + travel_s
        else:
            ended += 1
            if begun == pictures:
                continue
            begun, then_s, stage = begun + 1, now_s, -1
        order += 1
        heapq.heappush(events, (then_s, order, host, stage + 1))
    assert ended == pictures
    return Simulated(
        hours=now_s / 3600,
        database_busy=database.busy_s / DATABASE_CORES / now_s,
        lock_busy=lock.busy_s / now_s,
        host_busy=sum(host.busy_s for host in hosts) / HOSTS / HOST_CORES / now_s,
        transactions_per_s=pictures * found.transactions / now_s,
    )


def _table_of(found: Measured, pictures: int, stored_rows: int) -> str:
    requests = ", ".join(f"{count:.2f} {kind}" for kind, count in found.requests.items())
    rows = {
        f"{pictures:,} pictures of {SIDE}x{SIDE}, {WORKERS} workers": "for a picture",
        "transactions": f"{found.transactions:.1f}",
        "round trips to the database": f"{found.round_trips:.1f}",
        "of these, under the lock of the batch's budget": f"{found.locked_round_trips:.1f}",
        "rows written": f"{found.rows_written:.1f}",
        "write-ahead log": f"{found.wal_bytes / 1000:.1f} kB",
        "growth of the database": f"{found.database_bytes / 1000:.1f} kB",
        "processor time of the database": f"{found.database_cpu_s * 1000:.1f} ms",
        "processor time of a host": f"{found.host_cpu_s * 1000:.0f} ms",
        "requests to the bucket": requests,
        "bytes in the bucket": f"{found.object_bytes / 1e6:.2f} MB",
        "loading its row": f"{found.load_s * 1000:.2f} ms",
        "price by the ledger": f"${found.price_usd:.4f}",
        f"a count of a batch of {stored_rows:,} rows": f"{found.count_s * 1000:.0f} ms",
        "a claim of eight rows of it": f"{found.claim_s * 1000:.1f} ms",
        "a synced write of 8 kB on this disk": f"{found.sync_s * 1000:.2f} ms",
    }
    return _markdown(rows.items())


def _table_of_runs(found: Measured, pictures: int) -> str:
    usd = pictures * sum(found.requests.get(kind, 0) * each for kind, each in REQUEST_USD.items())
    gigabytes = pictures * found.object_bytes / 1e9
    lines = [
        (
            "at once on each host",
            "hours",
            "pictures/s",
            "transactions/s",
            "database",
            "lock",
            "hosts",
        )
    ]
    for at_once in (8, 32, 128):
        run = simulate(found, pictures=pictures, at_once=at_once, drawing_s=DRAWING_S)
        lines.append(
            (
                str(at_once),
                f"{run.hours:.1f}",
                f"{pictures / run.hours / 3600:.0f}",
                f"{run.transactions_per_s:,.0f}",
                f"{run.database_busy:.1%}",
                f"{run.lock_busy:.1%}",
                f"{run.host_busy:.1%}",
            )
        )
    told = [
        f"{pictures:,} pictures on {HOSTS} hosts of {HOST_CORES} cores, a database of "
        f"{DATABASE_CORES} cores, {ROUND_TRIP_S * 1000:g} ms between them, {DRAWING_S:g} s for a "
        "drawing (exponential). Busy shares:",
        "",
        _markdown(lines),
        "",
        f"Bucket: {pictures * sum(found.requests.values()):,.0f} requests for ${usd:,.2f}, "
        f"{gigabytes:,.0f} GB for ${gigabytes * GIGABYTE_MONTH_USD:,.2f} a month. Database: "
        f"{pictures * found.database_bytes / 1e9:,.1f} GB, "
        f"{pictures * found.wal_bytes / 1e9:,.1f} GB of log, {4 * HOSTS} connections "
        "with one process on each host. Pictures: "
        f"${pictures * found.price_usd:,.0f}.",
    ]
    return "\n".join(told)


def _markdown(rows: Any) -> str:
    first, *others = rows
    lines = [first, ["---"] * len(first), *others]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    main()
