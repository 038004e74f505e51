"""The three vendors with rows for each, and a `Limner` that speaks to their batch servers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace
from tests.servers.batch_servers import (
    AnthropicBatchServer,
    BatchServer,
    GeminiBatchServer,
    OpenAIBatchServer,
)
from tests.servers.samples import KEY

from limner import Limner
from limner.settings import load
from limner.testing import FakeClock
from limner.testing.sample_pictures import make_png
from limner.tools.batches import Batches


class LaneVendor(msgspec.Struct, frozen=True, kw_only=True):
    """A server of a vendor, rows for it, and what one row costs there.

    ``vision`` is the model that looks, if the rows are questions; ``answer`` is what it says.
    """

    server: type[BatchServer]
    variable: str
    row: Mapping[str, Any]
    cost_nano: int
    now_nano: int
    vision: str | None = None
    answer: str = ""

    @property
    def flags(self) -> dict[str, str]:
        """The flags of a program that uses it."""
        return {} if self.vision is None else {"model_roles.vision": self.vision}


FOX = make_png(64, 64, pixel=b"\xc0\x60\x20\xff")

VENDORS = {
    "openai": LaneVendor(
        server=OpenAIBatchServer,
        variable="OPENAI",
        row={"provider": "openai-image", "model": "gpt-image-2"},
        cost_nano=6_710_000,
        now_nano=13_420_000,
    ),
    "openai-edits": LaneVendor(
        server=OpenAIBatchServer,
        variable="OPENAI",
        row={
            "tool": "image_edit",
            "image": "fox.png",
            "provider": "openai-image",
            "model": "gpt-image-2",
        },
        cost_nano=10_710_000,
        now_nano=21_420_000,
    ),
    "openai-questions": LaneVendor(
        server=OpenAIBatchServer,
        variable="OPENAI",
        row={"tool": "inspect_image", "path": "fox.png"},
        cost_nano=503_400,
        now_nano=1_006_800,
        vision="openai/gpt-6-sol",
        answer="A red fox — “hello” — in the snow 🦊.",
    ),
    "anthropic": LaneVendor(
        server=AnthropicBatchServer,
        variable="ANTHROPIC",
        row={"tool": "inspect_image", "path": "fox.png"},
        cost_nano=25_170,
        now_nano=50_340,
        vision="anthropic/claude-haiku-5-5",
        answer="A red fox — “hello” — in the snow 🦊.",
    ),
    "gemini": LaneVendor(
        server=GeminiBatchServer,
        variable="GEMINI",
        row={"provider": "gemini-image", "model": "gemini-nano-banana-2.1"},
        cost_nano=18_184_500,
        now_nano=36_369_000,
    ),
}


def rows_for(name: str, count: int) -> list[dict[str, Any]]:
    """Rows that differ in their words."""
    vendor = VENDORS[name]
    word = "prompt" if vendor.vision is None else "question"
    return [
        {"key": f"k{number}", word: f"Question {number}", **vendor.row} for number in range(count)
    ]


def env_for(name: str, server: BatchServer, folder: Path) -> dict[str, str]:
    """The variables of a program that uses the server."""
    variable = VENDORS[name].variable
    return {
        "LIMNER_HOME": str(folder / "home"),
        f"{variable}_API_KEY": KEY,
        f"{variable}_BASE_URL": server.base_url,
    }


def limner_for(name: str, server: BatchServer, folder: Path) -> Limner:
    """A program that uses the server; its folder has a picture."""
    (folder / "fox.png").write_bytes(FOX)
    env = env_for(name, server, folder)
    return Limner(load(env=env, cwd=folder, flags=VENDORS[name].flags), env=env, cwd=folder)


def without_waiting(lim: Limner, *, appears_within_s: float = -1.0) -> Batches:
    """The batches of a program that waits without time passing."""
    lane = replace(lim.batches.lane, clock=FakeClock().clock, appears_within_s=appears_within_s)
    return replace(lim.batches, lane=lane)
