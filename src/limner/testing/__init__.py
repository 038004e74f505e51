"""A provider -> the fakes and the contract tests that its author needs.

Inherit `ProviderContract` in a test module, give it the provider's spec and an `HttpStage` with the
good response of its service, and run it with pytest. It needs no network beyond loopback.
"""

from limner.testing.contract import EditStage, ProviderContract, Stage
from limner.testing.fakes import FakeClock, FakeDesk, FakeSink
from limner.testing.stage import HttpStage, StagePicture

__all__ = [
    "EditStage",
    "FakeClock",
    "FakeDesk",
    "FakeSink",
    "HttpStage",
    "ProviderContract",
    "Stage",
    "StagePicture",
]
