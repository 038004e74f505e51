"""A pytest test that asks for a fixture of limner -> fake services, or checks of its pictures.

`limner_fake` starts fake services, which every `Limner` of the test uses. `picture` compares
pictures with references and judges them by criteria; ``--limner-update`` writes the references.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from limner.testing.pictures import PictureFixture
    from limner.testing.services import FakeServices

UPDATE = "--limner-update"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the flag that writes references."""
    group = parser.getgroup("limner", "pictures")
    group.addoption(
        UPDATE, action="store_true", help="write the pictures of the tests as their references"
    )


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


@pytest.fixture
def picture(request: pytest.FixtureRequest, tmp_path: Path) -> PictureFixture:
    """Checks of a picture: ``picture(shot).matches("home.png")``, ``.shows("Save")``."""
    from limner.testing.pictures import PictureFixture  # noqa: PLC0415

    return PictureFixture(
        folder=Path(request.path).parent,
        sheets=tmp_path,
        update=bool(request.config.getoption(UPDATE)),
    )
