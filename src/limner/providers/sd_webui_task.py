"""One task of a Stable Diffusion WebUI: how far it is, what it looks like so far, and its end.

The program has two ways to say how far it is. One is asked by the task's name, and is there
wherever the program's page is; the other speaks of whatever is being drawn, and is all there is
where only the API was started.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from limner.errors import LimnerError, ProviderBadRequest
from limner.json_shapes import as_object
from limner.net.clock import Clock
from limner.net.service import Service
from limner.pictures.request import Progress, ProviderCallbacks
from limner.providers.local_server import fraction

LOOK_TIMEOUT_S = 10.0
PAUSE_S = 0.5
MAX_PREVIEW_BYTES = 16 * 1024 * 1024


class TaskStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A task at one moment; ``picture`` is what it looks like so far, where that was asked for."""

    is_active: bool
    is_completed: bool
    fraction: float
    picture: bytes | None


class Task:
    """A task by the name we gave it."""

    def __init__(self, service: Service, name: str) -> None:
        self._service = service
        self.name = name
        self._asks_by_name = True

    async def look(self, *, picture: bool) -> TaskStatus:
        """How far the task is.

        Raises:
            ProviderError: the program does not say.
            BadProviderImage: what it says makes no sense.
        """
        if self._asks_by_name:
            try:
                return await self._look_by_name(picture=picture)
            except ProviderBadRequest:
                self._asks_by_name = False
        return await self._look_at_current(picture=picture)

    async def interrupt(self, clock: Clock) -> None:
        """Stop the task as soon as it is the one being drawn; never another one."""
        while not (look := await self.look(picture=False)).is_active:
            if look.is_completed:
                return
            await clock.sleep(PAUSE_S)
        await self._call("POST", "sdapi/v1/interrupt")

    async def _look_by_name(self, *, picture: bool) -> TaskStatus:
        body = {"id_task": self.name, "id_live_preview": -1, "live_preview": picture}
        preview = _Preview()
        told = await self._call("POST", "internal/progress", body, "live_preview", preview)
        return TaskStatus(
            is_active=told.get("active") is True,
            is_completed=told.get("completed") is True,
            fraction=fraction(told.get("progress")) or 0.0,
            picture=preview.whole,
        )

    async def _look_at_current(self, *, picture: bool) -> TaskStatus:
        preview = _Preview()
        skip = "false" if picture else "true"
        path = f"sdapi/v1/progress?skip_current_image={skip}"
        told = await self._call("GET", path, None, "current_image", preview)
        jobs = as_object(told.get("state")).get("job_count")
        return TaskStatus(
            is_active=isinstance(jobs, int) and jobs != 0,
            is_completed=False,
            fraction=fraction(told.get("progress")) or 0.0,
            picture=preview.whole,
        )

    async def _call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        wanted: str = "",
        sink: _Preview | None = None,
    ) -> Mapping[str, Any]:
        answer = await self._service.call(
            method,
            f"{self._service.base_url}/{path}",
            body=body,
            read_timeout_s=LOOK_TIMEOUT_S,
            wanted={wanted},
            sink=sink,
        )
        return as_object(answer)


class Watch:
    """Tells the person waiting how a task is getting on, until it is cancelled."""

    def __init__(self, task: Task, desk: ProviderCallbacks, clock: Clock, *, pictures: int) -> None:
        self._task, self._desk, self._clock = task, desk, clock
        self._began = self._drawing_since = clock.now()
        self._pictures = pictures
        self._shown = 0
        self._fraction = 0.0

    @property
    def drawing_s(self) -> float:
        """How long the task has been the one being drawn, as far as that was seen."""
        return round(self._clock.now() - self._drawing_since, 3)

    async def run(self) -> None:
        """Look at the task again and again."""
        self._tell("Stable Diffusion WebUI is drawing", None)
        while True:
            await self._clock.sleep(PAUSE_S)
            try:
                look = await self._task.look(picture=self._picture_is_due())
            except LimnerError:
                # The picture is worth more than the news about it.
                continue
            self._note(look)

    def _picture_is_due(self) -> bool:
        """Whether to show one more: they are spread over the time it takes."""
        if self._shown >= self._pictures:
            return False
        return self._fraction >= (self._shown + 1) / (self._pictures + 1)

    def _note(self, look: TaskStatus) -> None:
        if not look.is_active:
            self._drawing_since = self._clock.now()
            self._tell("Stable Diffusion WebUI is busy with other pictures", None)
            return
        self._fraction = look.fraction
        self._shown += look.picture is not None
        self._tell("Stable Diffusion WebUI is drawing", look.fraction, look.picture)

    def _tell(self, message: str, fraction: float | None, picture: bytes | None = None) -> None:
        self._desk.progress(
            Progress(
                message=message,
                elapsed_s=self._clock.now() - self._began,
                fraction=fraction,
                picture=picture,
            )
        )


class _Preview:
    """A sink for a picture that is worth showing only if it is whole and not too large."""

    def __init__(self) -> None:
        self._data = bytearray()

    def write(self, data: bytes | memoryview) -> None:
        if len(self._data) <= MAX_PREVIEW_BYTES:
            self._data += data

    @property
    def whole(self) -> bytes | None:
        return bytes(self._data) if 0 < len(self._data) <= MAX_PREVIEW_BYTES else None
