"""Rows a second of claim, reserve and settle, beside loops that keep no books.

Every row posts the same small request to a local server that answers at once. limner claims rows,
reserves, marks the request as sent and settles, with 1 and with 4 processes. Beside it, in the same
run: a plain asyncio loop with the same HTTP client, and litellm in its own environment.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx2

from limner.batches.queue import BatchQueue, CheckedRow
from limner.batches.records import Batch, ClaimedRow, RowOutcome
from limner.batches.runner import BatchRunner, RowCalls
from limner.catalogue.prices import Quote
from limner.money.ledger import Caps, Money, PaymentTerms
from limner.money.paid_call import Payer, paid_call
from limner.money.records import KeyedPayment
from limner.storage.store import Store

ROWS = 2_000
LONG = (1_000, 100_000)
CONCURRENCY = 32
PRICE_NANO = 1_000
MOST = 1.2
GUARD_S = 120.0
LITELLM = "litellm==1.77.5"
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
import asyncio, sys, time
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
    print(rows / (time.perf_counter() - began))
asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
"""


def main(rows: int = ROWS, long: tuple[int, int] = LONG) -> None:
    """Print rows a second, and how time and memory grow with the length of a batch."""
    if sys.argv[1:2] == ["worker"]:
        asyncio.run(_work(Path(sys.argv[2]), sys.argv[3]))
        return
    if sys.argv[1:2] == ["server"]:
        _serve()
        return
    with server() as url, tempfile.TemporaryDirectory(prefix="limner-bench-") as folder:
        base = Path(folder)
        plain = asyncio.run(plain_loop(url, rows))
        print(f"asyncio, no books: {plain:.0f} rows/s")
        litellm = _litellm(url, rows)
        print("litellm: not installed" if litellm is None else f"litellm: {litellm:.0f} rows/s")
        for processes in (1, 4):
            rate, _, _ = run_workers(base / f"p{processes}", url, rows, processes)
            beside = "" if litellm is None else f", {rate / litellm:.2f} of litellm"
            print(
                f"limner, {processes} process{'es' if processes > 1 else ''}: {rate:.0f} rows/s "
                f"({rate / plain:.2f} of the plain loop{beside})"
            )
        found = [run_workers(base / f"long{count}", url, count, 1) for count in long]
        wall, processor = found[0][0] / found[1][0], found[1][1] / found[0][1]
        print(
            f"time a row at {long[1]:,} over {long[0]:,}: {wall:.2f} on the clock, "
            f"{processor:.2f} of the processor (at most {MOST}); "
            f"peak memory {found[0][2]:.0f} MB and {found[1][2]:.0f} MB"
        )


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


def _litellm(url: str, rows: int) -> float | None:
    """The same loop with litellm, in its own environment; None if it cannot be installed."""
    folder = Path(".bench") / "litellm"
    python = folder / "bin" / "python"
    try:
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
            install = [str(python), "-m", "pip", "install", "--quiet", LITELLM]
            subprocess.run(install, check=True)
        done = subprocess.run(
            [str(python), "-c", LITELLM_LOOP, url, str(rows), str(CONCURRENCY)],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "LITELLM_LOG": "ERROR", "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
            timeout=GUARD_S,
        )
    except (OSError, subprocess.SubprocessError):
        return None
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
    async with httpx2.AsyncClient(trust_env=False) as client:
        began_s, began_cpu_s = time.time(), time.process_time()
        await runner.run(await queue.get("bench"))
        ended_s, cpu_s = time.time(), time.process_time() - began_cpu_s
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    times = {"began_s": began_s, "ended_s": ended_s, "cpu_s": cpu_s}
    print(json.dumps({**times, "rows": ran, "peak_mb": peak_mb}))
    await store.aclose()


if __name__ == "__main__":
    main()
