"""Plain functions -> a pool of threads that takes them until the last thread of the program ends.

Python closes every pool as soon as the main thread is done, and only then waits for the other
threads. One of those may still be drawing, or may be about to begin.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class ThreadPool(ThreadPoolExecutor):
    """At most ``workers`` functions at once, and one after the other where that is one.

    After the end of the main thread every function is called on another thread.
    """

    def __init__(self, workers: int, *, name: str) -> None:
        super().__init__(workers, thread_name_prefix=name)
        self._name = name
        self._turns = threading.Semaphore(workers)
        self._late: list[threading.Thread] = []
        self._closed = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Have a function called.

        Raises:
            RuntimeError: this pool is shut down.
        """
        try:
            return super().submit(fn, *args, **kwargs)
        except RuntimeError:
            if self._closed:
                raise
        # Closed by Python, not by its owner: each function gets a thread of its own.
        future: Future[T] = Future()

        def work() -> None:
            with self._turns:
                _call(future, lambda: fn(*args, **kwargs))

        # A daemon: whoever waits for the outcome keeps the program from ending.
        thread = threading.Thread(target=work, name=self._name, daemon=True)
        self._late.append(thread)
        thread.start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more, and by default wait for what is under way."""
        self._closed = True
        super().shutdown(wait, cancel_futures=cancel_futures)
        if wait:
            for thread in self._late:
                thread.join()


def _call(future: Future[T], function: Callable[[], T]) -> None:
    """What a pool's own thread does with a function."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        outcome = function()
    except BaseException as error:
        # Raised again by whoever asks for the outcome.
        future.set_exception(error)
    else:
        future.set_result(outcome)
