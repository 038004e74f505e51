"""A plan -> a paid-for picture on disk: the one way every generated picture takes.

Nothing is sent before it is reserved and journalled, and nothing that was paid for is lost: the
bytes are safe in the blob store before the ledger is settled, and the ledger is settled before
the file appears. A crash between any two lines leaves a row that says how far it came.
"""

from __future__ import annotations

import asyncio
import filecmp
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from limner.catalogue.images import Size
from limner.content import Picture
from limner.errors import (
    NANO_PER_USD,
    BadProviderImage,
    CostSource,
    ImageError,
    LimnerError,
    OutputExists,
    ReachDenied,
    StorageError,
)
from limner.money.ledger import JobRow, Money
from limner.money.spending import Spending, to_the_end
from limner.pictures.order import Desk, ImageRequest, Job, Progress, Receipt
from limner.pictures.take import Pictures
from limner.providers.base import Provider, Resumable
from limner.providers.choose import Choice, Wish, choose
from limner.storage.blobs import BlobWriter
from limner.storage.files import write_new, write_numbered
from limner.tools.base import ToolContext
from limner.tools.consent import may_spend
from limner.tools.ordering import Order, Plan, Planner

TOOL = "image_generate"


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedImage:
    """A picture that is drawn, paid for and saved. ``image`` is the picture in the file."""

    path: Path
    image: Picture
    cost_nano: int
    cost_source: CostSource
    provider: str
    model: str
    prompt_used: str
    extras: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def dimensions(self) -> Size:
        """Width and height of the picture in the file, measured from its bytes."""
        return Size(self.image.width, self.image.height)

    @property
    def cost_usd(self) -> float:
        """What it cost in dollars."""
        return self.cost_nano / NANO_PER_USD


class JournalEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What the journal keeps of a request that was sent: enough to finish it after a crash."""

    request: ImageRequest
    target: str | None

    @property
    def path(self) -> Path | None:
        """Where the picture was meant to go; None for a name of its own."""
        return None if self.target is None else Path(self.target)


Write = Callable[[Path], Path]
"""Copies the file of a picture to where it is wanted, and tells where that is."""


class Drawing:
    """Draws orders, and recovers what a crash or a time-out left behind.

    ``connect`` builds the provider of a choice. ``turn`` is entered for as long as a request is
    with a provider, and bounds how many are there at once. ``session_id`` is whose budget pays
    for a call that names no session.
    """

    def __init__(
        self,
        *,
        planner: Planner,
        connect: Callable[[Choice], Provider],
        turn: Callable[[], AbstractAsyncContextManager[Any]],
        pictures: Pictures,
        money: Money,
        session_id: str,
        clock: Callable[[], datetime],
    ) -> None:
        self.planner = planner
        self._connect, self._turn = connect, turn
        self._pictures, self._money, self._clock = pictures, money, clock
        self._session_id = session_id
        self._under_way: set[Future[None]] = set()
        self._closed = False

    async def draw(self, order: Order, context: ToolContext) -> GeneratedImage:
        """Plan, ask, reserve, send, verify, settle, save.

        Raises:
            LimnerError: it failed; the error carries the cost of what was spent before.
        """
        with self._working():
            plan = await self.planner.plan(order, context, today=self._clock().date())
            service = plan.choice.spec.name
            await may_spend(
                plan.quote.nano, f"A picture from {service}", context, self.planner.approval
            )
            reservation = await self._money.reserve(
                plan.quote.nano,
                session_id=context.session_id or self._session_id,
                tool=TOOL,
                provider=service,
                model=plan.request.model,
            )
            spending = Spending(self._money, reservation, quote_source=plan.quote.source)
            async with spending, self._turn():
                self._check_open()
                provider = self._connect(plan.choice)
                with self._pictures.sink() as sink:
                    await spending.send(_journal_entry(plan))
                    desk = _desk(spending, context.progress)
                    receipt = await provider.generate(plan.request, sink, desk)
                    write = partial(self._write, plan.target, overwrite=plan.overwrite)
                    return await to_the_end(self._land(plan, receipt, sink, spending, write))

    async def recover(
        self, row: JobRow, *, progress: Callable[[Progress], None]
    ) -> GeneratedImage | None:
        """Bring in the picture of a request that was sent but never received or never written.

        None where the service cannot be asked, or does not know the request: then the row stays
        as it is, counted at its quote. Nothing is overwritten: where the place it was meant for is
        taken by now, the picture gets a name of its own.

        Raises:
            LimnerError: the job failed, or the service cannot be reached.
            UserError: somebody else brought it in meanwhile (JOB_ALREADY_RECEIVED).
        """
        if row.picture is not None:
            return await self._write_again(row, row.picture)
        plan = self._plan_again(row)
        provider = self._connect(plan.choice)
        if not isinstance(provider, Resumable):
            return None
        with self._working():
            if row.remote_id is not None and row.remote_url is not None:
                job: Job | None = Job(remote_id=row.remote_id, url=row.remote_url)
            else:
                job = await provider.find(plan.request, since_ms=row.created_ms)
            if job is None:
                return None
            spending = Spending(
                self._money, row.reservation, quote_source=plan.quote.source, job_id=row.id
            )
            async with spending:
                await spending.note_job(job.remote_id, job.url)
                with self._pictures.sink() as sink:
                    desk = _desk(spending, progress)
                    receipt = await provider.resume(job, plan.request, sink, desk)
                    write = partial(self._write_somewhere, plan.target)
                    return await to_the_end(self._land(plan, receipt, sink, spending, write))

    async def aclose(self) -> None:
        """Send nothing more, and wait for the pictures under way: they may be paid for."""
        self._closed = True
        while self._under_way:
            await asyncio.gather(*map(asyncio.wrap_future, tuple(self._under_way)))

    async def _land(
        self, plan: Plan, receipt: Receipt, sink: BlobWriter, spending: Spending, write: Write
    ) -> GeneratedImage:
        """Verify and store the bytes, settle the price, write the file: in that order."""
        spending.price(receipt.cost_nano, receipt.cost_source)
        request, service = plan.request, plan.choice.spec.name
        lineage = {"provider": service, "model": request.model, "prompt": request.prompt}
        try:
            master = await self._pictures.take(sink, lineage=lineage | {"seed": request.seed})
        except ImageError as error:
            raise BadProviderImage(
                f"{service} answered, but not with a picture: {error.message}",
                extras={"provider": service},
            ) from error
        asked = (request.width, request.height)
        try:
            await spending.settle(master.handle)
            image = await self._pictures.png(
                master, cover=asked if plan.choice.model.fit_to_size else None
            )
            path = await asyncio.to_thread(write, self._pictures.path(image))
        except LimnerError as error:
            error.extras["kept_at"] = str(self._pictures.path(master))
            raise
        await spending.place(path)
        extras: dict[str, Any] = dict(receipt.extras)
        if plan.choice.notice is not None:
            extras["notice"] = plan.choice.notice
        if (master.width, master.height) != (image.width, image.height):
            extras["drawn_size"] = str(Size(master.width, master.height))
        return GeneratedImage(
            path=path,
            image=image,
            cost_nano=spending.cost_nano,
            cost_source=spending.cost_source,
            provider=service,
            model=request.model,
            prompt_used=receipt.prompt_used,
            extras=extras,
        )

    async def _write_again(self, row: JobRow, handle: str) -> GeneratedImage:
        """Write the file of a picture that is paid for and kept, but was never written."""
        entry = _entry_of(row)
        request = entry.request
        spec = self.planner.specs.get(row.provider)
        fits = spec is not None and any(
            model.fit_to_size for model in spec.models if model.id == request.model
        )
        with self._working():
            image = await self._pictures.png(
                await self._pictures.recall(handle),
                cover=(request.width, request.height) if fits else None,
            )
            source = self._pictures.path(image)
            path = await asyncio.to_thread(self._written, entry.path, source, row.created_ms)
            await self._money.place(row.reservation, str(path))
        return GeneratedImage(
            path=path,
            image=image,
            cost_nano=row.cost_nano,
            cost_source=row.cost_source,
            provider=row.provider,
            model=request.model,
            prompt_used=request.prompt,
        )

    def _written(self, target: Path | None, source: Path, since_ms: int) -> Path:
        """The file of a picture; one that was written but never noted is found, not doubled."""
        if target is None:
            for file in self.planner.generated.glob("*.png"):
                written_ms = file.stem.partition("-")[0]
                if written_ms.isdecimal() and int(written_ms) >= since_ms:
                    if _is_copy(file, source):
                        return file
        return self._write_somewhere(target, source)

    def _write(self, target: Path | None, source: Path, *, overwrite: bool = False) -> Path:
        if target is not None:
            return write_new(target, source, overwrite=overwrite)
        stem = str(int(self._clock().timestamp() * 1000))
        return write_numbered(self.planner.generated, stem, ".png", source)

    def _write_somewhere(self, target: Path | None, source: Path) -> Path:
        """Where it was meant to go, or under a name of its own where that is not to be had."""
        try:
            return self._write(target, source)
        except OutputExists:
            # A crash between writing a file and noting so leaves exactly what is wanted there.
            if target is not None and _is_copy(target, source):
                return target
        except (ReachDenied, StorageError):
            pass
        return self._write(None, source)

    @contextmanager
    def _working(self) -> Generator[None]:
        """Have `aclose` wait for what happens inside, in whatever event loop that is."""
        done = Future[None]()
        done.set_running_or_notify_cancel()  # whoever gives up waiting for it must not end it
        self._under_way.add(done)
        try:
            self._check_open()
            yield
        finally:
            self._under_way.discard(done)
            done.set_result(None)

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("this Limner is closed")

    def _plan_again(self, row: JobRow) -> Plan:
        entry = _entry_of(row)
        request = entry.request
        size = Size(request.width, request.height)
        choice = choose(
            Wish(
                provider=row.provider,
                model=request.model,
                size=size,
                quality=request.quality,
                has_svg=False,
            ),
            specs=self.planner.specs,
            key_of=self.planner.key_of,
            today=self._clock().date(),
        )
        return Plan(
            request=request,
            choice=choice,
            quote=choice.model.quote(size, request.quality, request.prompt),
            target=entry.path,
            # What is there now may be newer than this picture.
            overwrite=False,
        )


def _journal_entry(plan: Plan) -> str:
    target = None if plan.target is None else str(plan.target)
    # Only the illustrator draws documents, and it has nothing to be asked for again.
    entry = JournalEntry(request=replace(plan.request, svg=None), target=target)
    return msgspec.json.encode(entry).decode()


def _entry_of(row: JobRow) -> JournalEntry:
    try:
        return msgspec.json.decode(row.request, type=JournalEntry)
    except msgspec.DecodeError as error:
        raise StorageError(f"The journal of {row.id} cannot be read: {error}") from error


def _is_copy(target: Path, source: Path) -> bool:
    try:
        return filecmp.cmp(target, source, shallow=False)
    except OSError:
        return False


def _desk(spending: Spending, progress: Callable[[Progress], None]) -> Desk:
    return Desk(
        journal=lambda job: spending.note_job(job.remote_id, job.url),
        progress=progress,
        withdraw=spending.withdraw,
    )
