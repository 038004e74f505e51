"""An order -> a paid picture on disk: the one way of every generated picture.

Everything that can be checked is checked first. Nothing is sent before it is reserved and
journalled. Leaving the `paid_call` block decides the ledger row. A crash between any two lines
leaves a row that says how far the call came, and `recovery` continues from there.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from functools import partial
from typing import Any

import msgspec

from limner.money.ledger import Money
from limner.money.paid_call import PaidCall, finish_despite_cancellation, paid_call
from limner.pictures.request import Progress, ProviderCallbacks
from limner.providers.base import Provider
from limner.providers.choice import Choice
from limner.tools.base import ToolContext
from limner.tools.consent import payer_for
from limner.tools.drawing_arguments import Order
from limner.tools.in_flight import InFlight
from limner.tools.journal import encode_entry
from limner.tools.output_file import GeneratedImage, OutputWriter
from limner.tools.planning import Plan, Planner


class ImageGenerator(msgspec.Struct, frozen=True, kw_only=True):
    """Draws orders.

    ``connect`` builds the provider of a choice. ``slot`` limits how many requests are with
    providers at once. ``session_id`` is the session that pays for a call that names none.
    """

    planner: Planner
    connect: Callable[[Choice], Provider]
    slot: Callable[[], AbstractAsyncContextManager[Any]]
    output: OutputWriter
    money: Money
    in_flight: InFlight
    session_id: str
    clock: Callable[[], datetime]

    async def draw(self, order: Order, context: ToolContext) -> GeneratedImage:
        """Plan, ask, reserve, send, verify, settle, save.

        Raises:
            LimnerError: it failed; the error carries what was spent.
        """
        with self.in_flight.track():
            plan = await self.planner.plan(order, context, today=self.clock().date())
            async with self._paid_call(order, plan, context) as call, self.slot():
                self.in_flight.check_open()
                provider = self.connect(plan.choice)
                with self.in_flight.writing(plan.target), self.output.pictures.sink() as sink:
                    await call.send(encode_entry(plan))
                    callbacks = provider_callbacks(call, context.progress)
                    receipt = await provider.generate(plan.request, sink, callbacks)
                    write = partial(self.output.write, plan.target, overwrite=plan.overwrite)
                    return await finish_despite_cancellation(
                        self.output.save(plan, receipt, sink, call=call, write=write)
                    )

    def _paid_call(
        self, order: Order, plan: Plan, context: ToolContext
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
        )


def provider_callbacks(call: PaidCall, progress: Callable[[Progress], None]) -> ProviderCallbacks:
    """What a provider reports while it works, connected to the ledger."""
    return ProviderCallbacks(
        journal=lambda job: call.note_job(job.remote_id, job.url),
        progress=progress,
        withdraw=call.withdraw,
    )
