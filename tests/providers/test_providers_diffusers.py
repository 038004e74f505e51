"""Drawing in a process of its own: what the host makes of whatever the process says or does."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from PIL import Image

from limner.errors import (
    BadProviderImage,
    ImageTooLarge,
    LimnerError,
    MissingExtra,
    ProviderBadRequest,
    ProviderRefused,
    ProviderUnavailable,
    UserError,
)
from limner.pictures.request import ImageRequest, Progress, Receipt, SourceImage
from limner.providers import diffusers
from limner.providers.base import Connection, Resumable
from limner.providers.diffusers import Diffusers
from limner.testing import FakeDesk, FakeSink

REQUEST = ImageRequest(prompt="a fox", model="pipeline", width=512, height=320, seed=42)


def picture(colour: str) -> SourceImage:
    data = BytesIO()
    Image.new("RGB", (2, 1), colour).save(data, "PNG")
    return SourceImage(handle="ab" * 32, mime="image/png", width=2, height=1, data=data.getvalue())


# A stand-in for the worker: it sends what the test wants.
BEFORE = """
import json, os, struct, sys, time
from limner.imaging import pipe
head, payload = pipe.receive(sys.stdin.buffer, max_payload_bytes=1 << 30)
order = json.loads(head)
def say(payload=b"", **header):
    pipe.send(sys.stdout.buffer, header, payload)
"""


class Drawing:
    """One drawing by a stand-in."""

    def __init__(self, connection: Connection, script: str) -> None:
        self.provider = Diffusers(connection, worker=[sys.executable, "-c", BEFORE + script])
        self.sink, self.desk = FakeSink(), FakeDesk()

    async def generate(self, request: ImageRequest = REQUEST) -> Receipt:
        return await self.provider.generate(request, self.sink, self.desk.callbacks)


@pytest.fixture
def draw(tmp_path: Path, connect: Callable[..., Connection]) -> Callable[..., Drawing]:
    def build(script: str, **variables: str) -> Drawing:
        known = {"DIFFUSERS_MODEL": str(tmp_path)} | variables
        return Drawing(connect("", variables=known), script)

    return build


async def test_a_picture_comes_with_what_it_took(draw: Callable[..., Drawing]) -> None:
    drawing = draw(
        """
