"""Batches that are killed and interrupted: a sample of the recorded runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.faults.batch_kills import run
from tests.faults.captions import Captioned, caption

pytestmark = pytest.mark.slow


@pytest.fixture
def store_url(database: str | None) -> str | None:
    return database


async def test_killed_workers_lose_no_row_and_pay_for_none_twice(tmp_path: Path) -> None:
    outcome = await run(200, 5, seed=3, folder=tmp_path)
    assert outcome.counts.done + outcome.counts.failed == 200
    assert outcome.kills == 4
    assert outcome.counts.failed == outcome.unknown
    wrong = {
        "billed_twice": outcome.billed_twice,
        "billed_without_ledger": outcome.billed_without_ledger,
        "settled_without_bill": outcome.settled_without_bill,
        "done_without_file": outcome.done_without_file,
        "failed_without_reason": outcome.failed_without_reason,
        "passed_budgets": outcome.passed_budgets,
        "wrong_counters": outcome.wrong_counters,
    }
    assert wrong == {name: [] for name in wrong}


def test_a_folder_is_captioned_into_a_csv_although_it_was_interrupted(tmp_path: Path) -> None:
    made = caption(30, 1, folder=tmp_path)
    assert replace(made, seconds=0.0) == Captioned(
        pictures=30,
        interruptions=1,
        rows=30,
        captions=30,
        asked_twice=0,
        billed_usd=made.spent_usd,
        spent_usd=made.spent_usd,
        unknown_usd=0.0,
        seconds=0.0,
    )
