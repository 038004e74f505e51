from __future__ import annotations

import asyncio
import gc
import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from imaging_samples import (
    SMALL_PNG,
    encoded,
    is_stopped,
    png,
    unread_job_bytes,
    until,
    worker_pids,
)
from PIL import Image

from limner.errors import ImageTooLarge, LimnerError, StorageError
from limner.imaging.facts import Facts
from limner.imaging.limits import WorkerLimits
from limner.imaging.pipe import OpenFile
from limner.imaging.pool import Imaging, Source

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc")

SMALL = Facts(mime="image/png", width=3, height=2, frames=1)


class Lone:
    """A pool with one worker, already warm."""

    def __init__(self, pool: Imaging, pid: int) -> None:
        self.pool = pool
        self.pid = pid

    async def frozen_job(self, data: Source | OpenFile = SMALL_PNG) -> asyncio.Task[Facts]:
        """A job that a worker has received and will never finish."""
        os.kill(self.pid, signal.SIGSTOP)
        await until(lambda: is_stopped(self.pid))
        task = asyncio.create_task(self.pool.verify(data))
        await until(lambda: unread_job_bytes(self.pid) > 0)
        return task


@asynccontextmanager
async def lone(limits: WorkerLimits) -> AsyncIterator[Lone]:
    before = worker_pids()
    async with Imaging(workers=1, limits=limits) as pool:
        assert await pool.verify(SMALL_PNG) == SMALL
        (pid,) = worker_pids() - before
        yield Lone(pool, pid)


@pytest.fixture
async def alone() -> AsyncIterator[Lone]:
    async with lone(WorkerLimits()) as pool:
        yield pool


async def test_a_worker_is_kept_warm_and_used_again(alone: Lone) -> None:
    before = worker_pids()
    for _ in range(3):
        assert await alone.pool.verify(SMALL_PNG) == SMALL
    assert worker_pids() == before


async def test_a_worker_ends_after_its_last_job_and_another_goes_on() -> None:
    before, seen = worker_pids(), list[set[int]]()
    async with Imaging(workers=1, limits=WorkerLimits(max_jobs=2)) as pool:
        for _ in range(5):
            assert await pool.verify(SMALL_PNG) == SMALL
            seen.append(worker_pids() - before)
    first, second, third = seen[0], seen[2], seen[4]
    assert seen == [first, set(), second, set(), third]
    assert len(first | second | third) == 3


async def test_a_large_pool_starts_no_more_workers_than_jobs_at_once() -> None:
    before = worker_pids()
    async with Imaging(workers=8) as pool:
        for _ in range(9):
            assert await pool.verify(SMALL_PNG) == SMALL
        assert len(worker_pids() - before) == 1


async def test_a_worker_killed_in_mid_job_is_replaced_and_its_job_is_done(alone: Lone) -> None:
    task = await alone.frozen_job()
    os.kill(alone.pid, signal.SIGKILL)
    await task
    assert await alone.pool.verify(SMALL_PNG) == SMALL
    assert alone.pid not in worker_pids()


async def test_a_job_whose_workers_are_all_killed_fails_without_a_word_about_the_picture(
    alone: Lone,
) -> None:
    task = await alone.frozen_job()
    others = worker_pids() - {alone.pid}
    while not task.done():
        for pid in worker_pids() - others:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        await asyncio.wait([task], timeout=0.001)
    error = task.exception()
    assert type(error) is LimnerError
    assert await alone.pool.verify(SMALL_PNG) == SMALL


async def test_a_pool_that_is_ready_has_a_worker_before_the_first_job() -> None:
    before = worker_pids()
    async with Imaging(workers=1) as pool:
        await pool.ready()
        (ready,) = worker_pids() - before
        await pool.ready()
        assert await pool.verify(SMALL_PNG) == SMALL
        assert worker_pids() - before == {ready}


async def test_a_worker_that_aborts_has_most_likely_run_out_of_memory(alone: Lone) -> None:
    task = await alone.frozen_job()
    os.kill(alone.pid, signal.SIGABRT)
    os.kill(alone.pid, signal.SIGCONT)
    with pytest.raises(ImageTooLarge) as caught:
        await task
    assert caught.value.message == (
        "the decoder gave up, most likely because the picture needs more than 2048 MiB of memory"
    )
    assert await alone.pool.verify(SMALL_PNG) == SMALL


