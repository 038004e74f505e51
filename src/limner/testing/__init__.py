"""A program or a provider -> the fakes and the contract tests that its author needs.

`FakeServices` are services on loopback for the tests of a program; the pytest fixture `limner_fake`
starts them. `ProviderContract` has the tests of a provider: inherit it in a test module, give it
the provider's spec and an `HttpStage` with the good response of its service. Neither needs a
network beyond loopback.

Importing this package loads nothing else, since pytest imports its plug-in at every start.
"""

from __future__ import annotations

# Type checkers take this for true; importing `typing` for it would cost as much as the rest.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from limner.testing.contract import EditStage, ProviderContract, Stage
    from limner.testing.fakes import FakeClock, FakeDesk, FakeSink
    from limner.testing.servers.http_server import ReceivedRequest
    from limner.testing.services import (
        Bill,
        Charge,
        FakeModelService,
        FakePictureService,
        FakeServices,
        HeldReply,
    )
    from limner.testing.stage import HttpStage, StagePicture

_HOMES = {
    "Bill": "services",
    "Charge": "services",
    "EditStage": "contract",
    "FakeClock": "fakes",
    "FakeDesk": "fakes",
    "FakeModelService": "services",
    "FakePictureService": "services",
    "FakeServices": "services",
    "FakeSink": "fakes",
    "HeldReply": "services",
    "HttpStage": "stage",
    "ProviderContract": "contract",
    "ReceivedRequest": "servers.http_server",
    "Stage": "contract",
    "StagePicture": "stage",
}

__all__ = [
    "Bill",
    "Charge",
    "EditStage",
    "FakeClock",
    "FakeDesk",
    "FakeModelService",
    "FakePictureService",
    "FakeServices",
    "FakeSink",
    "HeldReply",
    "HttpStage",
    "ProviderContract",
    "ReceivedRequest",
    "Stage",
    "StagePicture",
]


def __getattr__(name: str) -> object:
    from importlib import import_module  # noqa: PLC0415 - the import of the package stays cheap

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"limner.testing.{_HOMES[name]}"), name)
