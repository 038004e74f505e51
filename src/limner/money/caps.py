"""What a call may cost and what is counted so far -> what is left, or an explained refusal."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from limner.dollars import format_usd
from limner.errors import NANO_PER_USD, BudgetExceeded

# Both set the same cap: the setting, and what a program or the command line gives.
SESSION_REMEDY = "raise budget.session_usd (on the command line: --budget)"


class Caps(msgspec.Struct, frozen=True, kw_only=True):
    """The most that may be spent; None is no limit, 0 allows only what is free."""

    call_nano: int | None = None
    session_nano: int | None = None
    day_nano: int | None = None

    def with_session(self, cap_nano: int | None) -> Caps:
        """The same with one more cap on the session: the tighter of the two holds."""
        caps = [cap for cap in (self.session_nano, cap_nano) if cap is not None]
        return replace(self, session_nano=min(caps, default=None))


class CapTotals(msgspec.Struct, frozen=True, kw_only=True):
    """What the session and the UTC day of a call have reserved and spent before it."""

    session_nano: int
    day_nano: int


def left_under(caps: Caps, *, counted: CapTotals) -> int | None:
    """The most a call may cost now; None where nothing limits it."""
    limits = (
        (caps.call_nano, 0),
        (caps.session_nano, counted.session_nano),
        (caps.day_nano, counted.day_nano),
    )
    return min((_room(cap, used) for cap, used in limits if cap is not None), default=None)


def refuse_over_cap(quote_nano: int, *, caps: Caps, counted: CapTotals) -> None:
    """Do nothing where every cap leaves room for the quote; what is free always has room.

    Raises:
        BudgetExceeded: a cap leaves less.
    """
    limits = (
        ("call", caps.call_nano, 0, "raise budget.call_usd"),
        ("session", caps.session_nano, counted.session_nano, SESSION_REMEDY),
        ("day", caps.day_nano, counted.day_nano, "raise budget.day_usd, or wait for midnight UTC"),
    )
    for name, cap_nano, counted_nano, remedy in limits:
        if cap_nano is None:
            continue
        left_nano = _room(cap_nano, counted_nano)
        if quote_nano > left_nano:
            raise BudgetExceeded(
                f"This call may cost {format_usd(quote_nano)}, but of the {name} budget of "
                f"{format_usd(cap_nano)} only {format_usd(left_nano)} is left",
                hint=f"Ask for a cheaper picture, or {remedy}.",
                extras={
                    "cap": name,
                    "cap_usd": cap_nano / NANO_PER_USD,
                    "left_usd": left_nano / NANO_PER_USD,
                    "quoted_usd": quote_nano / NANO_PER_USD,
                },
            )


def _room(cap_nano: int, counted_nano: int) -> int:
    # A price can turn out above its quote: what is left is never less than nothing.
    return max(0, cap_nano - counted_nano)