async def test_a_worker_killed_while_idle_fails_no_job(alone: Lone) -> None:
    watched = os.pidfd_open(alone.pid)
    os.kill(alone.pid, signal.SIGKILL)
    assert select.select([watched], [], [], 60)[0]
    os.close(watched)
    assert await alone.pool.verify(SMALL_PNG) == SMALL


async def test_a_cancelled_call_ends_its_worker_and_frees_its_place(alone: Lone) -> None:
    task = await alone.frozen_job()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await alone.pool.verify(SMALL_PNG) == SMALL
    assert alone.pid not in worker_pids()


async def test_a_call_cancelled_in_the_queue_never_runs(alone: Lone) -> None:
    running = await alone.frozen_job()
    waiting = asyncio.create_task(alone.pool.verify(SMALL_PNG))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    os.kill(alone.pid, signal.SIGCONT)
    assert await running == SMALL


async def test_a_source_is_loaded_only_when_a_worker_is_free(alone: Lone) -> None:
    reads: list[str] = []

    def read() -> bytes:
        reads.append("read")
        return SMALL_PNG

    running = await alone.frozen_job()
    waiting = asyncio.create_task(alone.pool.verify(read))
    await asyncio.sleep(0)
    assert reads == []
    os.kill(alone.pid, signal.SIGCONT)
    assert [await running, await waiting, reads] == [SMALL, SMALL, ["read"]]


async def test_a_source_that_cannot_be_loaded_harms_no_worker(alone: Lone) -> None:
    def read() -> bytes:
        raise FileNotFoundError("gone")

    with pytest.raises(FileNotFoundError, match="gone"):
        await alone.pool.verify(read)
    assert await alone.pool.verify(SMALL_PNG) == SMALL
    assert alone.pid in worker_pids()


class _File:
    """A payload in a file, which can be sent once its failures are over."""

    def __init__(self, *failures: Exception) -> None:
        self.size_bytes = len(SMALL_PNG)
        self._failures = list(failures)

    def send_to(self, pipe: int) -> None:
        os.write(pipe, SMALL_PNG[:10])
        if self._failures:
            raise self._failures.pop(0)
        os.write(pipe, SMALL_PNG[10:])


async def test_a_file_is_sent_from_its_start_to_the_worker_after_one_that_died(
    alone: Lone,
) -> None:
    assert await alone.pool.verify(_File()) == SMALL
    running = await alone.frozen_job(_File())
    os.kill(alone.pid, signal.SIGKILL)
    assert await running == SMALL
    assert alone.pid not in worker_pids()


async def test_a_file_that_cannot_be_read_costs_its_worker_and_is_no_fault_of_the_picture(
    alone: Lone,
) -> None:
    with pytest.raises(StorageError, match="bad sector"):
        await alone.pool.verify(_File(StorageError("bad sector")))
    assert await alone.pool.verify(SMALL_PNG) == SMALL
    assert alone.pid not in worker_pids()


async def test_a_pool_with_an_idle_worker_is_ready_while_its_threads_are_busy(alone: Lone) -> None:
    loaded = threading.Event()

    def load() -> bytes:
        loaded.wait()
        return SMALL_PNG

    loading = asyncio.create_task(alone.pool.verify(load))
    await asyncio.sleep(0)
    await alone.pool.ready()
    loaded.set()
    assert await loading == SMALL


@pytest.mark.slow
async def test_a_job_over_the_time_limit_is_stopped() -> None:
    async with lone(WorkerLimits(timeout_s=1)) as alone:
        task = await alone.frozen_job()
        with pytest.raises(ImageTooLarge, match="the picture took more than 1 s"):
            await task
        assert alone.pid not in worker_pids()
        assert await alone.pool.verify(SMALL_PNG) == SMALL


async def test_a_job_over_the_memory_limit_is_refused_and_the_worker_lives() -> None:
    async with lone(WorkerLimits(memory_bytes=96 << 20)) as alone:
        with pytest.raises(ImageTooLarge, match="needs more than 96 MiB of memory"):
            await alone.pool.verify(png(9_900, 9_900))
        assert await alone.pool.verify(SMALL_PNG) == SMALL
        assert alone.pid in worker_pids()


