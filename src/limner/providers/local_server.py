"""What the programs on somebody's own GPU share: how far they are, and how they fail."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import cast

from limner.errors import ProviderBadRequest

# They cost nothing, but a picture asked for twice is drawn twice.
UNKNOWN_FATE = "it may be drawing all the same, and was not asked again"
MAX_COUNT = 10**9
MAX_NAMES = 5
MAX_NAME_CHARS = 100


def unknown_checkpoint(
    name: str, known: Iterable[str], *, title: str, provider: str
) -> ProviderBadRequest:
    """The error for a checkpoint that is not there; ``known`` are the names that are."""
    names = [one[:MAX_NAME_CHARS] for one in known]
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.4)
    if near:
        hint = f"Did you mean {near[0]!r}?"
    elif names:
        hint = f"It has {', '.join(names[:MAX_NAMES])}{', …' if len(names) > MAX_NAMES else '.'}"
    else:
        hint = "It has none: put a checkpoint into its models folder."
    return ProviderBadRequest(
        f"{title} has no checkpoint {name[:MAX_NAME_CHARS]!r}",
        hint=hint,
        extras={"provider": provider},
    )


def fraction(done: object, of: object = 1) -> float | None:
    """How much is done by a stranger's numbers, between 0 and 1; None where they are none."""
    if not _is_count(done) or not _is_count(of) or of == 0:
        return None
    return min(float(cast("float", done)) / float(cast("float", of)), 1.0)


def _is_count(value: object) -> bool:
    # True is an int too, and a whole number may be too long for a float.
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return 0 <= value <= MAX_COUNT
