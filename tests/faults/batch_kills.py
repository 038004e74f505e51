"""Workers of one batch, killed at random moments -> what was billed, and what the ledger has.

Run as ``python -m tests.faults.batch_kills ROWS KILLS [SEED]``. The services answer with 429, 500,
cut bodies and late replies; workers get ``kill -9`` and are started again.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from limner import Limner
from limner.batches.records import Batch, BatchCounts
from limner.testing import FakeServices, ReceivedRequest
from limner.testing.servers.http_server import Reply, cut_short, json_reply
from limner.tools.batches import BatchManifest

WORKERS = 3
NANO = 1_000_000_000


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What the run came to; each list of keys should be empty."""

    counts: BatchCounts
    kills: int
    billed_twice: list[str]
    billed_without_ledger: list[str]
    settled_without_bill: list[str]
    done_without_file: list[str]
    failed_without_reason: list[str]
    passed_budgets: list[int]
    wrong_counters: list[str]
    settled: int
    unknown: int
    unknown_billed: int
    faults: dict[str, int]
    seconds: float


class Faults:
    """Replies of the services, some of which go wrong; counts what each prompt was billed."""

    def __init__(
        self,
        services: FakeServices,
        rng: random.Random,
        *,
        weights: tuple[int, ...] = (84, 5, 3, 3, 5),
    ) -> None:
        self._weights = weights
        self.billed: Counter[str] = Counter()
        self.seen: Counter[str] = Counter()
        self._rng, self._lock = rng, threading.Lock()
        self._marks: list[int] = []
        self.due, self.killed = threading.Event(), threading.Event()
        for service in (services.images, services.replicate):
            self._wrap(service)

    def ask_for_kills(self, marks: list[int]) -> None:
        """Ask for a kill at the given paid requests, counted from now on."""
        with self._lock:
            self._marks = sorted(self.seen.total() + mark for mark in marks)

    def _wait_for_kill(self) -> None:
        """Hold the request of a mark until a worker was killed, so that one is alive for sure."""
        with self._lock:
            if not self._marks or self.seen.total() < self._marks[0] or self.due.is_set():
                return
            del self._marks[0]
            self.killed.clear()
            self.due.set()
        self.killed.wait(timeout=30)

    def _wrap(self, service: Any) -> None:
        work = service.reply_to

        def reply_to(request: ReceivedRequest) -> Reply:
            if not service._is_paid(request):
                return work(request)
            with self._lock:
                kinds = ("good", "429", "500", "cut", "slow")
                kind = self._rng.choices(kinds, weights=self._weights)[0]
                self.seen[kind] += 1
            self._wait_for_kill()
            if kind == "429":
                error = {"error": {"message": "Slow down.", "code": "rate_limit_exceeded"}}
                return json_reply(error, status=429, headers={"Retry-After": "1"})
            if kind == "500":
                return json_reply({"error": {"message": "Down."}}, status=500)
            body = request.json()
            self.billed[body.get("prompt") or body["input"]["prompt"]] += 1
            if kind == "slow":
                time.sleep(self._rng.random() * 0.2)
            reply = work(request)
            return cut_short(reply) if kind == "cut" else reply

        service.reply_to = reply_to


def rows(count: int) -> list[dict[str, Any]]:
    """Two rows in three go to the service whose jobs can be found again."""
    kinds = (
        {"provider": "replicate-flux", "size": "512x512"},
        {"provider": "replicate-flux", "size": "512x512"},
        {"provider": "openai-image", "size": "1024x1024"},
    )
    return [
        {"key": f"k{number}", "prompt": f"fox {number}", **kinds[number % 3]}
        for number in range(count)
    ]


