"""Dollars as people write them -> integer nano-dollars, and back for a reader."""

from __future__ import annotations

from limner.catalogue.dollars import usd_to_nano
from limner.errors import NANO_PER_USD

__all__ = ["format_usd", "usd_to_nano"]


def format_usd(nano: int) -> str:
    """Nano-dollars for a reader: ``$0.04``, ``$0.0132``; cents always, finer only where needed."""
    dollars, rest = divmod(nano, NANO_PER_USD)
    digits = f"{rest:09d}"
    return f"${dollars}.{digits[:2]}{digits[2:].rstrip('0')}"
