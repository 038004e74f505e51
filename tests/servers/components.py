"""Large components that some tests need, and that an ordinary installation lacks."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest


def needs(*modules: str) -> pytest.MarkDecorator:
    """Skips a test where a module is missing; where everything is required, it runs and fails."""
    missing = [name for name in modules if find_spec(name) is None]
    return pytest.mark.skipif(
        bool(missing) and os.environ.get("REQUIRE") != "all",
        reason=f"not installed: {', '.join(missing)}",
    )