async def run(count: int, kills: int, *, seed: int, folder: Path) -> Outcome:
    """Run the batch with half of its budget, then with all of it, and compare the books."""
    rng = random.Random(seed)
    started_s = time.monotonic()
    passed: list[int] = []
    with FakeServices(folder) as services:
        faults = Faults(services, rng)
        async with services.limner() as lim:
            manifest = BatchManifest.of_rows(rows(count))
            plan = await lim.batches.plan(manifest, lim.person())
            killed = 0
            for share in (0.5, 1.5):
                budget_nano = int(plan.quoted_nano * share)
                batch = await lim.batches.open(
                    manifest, lim.person(), budget_nano=budget_nano, approved=True
                )
                faults.ask_for_kills([rng.randrange(1, count // 3) for _ in range(kills // 2)])
                killed += await _work(services, faults, rng=rng)
                sums = await lim.money.sums_of_session(batch.id)
                used = sums.settled_nano + sums.unknown_nano + sums.in_flight_nano
                passed += [used] if used > budget_nano else []
            status = await lim.batches.run(await lim.batches.reopen(batch.id))
            return await compare(lim, batch, faults, status.counts, killed, passed, started_s)


async def _work(services: FakeServices, faults: Faults, *, rng: random.Random) -> int:
    """Keep some workers at work, and kill one at each mark; returns how often."""
    env = {**os.environ, **services.env, "LIMNER_IMAGES_CONCURRENCY": "6"}
    command = [sys.executable, "-m", "limner", "work", "--json"]

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command, env=env, cwd=services.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    workers, killed = [start() for _ in range(WORKERS)], 0
    while any(worker.poll() is None for worker in workers):
        if not await asyncio.to_thread(faults.due.wait, 0.1):
            continue
        await asyncio.sleep(rng.random() * 0.2)
        alive = [place for place in range(WORKERS) if workers[place].poll() is None]
        if alive:
            place = rng.choice(alive)
            workers[place].send_signal(signal.SIGKILL)
            workers[place].communicate()
            killed += 1
            workers[place] = start()
        faults.due.clear()
        faults.killed.set()
    for worker in workers:
        _, err = worker.communicate()
        assert worker.returncode == 0, err.decode()
    return killed


async def compare(
    lim: Limner,
    batch: Batch,
    faults: Faults,
    counts: BatchCounts,
    killed: int,
    passed: list[int],
    started_s: float,
) -> Outcome:
    settled, unknown, lost_files, silent = set[str](), set[str](), list[str](), list[str]()
    async for row in lim.batches.queue.results(batch):
        payment = await lim.money.payment(batch.key_of(row.row_key))
        prompt = json.loads(row.arguments)["prompt"]
        if payment is not None:
            (settled if payment.state == "settled" else unknown).add(prompt)
        if row.state == "done" and not Path(json.loads(row.result or "{}")["path"]).is_file():
            lost_files.append(row.row_key)
        if row.state == "failed" and not json.loads(row.error or "{}").get("message"):
            silent.append(row.row_key)
    billed = set(faults.billed)
    return Outcome(
        counts=counts,
        kills=killed,
        billed_twice=[prompt for prompt, times in faults.billed.items() if times > 1],
        billed_without_ledger=sorted(billed - settled - unknown),
        settled_without_bill=sorted(settled - billed),
        done_without_file=lost_files,
        failed_without_reason=silent,
        passed_budgets=passed,
        wrong_counters=await lim.money.wrong_counters(),
        settled=len(settled),
        unknown=len(unknown),
        unknown_billed=len(unknown & billed),
        faults=dict(faults.seen),
        seconds=round(time.monotonic() - started_s, 1),
    )


def main() -> None:
    """Run, and print the outcome as JSON."""
    count, kills, *rest = map(int, sys.argv[1:])
    with tempfile.TemporaryDirectory(prefix="limner-batch-") as folder:
        outcome = asyncio.run(run(count, kills, seed=rest[0] if rest else 1, folder=Path(folder)))
    print(json.dumps(msgspec.to_builtins(outcome), indent=1))


if __name__ == "__main__":
    main()
