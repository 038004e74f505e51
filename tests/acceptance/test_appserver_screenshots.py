"""Screenshots with small text, through a client's tool to the model: the real Codex beside limner.

What limner sends is never larger, and never less readable. Codex comes with the package
`openai-codex`, no part of the ordinary tools: `pip install --group local`.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from PIL import Image
from tests.eyes.eyes_screens import (
    DARK,
    GREY,
    LIGHT,
    Look,
    code,
    distance,
    prose,
    spoken,
    table,
    terminal,
)
from tests.servers.appserver_side import KINDS, side_of
from tests.servers.codex_process import MODEL
from tests.servers.components import needs
from tests.servers.scripted import calls, says

from limner.eyes import Eyes
from limner.imaging.pool import Imaging
from limner.testing.servers.responses_server import ResponsesServer

pytestmark = [pytest.mark.slow, needs("openai_codex", "codex_cli_bin")]

TOOL = {
    "type": "function",
    "name": "screenshot",
    "description": "Take a picture of a window.",
    "inputSchema": {"type": "object", "properties": {"of": {"type": "string"}}},
}
WINDOWS = (
    (terminal, Look("Droid Sans Mono", 12, DARK)),
    (prose, Look("Inter", 12, LIGHT)),
    (code, Look("Droid Sans Mono", 13, DARK)),
    (table, Look("Inter", 12, GREY)),
)
PLACE = (40, 60)


class Shot(NamedTuple):
    """A file, the words on it, and the part of it that has them: left, top, right, bottom."""

    data: bytes
    words: str
    box: tuple[float, float, float, float] = (0, 0, 1, 1)


def screenshots() -> list[Shot]:
    """Each window alone, on a desktop, and twice as large on one of 4K or of another type."""
    shots: list[Shot] = []
    for (layout, look), kind in zip(WINDOWS, ("PNG", "PNG", "JPEG", "WEBP"), strict=True):
        window, words = layout(look)
        larger, _ = layout(replace(look, size=2 * look.size))
        shots += [
            Shot(saved(window), words),
            on_desktop(window, words, (1920, 1080)),
            on_desktop(larger, words, (3840, 2160) if kind == "PNG" else (2560, 1440), kind),
        ]
    return shots


def on_desktop(window: Image.Image, words: str, size: tuple[int, int], kind: str = "PNG") -> Shot:
    desktop = Image.linear_gradient("L").resize(size).quantize(16).convert("RGB")
    desktop.paste(window, PLACE)
    left, top = PLACE
    edges = (left, top, left + window.width, top + window.height)
    box = tuple(edge / size[number % 2] for number, edge in enumerate(edges))
    assert len(box) == 4
    return Shot(saved(desktop, kind), words, box)


def crop(data: bytes, shot: Shot) -> bytes:
    """The part with the words: a reader looks at one window, not at a whole desktop."""
    with Image.open(BytesIO(data)) as image:
        left, top, right, bottom = (
            round(edge * image.size[number % 2]) for number, edge in enumerate(shot.box)
        )
        return saved(image.convert("RGB").crop((left, top, right, bottom)))


def saved(image: Image.Image, kind: str = "PNG") -> bytes:
    out = BytesIO()
    image.save(out, kind, **({"lossless": True} if kind == "WEBP" else {"optimize": True}))
    return out.getvalue()


async def sent_by(kind: str, folder: Path, files: list[bytes]) -> list[bytes]:
    """What the model receives of these files, if a tool returns them to that server."""
    with ResponsesServer() as model:
        turn = calls(*(("screenshot", "{}") for _ in files))
        answers = (model.streamed(one, {"model": MODEL}) for one in (turn, says("I see.")))
        model.script("ask", *answers)
        side = side_of(kind, folder, model)
        async with side.server() as talk:
            started = await talk.request("thread/start", dynamicTools=[TOOL])
            turn = await talk.turn(started["thread"]["id"], "Look at all of them.")
            for number, data in enumerate(files, start=1):
                call = await talk.called(f"call_{number}")
                talk.send({"id": call["id"], "result": answer(data)})
            assert (await talk.ended(turn["id"]))["status"] == "completed"
        items = model.sent("ask")[-1].json()["input"]
    outputs = [item["output"] for item in items if item["type"] == "function_call_output"]
    return [base64.b64decode(part["image_url"].partition(",")[2]) for (part,) in outputs]


def answer(data: bytes) -> dict[str, Any]:
    with Image.open(BytesIO(data)) as image:
        mime = image.get_format_mimetype()
    url = f"data:{mime};base64,{base64.b64encode(data).decode()}"
    return {"contentItems": [{"type": "inputImage", "imageUrl": url}], "success": True}


@pytest.fixture
def eyes() -> Iterator[Eyes]:
    imaging = Imaging(workers=2)
    yield Eyes(imaging)
    asyncio.run(imaging.aclose())


async def test_twelve_screenshots_are_never_larger_and_never_less_readable_than_with_codex(
    tmp_path: Path, eyes: Eyes, record_property: Callable[[str, object], None]
) -> None:
    shots = screenshots()
    assert len(shots) == 12
    sent = {kind: await sent_by(kind, tmp_path, [shot.data for shot in shots]) for kind in KINDS}
    rows: list[str] = []
    for number, shot in enumerate(shots):
        wanted = " ".join(shot.words.split())
        bytes_, mistakes = dict[str, int](), dict[str, int]()
        for kind in KINDS:
            picture = sent[kind][number]
            read = await eyes.see([crop(picture, shot)], "What does it say?")
            bytes_[kind], mistakes[kind] = len(picture), distance(wanted, spoken(read))
        rows.append(f"{len(shot.data)} bytes; sent {bytes_}; mistakes {mistakes}")
        record_property(str(number + 1), rows[-1])
        assert bytes_["limner"] <= min(bytes_["codex"], len(shot.data)), rows
        assert mistakes["limner"] <= mistakes["codex"], rows
