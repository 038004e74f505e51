"""Untrusted bytes -> facts, other bytes or an ``ImageError``: the host's only access to pixels.

Threads drive the worker processes and no asyncio object outlives a call, so one ``Imaging`` serves
any number of event loops and threads.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import msgspec
from msgspec.structs import replace

from limner import metrics
from limner.errors import CorruptImage, ImageError, LimnerError, MissingExtra
from limner.imaging import pipe
from limner.imaging.evidence import Measurements, PageReading
from limner.imaging.evidence.record import INSTALL_OCR, has_ocr
from limner.imaging.facts import Facts, MaskWay, Preview, SheetRequest
from limner.imaging.fit import FitRequest, Fitted, Region
from limner.imaging.fit.passthrough import pass_through
from limner.imaging.formats import ALWAYS_ACCEPTED, OutputFormat, accepted_formats
from limner.imaging.limits import DEFAULT_LIMITS, OCR_LIMITS, Protections, WorkerLimits
from limner.imaging.process import (
    C2PA_WORKER,
    OCR_WORKER,
    WORKER,
    WorkerDied,
    WorkerJob,
    WorkerProcess,
    WorkerReply,
)
from limner.imaging.provenance import INSTALL_C2PA, Manifest, has_c2pa
from limner.imaging.svg import Asset
from limner.thread_pool import ThreadPool

if TYPE_CHECKING:
    from limner.imaging.comparison import PixelComparison
    from limner.imaging.transform import Transformed, TransformRequest

T = TypeVar("T")
# Bytes, or a function that loads them: a job that waits for a free worker then holds no memory.
Source = bytes | Callable[[], bytes]

# Each worker may take the memory of one large picture, so many machines cannot hold more.
DEFAULT_WORKERS = min(8, os.cpu_count() or 1)


class Imaging:
    """A pool of warm workers that decode and draw; use it as an async context manager.

    A worker starts when a job needs one, so there are never more workers than concurrent jobs. By
    default there is at most one for each processor, up to eight. The pool replaces a worker that
    takes too long, and only the job of that worker fails. If a worker dies, a fresh one tries its
    job once. Cancelling a call kills the worker that runs it.

    PNG, JPEG, GIF and WebP are always accepted; ``accept`` names further formats, as the setting
    ``images.accept`` spells them. ``program`` is the module that a worker runs: `worker`, or one
    that does its jobs and more.
    """

    def __init__(
        self,
        *,
        workers: int = DEFAULT_WORKERS,
        limits: WorkerLimits = DEFAULT_LIMITS,
        accept: Collection[str] = ALWAYS_ACCEPTED,
        program: str = WORKER,
    ) -> None:
        self._limits = replace(limits, accept=accepted_formats(accept))
        self._workers = _Workers(self._limits, program)
        self._max_pixels = limits.max_pixels
        self._threads = ThreadPool(workers, name="limner-imaging")
        # One OCR worker is enough: it uses several processors by itself, and its models are large.
        self._ocr_workers = _Workers(OCR_LIMITS, OCR_WORKER)
        self._ocr_threads = ThreadPool(1, name="limner-ocr")
        self._c2pa_workers = _Workers(limits, C2PA_WORKER)
        self._lock = threading.Lock()
        self._by_program = {
            program: self._workers,
            OCR_WORKER: self._ocr_workers,
            C2PA_WORKER: self._c2pa_workers,
        }
        # Also runs when the pool is garbage-collected and at exit, so no process stays behind.
        threads_of_all = (self._threads, self._ocr_threads)
        self._close = weakref.finalize(self, _close, self._by_program, threads_of_all)

    async def ready(self) -> None:
        """Start a worker unless one is idle, before a picture is paid for.

        Raises:
            LimnerError: no worker can be started.
        """
        if not self._workers.has_idle:
            await asyncio.wrap_future(self._threads.submit(self._workers.prepare))

    async def protections(self) -> Protections:
        """What the system enforces on a worker here.

        Raises:
            LimnerError: no worker can be started.
        """
        return await asyncio.wrap_future(self._threads.submit(self._workers.protections))

    async def verify(self, data: Source | pipe.OpenFile) -> Facts:
        """Decode the whole picture and return its facts.

        Raises:
            LimnerError: the file cannot be read.
            UnrecognizedImage: the first bytes show no accepted format.
            CorruptImage: a known format that is damaged or truncated.
            ImageTooLarge: over the pixel, memory or time limit.
        """
        return _value(await self._do("verify", data), Facts)

    async def convert(
        self, data: Source, *, to: OutputFormat = "png", cover: tuple[int, int] | None = None
    ) -> bytes:
        """Encode the first frame in another format: upright, 8-bit sRGB, without metadata.

        Transparency is kept, except in a JPEG, which shows it on white. With ``cover`` the picture
        is scaled in proportion until it covers that width and height, and then cropped from the
        centre to exactly that size.

        Raises:
            ImageError: as `verify`.
            ImageTooLarge: the format cannot hold a picture that large.
        """
        return (await self._do("convert", data, to=to, cover=cover)).payload

    def pass_through(self, data: bytes, request: FitRequest) -> Fitted | None:
        """The result for a file that can be sent unchanged; None if `fit` must decide."""
        return pass_through(data, request, max_pixels=self._max_pixels)

    async def fit(self, data: Source, request: FitRequest) -> tuple[Fitted, bytes]:
        """Encode the picture for a model, and say what was changed.

        Raises:
            ImageError: as `verify`, and if the region lies outside the picture.
        """

        def without_worker(payload: bytes) -> WorkerReply | None:
            fitted = self.pass_through(payload, request)
            if fitted is None:
                return None
            return WorkerReply(value=msgspec.to_builtins(fitted), payload=payload)

        # Bytes that are already in memory need no thread either.
        reply = without_worker(data) if isinstance(data, bytes) else None
        if reply is None:
            header = {"op": "fit", "request": msgspec.to_builtins(request)}
            job = _RunningJob(self._workers, header, data, without_worker=without_worker)
            reply = await self._run(job, self._threads)
        return _value(reply, Fitted), reply.payload

    async def transform(self, data: Source, request: TransformRequest) -> tuple[Transformed, bytes]:
        """Crop, turn, scale, mark or compress the picture, as the request says.

        Raises:
            ImageError: as `verify`; or the background that is to be cut out is not flat.
            InputInvalid: a part lies outside the picture.
            ImageTooLarge: the result is over a limit, or does not fit into its bytes.
        """
        from limner.imaging.transform import Transformed  # noqa: PLC0415 - loaded on first use

        reply = await self._do("transform", data, request=msgspec.to_builtins(request))
        return _value(reply, Transformed), reply.payload

    async def compare(
        self, before: Source, after: Source, *, ignore: Sequence[Region] = ()
    ) -> PixelComparison:
        """Find the areas in which two pictures differ, outside the ignored parts.

        Raises:
            ImageError: as `verify`.
        """
        from limner.imaging.comparison import PixelComparison  # noqa: PLC0415 - on first use

        def both() -> bytes:
            return pipe.join([_load(before), _load(after)])

        reply = await self._do("compare", both, ignore=msgspec.to_builtins(list(ignore)))
        return _decode(reply.payload, PixelComparison)

    async def sheet(self, request: SheetRequest, overlay: str, pictures: Sequence[bytes]) -> bytes:
        """Put pictures on one PNG, each in its place, and an SVG document over them.

        Raises:
            ImageError: as `verify`, and as `render_svg`.
        """
        payload = pipe.join([overlay.encode(errors="replace"), *pictures])
        return (await self._do("sheet", payload, request=msgspec.to_builtins(request))).payload

    async def mask(self, data: Source, *, size: tuple[int, int], way: MaskWay) -> bytes:
        """Turn a drawn mask into a PNG of that size, which marks pixels the way a service expects.

        Raises:
            ImageError: as `verify`.
        """
        return (await self._do("mask", data, region=None, size=size, way=way)).payload

    async def mask_of_region(
        self, region: Region, *, of: tuple[int, int], size: tuple[int, int], way: MaskWay
    ) -> bytes:
        """Make a mask PNG of that size for a region of a picture whose size is ``of``."""
        job = {"region": msgspec.to_builtins(region), "of": of, "size": size, "way": way}
        return (await self._do("mask", b"", **job)).payload

    async def preview(self, data: Source, *, columns: int, rows: int) -> Preview:
        """Make a thumbnail within columns x rows pixels, in proportion; transparency becomes white.

        Raises:
            ImageError: as `verify`.
        """
        reply = await self._do("preview", data, columns=columns, rows=rows)
        return _value(reply, Preview, rgb=reply.payload)

    async def measure(self, data: Source) -> Measurements:
        """Measure pixels and header: size, colours, texture, codes, camera data.

        Raises:
            ImageError: as `verify`.
        """
        return _decode((await self._do("measure", data)).payload, Measurements)

    @property
    def must_load_ocr(self) -> bool:
        """Whether OCR is installed and its worker is not running yet."""
        return has_ocr() and not self._ocr_workers.has_any

    async def read_page(self, data: Source) -> PageReading:
        """Run OCR over the picture and return its text in reading order, with its layout.

        A separate worker runs the OCR models. It never sees the file, only its pixels. The first
        call starts it, in a second or two, and it stays.

        Raises:
            MissingExtra: ``limner[eyes]`` is not installed; the hint is the command.
            ImageError: as `verify`.
        """
        if not has_ocr():
            raise MissingExtra("reading text needs limner[eyes]", hint=INSTALL_OCR)
        page = await self._do("ocr_page", data)
        job = _RunningJob(self._ocr_workers, {**page.value, "op": "ocr"}, page.payload)
        reply = await self._run(job, self._ocr_threads)
        return _decode(reply.payload, PageReading)

    async def read_manifest(self, data: Source, *, mime: str) -> Manifest:
        """Read the C2PA manifest of a picture, and check its signature.

        A separate process does this. The first call starts it, and it stays.

        Raises:
            MissingExtra: ``limner[c2pa]`` is not installed; the hint is the command.
            CorruptImage: there is no manifest, or it cannot be parsed.
            ImageTooLarge: over the memory or time limit.
        """
        if not has_c2pa():
            raise MissingExtra("reading a C2PA manifest needs limner[c2pa]", hint=INSTALL_C2PA)
        job = _RunningJob(self._c2pa_workers, {"op": "read_manifest", "mime": mime}, data)
        return _decode((await self._run(job, self._threads)).payload, Manifest)

    async def render_svg(
        self,
        document: str,
        *,
        width: int,
        height: int,
        assets: Mapping[str, Asset],
        squares: int | None = None,
    ) -> bytes:
        """Draw an SVG document as a PNG of exactly that size.

        ``assets`` are all that the document and the scenes in it name. ``squares`` is the number of
        squares along the shorter side, if the picture consists of visible ones (pixel art).

        Raises:
            UnsafeSvg: the document contains something that is not allowed; the message says what to
                remove.
            CorruptImage: it is not an SVG document.
            ImageTooLarge: over a limit of size, count, memory or time.
        """
        size = {"width": width, "height": height, "squares": squares}
        return await self._draw_svg("render_svg", document, assets, **size)

    async def resolve_svg(
        self, document: str, *, width: int, height: int, assets: Mapping[str, Asset]
    ) -> bytes:
        """Make an SVG file of a document: checked, of that size, with the assets in it.

        Raises:
            ImageError: as `render_svg`.
        """
        size = {"width": width, "height": height}
        return await self._draw_svg("resolve_svg", document, assets, **size)

    async def _draw_svg(
        self, op: str, document: str, assets: Mapping[str, Asset], **size: int | None
    ) -> bytes:
        drawing = {"document": document, "assets": msgspec.to_builtins(dict(assets))}
        try:
            return (await self._do(op, json.dumps(drawing).encode(), **size)).payload
        except ImageError as error:
            error.untrusted = False  # the caller wrote the document that the message quotes
            raise

    async def run(self, program: str, op: str, payload: bytes, **arguments: Any) -> bytes:
        """Run a job of a program that another package declares, and return its reply.

        Raises:
            ImageError: as `verify`.
            InputInvalid: the job says so.
        """
        with self._lock:
            self._workers.check_open()
            workers = self._by_program.setdefault(program, _Workers(self._limits, program))
        job = _RunningJob(workers, {"op": op, **arguments}, payload)
        return (await self._run(job, self._threads)).payload

    async def aclose(self) -> None:
        """End the workers; calls in progress fail with RuntimeError."""
        await asyncio.to_thread(self._close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def _do(self, op: str, source: Source | pipe.OpenFile, **arguments: Any) -> WorkerReply:
        job = _RunningJob(self._workers, {"op": op, **arguments}, source)
        return await self._run(job, self._threads)

    async def _run(self, job: _RunningJob, threads: ThreadPool) -> WorkerReply:
        future = threads.submit(job.work)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            job.abandon()
            raise


class _Workers:
    """The worker processes of one kind: the idle ones, and all of them."""

    def __init__(self, limits: WorkerLimits, module: str = WORKER) -> None:
        self._limits, self._module = limits, module
        # Re-entrant, since the finalizer of a collected pool may run on any thread at any point.
        self._lock = threading.RLock()
        self._idle: list[WorkerProcess] = []
        self._all: set[WorkerProcess] = set()
        self._closed = False
        self._owner_pid = os.getpid()

    def take(self) -> WorkerProcess:
        """Take the worker that was busy last, since it is the warmest, or start a new one."""
        while True:
            with self._lock:
                self.check_open()
                worker = self._idle.pop() if self._idle else None
            if worker is None:
                return self._start()
            if worker.is_alive:
                return worker
            self.drop(worker)

    @property
    def has_any(self) -> bool:
        """Whether a worker was started."""
        return bool(self._all)

    @property
    def has_idle(self) -> bool:
        """Whether a live worker is idle."""
        with self._lock:
            return bool(self._idle) and self._idle[-1].is_alive

    def prepare(self) -> None:
        """Make sure that a live worker is idle."""
        self.give_back(self.take())

    def protections(self) -> Protections:
        """What the system enforces on a worker."""
        worker = self.take()
        self.give_back(worker)
        return worker.protections

    def give_back(self, worker: WorkerProcess) -> None:
        """Keep a worker for the next job."""
        with self._lock:
            if not self._closed:
                self._idle.append(worker)
                return
        self.drop(worker)

    def drop(self, worker: WorkerProcess) -> None:
        """Remove a worker and clean up after it."""
        with self._lock:
            self._all.discard(worker)
        worker.close()

    def close(self) -> None:
        """End every worker; the thread that waits for a busy one cleans up after it."""
        # A forked copy of the host must not end the workers of its parent.
        if os.getpid() != self._owner_pid:
            return
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            busy = self._all.difference(idle)
        for worker in busy:
            worker.kill()
        for worker in idle:
            self.drop(worker)

    def _start(self) -> WorkerProcess:
        try:
            worker = WorkerProcess(self._limits, self._module)
        except LimnerError:
            # It was killed at its start, or the system had no process left for a moment.
            worker = WorkerProcess(self._limits, self._module)
        metrics.WORKERS_STARTED.add()
        with self._lock:
            self._all.add(worker)
            closed = self._closed
        if closed:
            self.drop(worker)
            self.check_open()
        return worker

    def check_open(self) -> None:
        """Raise RuntimeError if the pool is closed."""
        if self._closed:
            raise RuntimeError("this Imaging is closed")


class _RunningJob:
    """One job on its way through a worker; another thread may abandon it at any time."""

    def __init__(
        self,
        workers: _Workers,
        header: Mapping[str, Any],
        source: Source | pipe.OpenFile,
        *,
        without_worker: Callable[[bytes], WorkerReply | None] | None = None,
    ) -> None:
        """``without_worker`` may return the reply to a job that needs no worker."""
        self._workers = workers
        self._header, self._source, self._without_worker = header, source, without_worker
        self._lock = threading.Lock()
        self._worker: WorkerProcess | None = None
        self._abandoned = False

    def work(self) -> WorkerReply:
        """Run the job; called on a thread of the pool."""
        payload = self._source() if callable(self._source) else self._source
        if self._without_worker is not None and isinstance(payload, bytes):
            reply = self._without_worker(payload)
            if reply is not None:
                return reply
        job = WorkerJob(header=self._header, payload=payload)
        try:
            return self._run(job)
        except WorkerDied as death:
            self._workers.check_open()
            if self._abandoned:
                raise death.error from None
        # One fresh worker: a killed worker says nothing about the picture.
        try:
            return self._run(job)
        except WorkerDied as death:
            raise death.error from None

    def _run(self, job: WorkerJob) -> WorkerReply:
        worker = self._workers.take()
        with self._lock:
            self._worker = worker
            if self._abandoned:
                worker.kill()
        try:
            return worker.do(job)
        except WorkerDied:
            metrics.WORKERS_DIED.add()
            raise
        except ImageError:
            self._workers.check_open()
            raise
        finally:
            with self._lock:
                self._worker = None
            if worker.is_alive and not worker.is_spent:
                self._workers.give_back(worker)
            else:
                self._workers.drop(worker)

    def abandon(self) -> None:
        """Kill the worker that runs this job, if there is one."""
        with self._lock:
            self._abandoned = True
            if self._worker is not None:
                self._worker.kill()


def _load(source: Source) -> bytes:
    return source if isinstance(source, bytes) else source()


def _close(by_program: Mapping[str, _Workers], threads_of_all: tuple[ThreadPool, ...]) -> None:
    for threads in threads_of_all:
        threads.shutdown(wait=False)
    for workers in tuple(by_program.values()):
        workers.close()


def _value(reply: WorkerReply, kind: type[T], **rest: bytes) -> T:
    """The value of a reply as its type; a worker that met hostile bytes is not trusted."""
    try:
        return msgspec.convert({**reply.value, **rest}, kind)
    except msgspec.ValidationError:
        raise CorruptImage("the picture confused its decoder") from None


def _decode(payload: bytes, kind: type[T]) -> T:
    """The same for a reply that is too long for a header and comes as JSON."""
    try:
        return msgspec.json.decode(payload, type=kind)
    except msgspec.DecodeError:
        raise CorruptImage("the picture confused its decoder") from None
