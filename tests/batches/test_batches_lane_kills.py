"""A cheap lane that is killed: a sample of the points of `tests.faults.lane_kills`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.batches.lane_rows import VENDORS
from tests.faults.lane_kills import ROWS, LaneKill, kill_at_request, kill_at_write

pytestmark = pytest.mark.slow


def expect(name: str) -> LaneKill:
    return LaneKill(
        was_killed=True,
        done=ROWS,
        settled=ROWS,
        spent_nano=ROWS * VENDORS[name].cost_nano,
        billed=ROWS,
        created=1,
        wrong=(),
    )


@pytest.mark.parametrize("route", ["create", "status", "results"])
@pytest.mark.parametrize("name", VENDORS)
def test_a_kill_at_a_request_neither_loses_nor_doubles_a_payment(
    name: str, route: str, tmp_path: Path
) -> None:
    assert kill_at_request(name, route, tmp_path) == expect(name)


@pytest.mark.parametrize("number", [8, 12, 16])
@pytest.mark.parametrize("name", VENDORS)
def test_a_kill_before_a_write_neither_loses_nor_doubles_a_payment(
    name: str, number: int, tmp_path: Path
) -> None:
    assert kill_at_write(name, number, tmp_path) == expect(name)
