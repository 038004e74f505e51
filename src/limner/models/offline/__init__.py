"""A conversation -> tool calls and text by rules: ``limner/offline``, which needs no key.

Its phrases are loaded when it is first asked: a program with a key never does.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from limner.models.offline.model import OfflineModel

__all__ = ["OfflineModel"]


def __getattr__(name: str) -> object:
    if name != "OfflineModel":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from limner.models.offline.model import OfflineModel  # noqa: PLC0415 - loaded on first use

    return OfflineModel
