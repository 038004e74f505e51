"""Thread pools: like Python's own while the main thread lives, and usable after its end."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from concurrent.futures import CancelledError

import pytest
from tests.servers.components import starts_late_threads

from limner.thread_pool import ThreadPool


def after_the_main_thread(code: str) -> str:
    """What a program prints whose ``late`` is called by a thread when Python has no pools left."""
    program = """
        import contextlib, threading
        from concurrent.futures import CancelledError, ThreadPoolExecutor
        from limner.thread_pool import ThreadPool

        def wait_and_go_on():
            with contextlib.suppress(RuntimeError):
                while True:
                    pythons.submit(int).result()
            late()

        pythons = ThreadPoolExecutor(1)
        threading.Thread(target=wait_and_go_on).start()
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code) + textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_functions_are_called_on_threads_of_that_name() -> None:
    pool = ThreadPool(1, name="some")
    assert pool.submit(lambda: threading.current_thread().name).result() == "some_0"
    assert pool.submit(divmod, 7, 2).result() == (3, 1)
    with pytest.raises(ZeroDivisionError):
        pool.submit(divmod, 7, 0).result()
    pool.shutdown()


def test_a_pool_that_is_shut_down_takes_nothing() -> None:
    pool = ThreadPool(1, name="some")
    pool.shutdown()
    with pytest.raises(RuntimeError, match="shutdown"):
        pool.submit(int)


def test_waiting_functions_can_be_cancelled_with_the_pool() -> None:
    pool, gate = ThreadPool(1, name="some"), threading.Event()
    pool.submit(gate.wait)
    waiting = pool.submit(int)
    pool.shutdown(wait=False, cancel_futures=True)
    gate.set()
    with pytest.raises(CancelledError):
        waiting.result()


@starts_late_threads
def test_a_pool_takes_functions_after_the_end_of_the_main_thread() -> None:
    code = """
        def late():
            used.submit(print, "used").result()
            fresh.submit(print, "fresh").result()
            try:
                fresh.submit(divmod, 1, 0).result()
            except ZeroDivisionError as error:
                print(error)

        from limner.thread_pool import ThreadPool
        used, fresh = ThreadPool(2, name="used"), ThreadPool(2, name="fresh")
        used.submit(int).result()
    """
    assert after_the_main_thread(code) == ("used\nfresh\ninteger division or modulo by zero\n")


@starts_late_threads
def test_one_worker_is_one_at_a_time_after_the_end_of_the_main_thread_too() -> None:
    code = """
        def late():
            pool, busy = ThreadPool(1, name="one"), threading.Lock()

            def alone():
                with contextlib.ExitStack() as stack:
                    assert busy.acquire(blocking=False)
                    stack.callback(busy.release)
                    return sum(range(20_000))

            futures = [pool.submit(alone) for _ in range(20)]
            print({future.result() for future in futures})
    """
    assert after_the_main_thread(code) == f"{{{sum(range(20_000))}}}\n"


@starts_late_threads
def test_shutting_down_waits_and_cancelling_counts_after_the_end_of_the_main_thread() -> None:
    code = """
        def late():
            pool, started, gate = ThreadPool(1, name="one"), threading.Event(), threading.Event()
            pool.submit(lambda: (started.set(), gate.wait(), print("first")))
            started.wait()
            waiting = pool.submit(print, "never")
            assert waiting.cancel()
            gate.set()
            pool.shutdown()
            print("shut down")
            try:
                pool.submit(print, "never")
            except RuntimeError:
                print("refused")
    """
    assert after_the_main_thread(code) == "first\nshut down\nrefused\n"


def test_a_function_without_a_thread_is_refused_and_never_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    pool, called = ThreadPool(1, name="some"), list[str]()
    with monkeypatch.context() as system:
        system.setattr(threading.Thread, "start", start)
        with pytest.raises(RuntimeError, match="can't start"):
            pool.submit(called.append, "refused")
    pool.submit(called.append, "accepted").result()
    pool.shutdown()
    assert called == ["accepted"]
