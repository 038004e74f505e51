"""Rows a second of claim, reserve and settle, beside loops that keep no books.

Every row posts the same small request to a local server that answers at once. limner claims rows,
reserves, marks the request as sent and settles, with 1 and with 4 processes. Beside it, in the same
run: a plain asyncio loop with the same HTTP client, and litellm in its own environment.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx2

from benchmarks.comparison import Comparison, compare, one_run
from benchmarks.environments import python_if_possible
from benchmarks.in_flight import LITELLM
from limner.batches.queue import BatchQueue, CheckedRow
from limner.batches.records import Batch, ClaimedRow, RowOutcome
from limner.batches.runner import BatchRunner, RowCalls
from limner.catalogue.prices import Quote
from limner.money.ledger import Caps, Money, PaymentTerms
from limner.money.paid_call import Payer, paid_call
from limner.money.records import KeyedPayment
from limner.net.http import Http
from limner.storage.store import Store

ROWS = 2_000
LONG = (1_000, 100_000)
CONCURRENCY = 32
PRICE_NANO = 1_000
MOST = 1.2
GUARD_S = 120.0
ROUNDS = 3
PLAIN = "a plain loop of asyncio and httpx2"
BOOKS = (
    "Only limner keeps books: it claims rows in groups, reserves, marks each request as sent, "
    "settles and ends the row, in three transactions that are synced to disk."
)
ANSWER = {
    "id": "1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "OK"}}
    ],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}
BODY = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
LITELLM_LOOP = """
import asyncio, os, sys, time
import litellm
async def main(url, rows, limit):
    slots = asyncio.Semaphore(limit)
    async def one():
        async with slots:
            await litellm.acompletion(
                model="openai/m", api_base=url, api_key="k",
                messages=[{"role": "user", "content": "Hello"}],
            )
    await one()
    began = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(rows)))
    print(rows / (time.perf_counter() - began), flush=True)
    os._exit(0)  # a task of litellm ignores that it is cancelled, so its loop would never close
asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
"""


def main(rows: int = ROWS, long: tuple[int, int] = LONG, rounds: int = ROUNDS) -> list[Comparison]:
    """What a row takes, and how time and memory grow with the length of a batch."""
    python = python_if_possible("litellm", *LITELLM)
    beside: dict[str, list[float]] = {
        name: [] for name in ("limner", "limner, 4 processes", PLAIN, "litellm")
    }
    with server() as url, tempfile.TemporaryDirectory(prefix="limner-bench-") as folder:
        base = Path(folder)
        for number in range(rounds):
            rates = {
                PLAIN: asyncio.run(plain_loop(url, rows)),
                "limner": run_workers(base / f"one{number}", url, rows, 1)[0],
                "limner, 4 processes": run_workers(base / f"four{number}", url, rows, 4)[0],
            }
            for name, rate in rates.items():
                beside[name].append(1000 / rate)
            if python is not None:
                with one_run("litellm"):
                    beside["litellm"].append(1000 / _litellm(python, url, rows))
        found = {
            f"limner, {count:,} rows": run_workers(base / f"long{count}", url, count, 1)
            for count in reversed(long)
        }
    last, first = found
    cpu_ms = {name: [1000 * cpu_s] for name, (_, cpu_s, _) in found.items()}
    memory_mb = {name: [peak_mb] for name, (_, _, peak_mb) in found.items()}
    grown = compare(
        "one row of a long batch", cpu_ms, unit="ms of CPU", ours=last, peer=first, at_most=MOST
    )
    return [
        compare(
            f"one of {rows:,} rows, {CONCURRENCY} at a time",
            beside,
            unit="ms",
            note=BOOKS,
        ),
        grown,
        compare("a worker's memory at its peak", memory_mb, unit="MB", ours=last),
    ]


class _Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    data = json.dumps(ANSWER).encode()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        head = (
            f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(self.data)}"
        )
        self.wfile.write(f"{head}\r\n\r\n".encode() + self.data)

    def log_message(self, *_: object) -> None:
        pass


def _serve() -> None:
    ThreadingHTTPServer.request_queue_size = 128
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answer)
    print(server.server_port, flush=True)
    server.serve_forever()


class server:  # noqa: N801 - used as a function
    """A server in a process of its own, which answers at once."""

    def __enter__(self) -> str:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.batch", "server"], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        return f"http://127.0.0.1:{self._process.stdout.readline().strip()}/v1"

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


async def plain_loop(url: str, rows: int) -> float:
    slots = asyncio.Semaphore(CONCURRENCY)
    async with httpx2.AsyncClient(trust_env=False) as client:

        async def one() -> None:
            async with slots:
                (await client.post(f"{url}/chat/completions", json=BODY)).json()

        await one()
        started_s = time.perf_counter()
        await asyncio.gather(*(one() for _ in range(rows)))
        return rows / (time.perf_counter() - started_s)


def _litellm(python: str, url: str, rows: int) -> float:
    """The same loop with litellm, in its own environment; it does not always end."""
    done = subprocess.run(
        [python, "-c", LITELLM_LOOP, url, str(rows), str(CONCURRENCY)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, "LITELLM_LOG": "ERROR", "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        timeout=GUARD_S,
    )
    return float(done.stdout.split()[-1])


def run_workers(home: Path, url: str, rows: int, processes: int) -> tuple[float, float, float]:
    """Rows a second, processor time a row, and the peak memory of a worker in MB."""
    home.mkdir()
    asyncio.run(_load(home, rows))
    command = [sys.executable, "-m", "benchmarks.batch", "worker", str(home), url]
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(processes)]
    outputs = [json.loads(worker.communicate()[0]) for worker in workers]
    began = min(output["began_s"] for output in outputs)
    ended = max(output["ended_s"] for output in outputs)
    assert sum(output["rows"] for output in outputs) == rows
    cpu_s = sum(output["cpu_s"] for output in outputs)
    return rows / (ended - began), cpu_s / rows, max(output["peak_mb"] for output in outputs)


def _parts(home: Path) -> tuple[Store, BatchQueue, Money]:
    store = Store(home / "limner.db", url=os.environ.get("LIMNER_STORE"))
    money = Money(store, caps=Caps(), clock=lambda: datetime.now(UTC), program="p", wait_s=60.0)
    return store, BatchQueue(store=store, clock=lambda: datetime.now(UTC)), money


async def _load(home: Path, rows: int) -> None:
    store, queue, _ = _parts(home)
    batch = await queue.add(
        "bench", digest="", budget_nano=10**15, lane="now", rates="[]", caller="{}"
    )
    checked = (
        CheckedRow(key=str(number), number=number, tool="bench", arguments="{}")
        for number in range(rows)
    )
    await queue.load(batch, checked, digest="1")
    await store.aclose()


async def _work(home: Path, url: str) -> None:
    """Run rows of the batch, and print what it took."""
    store, queue, money = _parts(home)
    ran = 0

    async def run(batch: Batch, row: ClaimedRow, terms: PaymentTerms) -> RowOutcome:
        nonlocal ran
        ran += 1
        payer = Payer(session_id=batch.id, budget_nano=batch.budget_nano, terms=terms)
        quote = Quote(nano=PRICE_NANO, source="table", exact=True)
        async with paid_call(
            money, quote, payer=payer, tool=row.tool, provider="openai", model="m"
        ) as call:
            await call.send(None)
            answer = (await client.post(f"{url}/chat/completions", json=BODY)).json()
            call.received(PRICE_NANO, "provider")
            await call.settle(None)
        result = json.dumps(answer["choices"][0]["message"])
        return RowOutcome(result=result, cost_nano=PRICE_NANO, cost_source="provider")

    async def recover(
        batch: Batch, row: ClaimedRow, payment: KeyedPayment, terms: PaymentTerms
    ) -> RowOutcome:
        raise NotImplementedError

    calls = RowCalls(run=run, recover=recover, key_hash=lambda _: "k")
    runner = BatchRunner(queue=queue, money=money, calls=calls, concurrency=CONCURRENCY)
    http = Http()
    client = http.client()
    began_s, began_cpu_s = time.time(), time.process_time()
    await runner.run(await queue.get("bench"))
    ended_s, cpu_s = time.time(), time.process_time() - began_cpu_s
    await http.aclose()
    # Not `ru_maxrss`: at its start a process inherits the peak of the one that started it.
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    peak_mb = int(status.partition("VmHWM:")[2].split()[0]) / 1024
    times = {"began_s": began_s, "ended_s": ended_s, "cpu_s": cpu_s}
    print(json.dumps({**times, "rows": ran, "peak_mb": peak_mb}))
    await store.aclose()


if __name__ == "__main__":
    if sys.argv[1] == "worker":
        asyncio.run(_work(Path(sys.argv[2]), sys.argv[3]))
    else:
        _serve()
