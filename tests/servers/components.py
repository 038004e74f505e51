"""Large components that some tests need, and that an ordinary installation lacks."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest

IS_ALL_REQUIRED = os.environ.get("REQUIRE") == "all"
MISSING = "not installed: "


def needs(*modules: str) -> pytest.MarkDecorator:
    """Skips a test if a module is missing."""
    return skipped_without([name for name in modules if find_spec(name) is None])


def skipped_without(missing: list[str]) -> pytest.MarkDecorator:
    """Skips a test that misses something; if everything is required, it runs and fails."""
    return pytest.mark.skipif(
        bool(missing) and not IS_ALL_REQUIRED, reason=MISSING + ", ".join(missing)
    )
