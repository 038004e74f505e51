"""A sample of the limits of `make faults`: a call is refused unpaid, or its picture is kept."""

from __future__ import annotations

import pytest
from tests.faults.limits import Limit, can_mount, sweep_limits

# On both sides of what a call needs.
DISK = [
    Limit("disk", 16),
    Limit("disk", 64),
    Limit("disk", 256),
    Limit("disk", 3072),
    Limit("disk", 8192),
]
PROCESS = [Limit("files", 9), Limit("files", 16), Limit("memory", 96), Limit("memory", 320)]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", ["openai", "replicate"])
async def test_a_process_with_few_files_or_little_memory_loses_nothing_paid(kind: str) -> None:
    outcomes = await sweep_limits(kind, PROCESS, jobs=2)
    assert [outcome for outcome in outcomes if outcome.problems] == []


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(not can_mount(), reason="mounting a small disk needs root")
@pytest.mark.parametrize("kind", ["openai", "replicate", "edit"])
async def test_a_small_disk_refuses_a_call_before_it_pays(kind: str) -> None:
    outcomes = await sweep_limits(kind, DISK, jobs=2)
    assert [outcome for outcome in outcomes if outcome.problems] == []
    assert {outcome.limit: outcome.was_paid for outcome in outcomes}[DISK[0]] is False
