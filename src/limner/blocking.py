"""The same calls without async: one background event loop, so that they also work in notebooks."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from limner.client import Limner
from limner.settings import load
from limner.tools.drawing import GeneratedImage

T = TypeVar("T")


class _Background:
    """An event loop on a thread of its own, and the `Limner` that lives there."""

    def __init__(self) -> None:
        self._changing, self._starting = threading.Lock(), threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._limner: Limner | None = None

    def limner(self) -> Limner:
        """The shared object; a new one when the settings or the folder have changed."""
        cwd = Path.cwd()
        settings = load(env=os.environ, cwd=cwd)
        with self._changing:
            current = self._limner
            if current is None or (current.settings, current.cwd) != (settings, cwd):
                if current is not None:
                    self._submit(current.aclose()).result()
                self._limner = current = Limner(settings, cwd=cwd)
            return current

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run to the end; an interrupt (Ctrl-C) cancels the work and waits for its clean-up."""
        future = self._submit(work)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def _submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        with self._starting:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                # A daemon: at the end of the program the imaging workers and the database see to
                # themselves, and there is nothing else to wait for.
                threading.Thread(target=self._loop.run_forever, name="limner", daemon=True).start()
        return asyncio.run_coroutine_threadsafe(work, self._loop)


_background = _Background()


def generate(prompt: str, **arguments: Any) -> GeneratedImage:
    """Draw one picture; takes the arguments of the tool `image_generate`.

    Settings are read from files and environment as for the command line.

    Raises:
        LimnerError: with code, retryable, billed and cost.
    """
    return _background.run(_background.limner().generate(prompt, **arguments))
