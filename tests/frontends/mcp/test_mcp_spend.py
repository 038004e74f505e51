"""The tool `spend`: every amount of the ledger, in dollars."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.agent.agent_pictures import program

from limner.frontends.mcp.spend import spend
from limner.settings import BudgetSettings
from limner.tools.base import ToolCall
from limner.tools.registry import ToolRegistry

CENT = 10_000_000
CALL: dict[str, Any] = {"tool": "image_generate", "provider": "openai-image", "model": "m"}


async def test_each_amount_is_reported_in_dollars(tmp_path: Path) -> None:
    async with program(tmp_path) as lim:
        money, today = lim.money, datetime.now(UTC).date()
        settled = await money.reserve(4 * CENT, session_id=lim.session_id, **CALL)
        await money.mark_sent(settled, request_json="{}")
        await money.settle(settled, cost_nano=3 * CENT, cost_source="computed", picture=None)
        unknown = await money.reserve(5 * CENT, session_id="other", **CALL)
        await money.mark_sent(unknown, request_json="{}")
        await money.mark_unknown(unknown, error_code="X")
        in_flight = await money.reserve(7 * CENT, session_id="other", **CALL)
        await money.mark_sent(in_flight, request_json="{}")
        tool = spend(
            money,
            budget=BudgetSettings(day_usd=Decimal("2.5")),
            session_id=lim.session_id,
            today=lambda: today,
        )
        call = ToolCall(name="spend", arguments={})
        [result] = await ToolRegistry([tool]).execute_parallel([call], lim.context())
        await money.release(in_flight, error_code="X")
    value = json.loads(result.value)
    assert value == {
        "total_usd": 0.08,
        "today_usd": 0.08,
        "session_usd": 0.03,
        "unknown_usd": 0.05,
        "in_flight_usd": 0.07,
        "by_model": value["by_model"],
        "budget": {"call_usd": None, "session_usd": None, "day_usd": 2.5},
    }
