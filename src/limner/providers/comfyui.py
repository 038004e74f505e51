"""ComfyUI: a request -> a workflow filled with the request, run on the user's GPU -> a picture.

The workflow is limner's own, which works with any checkpoint, or one that the user exported from
ComfyUI. A job has an id, so that a later process can fetch its picture.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import msgspec
from msgspec.structs import replace

from limner.json_shapes import as_object
from limner.net import websocket
from limner.net.clock import Clock
from limner.net.service import Service
from limner.net.sink import Sink
from limner.pictures.request import (
    ImageRequest,
    Progress,
    ProviderCallbacks,
    Receipt,
    RemoteJob,
)
from limner.providers.base import Connection
from limner.providers.comfyui_api import ComfyJob
from limner.providers.comfyui_workflow import Workflow, built_in, load_workflow
from limner.providers.jobs import CANCEL_TIMEOUT_S
from limner.providers.local_server import parse_fraction
from limner.providers.specs import BUILT_IN

SPEC = BUILT_IN["comfyui"]
WORKFLOW_ENV, EDIT_WORKFLOW_ENV = SPEC.variables
# A binary message starts with four bytes for its kind; a preview has four more for its format.
PREVIEW = 1
_PREVIEW_HEAD = struct.Struct(">II")
_ENDS = frozenset({"execution_success", "execution_error", "execution_interrupted"})


class ComfyUI:
    """Draws with a ComfyUI.

    Args:
        listens: whether to open a web socket for progress; without one, limner polls.

    Attributes:
        cancel_timeout_s: how long a caller that cancels waits for the job to be cancelled.
    """

    cancel_timeout_s = CANCEL_TIMEOUT_S

    def __init__(self, connection: Connection, *, listens: bool | None = None) -> None:
        self._connection = connection
        self._listens = websocket.is_installed() if listens is None else listens

    async def generate(
        self, request: ImageRequest, sink: Sink, callbacks: ProviderCallbacks
    ) -> Receipt:
        """Draw one picture and write its bytes to the sink; raises as `Provider.generate`."""
        client_id = uuid4().hex
        progress = ComfyProgress(
            callbacks, self._connection.clock, pictures=request.partial_pictures
        )
        job = self._job(progress.clock, self._workflow(request), client_id=client_id)
        listener = asyncio.ensure_future(self._listen(client_id, progress))
        try:
            return _as_free(await job.generate(request, sink, progress.callbacks), job)
        finally:
            listener.cancel()
            await asyncio.gather(listener, return_exceptions=True)

    async def find(self, request: ImageRequest, *, since_ms: int) -> list[RemoteJob]:
        """The jobs that may be that of a request whose id did not arrive."""
        return await self._job(self._connection.clock).find(request, since_ms=since_ms)

    async def resume(
        self, job: RemoteJob, request: ImageRequest, sink: Sink, callbacks: ProviderCallbacks
    ) -> Receipt:
        """Wait for a job that was started earlier. If the caller cancels, the job continues."""
        resumed = self._job(self._connection.clock)
        return _as_free(await resumed.resume(job, request, sink, callbacks), resumed)

    def _job(
        self, clock: Clock, workflow: Workflow | None = None, *, client_id: str = ""
    ) -> ComfyJob:
        connection = replace(self._connection, clock=clock)
        service = Service(connection, SPEC.vendor(connection), headers={})
        # A job that is only polled needs no workflow of its own.
        graph = workflow or built_in(edits=False, masked=False)
        job = ComfyJob(service, graph, SPEC.models[0], client_id=client_id)
        job.cancel_timeout_s = self.cancel_timeout_s
        return job

    def _workflow(self, request: ImageRequest) -> Workflow:
        variable = EDIT_WORKFLOW_ENV if request.sources else WORKFLOW_ENV
        path = self._connection.variables.get(variable, "").strip()
        if path:
            return load_workflow(path, variable=variable)
        return built_in(edits=bool(request.sources), masked=request.mask is not None)

    async def _listen(self, client_id: str, progress: ComfyProgress) -> None:
        if self._listens:
            url = f"ws{self._connection.base_url.removeprefix('http')}/ws?clientId={client_id}"
            await websocket.listen(url, progress.receive, {})


def _as_free(receipt: Receipt, job: ComfyJob) -> Receipt:
    return replace(receipt, cost_nano=0, extras={**receipt.extras, **job.facts})


class ComfyProgress:
    """The callbacks and the clock of one drawing, for the code that polls it.

    If ComfyUI sends its progress on the web socket, that is passed on instead of the progress from
    polling. A pause between two polls ends as soon as ComfyUI says that the job is done.

    Args:
        pictures: how many previews to show.
    """

    def __init__(self, callbacks: ProviderCallbacks, clock: Clock, *, pictures: int) -> None:
        self._desk, self._clock = callbacks, clock
        self._pictures = pictures
        self._started = clock.now()
        self._job_id: str | None = None
        self._fraction: float | None = None
        self._shown = 0
        self._ended = asyncio.Event()

    @property
    def job_id(self) -> str | None:
        """The id of the job, once it is known."""
        return self._job_id

    @property
    def callbacks(self) -> ProviderCallbacks:
        """The callbacks for the code that polls."""
        return ProviderCallbacks(
            journal=self._journal, progress=self._polled, withdraw=self._desk.withdraw
        )

    @property
    def clock(self) -> Clock:
        """The clock for the code that polls."""
        return Clock(now=self._clock.now, sleep=self._sleep)

    def receive(self, message: str | bytes) -> None:
        """Handle one message of the web socket."""
        if isinstance(message, bytes):
            self._receive_preview(message)
            return
        with contextlib.suppress(msgspec.DecodeError, RecursionError):
            event = as_object(msgspec.json.decode(message))
            data = as_object(event.get("data"))
            if self._job_id is not None and data.get("prompt_id") == self._job_id:
                self._receive_event(event.get("type"), data)

    def _receive_event(self, kind: object, data: Mapping[str, Any]) -> None:
        done = parse_fraction(data.get("value"), data.get("max"))
        if kind == "progress" and done is not None:
            self._fraction = done
            self._report(None)
        elif kind in _ENDS or (kind == "executing" and data.get("node") is None):
            self._ended.set()

    def _receive_preview(self, message: bytes) -> None:
        is_whole = len(message) > _PREVIEW_HEAD.size
        if not is_whole or _PREVIEW_HEAD.unpack_from(message)[0] != PREVIEW:
            return
        # The previews are spread evenly over the drawing.
        due = (self._shown + 1) / (self._pictures + 1)
        if self._shown < self._pictures and (self._fraction or 0.0) >= due:
            self._shown += 1
            self._report(message[_PREVIEW_HEAD.size :])

    def _report(self, picture: bytes | None) -> None:
        self._desk.progress(
            Progress(
                message="ComfyUI is drawing",
                elapsed_s=self._clock.now() - self._started,
                fraction=self._fraction,
                picture=picture,
            )
        )

    async def _journal(self, job: RemoteJob) -> None:
        self._job_id = job.remote_id
        await self._desk.journal(job)

    def _polled(self, progress: Progress) -> None:
        if self._fraction is None:
            self._desk.progress(progress)

    async def _sleep(self, seconds: float) -> None:
        if self._ended.is_set():
            # The job is done but not yet in the history: poll at the usual interval.
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
