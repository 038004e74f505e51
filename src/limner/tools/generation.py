"""An order -> a paid picture on disk: the one way of every generated picture.

Everything that can be checked is checked first. Nothing is sent before it is reserved and
journalled. Leaving the `paid_call` block decides the ledger row. A crash between any two lines
leaves a row that says how far the call came, and `recovery` continues from there.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Generator
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from datetime import datetime
from functools import partial
from typing import Any

import msgspec

from limner.errors import LimnerError, StorageError
from limner.money.ledger import Money, new_job_id
from limner.money.paid_call import PaidCall, finish_despite_cancellation, paid_call
from limner.net.redaction import redact
from limner.net.waits import OnWait, wait_text, waits_reported
from limner.pictures.request import Progress, ProviderCallbacks
from limner.pictures.take import MAX_PICTURE_BYTES
from limner.providers.base import Provider
from limner.providers.choice import Choice
from limner.providers.specs import BUILT_IN
from limner.storage.incoming_files import Incoming, IncomingFile
from limner.tools.base import ToolContext
from limner.tools.consent import payer_for
from limner.tools.drawing_arguments import Order
from limner.tools.in_flight import InFlight
from limner.tools.journal import encode_entry
from limner.tools.output_file import GeneratedImage, OutputWriter
from limner.tools.planning import Plan, Planner

# A picture is at most about as large as its pixels; the rest is for the database and for metadata.
BYTES_PER_PIXEL = 4
MIN_ROOM_BYTES = 2 * 1024 * 1024
LOGGED_CHARS = 80
logger = logging.getLogger("limner.tools")


class ImageGenerator(msgspec.Struct, frozen=True, kw_only=True):
    """Draws orders.

    ``connect`` builds the provider of a choice. ``slot`` limits how many requests are with
    providers at once. ``incoming`` keeps delivered bytes until they are pictures. ``session_id`` is
    the session that pays for a call that names none.
    """

    planner: Planner
    connect: Callable[[Choice], Provider]
    slot: Callable[[], AbstractAsyncContextManager[Any]]
    output: OutputWriter
    incoming: Incoming
    money: Money
    in_flight: InFlight
    session_id: str
    clock: Callable[[], datetime]

    async def draw(self, order: Order, context: ToolContext) -> GeneratedImage:
        """Plan, make room, ask, reserve, send, verify, settle, save.

        Raises:
            LimnerError: it failed; the error carries what was spent.
        """
        with self.in_flight.track():
            plan = await self.planner.plan(order, context, today=self.clock().date())
            writing = self.in_flight.writing(plan.target, overwrite=plan.overwrite)
            with writing, await self.expect(plan, new_job_id()) as file:
                # Both load what they need before anything is reserved.
                provider, entry = self.connect(plan.choice), encode_entry(plan)
                async with self._paid_call(order, plan, context, file) as call, self.slot():
                    self.in_flight.check_open()
                    _log_request(order.tool, plan)
                    if plan.choice.spec.name not in BUILT_IN:
                        # A plug-in may not announce its paid requests.
                        await call.send(entry)
                    with (
                        call.announced(entry),
                        _marked(plan),
                        waits_reported(_reporter(context.progress)),
                    ):
                        callbacks = provider_callbacks(call, context.progress)
                        receipt = await provider.generate(plan.request, file, callbacks)
                    write = partial(
                        self.output.write,
                        plan.target,
                        overwrite=plan.overwrite,
                        replaces=plan.replaces,
                    )
                    return await finish_despite_cancellation(
                        self.output.save(plan, receipt, file, call=call, write=write)
                    )

    async def expect(self, plan: Plan, job_id: str) -> IncomingFile:
        """Make ready for the bytes of a picture: a worker runs, and room is set aside.

        Raises:
            LimnerError: no worker can be started.
            StorageError: the disk has no room.
        """
        await self.output.pictures.expect()
        room_bytes = MIN_ROOM_BYTES + BYTES_PER_PIXEL * plan.request.width * plan.request.height
        opening = asyncio.ensure_future(
            asyncio.to_thread(
                self.incoming.open, job_id, room_bytes=room_bytes, max_bytes=MAX_PICTURE_BYTES
            )
        )
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            with suppress(StorageError):  # then there is no file to close
                (await asyncio.shield(opening)).close()
            raise

    def _paid_call(
        self, order: Order, plan: Plan, context: ToolContext, file: IncomingFile
    ) -> AbstractAsyncContextManager[PaidCall]:
        service = plan.choice.spec.name
        payer = payer_for(
            context,
            self.planner.approval,
            self.money,
            what=f"A picture from {service}",
            session_id=self.session_id,
        )
        return paid_call(
            self.money,
            plan.quote,
            payer=payer,
            tool=order.tool,
            provider=service,
            model=plan.request.model,
            delivery=file,
        )


@contextmanager
def _marked(plan: Plan) -> Generator[None]:
    """Mark the error of a service that got pictures from outside: it may repeat their text."""
    try:
        yield
    except LimnerError as error:
        error.untrusted |= plan.untrusted
        raise


def _log_request(tool: str, plan: Plan) -> None:
    if logger.isEnabledFor(logging.DEBUG):
        prompt = redact(plan.request.prompt)
        logger.debug(
            "%s: %s/%s is asked for %dx%d pixels and %d source pictures: %r",
            tool,
            plan.choice.spec.name,
            plan.request.model,
            plan.request.width,
            plan.request.height,
            len(plan.request.sources),
            prompt if len(prompt) <= LOGGED_CHARS else f"{prompt[:LOGGED_CHARS]}…",
        )


def _reporter(progress: Callable[[Progress], None]) -> OnWait:
    start_s = time.monotonic()
    return lambda error, wait_s: progress(
        Progress(message=wait_text(error, wait_s), elapsed_s=time.monotonic() - start_s)
    )


def provider_callbacks(call: PaidCall, progress: Callable[[Progress], None]) -> ProviderCallbacks:
    """What a provider reports while it works, connected to the ledger."""
    return ProviderCallbacks(
        journal=lambda job: call.note_job(job.remote_id, job.url),
        progress=progress,
        withdraw=call.withdraw,
    )
