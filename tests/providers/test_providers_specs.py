"""The table of providers, and the one that needs no network."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.settings.trusting import trust_folder

from limner.catalogue.images import image_models
from limner.pictures.request import ImageRequest, Progress, Receipt
from limner.providers.base import Connection, ProviderSpec, Resumable
from limner.providers.specs import BUILT_IN, ILLUSTRATOR, all_specs, load_provider_plugins
from limner.testing import FakeDesk, FakeSink


@dataclass(frozen=True)
class Facts:
    """What people have to know about a provider."""

    key_env: str | None
    base_url_env: str | None
    base_url: str
    resumable: bool = False
    named_only: bool = False


OPENAI = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com/v1")
REPLICATE = ("REPLICATE_API_TOKEN", "REPLICATE_BASE_URL", "https://api.replicate.com/v1")
# In the order of preference: a line for each provider of the table.
FACTS = {
    "openai-dalle": Facts(*OPENAI),
    "openai-image": Facts(*OPENAI),
    "replicate-flux": Facts(*REPLICATE, resumable=True),
    "gemini-image": Facts(
        "GEMINI_API_KEY", "GEMINI_BASE_URL", "https://generativelanguage.googleapis.com"
    ),
    "bfl-flux": Facts("BFL_API_KEY", "BFL_BASE_URL", "https://api.bfl.ai/v1", resumable=True),
    "fal": Facts("FAL_KEY", "FAL_BASE_URL", "https://queue.fal.run", resumable=True),
    "openrouter": Facts(
        "OPENROUTER_API_KEY", "OPENROUTER_BASE_URL", "https://openrouter.ai/api/v1"
    ),
    "replicate": Facts(*REPLICATE, resumable=True, named_only=True),
    "openai-compatible": Facts(
        "OPENAI_COMPATIBLE_API_KEY", "OPENAI_COMPATIBLE_BASE_URL", "", named_only=True
    ),
    "sd-webui": Facts(
        "SD_WEBUI_AUTH", "SD_WEBUI_BASE_URL", "http://127.0.0.1:7860", named_only=True
    ),
    "comfyui": Facts(
        None, "COMFYUI_BASE_URL", "http://127.0.0.1:8188", resumable=True, named_only=True
    ),
    "diffusers": Facts(None, None, "", named_only=True),
    "illustrator": Facts(None, None, ""),
}


def test_the_order_of_preference_is_the_tables_and_the_embedded_one_is_last() -> None:
    assert list(all_specs(embedded=True)) == list(FACTS)
    assert list(all_specs(embedded=False)) == list(FACTS)[:-1]


@pytest.mark.parametrize("spec", [*BUILT_IN.values(), ILLUSTRATOR], ids=lambda spec: spec.name)
def test_a_spec_has_the_models_of_its_catalogue(spec: ProviderSpec) -> None:
    assert spec.models == image_models(spec.name)
    assert spec.models


def test_the_table_is_read_without_importing_a_provider() -> None:
    program = (
        "import sys; from limner.providers.specs import all_specs; all_specs(embedded=True); "
        "print(sorted(name for name in sys.modules if name.startswith('limner.providers.')))"
    )
    shown = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert shown.strip() == "['limner.providers.base', 'limner.providers.specs']"


@pytest.mark.parametrize("name", FACTS)
async def test_a_provider_is_what_people_are_told_it_is(
    name: str, connect: Callable[..., Connection]
) -> None:
    spec = all_specs(embedded=True)[name]
    provider = spec.build(connect(spec.base_url or "http://127.0.0.1:1"))
    assert FACTS[name] == Facts(
        spec.key_env,
        spec.base_url_env,
        spec.base_url,
        resumable=isinstance(provider, Resumable),
        named_only=spec.named_only,
    )


async def test_the_illustrator_draws_here_and_for_nothing(
    connect: Callable[..., Connection],
) -> None:
    sink, desk = FakeSink(), FakeDesk()
    request = ImageRequest(prompt="a fox", model="limner-illustrator", width=64, height=64)
    receipt = await ILLUSTRATOR.build(connect("")).generate(request, sink, desk.callbacks)
    assert receipt == Receipt(
        prompt_used="a fox", cost_nano=0, cost_source="table", extras={"matched": ["fox"]}
    )
    assert bytes(sink.data) == b"drawn here"
    assert desk.progress == [Progress(message="The illustrator is drawing", elapsed_s=0.0)]


PLUGINS = """
from limner.plugins import ProviderSpec
from limner.providers.specs import BUILT_IN

NOT_A_SPEC = "fox"
TAKEN = BUILT_IN["openai-image"]
EMPTY = ProviderSpec(
    name="empty", key_env=None, base_url_env=None, base_url="", models=(), build=print
)
FINE = ProviderSpec(
    name="fine", key_env=None, base_url_env=None, base_url="", models=TAKEN.models, build=print
)
"""


def test_a_plug_in_that_is_no_provider_is_named_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "crate-2.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: crate\nVersion: 2.1\n")
    names = ("FINE", "NOT_A_SPEC", "TAKEN", "EMPTY")
    lines = "\n".join(f"{name.lower()} = spec_crate:{name}" for name in names)
    (info / "entry_points.txt").write_text(f"[limner.providers]\n{lines}\ntwin = spec_crate:FINE\n")
    (tmp_path / "spec_crate.py").write_text(PLUGINS)
    monkeypatch.syspath_prepend(tmp_path)
    plugins = load_provider_plugins()
    assert [spec.name for spec in plugins.usable] == ["fine"]
    assert {(broken.package, broken.target): broken.reason for broken in plugins.broken} == {
        ("crate 2.1", "spec_crate:NOT_A_SPEC"): "TypeError('it is a str, not a ProviderSpec')",
        ("crate 2.1", "spec_crate:TAKEN"): "ValueError('there is another provider openai-image')",
        ("crate 2.1", "spec_crate:EMPTY"): "ValueError('the provider empty has no model')",
        ("crate 2.1", "spec_crate:FINE"): "ValueError('there is another provider fine')",
    }


def test_a_plug_in_of_the_working_folder_is_not_loaded_before_the_folder_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "crate-2.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: crate\nVersion: 2.1\n")
    (info / "entry_points.txt").write_text("[limner.providers]\nfine = cloned_crate:FINE\n")
    (tmp_path / "cloned_crate.py").write_text(f"open('ran', 'w').close()\n{PLUGINS}")
    monkeypatch.setenv("LIMNER_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")  # as in a notebook or an interactive Python
    plugins = load_provider_plugins()
    assert (plugins.usable, [one.reason for one in plugins.broken]) == (
        (),
        [
            "PermissionError('its package is in the working folder; run `limner trust` if you "
            "trust this folder')"
        ],
    )
    assert not Path("ran").exists()
    trust_folder(tmp_path / "home", tmp_path)
    assert [spec.name for spec in load_provider_plugins().usable] == ["fine"]
