"""A pytest test that asks for `limner_fake` -> fake services, which every `Limner` of it uses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from limner.testing.services import FakeServices


@pytest.fixture
def limner_fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeServices]:
    """Fake services. The environment of the test leads to them and to no real service."""
    # pytest loads this module at every start; the services are imported only if a test needs them.
    from limner.testing.services import FakeServices  # noqa: PLC0415

    with FakeServices(tmp_path / "limner") as fake:
        for name in fake.real_variables():
            monkeypatch.delenv(name)
        for name, value in fake.env.items():
            monkeypatch.setenv(name, value)
        yield fake
