"""A value that a file in the working folder asks for -> whether the file may have it.

Such a file comes with whatever else is in that folder, and that may be a stranger's. Where a
setting guards money, files or pictures, the file may make it stricter than it is and never
looser. It does not choose the personality either, since that brings rules of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

STRICTEST_FIRST: Mapping[str, tuple[object, ...]] = {
    "images.block_images": (True, False),
    "approval.policy": ("untrusted", "on-request", "on-failure", "never"),
    "agent.sandbox": ("read-only", "workspace-write", "danger-full-access"),
}
LOWER_IS_STRICTER = frozenset(
    {
        "budget.call_usd",
        "budget.session_usd",
        "budget.day_usd",
        "approval.above_usd",
        "agent.max_requests",
        "agent.max_calls",
    }
)
GUARDED = LOWER_IS_STRICTER | STRICTEST_FIRST.keys()
NOT_THEIRS = frozenset({"agent.personality"})


def loosens(key: str, *, asked: Any, present: Any) -> bool:
    """Whether a setting would guard less with what is asked for than with what holds so far.

    Args:
        key: the setting.
        asked: what the file says.
        present: what the user's own file says, or the default; None is a cap that is not set.
    """
    if key in STRICTEST_FIRST:
        order = STRICTEST_FIRST[key]
        return order.index(asked) > order.index(present)
    if key in LOWER_IS_STRICTER:
        return present is not None and asked > present
    return key in NOT_THEIRS and asked != present
