"""An order -> a paid-for picture on disk: the one way every generated picture takes.

Everything that can be checked is checked first, nothing is sent before it is reserved and
journalled, and whatever happens then, leaving the `PaidCall` block decides the row. A crash
between any two lines leaves a row that says how far it came; `recovery` takes it from there.
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
from limner.tools.journal import journal_entry
from limner.tools.output_file import GeneratedImage, OutputWriter
from limner.tools.planning import Plan, Planner


class ImageGenerator(msgspec.Struct, frozen=True, kw_only=True):
    """Draws orders.

    ``connect`` builds the provider of a choice. ``turn`` is entered for as long as a request is
    with a provider, and bounds how many are there at once. ``session_id`` is whose budget pays
    for a call that names no session.
    """

    planner: Planner
    connect: Callable[[Choice], Provider]
    turn: Callable[[], AbstractAsyncContextManager[Any]]
    landing: OutputWriter
    money: Money
    under_way: InFlight
    session_id: str
    clock: Callable[[], datetime]

    async def draw(self, order: Order, context: ToolContext) -> GeneratedImage:
        """Plan, ask, reserve, send, verify, settle, save.

        Raises:
            LimnerError: it failed; the error carries the cost of what was spent before.
        """
        with self.under_way.working():
            plan = await self.planner.plan(order, context, today=self.clock().date())
            async with self._paid_call(order, plan, context) as call, self.turn():
                self.under_way.check_open()
                provider = self.connect(plan.choice)
                with self.landing.pictures.sink() as sink:
                    await call.send(journal_entry(plan))
                    callbacks = provider_callbacks(call, context.progress)
                    receipt = await provider.generate(plan.request, sink, callbacks)
                    write = partial(self.landing.write, plan.target, overwrite=plan.overwrite)
                    return await finish_despite_cancellation(
                        self.landing.land(plan, receipt, sink, call=call, write=write)
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
