"""An interrupted job -> its picture, fetched once and without paying again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from limner.catalogue.images import Size
from limner.dollars import format_usd
from limner.errors import ImageError, ReachDenied, StorageError, UserError
from limner.money.ledger import JobRow
from limner.money.paid_call import PaidCall, finish_despite_cancellation, resumed_call
from limner.pictures.request import ImageRequest, Progress, Receipt, RemoteJob
from limner.providers.base import Resumable
from limner.providers.choice import Choice, DrawingNeeds, choose
from limner.storage.incoming_files import IncomingFile
from limner.tools.generation import ImageGenerator, provider_callbacks
from limner.tools.journal import decode_entry
from limner.tools.output_file import GeneratedImage
from limner.tools.planning import Plan, quote_of


async def recover(
    row: JobRow, generator: ImageGenerator, *, progress: Callable[[Progress], None]
) -> GeneratedImage | None:
    """Finish a request that was sent but whose picture was never received, stored or written.

    Bytes that were delivered are used first: then no provider is asked. Returns None if there are
    none and the provider cannot be asked, or does not know the request. The row then stays counted
    at its quote. No file is overwritten: if the target exists, the picture gets a generated name.

    Raises:
        LimnerError: the job failed, or the provider cannot be reached.
        UserError: another process has fetched it in the meantime (JOB_ALREADY_RECEIVED).
    """
    with generator.in_flight.track():
        if row.picture is not None:
            return await _write_stored(row, row.picture, generator)
        if (path := await asyncio.to_thread(delivered_file, row, generator)) is not None:
            with await asyncio.to_thread(generator.incoming.reopen, row.id, path) as file:
                if await _is_usable(row, file, generator):
                    return await _finish_delivered(row, file, generator)
        return await _fetch(row, generator, progress)


async def receive(
    row: JobRow,
    generator: ImageGenerator,
    read: Callable[[IncomingFile, ImageRequest], Awaitable[Receipt]],
) -> GeneratedImage:
    """Store, settle and write the picture of a job whose response has arrived.

    ``read`` writes the bytes to the file and returns the receipt.

    Raises:
        LimnerError: the response has no picture; the error carries what it cost.
    """
    with generator.in_flight.track():
        plan = _restore_plan(row, generator, ask=False)
        with await generator.expect(plan, row.id) as file:
            call = resumed_call(generator.money, row, quote_source=plan.quote.source, delivery=file)
            async with call:
                receipt = await read(file, plan.request)
                return await finish_despite_cancellation(
                    _store(plan, receipt, file, call, generator)
                )


async def fetch_result(
    row: JobRow,
    generator: ImageGenerator,
    *,
    path: str | None,
    progress: Callable[[Progress], None],
) -> GeneratedImage | None:
    """The picture of a job whose process has ended: as it was saved, or by `recover`.

    ``path`` is the file that the ledger names. Returns None if the picture is lost, or cannot be
    fetched now.

    Raises:
        LimnerError: as `recover`.
    """
    if row.state == "settled" and row.picture is not None and path is not None:
        return await _saved_image(row, row.picture, Path(path), generator)
    has_bytes = await asyncio.to_thread(delivered_file, row, generator) is not None
    if row.state == "settled" and row.picture is None and not has_bytes:
        return None
    return await recover(row, generator, progress=progress)


async def close_job(row: JobRow, generator: ImageGenerator, *, cost_nano: int | None) -> None:
    """Close a job without its picture, at the price that the user names or at its quote.

    Raises:
        UserError: the job is in flight, its picture is stored, or its price is known already.
    """
    if row.in_flight:
        raise UserError(f"Another process is waiting for {row.id}.", hint="End it first.")
    if row.picture is not None:
        raise UserError(
            f"The picture of {row.id} is paid for and stored.",
            hint=f"`limner jobs recover {row.id}` writes its file.",
        )
    if row.state == "settled" and cost_nano is not None:
        raise UserError(
            f"The price of {row.id} is known: {format_usd(row.cost_nano)}.",
            hint=f"`limner jobs forget {row.id}` deletes its bytes.",
        )
    with generator.in_flight.track():
        await generator.money.close_job(row, cost_nano=cost_nano)
        await asyncio.to_thread(generator.incoming.remove, row.id)


def delivered_file(row: JobRow, generator: ImageGenerator) -> Path | None:
    """The file with the bytes of a job; None if there is none."""
    if row.delivered_path is not None and (noted := Path(row.delivered_path)).is_file():
        return noted
    return generator.incoming.find(row.id)


async def _is_usable(row: JobRow, file: IncomingFile, generator: ImageGenerator) -> bool:
    """Whether the bytes of a job are what it bought.

    An interrupted transfer leaves the first part of a picture. If all bytes came and are no
    picture, they are what was bought, unless the provider can send them again.
    """
    try:
        await generator.output.pictures.verify(file)
    except ImageError:
        return row.delivered_path is not None and row.remote_id is None
    return True


async def _finish_delivered(
    row: JobRow, file: IncomingFile, generator: ImageGenerator
) -> GeneratedImage:
    if row.delivered_sha256 not in (None, file.handle):
        raise StorageError(
            f"The delivered bytes of {row.id} have changed on the disk.",
            hint="The disk may be failing: check it before you trust the file.",
            extras={"kept_at": str(file.path), "job_id": row.id},
        )
    plan = _restore_plan(row, generator, ask=False)
    receipt = Receipt(
        prompt_used=plan.request.prompt,
        cost_nano=row.delivered_nano,
        cost_source=row.delivered_source or plan.quote.source,
    )
    call = resumed_call(generator.money, row, quote_source=plan.quote.source, delivery=file)
    async with call:
        return await finish_despite_cancellation(_store(plan, receipt, file, call, generator))


async def _fetch(
    row: JobRow, generator: ImageGenerator, progress: Callable[[Progress], None]
) -> GeneratedImage | None:
    plan = _restore_plan(row, generator, ask=True)
    provider = generator.connect(plan.choice)
    if not isinstance(provider, Resumable):
        return None
    if row.remote_id is not None and row.remote_url is not None:
        found = [RemoteJob(remote_id=row.remote_id, url=row.remote_url)]
    else:
        found = await provider.find(plan.request, since_ms=row.created_ms)
    if not found:
        return None
    with await generator.expect(plan, row.id) as file:
        call = resumed_call(generator.money, row, quote_source=plan.quote.source, delivery=file)
        async with call:
            callbacks = provider_callbacks(call, progress)
            job = await callbacks.claim(found)
            if job is None:
                return None
            receipt = await provider.resume(job, plan.request, file, callbacks)
            return await finish_despite_cancellation(_store(plan, receipt, file, call, generator))


async def _store(
    plan: Plan, receipt: Receipt, file: IncomingFile, call: PaidCall, generator: ImageGenerator
) -> GeneratedImage:
    write = partial(generator.output.write_or_rename, plan.target)
    drawn = await generator.output.save(plan, receipt, file, call=call, write=write)
    await asyncio.to_thread(generator.incoming.remove, file.job_id)
    return drawn


async def _write_stored(row: JobRow, handle: str, generator: ImageGenerator) -> GeneratedImage:
    """Write the file of a picture that is paid for and stored, but has no file."""
    entry, output = decode_entry(row), generator.output
    request, pictures = entry.request, output.pictures
    spec = generator.planner.specs().get(row.provider)
    model = None if spec is None else spec.model(request.model)
    fits = model is not None and model.fit_to_size
    image = await pictures.convert(
        await pictures.recall(handle),
        to=entry.output_format,
        cover=(request.width, request.height) if fits else None,
    )
    content = await asyncio.to_thread(output.output_bytes, image, row.provider, request)
    write = partial(output.find_or_write, since_ms=row.created_ms)
    path = await asyncio.to_thread(write, entry.path, content)
    await generator.money.record_path(row.reservation, str(path))
    await asyncio.to_thread(generator.incoming.remove, row.id)
    return GeneratedImage(
        path=path,
        image=image,
        cost_nano=row.cost_nano,
        cost_source=row.cost_source,
        provider=row.provider,
        model=request.model,
        prompt_used=request.prompt,
        untrusted=entry.untrusted,
    )


async def _saved_image(
    row: JobRow, master: str, path: Path, generator: ImageGenerator
) -> GeneratedImage:
    """The picture in a file that was written, which may be converted from the purchased one."""
    entry, pictures = decode_entry(row), generator.output.pictures
    try:
        image = await pictures.take_file(path)
    except (ImageError, ReachDenied, StorageError):
        image = await pictures.recall(master)
    return GeneratedImage(
        path=path,
        image=image,
        cost_nano=row.cost_nano,
        cost_source=row.cost_source,
        provider=row.provider,
        model=row.model,
        prompt_used=entry.request.prompt,
        untrusted=entry.untrusted,
    )


def _restore_plan(row: JobRow, generator: ImageGenerator, *, ask: bool) -> Plan:
    """The plan of a job; only if the provider must be asked, its key must be there."""
    entry = decode_entry(row)
    request = entry.request
    specs = generator.planner.specs()
    if ask or row.provider not in specs:
        choice = choose(
            DrawingNeeds(
                provider=row.provider,
                model=request.model,
                size=Size(request.width, request.height),
                quality=request.quality,
                has_svg=False,
            ),
            specs=specs,
            key_of=generator.planner.key_of,
            today=generator.clock().date(),
        )
    else:
        spec = specs[row.provider]
        choice = Choice(spec=spec, model=spec.model(request.model) or spec.models[0], key="")
    return Plan(
        request=request,
        choice=choice,
        quote=quote_of(request, choice.model),
        target=entry.path,
        # A file that is there now may be newer than this picture.
        overwrite=False,
        parents=entry.parents,
        output_format=entry.output_format,
        untrusted=entry.untrusted,
    )
