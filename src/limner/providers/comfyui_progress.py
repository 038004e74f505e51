"""What ComfyUI says on its web socket while it draws -> progress for the person waiting."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import Mapping
from typing import Any

import msgspec

from limner.json_shapes import as_object
from limner.net.clock import Clock
from limner.pictures.request import Progress, ProviderCallbacks, RemoteJob
from limner.providers.local_server import fraction

MESSAGE = "ComfyUI is drawing"
# A message that is not text says what it is in four bytes; a preview has its format in four more.
PREVIEW = 1
_PREVIEW_HEAD = struct.Struct(">II")
_ENDS = frozenset({"execution_success", "execution_error", "execution_interrupted"})


class ComfyProgress:
    """The desk and the clock of one drawing, for those who look at it from time to time.

    Where ComfyUI itself tells how far it is, that is passed on instead of what the looks give;
    and a pause between two looks ends as soon as ComfyUI says that it is done.

    Args:
        pictures: how many unfinished pictures to show.
    """

    def __init__(self, desk: ProviderCallbacks, clock: Clock, *, pictures: int) -> None:
        self._desk, self._clock = desk, clock
        self._pictures = pictures
        self._began = clock.now()
        self._job_id: str | None = None
        self._fraction: float | None = None
        self._shown = 0
        self._ended = asyncio.Event()

    @property
    def job_id(self) -> str | None:
        """The job that is being drawn, once it has an id."""
        return self._job_id

    @property
    def desk(self) -> ProviderCallbacks:
        """The desk to give to the one who looks."""
        return ProviderCallbacks(
            journal=self._journal, progress=self._looked, withdraw=self._desk.withdraw
        )

    @property
    def clock(self) -> Clock:
        """The clock to give to the one who looks."""
        return Clock(now=self._clock.now, sleep=self._sleep)

    def hear(self, message: str | bytes) -> None:
        """Take one message."""
        if isinstance(message, bytes):
            self._hear_picture(message)
            return
        with contextlib.suppress(msgspec.DecodeError, RecursionError):
            told = as_object(msgspec.json.decode(message))
            data = as_object(told.get("data"))
            if self._job_id is not None and data.get("prompt_id") == self._job_id:
                self._hear_of_ours(told.get("type"), data)

    def _hear_of_ours(self, kind: object, data: Mapping[str, Any]) -> None:
        done = fraction(data.get("value"), data.get("max"))
        if kind == "progress" and done is not None:
            self._fraction = done
            self._tell(None)
        elif kind in _ENDS or (kind == "executing" and data.get("node") is None):
            self._ended.set()

    def _hear_picture(self, message: bytes) -> None:
        is_whole = len(message) > _PREVIEW_HEAD.size
        if not is_whole or _PREVIEW_HEAD.unpack_from(message)[0] != PREVIEW:
            return
        # They are spread over the time it takes.
        due = (self._shown + 1) / (self._pictures + 1)
        if self._shown < self._pictures and (self._fraction or 0.0) >= due:
            self._shown += 1
            self._tell(message[_PREVIEW_HEAD.size :])

    def _tell(self, picture: bytes | None) -> None:
        self._desk.progress(
            Progress(
                message=MESSAGE,
                elapsed_s=self._clock.now() - self._began,
                fraction=self._fraction,
                picture=picture,
            )
        )

    async def _journal(self, job: RemoteJob) -> None:
        self._job_id = job.remote_id
        await self._desk.journal(job)

    def _looked(self, progress: Progress) -> None:
        if self._fraction is None:
            self._desk.progress(progress)

    async def _sleep(self, seconds: float) -> None:
        if self._ended.is_set():
            # What is done but not yet written up is asked for at an ordinary pace.
            await self._clock.sleep(seconds)
            return
        pause = asyncio.ensure_future(self._clock.sleep(seconds))
        ended = asyncio.ensure_future(self._ended.wait())
        try:
            await asyncio.wait({pause, ended}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            pause.cancel()
            ended.cancel()
            await asyncio.gather(pause, ended, return_exceptions=True)
