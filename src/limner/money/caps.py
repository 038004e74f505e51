"""Caps and the totals so far -> what a call may still cost, or a refusal that explains itself."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from limner.dollars import format_usd
from limner.errors import NANO_PER_USD, BudgetExceeded

# A flag of the command line sets one or the other: `chat` has a session.
SESSION_REMEDY = "raise budget.session_usd (on the command line: --budget)"
PROGRAM_REMEDY = "raise budget_usd (on the command line: --budget)"


class Caps(msgspec.Struct, frozen=True, kw_only=True):
    """The most that may be spent; None is no limit, and 0 allows only free calls.

    ``program_nano`` caps what one `Limner` spends with all its sessions, and ``scope_nano`` what
    the calls of one scope spend, in this program and in earlier ones.
    """

    call_nano: int | None = None
    session_nano: int | None = None
    program_nano: int | None = None
    scope_nano: int | None = None
    day_nano: int | None = None

    def with_session(self, cap_nano: int | None) -> Caps:
        """The same caps with one more on the session: the lower of the two counts."""
        caps = [cap for cap in (self.session_nano, cap_nano) if cap is not None]
        return replace(self, session_nano=min(caps, default=None))


class Used(msgspec.Struct, frozen=True, kw_only=True):
    """What counts against a cap, and how much of that is only held for calls in flight."""

    nano: int = 0
    held_nano: int = 0


class CapTotals(msgspec.Struct, frozen=True, kw_only=True):
    """What was used before a call: by its session, its program and scope, and on its UTC day."""

    session: Used = Used()
    program: Used = Used()
    scope: Used = Used()
    day: Used = Used()


class _Limit(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    label: str
    cap_nano: int
    used: Used
    remedy: str

    @property
    def now_nano(self) -> int:
        # A price can be higher than its quote, so that more is used than the cap allows.
        return max(0, self.cap_nano - self.used.nano)

    @property
    def later_nano(self) -> int:
        """What is left if the calls in flight cost nothing."""
        return max(0, self.cap_nano - self.used.nano + self.used.held_nano)


def amount_under(
    quote_nano: int,
    *,
    enough_nano: int | None,
    least_nano: int | None,
    caps: Caps,
    totals: CapTotals,
) -> int:
    """What to reserve for a call: its quote, or less if its answer can be shortened.

    An answer may take half of what the caps leave, and always ``enough_nano`` if they leave it. So
    one call with a long answer does not keep all others waiting.

    Args:
        quote_nano: the most that the call can cost.
        enough_nano: the most that an answer of the usual length can cost.
        least_nano: the most that the shortest useful answer can cost; None if nothing can be
            shortened.
        caps: the caps.
        totals: what was used before.
    """
    later_nano = min((limit.later_nano for limit in _limits(caps, totals)), default=quote_nano)
    if enough_nano is None or least_nano is None:
        return quote_nano
    share_nano = min(later_nano, max(later_nano // 2, enough_nano))
    return max(least_nano, min(quote_nano, share_nano))


def check_caps(
    quote_nano: int, *, caps: Caps, totals: CapTotals, scope: str = "", day_note: str = ""
) -> None:
    """Refuse a quote that exceeds a cap; a free call never does.

    Raises:
        BudgetExceeded: a cap leaves less than the quote. It is retryable if the quote may fit
            once the calls in flight have ended.
    """
    limits = [limit for limit in _limits(caps, totals, scope) if quote_nano > limit.now_nano]
    # A cap that refuses for good is the answer, even if another one only refuses for now.
    limits.sort(key=lambda limit: quote_nano <= limit.later_nano)
    for limit in limits:
        held_nano = limit.used.held_nano
        held = f"; calls in flight hold {format_usd(held_nano)} of it" if held_nano else ""
        is_for_now = quote_nano <= limit.later_nano
        note = day_note if limit.name == "day" else ""
        raise BudgetExceeded(
            f"This call may cost {format_usd(quote_nano)}, but only "
            f"{format_usd(limit.now_nano)} of the {limit.label} budget of "
            f"{format_usd(limit.cap_nano)} is left{held}",
            hint=f"Wait for the calls in flight, or {limit.remedy}."
            if is_for_now
            else f"Ask for something cheaper, or {limit.remedy}.{note}",
            retryable=is_for_now,
            extras={
                "cap": limit.name,
                **({"scope": scope} if limit.name == "scope" else {}),
                "cap_usd": limit.cap_nano / NANO_PER_USD,
                "left_usd": limit.now_nano / NANO_PER_USD,
                "held_usd": held_nano / NANO_PER_USD,
                "quoted_usd": quote_nano / NANO_PER_USD,
            },
        )


def _limits(caps: Caps, totals: CapTotals, scope: str = "") -> Iterator[_Limit]:
    day_remedy = "raise budget.day_usd, or wait for midnight UTC"
    scope_remedy = "raise the budget_usd of the scope"
    for name, cap_nano, used, remedy in (
        ("call", caps.call_nano, Used(), "raise budget.call_usd"),
        ("session", caps.session_nano, totals.session, SESSION_REMEDY),
        ("program", caps.program_nano, totals.program, PROGRAM_REMEDY),
        ("scope", caps.scope_nano, totals.scope, scope_remedy),
        ("day", caps.day_nano, totals.day, day_remedy),
    ):
        if cap_nano is not None:
            label = repr(scope) if name == "scope" else name
            yield _Limit(name=name, label=label, cap_nano=cap_nano, used=used, remedy=remedy)
