"""A batch on two hosts that share PostgreSQL and a bucket, one of them cut off -> who paid what.

Run as root: ``python -m tests.faults.cluster ROWS [SEED]``. Four workers run on two hosts. The
services answer with 429, 500, cut bodies and late replies. The second host loses its link twice:
first it comes back when the others have given up its calls, then when they have run all rows.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec
from tests.faults.batch_kills import Faults, rows
from tests.servers.hosts import Host, running_hosts
from tests.servers.postgres_server import PostgresServer, running_postgres
from tests.servers.s3_server import BUCKET, S3Server

from limner import Limner
from limner.batches.records import Batch, BatchCounts
from limner.settings import load
from limner.testing import FakeServices
from limner.tools.batches import BatchManifest

STAYS, CUT_OFF = "host-a", "host-b"
WORKERS_PER_HOST = 2
SAMPLE = 30
BLOBS = f"s3://{BUCKET}/team"
# The calls of the host that is cut off, until another one has concluded them.
CALLS_OF = """\
SELECT count(*) FROM ledger JOIN owners ON owners.id = ledger.owner
WHERE owners.host = '{host}' AND ledger.state IN ('reserved', 'sent')
"""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What the run came to; each list should be empty."""

    counts: BatchCounts
    billed_twice: list[str]
    billed_without_ledger: list[str]
    settled_without_bill: list[str]
    done_without_bytes: list[str]
    done_without_payment: list[str]
    failed_without_reason: list[str]
    failed_unpaid: list[str]
    passed_budgets: list[int]
    wrong_counters: list[str]
    left_reserved: int
    settled: int
    unknown: int
    unknown_billed: int
    faults: dict[str, int]
    rows_by_host: dict[str, int]
    cut_off_s: list[float]
    seconds: float

    @property
    def is_right(self) -> bool:
        """Whether nothing was lost, nothing paid twice and no cap passed."""
        facts = msgspec.structs.asdict(self)
        problems = [name for name, value in facts.items() if isinstance(value, list) and value]
        return self.left_reserved == 0 and problems == ["cut_off_s"]


