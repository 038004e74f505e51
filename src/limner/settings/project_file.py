"""A value in a project's ``limner.toml`` -> whether limner may use it.

The file comes with the working folder, which the user may not trust. A setting that guards money,
files or pictures can become stricter by it, never looser. The file does not choose the personality
either, because a personality has rules of its own.
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
USERS_ONLY = frozenset({"agent.personality"})


def loosens(key: str, value: Any, *, current: Any) -> bool:
    """Whether a setting would guard less with the project file's value.

    Args:
        key: the setting.
        value: the value in the project file.
        current: the value in the user's own file, or the default; None is a cap that is not set.
    """
    if key in STRICTEST_FIRST:
        order = STRICTEST_FIRST[key]
        return order.index(value) > order.index(current)
    if key in LOWER_IS_STRICTER:
        return current is not None and value > current
    return key in USERS_ONLY and value != current
