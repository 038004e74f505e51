"""Dollars as users write them -> integer nano-dollars, and back to text."""

from __future__ import annotations

from decimal import Context, Decimal, DecimalException, Inexact, InvalidOperation

from limner.errors import NANO_PER_USD, InputInvalid

# Far above any budget, and so far below 2**63 nano-dollars that the ledger's sum cannot overflow.
MAX_USD = 1_000_000

_EXACT = Context(prec=40, traps=[Inexact, InvalidOperation])
_ONE_NANO = Decimal(1).scaleb(-9)


def usd_to_nano(usd: Decimal | str | float, *, field: str | None = None) -> int:
    """Convert dollars to nano-dollars; a float counts as the decimal number it prints as.

    Raises:
        InputInvalid: not a number from 0 to 1,000,000, or finer than a nano-dollar; it names
            ``field``.
    """
    try:
        amount = Decimal(str(usd) if isinstance(usd, float) else usd)
        if isinstance(usd, bool) or not 0 <= amount <= MAX_USD:
            raise InvalidOperation
        return int(_EXACT.quantize(amount, _ONE_NANO).scaleb(9, _EXACT))
    except (DecimalException, TypeError, ValueError) as error:
        raise InputInvalid(
            f"{str(usd)[:40]!r} is not an amount in dollars",
            field=field,
            hint=f"Write a number from 0 to {MAX_USD}, such as 0.25.",
        ) from error


__all__ = ["format_usd", "usd_to_nano"]


def format_usd(nano: int) -> str:
    """Nano-dollars as text: ``$0.04``, ``$0.0132``; always cents, more digits only if needed."""
    dollars, rest = divmod(nano, NANO_PER_USD)
    digits = f"{rest:09d}"
    return f"${dollars}.{digits[:2]}{digits[2:].rstrip('0')}"
