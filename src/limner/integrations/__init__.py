"""limner's tools as native tools of other agent frameworks, one module for each framework.

A module is the only importer of its framework, and limner depends on none of them.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def needs(package: str) -> Generator[None]:
    """Import a framework; if that fails, the error names the command that installs it.

    Raises:
        ImportError: the framework is not installed, or is too old.
    """
    try:
        yield
    except ImportError as error:
        raise ImportError(f"{error}. Install it: pip install {package}", name=error.name) from error
