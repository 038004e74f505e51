"""A conversation -> tool calls and words, by rule: ``limner/offline``, which needs no key."""

from limner.models.offline.model import OfflineModel

__all__ = ["OfflineModel"]
