"""A provider -> the fakes and the contract tests that its author needs.

Inherit `ProviderContract` in a test module, give it the provider's spec and a local server that
speaks its wire, and run it with pytest; it needs no plugin and no network beyond loopback.
"""

from limner.testing.contract import EditStage, ProviderContract, Stage
from limner.testing.fakes import FakeClock, FakeDesk, FakeSink

__all__ = ["EditStage", "FakeClock", "FakeDesk", "FakeSink", "ProviderContract", "Stage"]