async def test_a_file_larger_than_the_memory_of_a_worker_is_refused() -> None:
    async with lone(WorkerLimits(memory_bytes=128 << 20)) as alone:
        with pytest.raises(ImageTooLarge, match="needs more than 128 MiB of memory"):
            await alone.pool.verify(SMALL_PNG + bytes(200 << 20))
        assert await alone.pool.verify(SMALL_PNG) == SMALL


async def test_a_reply_over_the_limit_is_not_received() -> None:
    async with lone(WorkerLimits(max_answer_bytes=1 << 20)) as alone:
        with pytest.raises(ImageTooLarge, match="the result has more than 1 MiB"):
            await alone.pool.convert(encoded(Image.effect_noise((1024, 1024), 50), "PNG"))
        assert await alone.pool.verify(SMALL_PNG) == SMALL


async def test_jobs_beside_a_bad_one_are_unharmed() -> None:
    good = encoded(Image.effect_noise((300, 200), 50), "PNG")
    jobs = [good, png(60_000, 60_000), good, good[:5000], good, b"no", good]
    async with Imaging(workers=2) as pool:
        results = await asyncio.gather(*map(pool.verify, jobs), return_exceptions=True)
    facts = Facts(mime="image/png", width=300, height=200, frames=1)
    assert [result for result in results if isinstance(result, Facts)] == [facts] * 4
    assert [type(result).__name__ for result in results if not isinstance(result, Facts)] == [
        "ImageTooLarge",
        "CorruptImage",
        "UnrecognizedImage",
    ]


def test_one_pool_serves_many_event_loops_at_once(imaging: Imaging) -> None:
    def on_a_loop_of_its_own(_: int) -> list[Facts]:
        async def several() -> list[Facts]:
            return await asyncio.gather(*(imaging.verify(SMALL_PNG) for _ in range(5)))

        return asyncio.run(several())

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(on_a_loop_of_its_own, range(4))) == [[SMALL] * 5] * 4


async def test_a_worker_sees_no_secret_of_its_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    async with lone(WorkerLimits()) as alone:
        environment = Path(f"/proc/{alone.pid}/environ").read_bytes()
        variables = {entry.split(b"=")[0] for entry in environment.split(b"\0") if entry}
        allowed = {b"PYTHONPATH", b"LD_LIBRARY_PATH", b"LC_CTYPE", b"GLIBC_TUNABLES"}
        assert b"PYTHONPATH" in variables
        assert variables <= allowed
        assert Path(f"/proc/{alone.pid}/cwd").readlink() == Path("/")


async def test_a_worker_holds_no_more_than_its_own_pipes_and_limits(alone: Lone) -> None:
    lines = Path(f"/proc/{alone.pid}/limits").read_text().splitlines()
    limits = {line[:26].strip(): line[26:].split()[:2] for line in lines}
    assert limits["Max address space"] == [str(2 << 30)] * 2
    assert limits["Max core file size"] == ["0", "0"]
    assert limits["Max file size"] == ["0", "0"]
    assert limits["Max open files"] == ["32", "32"]
    assert limits["Max processes"] == ["0", "0"]
    assert int(limits["Max cpu time"][0]) <= 30
    assert "NoNewPrivs:\t1\n" in Path(f"/proc/{alone.pid}/status").read_text()
    # stdin, stdout and stderr, and the pipe kept for answers.
    assert len(list(Path(f"/proc/{alone.pid}/fd").iterdir())) == 4


async def test_closing_ends_the_workers_and_every_call(alone: Lone) -> None:
    running = await alone.frozen_job()
    waiting = asyncio.create_task(alone.pool.verify(SMALL_PNG))
    await asyncio.sleep(0)
    await alone.pool.aclose()
    for task in (running, waiting):
        with pytest.raises(RuntimeError, match="this Imaging is closed"):
            await task
    with pytest.raises(RuntimeError):
        await alone.pool.verify(SMALL_PNG)
    assert alone.pid not in worker_pids()
    await alone.pool.aclose()


