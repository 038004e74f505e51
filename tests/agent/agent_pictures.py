"""Pictures and programs that the tests of conversations share."""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

from PIL import Image

from limner.client import Limner
from limner.content import Picture
from limner.models.registry import KnownModel
from limner.wires.base import HANDLE_URL

# One model for each wire, and one that has no eyes is made of the first.
MODELS = (
    "openai/gpt-5.5",
    "ollama/llava",
    "anthropic/claude-opus-4-8",
    "google/gemini-3-pro-preview",
)


def program(folder: Path, **settings: str | None) -> Limner:
    env = {f"LIMNER_{name.upper()}": value or "" for name, value in settings.items()}
    return Limner(env={"LIMNER_HOME": str(folder / "home"), **env}, cwd=folder)


def model(lim: Limner, name: str = MODELS[0]) -> KnownModel:
    found = lim.models.find(name)
    assert found is not None
    return found.model


def encoded(number: int = 0, *, kind: str = "PNG", size: tuple[int, int] = (16, 12)) -> bytes:
    """A picture of its own for each number."""
    out = io.BytesIO()
    Image.new("RGB", size, (number % 256, number // 256, 7)).save(out, kind)
    return out.getvalue()


def data_url(data: bytes, mime: str = "image/png") -> str:
    return f"data:{mime};base64,{base64.b64encode(data).decode()}"


def handle_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


_numbers = count(1000)


def unique(**form: Any) -> bytes:
    """A picture that no other test has."""
    return encoded(next(_numbers), **form)


async def take(lim: Limner, data: bytes, **lineage: Any) -> Picture:
    with lim.pictures.sink() as sink:
        sink.write(data)
        return await lim.pictures.take(sink, lineage=lineage)


async def accept(lim: Limner, sent: Sequence[str], *, model: str) -> None:
    """Record that the service answered a request with these pictures."""
    await lim.store.write(lambda tx: lim.quarantine.accept(tx, sent, model=model))


def text(words: str) -> dict[str, Any]:
    return {"type": "input_text", "text": words}


def image(url: str, **more: Any) -> dict[str, Any]:
    return {"type": "input_image", "image_url": url, **more}


def seen(picture: Picture | str, **more: Any) -> dict[str, Any]:
    handle = picture if isinstance(picture, str) else picture.handle
    return image(f"{HANDLE_URL}{handle}", **more)


def user(*parts: Any) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": list(parts)}


def turn(number: int, *parts: Any) -> list[dict[str, Any]]:
    """A model calls a tool, and gets these parts back."""
    call_id = f"call_{number}"
    return [
        {"type": "function_call", "call_id": call_id, "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": call_id, "output": list(parts)},
    ]
