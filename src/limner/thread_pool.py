"""Functions -> a pool of threads that accepts them until the last thread of the program ends.

Python closes every pool when the main thread ends, and only then waits for the other threads. One
of those may still be drawing, or may start to draw.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class ThreadPool(ThreadPoolExecutor):
    """Runs at most ``workers`` functions at once, so one after the other if that is 1.

    After the end of the main thread, each function runs on a new thread.
    """

    def __init__(self, workers: int, *, name: str) -> None:
        super().__init__(workers, thread_name_prefix=name)
        self._name = name
        self._turns = threading.Semaphore(workers)
        self._late: list[threading.Thread] = []
        self._closed = False

    def wake(self, fn: Callable[[], object], /) -> None:
        """Run a function that finds its work by itself; it may also run when there is none.

        Raises:
            RuntimeError: as `submit`.
        """
        try:
            super().submit(fn)
        except RuntimeError:
            if self._closed:
                raise
            self._run_late(fn)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a function on a thread of the pool.

        Raises:
            RuntimeError: this pool is shut down, or the system has no thread for it.
        """
        future: Future[T] = Future()
        # The pool keeps a function for which it could start no thread, and runs it later. So a
        # function runs only if its turn is not taken.
        turn = threading.Lock()

        def work() -> None:
            if turn.acquire(blocking=False):
                _call(future, lambda: fn(*args, **kwargs))

        try:
            queued = super().submit(work)
            queued.add_done_callback(lambda done: done.cancelled() and future.cancel())
        except RuntimeError:
            if self._closed:
                raise
            try:
                self._run_late(work)
            except RuntimeError:
                if turn.acquire(blocking=False):
                    raise
                # A thread of the pool has taken it in the meantime.
        return future

    def _run_late(self, work: Callable[[], object]) -> None:
        """Python closed the pool, not its owner: each function gets a new thread."""

        def wait_and_work() -> None:
            with self._turns:
                work()

        # A daemon: the thread that waits for the result keeps the program alive.
        thread = threading.Thread(target=wait_and_work, name=self._name, daemon=True)
        thread.start()
        self._late.append(thread)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more functions, and by default wait for those that run."""
        self._closed = True
        super().shutdown(wait, cancel_futures=cancel_futures)
        if wait:
            for thread in self._late:
                thread.join()


def _call(future: Future[T], function: Callable[[], T]) -> None:
    """Call a function and set its future, as a thread of the executor does."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = function()
    except BaseException as error:
        # `Future.result` raises it in the caller.
        future.set_exception(error)
    else:
        future.set_result(result)