@pytest.mark.slow
async def test_a_garbage_collected_pool_leaves_no_process_behind() -> None:
    before = worker_pids()
    pool = Imaging(workers=1)
    await pool.verify(SMALL_PNG)
    assert len(worker_pids() - before) == 1
    del pool
    gc.collect()
    assert worker_pids() == before


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("/bin/false", "the imaging worker exited with status 1 at its start"),
        ("/bin/nothing-here", "the imaging worker could not be started"),
    ],
)
async def test_a_worker_that_cannot_start_is_not_an_image_error(
    monkeypatch: pytest.MonkeyPatch, program: str, message: str
) -> None:
    monkeypatch.setattr(sys, "executable", program)
    async with Imaging(workers=1) as pool:
        with pytest.raises(LimnerError, match=message) as caught:
            await pool.verify(SMALL_PNG)
    assert type(caught.value) is LimnerError


async def test_a_worker_needs_a_thread_for_its_time_limits_and_no_other_for_its_jobs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(thread: threading.Thread) -> None:
        if thread.name == "limner-watchdog":
            raise RuntimeError("can't start new thread")
        start(thread)

    before, start = worker_pids(), threading.Thread.start
    async with Imaging(workers=1) as pool:
        with monkeypatch.context() as system:
            system.setattr(threading.Thread, "start", refuse)
            with pytest.raises(LimnerError, match="could not be started: can't start new thread"):
                await pool.verify(SMALL_PNG)
        assert worker_pids() == before
        await pool.verify(SMALL_PNG)
        threads = threading.active_count()
        with monkeypatch.context() as system:
            system.setattr(threading.Thread, "start", refuse)
            assert (await pool.verify(SMALL_PNG)).width == 3
        assert threading.active_count() == threads


HOST = """
import asyncio, os, sys
from limner.imaging.pool import Imaging

pool = Imaging(workers=1)
picture, then = bytes.fromhex(sys.argv[1]), sys.argv[2]
asyncio.run(pool.verify(picture))
print("ready", flush=True)
if then == "wait":
    sys.stdin.readline()
if then == "fork":
    if os.fork() == 0:
        os.close(2)
        sys.exit()
    os.wait()
    os.kill(int(sys.stdin.readline()), 0)
    asyncio.run(pool.verify(picture))
"""


def start_host(then: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", HOST, SMALL_PNG.hex(), then]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def test_workers_die_with_a_host_that_is_killed() -> None:
    with start_host("wait") as host:
        assert host.stdout is not None
        assert host.stdout.readline() == "ready\n"
        (pid,) = worker_pids(host.pid)
        watched = os.pidfd_open(pid)
        host.kill()
        assert select.select([watched], [], [], 60)[0], "the worker outlived its host"
        os.close(watched)


def test_a_host_that_does_not_close_its_pool_exits_without_output() -> None:
    with start_host("leave") as host:
        output, errors = host.communicate(timeout=60)
    assert (output, errors, host.returncode) == ("ready\n", "", 0)


def test_a_fork_of_the_host_leaves_its_workers_alone() -> None:
    with start_host("fork") as host:
        assert host.stdout is not None
        assert host.stdout.readline() == "ready\n"
        (pid,) = worker_pids(host.pid)
        output, errors = host.communicate(f"{pid}\n", timeout=60)
    assert (output, errors, host.returncode) == ("", "", 0)


def test_a_stray_print_in_a_worker_does_not_disturb_its_replies() -> None:
    script = (
        "import sys; from limner.imaging import worker, pixels\n"
        "verify = pixels.verify\n"
        "def noisy(*a, **k): print('noise', flush=True); return verify(*a, **k)\n"
        "pixels.verify = noisy\n"
        "worker.main()\n"
    )
    header = json.dumps({"op": "verify"}).encode()
    job = len(header).to_bytes(4, "big") + len(SMALL_PNG).to_bytes(8, "big") + header + SMALL_PNG
    done = subprocess.run(
        [sys.executable, "-c", script, "{}"], input=job, capture_output=True, timeout=60, check=True
    )
    assert done.stderr == b"noise\n"
    assert done.stdout.endswith(
        b'{"value": {"mime": "image/png", "width": 3, "height": 2, "frames": 1, "pages": 1}}'
    )


def test_a_worker_starts_without_what_only_some_jobs_need() -> None:
    script = "import sys; from limner.imaging import worker; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=True, text=True, timeout=60
    )
    late = {"_hashlib", "resvg_py", "limner.imaging.evidence.measure", "limner.imaging.transform"}
    assert late & {*done.stdout.split()} == set()
