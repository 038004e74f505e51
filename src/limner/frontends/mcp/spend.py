"""The tool `spend`: the ledger -> the costs in all, today and in this session, and the budget."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import msgspec

from limner.errors import NANO_PER_USD
from limner.money.ledger import Money
from limner.settings import BudgetSettings
from limner.tools.base import Outcome, Tool, ToolContext
from limner.tools.built_in.image_recall import READS
from limner.tools.declaration import ToolDeclaration

SHOWN_MODELS = 10


class SpendArguments(msgspec.Struct, frozen=True, kw_only=True):
    """`spend` takes no arguments."""


class SpendAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The value of `spend`, in dollars."""

    total_usd: float | None
    today_usd: float | None
    session_usd: float | None
    unknown_usd: float | None
    in_flight_usd: float | None
    by_model: list[dict[str, Any]]
    budget: dict[str, Any]


SPEND = ToolDeclaration(
    name="spend",
    title="Costs so far",
    description="The costs of pictures and of questions about them, in dollars: in all, today, "
    "in this session and by model, with the configured budget. Free of charge.",
    arguments=SpendArguments,
    answer=SpendAnswer,
    hints=READS,
    max_result_chars=4_000,
)


def spend(
    money: Money, *, budget: BudgetSettings, session_id: str, today: Callable[[], date]
) -> Tool:
    """Build the tool, which reads the ledger of one home."""

    async def run(_: SpendArguments, context: ToolContext) -> Outcome:
        spent = await money.spend(recent=0)
        session = await money.spent(session_id=context.session_id or session_id)
        day = await money.spent(day=today())
        answer = SpendAnswer(
            total_usd=spent.total_nano / NANO_PER_USD,
            today_usd=day / NANO_PER_USD,
            session_usd=session / NANO_PER_USD,
            unknown_usd=spent.unknown_nano / NANO_PER_USD,
            in_flight_usd=spent.in_flight_nano / NANO_PER_USD,
            by_model=[line.as_json() for line in spent.by_model[:SHOWN_MODELS]],
            budget={
                "call_usd": _usd(budget.call_usd),
                "session_usd": _usd(budget.session_usd),
                "day_usd": _usd(budget.day_usd),
            },
        )
        return Outcome(value=msgspec.structs.asdict(answer))

    return SPEND.tool(run)


def _usd(cap: Any) -> float | None:
    return None if cap is None else float(cap)
