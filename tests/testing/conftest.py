"""The fixture of the plug-in, also in a checkout whose entry points are not installed."""

from __future__ import annotations

from limner.testing.pytest_plugin import limner_fake

__all__ = ["limner_fake"]
