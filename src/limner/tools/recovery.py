"""A job that a crash or a time-out left behind -> its picture, brought in once and never lost."""

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
from limner.tools.journal import entry_of
from limner.tools.output_file import GeneratedImage
from limner.tools.planning import Plan, quote_of


async def recover(
    row: JobRow, drawing: ImageGenerator, *, progress: Callable[[Progress], None]
) -> GeneratedImage | None:
    """Bring in the picture of a request that was sent but never received or never written.

    None where the service cannot be asked, or does not know the request: then the row stays as
    it is, counted at its quote. Nothing is overwritten: where the place it was meant for is taken
    by now, the picture gets a name of its own.

    Raises:
        LimnerError: the job failed, or the service cannot be reached.
        UserError: somebody else brought it in meanwhile (JOB_ALREADY_RECEIVED).
    """
    if row.picture is not None:
        return await _write_again(row, row.picture, drawing)
    plan = _plan_again(row, drawing)
    provider = drawing.connect(plan.choice)
    if not isinstance(provider, Resumable):
        return None
    with drawing.under_way.working():
        if row.remote_id is not None and row.remote_url is not None:
            job: RemoteJob | None = RemoteJob(remote_id=row.remote_id, url=row.remote_url)
        else:
            job = await provider.find(plan.request, since_ms=row.created_ms)
        if job is None:
            return None
        landing, money = drawing.landing, drawing.money
        async with resumed_call(money, row, quote_source=plan.quote.source) as call:
            await call.note_job(job.remote_id, job.url)
            with landing.pictures.sink() as sink:
                callbacks = provider_callbacks(call, progress)
                receipt = await provider.resume(job, plan.request, sink, callbacks)
                write = partial(landing.write_somewhere, plan.target)
                return await finish_despite_cancellation(
                    landing.land(plan, receipt, sink, call=call, write=write)
                )


async def _write_again(row: JobRow, handle: str, drawing: ImageGenerator) -> GeneratedImage:
    """Write the file of a picture that is paid for and kept, but was never written."""
    entry, landing = entry_of(row), drawing.landing
    request, pictures = entry.request, landing.pictures
    spec = drawing.planner.specs().get(row.provider)
    model = None if spec is None else spec.model(request.model)
    fits = model is not None and model.fit_to_size
    with drawing.under_way.working():
        image = await pictures.convert(
            await pictures.recall(handle),
            to=entry.output_format,
            cover=(request.width, request.height) if fits else None,
        )
        copy = await asyncio.to_thread(landing.copy_of, image, row.provider, request)
        written = partial(landing.written, since_ms=row.created_ms)
        path = await asyncio.to_thread(written, entry.path, copy)
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


def _plan_again(row: JobRow, drawing: ImageGenerator) -> Plan:
    entry = entry_of(row)
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
        # What is there now may be newer than this picture.
        overwrite=False,
        parents=entry.parents,
        output_format=entry.output_format,
    )
