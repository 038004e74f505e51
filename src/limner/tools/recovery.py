"""An interrupted job -> its picture, fetched once and without paying again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from limner.catalogue.images import Size
from limner.money.ledger import JobRow
from limner.money.paid_call import finish_despite_cancellation, resumed_call
from limner.pictures.request import Progress, RemoteJob
from limner.providers.base import Resumable
from limner.providers.choice import DrawingNeeds, choose
from limner.tools.generation import ImageGenerator, provider_callbacks
from limner.tools.journal import decode_entry
from limner.tools.output_file import GeneratedImage
from limner.tools.planning import Plan, quote_of


async def recover(
    row: JobRow, drawing: ImageGenerator, *, progress: Callable[[Progress], None]
) -> GeneratedImage | None:
    """Fetch the picture of a request that was sent but never received or never written.

    Returns None if the provider cannot be asked, or does not know the request. The row then stays
    counted at its quote. No file is overwritten: if the target exists, the picture gets a
    generated name.

    Raises:
        LimnerError: the job failed, or the provider cannot be reached.
        UserError: another process has fetched it in the meantime (JOB_ALREADY_RECEIVED).
    """
    if row.picture is not None:
        return await _write_stored(row, row.picture, drawing)
    plan = _restore_plan(row, drawing)
    provider = drawing.connect(plan.choice)
    if not isinstance(provider, Resumable):
        return None
    with drawing.in_flight.track():
        if row.remote_id is not None and row.remote_url is not None:
            found = [RemoteJob(remote_id=row.remote_id, url=row.remote_url)]
        else:
            found = await provider.find(plan.request, since_ms=row.created_ms)
        if not found:
            return None
        output, money = drawing.output, drawing.money
        async with resumed_call(money, row, quote_source=plan.quote.source) as call:
            callbacks = provider_callbacks(call, progress)
            job = await callbacks.claim(found)
            if job is None:
                return None
            with output.pictures.sink() as sink:
                receipt = await provider.resume(job, plan.request, sink, callbacks)
                write = partial(output.write_or_rename, plan.target)
                return await finish_despite_cancellation(
                    output.save(plan, receipt, sink, call=call, write=write)
                )


async def _write_stored(row: JobRow, handle: str, drawing: ImageGenerator) -> GeneratedImage:
    """Write the file of a picture that is paid for and stored, but has no file."""
    entry, output = decode_entry(row), drawing.output
    request, pictures = entry.request, output.pictures
    spec = drawing.planner.specs().get(row.provider)
    model = None if spec is None else spec.model(request.model)
    fits = model is not None and model.fit_to_size
    with drawing.in_flight.track():
        image = await pictures.convert(
            await pictures.recall(handle),
            to=entry.output_format,
            cover=(request.width, request.height) if fits else None,
        )
        content = await asyncio.to_thread(output.output_bytes, image, row.provider, request)
        write = partial(output.find_or_write, since_ms=row.created_ms)
        path = await asyncio.to_thread(write, entry.path, content)
        await drawing.money.record_path(row.reservation, str(path))
    return GeneratedImage(
        path=path,
        image=image,
        cost_nano=row.cost_nano,
        cost_source=row.cost_source,
        provider=row.provider,
        model=request.model,
        prompt_used=request.prompt,
    )


def _restore_plan(row: JobRow, drawing: ImageGenerator) -> Plan:
    entry = decode_entry(row)
    request = entry.request
    size = Size(request.width, request.height)
    choice = choose(
        DrawingNeeds(
            provider=row.provider,
            model=request.model,
            size=size,
            quality=request.quality,
            has_svg=False,
        ),
        specs=drawing.planner.specs(),
        key_of=drawing.planner.key_of,
        today=drawing.clock().date(),
    )
    return Plan(
        request=request,
        choice=choice,
        quote=quote_of(request, choice.model),
        target=entry.path,
        # A file that is there now may be newer than this picture.
        overwrite=False,
        parents=entry.parents,
        output_format=entry.output_format,
    )