class Cluster:
    """The servers, the hosts, and this machine as a third host."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.services = stack.enter_context(FakeServices(folder / "services"))
        self._s3 = stack.enter_context(S3Server(folder / "s3"))
        self.hosts = stack.enter_context(running_hosts((STAYS, CUT_OFF), folder=folder))
        self.folder = self.hosts[0].folder
        self._postgres = stack.enter_context(
            running_postgres(listen=[host.hub for host in self.hosts])
        )
        self._bytes = folder / "s3" / BUCKET / "team"
        ports = [int(self.services.env["OPENAI_BASE_URL"].split(":")[2].split("/")[0])]
        for host in self.hosts:
            stack.enter_context(host.reaching([*ports, self._s3.port]))

    @property
    def postgres(self) -> PostgresServer:
        return self._postgres

    def env(self, host: Host | None = None) -> dict[str, str]:
        """The variables of limner on a host; None is this machine."""
        return {
            **self.services.env,
            **self._s3.env,
            "LIMNER_HOME": str(self.folder / "home"),
            "LIMNER_STORE": self._postgres.url(host=None if host is None else host.hub),
            "LIMNER_BLOBS": BLOBS,
            "LIMNER_IMAGES_CONCURRENCY": "6",
        }

    def limner(self) -> Limner:
        """A `Limner` on this machine."""
        env = self.env()
        return Limner(load(env=env, cwd=self.folder), env=env, cwd=self.folder)

    def start(self, host: Host, *words: str) -> subprocess.Popen[str]:
        """Start a command of limner on a host."""
        path = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
        return subprocess.Popen(
            host.command([sys.executable, "-m", "limner", *words]),
            env={**path, **self.env(host)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def count(self, statement: str) -> int:
        """The number that a query finds."""
        ((number,),) = self._postgres.run(statement)
        assert isinstance(number, int)
        return number

    def has_bytes(self, handle: str) -> bool:
        """Whether the bucket has the bytes of a picture."""
        return any((self._bytes / handle[:2] / handle).glob("*"))


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """Two hosts that reach a database, a bucket and the services."""
    with ExitStack() as stack:
        yield Cluster(folder, stack)


async def run(count: int, *, seed: int, folder: Path) -> Outcome:
    """Run the batch with half of its budget, then with all of it, and compare the books."""
    rng, started_s = random.Random(seed), time.monotonic()
    passed: list[int] = []
    cut_off_s: list[float] = []
    with cluster(folder) as hosts:
        faults = Faults(hosts.services, rng)
        async with hosts.limner() as lim:
            manifest = BatchManifest.of_rows(rows(count))
            # A quote for each row would take minutes; every 30 rows cost the same.
            sample = BatchManifest.of_rows(rows(SAMPLE))
            plan = await lim.batches.plan(sample, lim.person())
            for share, comes_back in ((0.5, "concluded"), (1.5, "ended")):
                budget_nano = int(plan.quoted_nano * share * count / SAMPLE)
                batch = await lim.batches.open(
                    manifest, lim.person(), budget_nano=budget_nano, approved=True
                )
                faults.ask_for_kills([count // 5])
                cut_off_s.append(await _work(hosts, faults, until=comes_back))
                sums = await lim.money.sums_of_session(batch.id)
                used = sums.settled_nano + sums.unknown_nano + sums.in_flight_nano
                passed += [used] if used > budget_nano else []
            for host in hosts.hosts:
                # What was delivered and not uploaded is on the disk of its host.
                await asyncio.to_thread(_end, hosts.start(host, "jobs", "recover", "--json"))
            status = await lim.batches.run(await lim.batches.reopen(batch.id))
            return await _compare(
                hosts, lim, batch, faults, status.counts, passed, cut_off_s, started_s
            )


async def _work(hosts: Cluster, faults: Faults, *, until: str) -> float:
    """Run the workers, cut a host off at the mark; returns for how many seconds."""
    stays, cut_off = hosts.hosts
    workers = {
        host.name: [hosts.start(host, "work", "--json") for _ in range(WORKERS_PER_HOST)]
        for host in hosts.hosts
    }
    assert await asyncio.to_thread(faults.due.wait, 600), "no worker works"
    cut_off.cut()
    cut_s = time.monotonic()
    faults.due.clear()
    faults.killed.set()
    if until == "concluded":
        await asyncio.to_thread(_wait_until_concluded, hosts, cut_off.name)
    else:
        await asyncio.gather(*(asyncio.to_thread(_end, one) for one in workers[stays.name]))
    cut_off.restore()
    cut_off_s = round(time.monotonic() - cut_s, 1)
    left = [one for some in workers.values() for one in some if one.returncode is None]
    await asyncio.gather(*(asyncio.to_thread(_end, one) for one in left))
    return cut_off_s


def _wait_until_concluded(hosts: Cluster, name: str) -> None:
    """Wait until the host that stays has concluded the calls of the other one."""
    while hosts.count(CALLS_OF.format(host=name)):
        time.sleep(1)


def _end(worker: subprocess.Popen[str]) -> None:
    out, err = worker.communicate()
    assert worker.returncode == 0, f"{worker.returncode}: {err[-3000:]} {out[-3000:]}"


async def _compare(
    hosts: Cluster,
    lim: Limner,
    batch: Batch,
    faults: Faults,
    counts: BatchCounts,
    passed: list[int],
    cut_off_s: list[float],
    started_s: float,
) -> Outcome:
    settled, unknown = set[str](), set[str]()
    found: dict[str, list[str]] = {"lost": [], "free": [], "silent": [], "unpaid": []}
    async for row in lim.batches.queue.results(batch):
        payment = await lim.money.payment(batch.key_of(row.row_key))
        if payment is not None:
            prompt = json.loads(row.arguments)["prompt"]
            (settled if payment.state == "settled" else unknown).add(prompt)
        if row.state == "done":
            found["lost"] += [] if row.picture and hosts.has_bytes(row.picture) else [row.row_key]
            is_paid = payment is not None and payment.state == "settled"
            found["free"] += [] if is_paid else [row.row_key]
        else:
            said = json.loads(row.error or "{}").get("message")
            found["silent"] += [] if said else [row.row_key]
            found["unpaid"] += [] if row.cost_nano else [f"{row.row_key}: {said}"]
    billed = set(faults.billed)
    by_host: list[Any] = hosts.postgres.run(
        "SELECT coalesce(owners.host, 'ended'), count(*) FROM ledger"
        " LEFT JOIN owners ON owners.id = ledger.owner WHERE ledger.state = 'settled' GROUP BY 1"
    )
    return Outcome(
        counts=counts,
        billed_twice=[prompt for prompt, times in faults.billed.items() if times > 1],
        billed_without_ledger=sorted(billed - settled - unknown),
        settled_without_bill=sorted(settled - billed),
        done_without_bytes=found["lost"],
        done_without_payment=found["free"],
        failed_without_reason=found["silent"],
        failed_unpaid=found["unpaid"],
        passed_budgets=passed,
        wrong_counters=await lim.money.wrong_counters(),
        left_reserved=hosts.count(
            "SELECT count(*) FROM ledger WHERE state IN ('reserved', 'sent')"
        ),
        settled=len(settled),
        unknown=len(unknown),
        unknown_billed=len(unknown & billed),
        faults=dict(faults.seen),
        rows_by_host=dict(by_host),
        cut_off_s=cut_off_s,
        seconds=round(time.monotonic() - started_s, 1),
    )


def main() -> None:
    """Run, print the outcome as JSON, and fail if something was lost or paid twice."""
    count, *rest = map(int, sys.argv[1:])
    with tempfile.TemporaryDirectory(prefix="limner-cluster-") as folder:
        outcome = asyncio.run(run(count, seed=rest[0] if rest else 1, folder=Path(folder)))
        print(json.dumps(msgspec.to_builtins(outcome), indent=1), flush=True)
    sys.exit(not outcome.is_right)


if __name__ == "__main__":
    main()
