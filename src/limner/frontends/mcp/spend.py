"""The tool `spend`: what was spent here, today and in all, and what the caps leave."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

from limner.errors import NANO_PER_USD
from limner.money.ledger import Money
from limner.settings import BudgetSettings
from limner.tools.base import Outcome, Tool, ToolContext

TOOL = "spend"
MAX_RESULT_CHARS = 4_000
SHOWN_MODELS = 10

DESCRIPTION = (
    "What pictures and questions about them have cost so far, in dollars: in all, today, and in "
    "this session, by model, with the budget that is set. Free of charge."
)

SCHEMA: Mapping[str, Any] = {"type": "object", "properties": {}}


def spend(
    money: Money, *, budget: BudgetSettings, session_id: str, today: Callable[[], date]
) -> Tool:
    """The tool, reading one home's ledger."""

    async def run(_: Mapping[str, Any], context: ToolContext) -> Outcome:
        spent = await money.spend(recent=0)
        session = await money.spent(session_id=context.session_id or session_id)
        day = await money.spent(day=today())
        value: dict[str, Any] = {
            "total_usd": spent.total_nano / NANO_PER_USD,
            "today_usd": day / NANO_PER_USD,
            "session_usd": session / NANO_PER_USD,
            "unknown_usd": spent.unknown_nano / NANO_PER_USD,
            "in_flight_usd": spent.in_flight_nano / NANO_PER_USD,
            "by_model": [line.as_json() for line in spent.by_model[:SHOWN_MODELS]],
            "budget": {
                "call_usd": _usd(budget.call_usd),
                "session_usd": _usd(budget.session_usd),
                "day_usd": _usd(budget.day_usd),
            },
        }
        return Outcome(value=value)

    return Tool(
        name=TOOL,
        description=DESCRIPTION,
        schema=SCHEMA,
        run=run,
        toolset="image",
        max_result_chars=MAX_RESULT_CHARS,
    )


def _usd(cap: Any) -> float | None:
    return None if cap is None else float(cap)
