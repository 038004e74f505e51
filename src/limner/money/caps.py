"""Caps and the totals so far -> what a call may still cost, or a refusal that explains itself."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from limner.dollars import format_usd
from limner.errors import NANO_PER_USD, BudgetExceeded

# The setting and the --budget flag set the same cap.
SESSION_REMEDY = "raise budget.session_usd (on the command line: --budget)"


class Caps(msgspec.Struct, frozen=True, kw_only=True):
    """The most that may be spent; None is no limit, and 0 allows only free calls."""

    call_nano: int | None = None
    session_nano: int | None = None
    day_nano: int | None = None

    def with_session(self, cap_nano: int | None) -> Caps:
        """The same caps with one more on the session: the lower of the two counts."""
        caps = [cap for cap in (self.session_nano, cap_nano) if cap is not None]
        return replace(self, session_nano=min(caps, default=None))


class CapTotals(msgspec.Struct, frozen=True, kw_only=True):
    """What was reserved and spent before a call, in its session and on its UTC day."""

    session_nano: int
    day_nano: int


def remaining_under(caps: Caps, *, totals: CapTotals) -> int | None:
    """The most a call may cost now; None if no cap is set."""
    limits = (
        (caps.call_nano, 0),
        (caps.session_nano, totals.session_nano),
        (caps.day_nano, totals.day_nano),
    )
    return min((_remaining(cap, used) for cap, used in limits if cap is not None), default=None)


def check_caps(quote_nano: int, *, caps: Caps, totals: CapTotals) -> None:
    """Refuse a quote that exceeds a cap; a free call never does.

    Raises:
        BudgetExceeded: a cap leaves less than the quote.
    """
    limits = (
        ("call", caps.call_nano, 0, "raise budget.call_usd"),
        ("session", caps.session_nano, totals.session_nano, SESSION_REMEDY),
        ("day", caps.day_nano, totals.day_nano, "raise budget.day_usd, or wait for midnight UTC"),
    )
    for name, cap_nano, used_nano, remedy in limits:
        if cap_nano is None:
            continue
        left_nano = _remaining(cap_nano, used_nano)
        if quote_nano > left_nano:
            raise BudgetExceeded(
                f"This call may cost {format_usd(quote_nano)}, but only {format_usd(left_nano)} of "
                f"the {name} budget of {format_usd(cap_nano)} is left",
                hint=f"Ask for a cheaper picture, or {remedy}.",
                extras={
                    "cap": name,
                    "cap_usd": cap_nano / NANO_PER_USD,
                    "left_usd": left_nano / NANO_PER_USD,
                    "quoted_usd": quote_nano / NANO_PER_USD,
                },
            )


def _remaining(cap_nano: int, used_nano: int) -> int:
    # A price can be higher than its quote, so that more is used than the cap allows.
    return max(0, cap_nano - used_nano)
