"""A process that spends, controlled by lines on stdin.

Arguments: the database, then a verb. ``race`` makes ten reservations at once after a line on stdin
and prints how many were admitted; ``reserved`` and ``sent`` take one call to that state and wait.
"""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from limner.errors import BudgetExceeded
from limner.money.ledger import Caps, Money
from limner.storage.store import Store

FOUR_CENTS = 40_000_000
CALL: dict[str, Any] = {"session_id": "s", "tool": "image_generate", "provider": "p", "model": "m"}


async def race(money: Money) -> int:
    """Ten reservations of four cents at once; how many were admitted."""
    calls = [money.reserve(FOUR_CENTS, **CALL) for _ in range(10)]
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    refused = [outcome for outcome in outcomes if isinstance(outcome, BudgetExceeded)]
    admitted = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
    assert len(refused) + len(admitted) == len(outcomes), outcomes
    return len(admitted)


def say(what: object) -> None:
    """One line for the test that started this process."""
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


async def main(path: Path, verb: str) -> None:
    store = Store(path)
    money = Money(store, caps=Caps(session_nano=100_000_000), clock=lambda: datetime.now(UTC))
    if verb == "race":
        say("ready")
        sys.stdin.readline()
        say(await race(money))
    else:
        reservation = await money.reserve(FOUR_CENTS, **CALL)
        if verb == "sent":
            await money.mark_sent(reservation, request_json="{}")
        say(reservation.ledger_id)
    # Alive until the next line: the reservation of a dead owner is released.
    sys.stdin.readline()
    await store.aclose()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
