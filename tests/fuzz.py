"""How many examples the property tests try, by day and under ``make fuzz``."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import HealthCheck, settings

IS_LONG = os.environ.get("LIMNER_FUZZ") == "long"
# For a property whose fixture holds nothing between the examples. It names `too_slow` again,
# since the list of a test replaces that of the profile.
SHARED_FIXTURE = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
# For values that a schema makes: some are large, and many are filtered out.
EVERY_CHECK: Any = list(HealthCheck)


def examples(day: int, long: int = 5_000) -> int:
    """How often to try: ``day`` in ``make test``, ``long`` in ``make fuzz``."""
    return long if IS_LONG else day


def sample(day: int) -> settings:
    """For a property with a shared fixture: ``day`` examples, and fifty times that at length."""
    return settings(max_examples=examples(day, 50 * day), suppress_health_check=SHARED_FIXTURE)
