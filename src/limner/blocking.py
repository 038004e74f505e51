"""The same calls without async: one background event loop, so that they also work in notebooks."""

from __future__ import annotations

import asyncio
import inspect as inspect_module
import os
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from functools import wraps
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    ParamSpec,
    TypeVar,
    Unpack,
    cast,
    overload,
)

from limner.client import Limner, handle_of
from limner.errors import Cancelled, attach_cost, cancellation_cost
from limner.settings import load
from limner.thread_pool import ThreadPool

if TYPE_CHECKING:
    from limner.content import Picture
    from limner.imaging.fit import Region
    from limner.pictures.fitting import FittedImage
    from limner.tools.image_input import ImageInput
    from limner.tools.options import EditOptions, GenerateOptions, RenderOptions
    from limner.tools.output_file import GeneratedImage
    from limner.tools.picture_info import PictureInfo

P = ParamSpec("P")
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
        costs: list[Cancelled] = []
        with self._lock:
            # Started under the lock: a Limner that the next call replaces waits for this one.
            task = self._submit(_start(_watch(call(self._current()), costs))).result()
        try:
            return self._submit(_outcome(task)).result()
        except KeyboardInterrupt as interrupt:
            self._submit(_stop(task)).result()
            for cost in costs:
                attach_cost(interrupt, cost)
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


async def _watch(work: Coroutine[Any, Any, T], costs: list[Cancelled]) -> T:
    """Run work; if it is cancelled, ``costs`` gets what it cost."""
    try:
        return await work
    except asyncio.CancelledError as stop:
        # The first to await a cancelled task gets its exception, and others get a bare one.
        if (cost := cancellation_cost(stop)) is not None:
            costs.append(cost)
        raise


# One for each process: a fork has neither the thread nor the event loop.
_backgrounds: dict[int, _Background] = {}


def _run(call: Callable[[Limner], Coroutine[Any, Any, T]]) -> T:
    return _backgrounds.setdefault(os.getpid(), _Background()).run(call)


def wait_for(work: Coroutine[Any, Any, T]) -> T:
    """Run work of the caller's own `Limner` to its end, also inside of a running event loop."""
    return _run(lambda _: work)


def _blocking(method: Callable[Concatenate[Limner, P], Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """A call of `Limner` that waits for its end, with the same signature and docstring."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return _run(lambda lim: method(lim, *args, **kwargs))

    whole = inspect_module.signature(method)
    parameters = [one for name, one in whole.parameters.items() if name != "self"]
    call.__signature__ = whole.replace(parameters=parameters)  # pyright: ignore[reportAttributeAccessIssue]
    call.__module__, call.__qualname__ = __name__, method.__name__
    return cast("Callable[P, T]", call)


@overload
def generate(
    prompt: str, *, n: None = None, **options: Unpack[GenerateOptions]
) -> GeneratedImage: ...


@overload
def generate(
    prompt: str, *, n: int, **options: Unpack[GenerateOptions]
) -> list[GeneratedImage]: ...


# The two with overloads are written out: type checkers lose derived ones in `submit(generate, …)`.
def generate(
    prompt: str, *, n: int | None = None, **options: Unpack[GenerateOptions]
) -> GeneratedImage | list[GeneratedImage]:
    """Draw a picture, or with ``n`` (1 to 10) a list of pictures; as `Limner.generate`.

    Settings are read from files and environment as for the command line.

    Raises:
        LimnerError: nothing was drawn; it has code, retryable, billed and cost.
        TypeError: there is no such option.
    """
    return _run(lambda lim: lim.generate(prompt, n=n, **options))


@overload
def edit(
    image: ImageInput, prompt: str, *, n: None = None, **options: Unpack[EditOptions]
) -> GeneratedImage: ...


@overload
def edit(
    image: ImageInput, prompt: str, *, n: int, **options: Unpack[EditOptions]
) -> list[GeneratedImage]: ...


def edit(
    image: ImageInput, prompt: str, *, n: int | None = None, **options: Unpack[EditOptions]
) -> GeneratedImage | list[GeneratedImage]:
    """Change a picture, or draw from pictures; as `Limner.edit`.

    Raises:
        LimnerError: nothing was drawn; it has code, retryable, billed and cost.
        TypeError: there is no such option.
    """
    return _run(lambda lim: lim.edit(image, prompt, n=n, **options))


batch = _blocking(Limner.batch)
run_rows = _blocking(Limner.run_rows)
quote = _blocking(Limner.quote)
inspect = _blocking(Limner.inspect)
evidence = _blocking(Limner.evidence)
fit = _blocking(Limner.fit)
transform = _blocking(Limner.transform)
check = _blocking(Limner.check)
sheet = _blocking(Limner.sheet)
take = _blocking(Limner.take)
spend = _blocking(Limner.spend)


def render(source: str | Mapping[str, object], **options: Unpack[RenderOptions]) -> GeneratedImage:
    """Draw a chart, a diagram, a page or an SVG document; as `Limner.render`.

    Raises:
        LimnerError: the source is wrong, or it cannot be saved.
        TypeError: there is no such option.
    """
    return _run(lambda lim: lim.render(source, **options))


def picture(handle: str | Picture | GeneratedImage) -> BlockingPicture:
    """A stored picture: its bytes, its file, its fit for a model, its facts.

    Raises:
        InputInvalid: it is not a handle.
    """
    return BlockingPicture(handle_of(handle))


class BlockingPicture:
    """A picture that limner stores: as `StoredPicture`, without async."""

    def __init__(self, handle: str) -> None:
        self.handle = handle

    def __repr__(self) -> str:
        return f"BlockingPicture({self.handle!r})"

    @property
    def path(self) -> Path:
        """The file with its bytes, to copy from; it must not be changed."""

        async def find(lim: Limner) -> Path:
            return lim.picture(self.handle).path

        return _run(find)

    def bytes(self) -> bytes:
        """Its bytes, as they were received.

        Raises:
            NotFound: no picture with this handle is stored here.
            StorageError: they cannot be read.
        """
        return _run(lambda lim: lim.picture(self.handle).bytes())

    def fit(
        self, *, model: str | None = None, region: Region | None = None, page: int = 1
    ) -> FittedImage:
        """It as a model should get it; as `Limner.fit`.

        Raises:
            LimnerError: as `Limner.fit`.
        """
        return fit(self.handle, model=model, region=region, page=page)

    def info(self) -> PictureInfo:
        """What is known about it: its type and size, where it comes from, what was paid for it.

        Raises:
            NotFound: no picture with this handle is stored here.
            StorageError: its bytes cannot be read.
        """
        return _run(lambda lim: lim.picture(self.handle).info())
