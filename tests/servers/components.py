"""What some tests need and not every installation has: large components, a sound Python."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec

import pytest

IS_ALL_REQUIRED = os.environ.get("REQUIRE") == "all"
MISSING = "not installed: "
# https://github.com/python/cpython/issues/113964
starts_late_threads = pytest.mark.skipif(
    (3, 12) <= sys.version_info < (3, 12, 2),
    reason="Python 3.12.0 and 3.12.1 start no thread after the main thread has ended",
)


def needs(*modules: str) -> pytest.MarkDecorator:
    """Skips a test if a module is missing."""
    return skipped_without([name for name in modules if find_spec(name) is None])


def skipped_without(missing: list[str]) -> pytest.MarkDecorator:
    """Skips a test that misses something; if everything is required, it runs and fails."""
    return pytest.mark.skipif(
        bool(missing) and not IS_ALL_REQUIRED, reason=MISSING + ", ".join(missing)
    )
