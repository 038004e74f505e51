"""Untrusted bytes -> facts, other bytes or an ``ImageError``: the host's only door to pixels.

Threads drive the worker processes and no asyncio object outlives a call, so one ``Imaging`` serves
any number of event loops and threads.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
import weakref
from collections.abc import Callable, Collection, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec
from msgspec.structs import replace

from limner.errors import CorruptImage, ImageError, MissingExtra
from limner.imaging.evidence import Measurements, TextLine
from limner.imaging.evidence.record import INSTALL, can_read_text
from limner.imaging.facts import Facts, MaskWay, Preview
from limner.imaging.fit import FitRequest, Fitted, Region
from limner.imaging.fit.passthrough import as_it_is
from limner.imaging.formats import ALWAYS_ACCEPTED, OutputFormat, accepted
from limner.imaging.limits import DEFAULT_LIMITS, READER_LIMITS, WorkerLimits
from limner.imaging.process import NOTARY, READER, WORKER, WorkerJob, WorkerProcess, WorkerReply
from limner.imaging.provenance import INSTALL as INSTALL_NOTARY
from limner.imaging.provenance import Manifest, can_read
from limner.imaging.svg import Asset, mentioned_assets
from limner.thread_pool import ThreadPool

T = TypeVar("T")
# Bytes, or how to get them: what waits for a free worker then holds no memory.
Source = bytes | Callable[[], bytes]

# Each may take the memory of one large picture, so more of them would not do on many machines.
DEFAULT_WORKERS = min(8, os.cpu_count() or 1)


class Imaging:
    """A pool of warm workers that decode and draw; use it as an async context manager.

    Workers start with the first job that needs them, never more than jobs run at once; by default
    there may be one for each processor, up to eight. One that dies or takes too long is replaced,
    and only the job it had fails. Cancelling a call ends the worker that was busy with it.

    PNG, JPEG, GIF and WebP are always accepted; ``accept`` names further formats, as the setting
    ``images.accept`` spells them.
    """

    def __init__(
        self,
        *,
        workers: int = DEFAULT_WORKERS,
        limits: WorkerLimits = DEFAULT_LIMITS,
        accept: Collection[str] = ALWAYS_ACCEPTED,
    ) -> None:
        self._crew = _Crew(replace(limits, accept=accepted(accept)))
        self._max_pixels = limits.max_pixels
        self._threads = ThreadPool(workers, name="limner-imaging")
        # One reader is enough: it uses several processors by itself, and its models are large.
        self._readers = _Crew(READER_LIMITS, READER)
        self._reading = ThreadPool(1, name="limner-reading")
        self._notaries = _Crew(limits, NOTARY)
        # Also runs when the pool is forgotten and at exit, so no process stays behind.
        crews = (self._crew, self._readers, self._notaries)
        self._close = weakref.finalize(self, _close, crews, (self._threads, self._reading))

    async def verify(self, data: Source) -> Facts:
        """Decode the picture in full and say what it is.

        Raises:
            UnrecognizedImage: the first bytes show no accepted format.
            CorruptImage: a known format that is damaged or cut short.
            ImageTooLarge: over the pixel, memory or time limit.
        """
        return _value(await self._do("verify", data), Facts)

    async def convert(
        self, data: Source, *, to: OutputFormat = "png", cover: tuple[int, int] | None = None
    ) -> bytes:
        """The first frame, upright, in 8-bit sRGB and without metadata, in another format.

        Transparency is kept, except in a JPEG, which shows it on white. With ``cover`` the picture
        is scaled, never stretched, until it covers that width and height, and cropped from the
        centre to exactly them.

        Raises:
            ImageError: as `verify`.
            ImageTooLarge: the format holds no picture that large.
        """
        return (await self._do("convert", data, to=to, cover=cover)).payload

    async def fit(self, data: Source, request: FitRequest) -> tuple[Fitted, bytes]:
        """The picture as a model should get it, and what was done to it.

        Raises:
            ImageError: as `verify`, and where the region lies outside the picture.
        """

        def at_once(payload: bytes) -> WorkerReply | None:
            fitted = as_it_is(payload, request, max_pixels=self._max_pixels)
            return (
                None
                if fitted is None
                else WorkerReply(value=msgspec.to_builtins(fitted), payload=payload)
            )

        # What is in memory already needs no thread either.
        answer = at_once(data) if isinstance(data, bytes) else None
        if answer is None:
            header = {"op": "fit", "request": msgspec.to_builtins(request)}
            shift = _Shift(self._crew, header, data, at_once=at_once)
            answer = await self._run(shift, self._threads)
        return _value(answer, Fitted), answer.payload

    async def mask(self, data: Source, *, size: tuple[int, int], way: MaskWay) -> bytes:
        """A PNG of that size that marks what a drawn mask does, in the way of a service.

        Raises:
            ImageError: as `verify`.
        """
        return (await self._do("mask", data, region=None, size=size, way=way)).payload

    async def mask_of_region(
        self, region: Region, *, of: tuple[int, int], size: tuple[int, int], way: MaskWay
    ) -> bytes:
        """A PNG of that size that marks a region of a picture with the size ``of``."""
        job = {"region": msgspec.to_builtins(region), "of": of, "size": size, "way": way}
        return (await self._do("mask", b"", **job)).payload

    async def preview(self, data: Source, *, columns: int, rows: int) -> Preview:
        """A thumbnail within columns x rows pixels, in proportion, transparency shown on white.

        Raises:
            ImageError: as `verify`.
        """
        answer = await self._do("preview", data, columns=columns, rows=rows)
        return _value(answer, Preview, rgb=answer.payload)

    async def measure(self, data: Source) -> Measurements:
        """What pixels and header tell: size, colours, texture, codes, camera data.

        Raises:
            ImageError: as `verify`.
        """
        return _decoded((await self._do("measure", data)).payload, Measurements)

    async def read_text(self, data: Source) -> tuple[TextLine, ...]:
        """The text in the picture in reading order, with its place; none where there is none.

        A worker of its own does it, which never sees the file, only its pixels. It is started by
        the first call, in a second or two, and kept.

        Raises:
            MissingExtra: ``limner[eyes]`` is not installed; the hint is the command.
            ImageError: as `verify`.
        """
        if not can_read_text():
            raise MissingExtra("reading text needs limner[eyes]", hint=INSTALL)
        page = await self._do("legible", data)
        job = _Shift(self._readers, {**page.value, "op": "read_text"}, page.payload)
        answer = await self._run(job, self._reading)
        return _decoded(answer.payload, tuple[TextLine, ...])

    async def read_manifest(self, data: Source, *, mime: str) -> Manifest:
        """What the C2PA manifest of a picture claims, and whether that holds.

        A process of its own does it, started by the first call and kept.

        Raises:
            MissingExtra: ``limner[c2pa]`` is not installed; the hint is the command.
            CorruptImage: there is no manifest, or it cannot be understood.
            ImageTooLarge: over the memory or time limit.
        """
        if not can_read():
            raise MissingExtra("reading a C2PA manifest needs limner[c2pa]", hint=INSTALL_NOTARY)
        shift = _Shift(self._notaries, {"op": "read_manifest", "mime": mime}, data)
        return _decoded((await self._run(shift, self._threads)).payload, Manifest)

    async def render_svg(
        self, document: str, *, width: int, height: int, assets: Mapping[str, Asset]
    ) -> bytes:
        """Draw an SVG document as a PNG of exactly that size.

        ``assets`` is asked only for the names the document mentions, so it may be a large or lazy
        mapping.

        Raises:
            UnsafeSvg: the document asks for more than drawing; the message says what to remove.
            CorruptImage: it is not an SVG document.
            ImageTooLarge: over a limit of size, count, memory or time.
        """
        used = {name: assets[name] for name in mentioned_assets(document) if name in assets}
        order = {
            "document": document,
            "assets": {name: msgspec.to_builtins(used[name]) for name in used},
        }
        payload = json.dumps(order).encode()
        return (await self._do("render_svg", payload, width=width, height=height)).payload

    async def aclose(self) -> None:
        """End the workers; calls in flight fail with RuntimeError."""
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

    async def _do(self, op: str, source: Source, **arguments: Any) -> WorkerReply:
        shift = _Shift(self._crew, {"op": op, **arguments}, source)
        return await self._run(shift, self._threads)

    async def _run(self, shift: _Shift, threads: ThreadPool) -> WorkerReply:
        future = threads.submit(shift.work)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            shift.abandon()
            raise


class _Crew:
    """The worker processes of one pool: those waiting for a job, and all of them."""

    def __init__(self, limits: WorkerLimits, module: str = WORKER) -> None:
        self._limits, self._module = limits, module
        # Re-entrant, since the finalizer of a forgotten pool may run on any thread at any point.
        self._lock = threading.RLock()
        self._idle: list[WorkerProcess] = []
        self._all: set[WorkerProcess] = set()
        self._closed = False
        self._owner_pid = os.getpid()

    def take(self) -> WorkerProcess:
        """The worker that was busy last, since it is the warmest, or a new one."""
        while True:
            with self._lock:
                self.check_open()
                worker = self._idle.pop() if self._idle else None
            if worker is None:
                return self._hire()
            if worker.alive:
                return worker
            self.drop(worker)

    def give_back(self, worker: WorkerProcess) -> None:
        """Keep a worker for the next job."""
        with self._lock:
            if not self._closed:
                self._idle.append(worker)
                return
        self.drop(worker)

    def drop(self, worker: WorkerProcess) -> None:
        """Forget a worker and clean up after it."""
        with self._lock:
            self._all.discard(worker)
        worker.close()

    def close(self) -> None:
        """End every worker; the thread that waits for a busy one cleans up after it."""
        # A forked copy of the host must not end the workers of the original.
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

    def _hire(self) -> WorkerProcess:
        worker = WorkerProcess(self._limits, self._module)
        with self._lock:
            self._all.add(worker)
            closed = self._closed
        if closed:
            self.drop(worker)
            self.check_open()
        return worker

    def check_open(self) -> None:
        """Raise RuntimeError where the pool is closed, as for a job that was ended with it."""
        if self._closed:
            raise RuntimeError("this Imaging is closed")


class _Shift:
    """One job on its way through a worker; another thread may abandon it at any moment."""

    def __init__(
        self,
        crew: _Crew,
        header: Mapping[str, Any],
        source: Source,
        *,
        at_once: Callable[[bytes], WorkerReply | None] | None = None,
    ) -> None:
        """``at_once`` may answer a job that needs no worker."""
        self._crew = crew
        self._header, self._source, self._at_once = header, source, at_once
        self._lock = threading.Lock()
        self._worker: WorkerProcess | None = None
        self._abandoned = False

    def work(self) -> WorkerReply:
        """Do the job, on a thread of the pool."""
        payload = self._source if isinstance(self._source, bytes) else self._source()
        if self._at_once is not None and (answer := self._at_once(payload)) is not None:
            return answer
        worker = self._crew.take()
        with self._lock:
            self._worker = worker
            if self._abandoned:
                worker.kill()
        try:
            return worker.do(WorkerJob(header=self._header, payload=payload))
        except ImageError:
            self._crew.check_open()
            raise
        finally:
            with self._lock:
                self._worker = None
            if worker.alive:
                self._crew.give_back(worker)
            else:
                self._crew.drop(worker)

    def abandon(self) -> None:
        """End the worker that is busy with this job, if one is."""
        with self._lock:
            self._abandoned = True
            if self._worker is not None:
                self._worker.kill()


def _close(crews: tuple[_Crew, ...], threads: tuple[ThreadPool, ...]) -> None:
    for pool in threads:
        pool.shutdown(wait=False)
    for crew in crews:
        crew.close()


def _value(answer: WorkerReply, kind: type[T], **rest: bytes) -> T:
    """The value of an answer as the type it must have; a worker's word is not taken for it."""
    try:
        return msgspec.convert({**answer.value, **rest}, kind)
    except msgspec.ValidationError:
        raise CorruptImage("the picture confused its decoder") from None


def _decoded(payload: bytes, kind: type[T]) -> T:
    """The same for an answer that is too long for a header and comes as JSON."""
    try:
        return msgspec.json.decode(payload, type=kind)
    except msgspec.DecodeError:
        raise CorruptImage("the picture confused its decoder") from None
