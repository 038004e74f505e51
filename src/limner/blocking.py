"""The same calls without async: one background event loop, so that they also work in notebooks."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Literal, TypeVar, Unpack, overload

from limner.client import Limner
from limner.imaging.fit import Region
from limner.pictures.fitting import FittedImage
from limner.settings import load
from limner.thread_pool import ThreadPool
from limner.tools.inspection import Inspection
from limner.tools.options import EditOptions, GenerateOptions, InspectOptions
from limner.tools.output_file import GeneratedImage

T = TypeVar("T")

# For files and host names, which mostly wait: as many threads as asyncio's own executor.
FILE_THREADS = min(32, (os.cpu_count() or 1) + 4)


class _Background:
    """An event loop on a thread of its own, and the `Limner` that lives there."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._limner: Limner | None = None

    def run(self, call: Callable[[Limner], Coroutine[Any, Any, T]]) -> T:
        """Run a call to its end; an interrupt (Ctrl-C) cancels it and waits for its clean-up."""
        with self._lock:
            # Started under the lock: a Limner that the next call replaces waits for this one.
            task = self._submit(_start(call(self._current()))).result()
        try:
            return self._submit(_outcome(task)).result()
        except KeyboardInterrupt:
            self._submit(_stop(task)).result()
            raise

    def _current(self) -> Limner:
        """The shared object; a new one when the settings or the folder have changed."""
        cwd = Path.cwd()
        settings = load(env=os.environ, cwd=cwd)
        current = self._limner
        if current is None or (current.settings, current.cwd) != (settings, cwd):
            if current is not None:
                # It closes when its last call has ended; this call does not wait for that.
                self._submit(current.aclose())
            self._limner = current = Limner(settings, cwd=cwd)
        return current

    def _submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._loop.set_default_executor(ThreadPool(FILE_THREADS, name="limner-files"))
            # A daemon: the imaging workers and the database end with the program by themselves,
            # and there is nothing else to wait for.
            threading.Thread(target=self._loop.run_forever, name="limner", daemon=True).start()
        return asyncio.run_coroutine_threadsafe(work, self._loop)


async def _start(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    return asyncio.ensure_future(work)


async def _outcome(task: asyncio.Task[T]) -> T:
    return await task


async def _stop(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.wait([task])


# One for each process: a fork has neither the thread nor the event loop.
_backgrounds: dict[int, _Background] = {}


@overload
def generate(
    prompt: str, *, n: Literal[1] = 1, **options: Unpack[GenerateOptions]
) -> GeneratedImage: ...


@overload
def generate(
    prompt: str, *, n: int, **options: Unpack[GenerateOptions]
) -> list[GeneratedImage]: ...


def generate(
    prompt: str, *, n: int = 1, **options: Unpack[GenerateOptions]
) -> GeneratedImage | list[GeneratedImage]:
    """Draw a picture, or with ``n`` a list of so many; as `Limner.generate`.

    Settings are read from files and environment as for the command line.

    Raises:
        LimnerError: nothing was drawn; it has code, retryable, billed and cost.
        TypeError: there is no such option.
    """
    return _run(lambda lim: lim.generate(prompt, n=n, **options))


@overload
def edit(
    image: str | Path, prompt: str, *, n: Literal[1] = 1, **options: Unpack[EditOptions]
) -> GeneratedImage: ...


@overload
def edit(
    image: str | Path, prompt: str, *, n: int, **options: Unpack[EditOptions]
) -> list[GeneratedImage]: ...


def edit(
    image: str | Path, prompt: str, *, n: int = 1, **options: Unpack[EditOptions]
) -> GeneratedImage | list[GeneratedImage]:
    """Change a picture, or draw from pictures; as `Limner.edit`.

    Raises:
        LimnerError: nothing was drawn; it has code, retryable, billed and cost.
        TypeError: there is no such option.
    """
    return _run(lambda lim: lim.edit(image, prompt, n=n, **options))


def fit(
    path: str | Path, *, model: str | None = None, region: Region | None = None, page: int = 1
) -> FittedImage:
    """A picture file as a model should get it, and what sending it costs.

    Raises:
        LimnerError: there is no such model, or the file is not a picture that can be read.
    """
    return _run(lambda lim: lim.fit(path, model=model, region=region, page=page))


def inspect(path: str | Path, question: str, **options: Unpack[InspectOptions]) -> Inspection:
    """Ask a vision model about picture files; as `Limner.inspect`.

    Raises:
        LimnerError: with code, retryable, billed and cost.
        TypeError: there is no such option.
    """
    return _run(lambda lim: lim.inspect(path, question, **options))


def _run(call: Callable[[Limner], Coroutine[Any, Any, T]]) -> T:
    return _backgrounds.setdefault(os.getpid(), _Background()).run(call)
