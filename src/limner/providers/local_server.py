"""A local server's JSON -> progress and errors: what programs on the user's own GPU share."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import cast

from limner.errors import ProviderBadRequest
from limner.net.failures import Vendor

MAX_COUNT = 10**9
MAX_NAMES = 5
MAX_NAME_CHARS = 100


def unknown_checkpoint(name: str, known: Iterable[str], *, vendor: Vendor) -> ProviderBadRequest:
    """The error for a checkpoint that does not exist; ``known`` has the names that do."""
    names = [checkpoint[:MAX_NAME_CHARS] for checkpoint in known]
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.4)
    if near:
        hint = f"Did you mean {near[0]!r}?"
    elif names:
        hint = f"It has {', '.join(names[:MAX_NAMES])}{', …' if len(names) > MAX_NAMES else '.'}"
    else:
        hint = "It has none: put a checkpoint into its models folder."
    return ProviderBadRequest(
        f"{vendor.title} has no checkpoint {name[:MAX_NAME_CHARS]!r}",
        hint=hint,
        extras={"provider": vendor.provider},
    )


def parse_fraction(done: object, of: object = 1) -> float | None:
    """How much is done, between 0 and 1; None if the server's values are not numbers."""
    if not _is_count(done) or not _is_count(of) or of == 0:
        return None
    return min(float(cast("float", done)) / float(cast("float", of)), 1.0)


def _is_count(value: object) -> bool:
    # True is an int too, and an int may be too large for a float.
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return 0 <= value <= MAX_COUNT
