"""Drawing with real diffusers on the CPU: a pipeline of random weights, made for the test.

It takes torch, which is no part of the ordinary tools: `pip install --group local`.
"""

from __future__ import annotations

import asyncio
import fcntl
import io
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from PIL import Image
from tests.servers.components import needs

from limner.errors import ProviderBadRequest
from limner.pictures.request import ImageRequest, SourceImage
from limner.providers.base import Connection
from limner.providers.diffusers import NEEDED, Diffusers
from limner.testing import FakeDesk, FakeSink

ROOT = Path(__file__).parents[2]
GUARD_S = 120

pytestmark = [pytest.mark.slow, needs(*NEEDED)]

REQUEST = ImageRequest(prompt="a fox in the snow", model="pipeline", width=72, height=64, seed=7)


@pytest.fixture(scope="session")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("weights") / "tiny"
    command = [sys.executable, "-W", "ignore", "-m", "tests.servers.tiny_pipeline", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=GUARD_S, capture_output=True)
    return folder


class Drawing:
    """One drawing with the weights in a folder."""

    def __init__(self, connection: Connection) -> None:
        self.provider = Diffusers(connection)
        self.sink, self.desk = FakeSink(), FakeDesk()
        self.facts: dict[str, Any] = {}

    async def generate(self, request: ImageRequest = REQUEST) -> Image.Image:
        receipt = await self.provider.generate(request, self.sink, self.desk.callbacks)
        self.facts = dict(receipt.extras)
        image = Image.open(io.BytesIO(self.sink.data))
        image.load()
        return image


@pytest.fixture
def draw(pipeline: Path, connect: Callable[..., Connection]) -> Callable[..., Drawing]:
    def build(folder: Path = pipeline) -> Drawing:
        variables = {"DIFFUSERS_MODEL": str(folder), "DIFFUSERS_DEVICE": "cpu"}
        return Drawing(connect("", variables=variables))

    return build


def picture(colour: str, size: tuple[int, int] = (200, 100)) -> SourceImage:
    data = io.BytesIO()
    Image.new("RGB", size, colour).save(data, "PNG")
    return SourceImage(
        handle="ab" * 32, mime="image/png", width=size[0], height=size[1], data=data.getvalue()
    )


async def test_the_same_seed_draws_the_same_picture_and_torch_stays_outside(
    draw: Callable[..., Drawing],
) -> None:
    one, again, other = draw(), draw(), draw()
    image = await one.generate()
    assert (image.format, image.mode, image.size) == ("PNG", "RGB", (80, 64))
    await again.generate()
    await other.generate(replace(REQUEST, seed=8, negative_prompt="the night"))
    assert one.sink.data == again.sink.data
    assert one.sink.data != other.sink.data
    assert (one.facts["seed"], one.facts["device"]) == (7, "cpu")
    assert one.facts["gpu_seconds"] > 0
    assert one.facts["load_seconds"] > 0
    loading, *steps = one.desk.progress
    assert loading.message == "diffusers is loading the model"
    assert [step.fraction for step in steps] == [count / 25 for count in range(1, 26)]
    assert "torch" not in sys.modules


@pytest.mark.parametrize("masked", [False, True])
async def test_a_picture_is_drawn_from_another(masked: bool, draw: Callable[..., Drawing]) -> None:
    drawing = draw()
    mask = picture("white") if masked else None
    image = await drawing.generate(replace(REQUEST, sources=(picture("red"),), mask=mask))
    assert image.size == (80, 64)
    assert drawing.desk.progress[-1].fraction == 1.0


class Trap:
    """What runs a program when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self._marker = marker

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self._marker}",)


async def test_weights_that_are_a_pickle_are_not_opened(
    pipeline: Path, tmp_path: Path, draw: Callable[..., Drawing]
) -> None:
    folder, marker = tmp_path / "pickled", tmp_path / "was-run"
    shutil.copytree(pipeline, folder)
    for weights in [*folder.glob("*/*.safetensors")]:
        weights.unlink()
        for name in ("diffusion_pytorch_model.bin", "pytorch_model.bin"):
            (weights.parent / name).write_bytes(pickle.dumps(Trap(marker)))
    with pytest.raises(ProviderBadRequest, match="cannot be loaded"):
        await draw(folder).generate()
    assert not marker.exists()


@pytest.mark.parametrize("place", ["own.py", "unet/own.py"])
async def test_program_code_beside_the_weights_is_not_run(
    place: str, pipeline: Path, tmp_path: Path, draw: Callable[..., Drawing]
) -> None:
    folder, marker = tmp_path / "coded", tmp_path / "was-run"
    shutil.copytree(pipeline, folder)
    index = json.loads((folder / "model_index.json").read_text())
    index |= {"_class_name": ["own", "Own"]} if place == "own.py" else {"unet": ["own", "Own"]}
    (folder / "model_index.json").write_text(json.dumps(index))
    (folder / place).write_text(f"open({str(marker)!r}, 'w')\n")
    with pytest.raises(ProviderBadRequest, match=r"contains program code \(own\.py\)"):
        await draw(folder).generate()
    assert not marker.exists()


async def test_a_folder_that_is_no_pipeline_says_so(
    tmp_path: Path, draw: Callable[..., Drawing]
) -> None:
    with pytest.raises(ProviderBadRequest, match=r"it has no model_index\.json"):
        await draw(tmp_path).generate()


def lock() -> Path:
    return Path(tempfile.gettempdir()) / f"limner-gpu-{os.getuid()}.lock"


async def test_one_draws_at_a_time_and_one_who_gives_up_makes_room(
    draw: Callable[..., Drawing],
) -> None:
    first, second = draw(), draw()
    drawing = asyncio.ensure_future(first.generate(replace(REQUEST, width=512, height=512)))
    async with asyncio.timeout(GUARD_S):
        while len(first.desk.progress) < 2:
            await asyncio.wait([drawing], timeout=0.05)
        waiting = asyncio.ensure_future(second.generate())
        while not second.desk.progress:
            await asyncio.wait([waiting], timeout=0.05)
        drawing.cancel()
        await asyncio.wait([drawing])
        assert drawing.cancelled()
        assert (await waiting).size == (80, 64)
    messages = [told.message for told in second.desk.progress]
    assert messages[:2] == [
        "Another picture is being drawn on this machine",
        "diffusers is loading the model",
    ]


HOST = """
import asyncio, sys
from msgspec.structs import replace
from limner.net.http import Http
from limner.pictures.request import ImageRequest
from limner.providers.base import Connection
from limner.providers.diffusers import Diffusers
from limner.testing import FakeDesk, FakeSink

async def main():
    variables = {"DIFFUSERS_MODEL": sys.argv[1], "DIFFUSERS_DEVICE": "cpu"}
    connection = Connection(http=Http().client(), base_url="", key="", illustrate=None,
                            variables=variables)
    desk = replace(FakeDesk().callbacks, progress=lambda told: print(told.message, flush=True))
    request = ImageRequest(prompt="a fox", model="pipeline", width=2048, height=2048)
    await Diffusers(connection).generate(request, FakeSink(), desk)

asyncio.run(main())
"""


def test_a_host_that_is_killed_takes_the_process_that_draws_with_it(pipeline: Path) -> None:
    host = subprocess.Popen(
        [sys.executable, "-c", HOST, str(pipeline)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    with host:
        assert host.stdout is not None
        while "drawing" not in host.stdout.readline():
            assert host.poll() is None
        host.kill()
    with lock().open("rb+") as file:
        # Blocks until nobody draws any more; the test's own time limit is the guard.
        fcntl.flock(file, fcntl.LOCK_EX)
