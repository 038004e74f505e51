"""A provider in a package of somebody else's: installed beside limner, and nothing else changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from tests.acceptance.conftest import Studio
from tests.acceptance.hardship import limner

from limner.testing.servers.openai_server import OpenAIServer

MODULE = '''
"""A provider as somebody else would write it."""

import struct
import zlib
from datetime import date
from decimal import Decimal

from limner import AnySize, FlatPrice, ImageModel, ProviderSpec, Receipt
from limner.errors import ProviderRefused


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


class Atelier:
    def __init__(self, connection):
        self.key = connection.key

    async def generate(self, request, sink, desk):
        assert self.key == "key-of-the-atelier"
        if "forbidden" in request.prompt:
            raise ProviderRefused("not in this atelier")
        width, height = request.width, request.height
        header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
        rows = (bytes(1) + bytes(width)) * height
        sink.write(b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", header))
        sink.write(chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
        return Receipt(prompt_used=request.prompt.upper())


SPEC = ProviderSpec(
    name="atelier",
    key_env="ATELIER_KEY",
    base_url_env=None,
    base_url="",
    models=(
        ImageModel(
            provider="atelier",
            id="brush-1",
            title="Brush 1",
            sizes=AnySize(min_edge=16, max_edge=2048),
            price=FlatPrice(usd=Decimal("0.0125")),
            max_prompt_chars=1000,
            source="made up",
            read=date(2026, 11, 15),
        ),
    ),
    build=Atelier,
)
'''


@pytest.fixture
def installed(studio: Studio, tmp_path: Path) -> Studio:
    """A studio in whose Python the package is installed, as an installer would leave it."""
    packages = tmp_path / "packages"
    info = packages / "atelier-1.0.dist-info"
    info.mkdir(parents=True)
    (packages / "atelier.py").write_text(MODULE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: atelier\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[limner.providers]\natelier = atelier:SPEC\n")
    studio.env |= {"PYTHONPATH": str(packages), "ATELIER_KEY": "key-of-the-atelier"}
    return studio


async def generate(studio: Studio, *words: str) -> tuple[int, Any]:
    return await limner("generate", "a fox", *words, env=studio.env, cwd=studio.cwd)


async def test_an_installed_provider_is_listed_with_its_model(installed: Studio) -> None:
    status, said = await limner("models", env=installed.env, cwd=installed.cwd)
    assert status == 0
    rows = [row for row in said["models"] if "atelier" in str(row)]
    assert len(rows) == 1
    assert "brush-1" in str(rows[0])


@pytest.mark.slow
async def test_an_installed_provider_draws_by_name_and_is_priced_and_settled(
    installed: Studio,
) -> None:
    words = ("--provider", "atelier", "--size", "40x30", "--out", "fox.png")
    status, quoted = await generate(installed, *words, "--dry-run")
    assert (status, quoted["cost_usd"], quoted["model"]) == (0, 0.0125, "brush-1")
    status, drawn = await generate(installed, *words)
    assert status == 0
    assert {name: drawn[name] for name in [*drawn][:5]} == {
        "path": str(installed.cwd / "fox.png"),
        "dimensions": {"width": 40, "height": 30},
        "cost_usd": 0.0125,
        "provider": "atelier",
        "prompt_used": "A FOX",
    }
    with Image.open(installed.cwd / "fox.png") as image:
        assert (image.format, image.size) == ("PNG", (40, 30))
    status, spent = await limner("spend", env=installed.env, cwd=installed.cwd)
    (row,) = spent["recent"]
    assert (status, spent["total_usd"]) == (0, 0.0125)
    assert (row["state"], row["provider"], row["model"], row["cost_source"]) == (
        "settled",
        "atelier",
        "brush-1",
        "table",
    )


@pytest.mark.slow
async def test_an_installed_provider_is_chosen_by_its_models_name(installed: Studio) -> None:
    status, drawn = await generate(installed, "--model", "atelier/brush-1")
    assert (status, drawn["provider"], drawn["model"]) == (0, "atelier", "brush-1")


@pytest.mark.slow
async def test_auto_takes_an_installed_provider_after_the_built_in_ones(
    installed: Studio, openai: OpenAIServer
) -> None:
    status, drawn = await generate(installed)
    assert (status, drawn["provider"]) == (0, "atelier")
    installed.connect(openai)
    status, drawn = await generate(installed)
    assert (status, drawn["provider"]) == (0, "openai-image")
    status, drawn = await generate(installed, "--size", "512x512")
    assert (status, drawn["provider"]) == (0, "atelier")


@pytest.mark.slow
async def test_an_installed_provider_without_its_key_names_the_key(installed: Studio) -> None:
    del installed.env["ATELIER_KEY"]
    status, said = await generate(installed, "--provider", "atelier")
    assert (status, said["error"]["code"]) == (2, "IMAGE_GEN_NO_PROVIDER")
    assert "ATELIER_KEY" in said["error"]["hint"]
    status, drawn = await generate(installed)
    assert (status, drawn["provider"]) == (0, "illustrator")


@pytest.mark.slow
async def test_what_an_installed_provider_refuses_costs_nothing(installed: Studio) -> None:
    status, said = await limner("generate", "forbidden", env=installed.env, cwd=installed.cwd)
    error = said["error"]
    assert (status, error["code"], error["billed"], error["cost_usd"]) == (
        3,
        "IMAGE_GEN_REJECTED",
        False,
        0.0,
    )


async def test_a_budget_holds_for_an_installed_provider(installed: Studio) -> None:
    status, said = await generate(installed, "--budget", "0.01")
    assert (status, said["error"]["code"]) == (5, "BUDGET_EXCEEDED")


async def test_a_package_that_cannot_be_loaded_leaves_the_others_usable(
    installed: Studio, tmp_path: Path
) -> None:
    (tmp_path / "packages" / "atelier.py").write_text("raise LookupError('no brushes')")
    status, said = await limner("models", env=installed.env, cwd=installed.cwd)
    assert status == 0
    assert [row["provider"] for row in said["models"]][-1] == "illustrator"