say(event="waiting")
say(event="loading")
say(event="step", step=1, of=4)
say(event="step", step=4, of=4)
say(b"a picture", event="drawn", device="cuda", gpu_seconds=1.5, load_seconds=4.25)
"""
    )
    receipt = await drawing.generate()
    assert receipt == Receipt(
        prompt_used="a fox",
        cost_nano=0,
        extras={"seed": 42, "device": "cuda", "gpu_seconds": 1.5, "load_seconds": 4.25},
    )
    assert bytes(drawing.sink.data) == b"a picture"
    assert drawing.desk.progress == [
        Progress(message="Another picture is being drawn on this machine", elapsed_s=0.0),
        Progress(message="diffusers is loading the model", elapsed_s=0.0),
        Progress(message="diffusers is drawing", elapsed_s=0.0, fraction=0.25),
        Progress(message="diffusers is drawing", elapsed_s=0.0, fraction=1.0),
    ]
    assert not isinstance(drawing.provider, Resumable)


ECHO = 'say(json.dumps(order).encode() + b"|" + payload, event="drawn")'


async def test_an_order_carries_the_whole_request(
    tmp_path: Path, draw: Callable[..., Drawing]
) -> None:
    prompt = "ein Füchslein \ud800" + "é" * 32_000
    request = replace(REQUEST, prompt=prompt, negative_prompt="fog", quality="hd")
    drawing = draw(ECHO, DIFFUSERS_DEVICE="cuda:1")
    await drawing.generate(replace(request, sources=(picture("red"),), mask=picture("white")))
    order, payload = bytes(drawing.sink.data).split(b"|", 1)
    text = prompt.encode("utf-8", "replace")
    # Pixels, not files: the process that draws is in no sandbox.
    assert payload == text + b"fog" + b"\xff\0\0" * 2 + b"\xff" * 6
    assert order.decode() == (
        f'{{"model": "{tmp_path}", "is_folder": true, "device": "cuda:1", "width": 512, '
        f'"height": 320, "seed": 42, "steps": 50, "lengths": [{len(text)}, 3, 6, 6], '
        '"sizes": [[2, 1], [2, 1]]}'
    )


@pytest.mark.parametrize(
    ("model", "sent"),
    [("pipeline", '"model": "owner/name", "is_folder": false'), ("a/b", '"model": "a/b"')],
)
async def test_a_model_on_the_hub_is_named_by_its_owner_and_name(
    model: str, sent: str, draw: Callable[..., Drawing]
) -> None:
    drawing = draw(ECHO, DIFFUSERS_MODEL="owner/name")
    receipt = await drawing.generate(replace(REQUEST, model=model, seed=None))
    assert sent.encode() in bytes(drawing.sink.data)
    assert f'"seed": {receipt.extras["seed"]}'.encode() in bytes(drawing.sink.data)


@pytest.mark.parametrize(
    ("model", "variables", "said"),
    [
        ("pipeline", {"DIFFUSERS_MODEL": " "}, "No model is named."),
        ("/nowhere/at/all", {}, "There is no folder '/nowhere/at/all'"),
        ("~nobody-of-this-name/x/y", {}, "There is no folder"),
        ("../../nowhere/at/all", {}, "There is no folder"),
        ("https://example.com/x", {}, "There is no folder"),
        ("pipeline", {"DIFFUSERS_DEVICE": "tpu"}, "DIFFUSERS_DEVICE is not a device: 'tpu'"),
    ],
)
async def test_what_cannot_be_drawn_with_is_said_before_a_process_is_started(
    model: str, variables: Any, said: str, draw: Callable[..., Drawing]
) -> None:
    with pytest.raises(UserError) as caught:
        await draw("raise SystemExit(9)", **variables).generate(replace(REQUEST, model=model))
    assert caught.value.message.startswith(said)


async def test_without_the_extra_the_command_that_installs_it_is_named(
    tmp_path: Path, connect: Callable[..., Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in diffusers.NEEDED:
        # As if it were not installed.
        monkeypatch.setitem(sys.modules, name, None)
    provider = Diffusers(connect("", variables={"DIFFUSERS_MODEL": str(tmp_path)}))
    with pytest.raises(MissingExtra, match="torch and diffusers") as caught:
        await provider.generate(REQUEST, FakeSink(), FakeDesk().callbacks)
    assert caught.value.hint == 'Run: pip install "limner[diffusers]"'


@pytest.mark.parametrize(
    ("event", "kind", "retryable"),
    [
        ("unusable", ProviderBadRequest, False),
        ("refused", ProviderRefused, False),
        ("out of memory", ProviderUnavailable, True),
        ("failed", ProviderUnavailable, True),
    ],
)
async def test_a_failure_is_told_in_the_words_of_the_process(
    event: str, kind: type[LimnerError], retryable: bool, draw: Callable[..., Drawing]
) -> None:
    with pytest.raises(kind) as caught:
        await draw(f'say(event="{event}", message="for this reason")').generate()
    assert caught.value.message == "diffusers could not draw: for this reason"
    assert (caught.value.retryable, caught.value.billed) == (retryable, False)
    assert caught.value.extras == {"provider": "diffusers"}


@pytest.mark.parametrize(
    ("script", "status"),
    [
        ("raise SystemExit(3)", "3"),
        ("os.kill(os.getpid(), 9)", "-9"),
        ('sys.stdout.buffer.write(b"\\0" * 5); sys.stdout.flush()', "0"),
    ],
)
async def test_a_process_that_dies_is_an_error_and_no_riddle(
    script: str, status: str, draw: Callable[..., Drawing]
) -> None:
    with pytest.raises(ProviderUnavailable, match=f"ended with status {status};"):
        await draw(script).generate()


@pytest.mark.parametrize(
    "script",
    [
        'sys.stdout.buffer.write(b"Loading weights: 100% done"); sys.stdout.flush(); time.sleep(9)',
        "sys.stdout.buffer.write(struct.pack('>IQ', 2, 1 << 40) + b'{}'); sys.stdout.flush()",
        "say(event=7)",
        "say(b'', other='x')",
    ],
)
async def test_what_makes_no_sense_is_a_bad_answer(
    script: str, draw: Callable[..., Drawing]
) -> None:
    with pytest.raises(BadProviderImage, match="not valid"):
        await draw(script).generate()


async def test_a_picture_that_is_too_large_is_the_sinks_to_refuse(
    draw: Callable[..., Drawing],
) -> None:
    drawing = draw('say(bytes(2000), event="drawn")')
    drawing.sink = FakeSink(max_bytes=1000)
    with pytest.raises(ImageTooLarge):
        await drawing.generate()


async def test_a_program_that_cannot_be_started_is_an_error(
    tmp_path: Path, connect: Callable[..., Connection]
) -> None:
    connection = connect("", variables={"DIFFUSERS_MODEL": str(tmp_path)})
    provider = Diffusers(connection, worker=[str(tmp_path / "gone")])
    with pytest.raises(ProviderUnavailable, match="could not be started"):
        await provider.generate(REQUEST, FakeSink(), FakeDesk().callbacks)


async def test_giving_up_kills_the_process_before_the_caller_goes_on(
    tmp_path: Path, draw: Callable[..., Drawing]
) -> None:
    pid_file = tmp_path / "pid"
    drawing = draw(
        f"""
open({str(pid_file)!r}, "w").write(str(os.getpid()))
say(event="loading")
time.sleep(60)
"""
    )
    task = asyncio.ensure_future(drawing.generate())
    while not drawing.desk.progress:
        await asyncio.wait([task], timeout=0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)
    assert drawing.desk.withdrawn == 1


async def test_the_process_gets_no_keys_but_what_it_needs(
    draw: Callable[..., Drawing], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "HF_TOKEN", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.setenv(name, "set")
    drawing = draw('say("\\n".join(os.environ).encode(), event="drawn")')
    await drawing.generate()
    passed_on = bytes(drawing.sink.data).decode().split("\n")
    assert {"HF_TOKEN", "CUDA_VISIBLE_DEVICES", "PATH"} <= set(passed_on)
    assert not {"OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY"} & set(passed_on)


def test_any_folder_or_hub_id_is_a_model_and_costs_nothing() -> None:
    model = diffusers.SPEC.model("diffusers/stabilityai/sd-turbo")
    assert model is not None
    assert (model.id, model.price) == ("stabilityai/sd-turbo", diffusers.SPEC.models[0].price)
