"""The services of the kill test: every call gets a picture of its own, in its own good time."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import json
import random
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from msgspec.structs import replace
from PIL import Image

from limner.testing.servers.http_server import Gate, ReceivedRequest, Reply
from limner.testing.servers.openai_server import USAGE, OpenAIServer
from limner.testing.servers.replicate_server import ReplicateServer

PROMPT = "picture number {}"
FAILS_EVERY = 12


def number_of(prompt: str) -> int:
    return int(prompt.rpartition(" ")[2])


@cache
def picture_of(number: int) -> bytes:
    """A small picture full of noise that no other call gets; every third one is a WebP."""
    noise = random.Random(number).randbytes(160 * 160 * 3)
    out = io.BytesIO()
    image = Image.frombytes("RGB", (160, 160), noise)
    image.save(out, "WEBP" if number % 3 == 0 else "PNG", lossless=True)
    return out.getvalue()


def handle_of(number: int) -> str:
    return hashlib.sha256(picture_of(number)).hexdigest()


class Delays:
    """How long a service takes, and who is told that a call has arrived."""

    def __init__(self, seed: int, arrived: Callable[[int], object]) -> None:
        self._random = random.Random(seed)
        self.arrived = arrived

    def gate(self, most_s: float) -> Gate:
        """A gate that opens by itself after a while."""
        gate = Gate()
        asyncio.get_running_loop().call_later(self._random.uniform(0, most_s), gate.open)
        return gate

    def in_two(self, body: bytes) -> tuple[bytes | Gate, ...]:
        """A body that pauses in the middle."""
        half = len(body) // 2
        return body[:half], self.gate(0.05), body[half:]

    def looks(self) -> int:
        return self._random.choice([0, 0, 1, 2])


class SlowOpenAI(OpenAIServer):
    """Holds its answer back for a while, and pauses in the middle of the picture."""

    def __init__(self, delays: Delays) -> None:
        super().__init__(b"")
        self.delays = delays

    def drawn(self, body: Mapping[str, Any], *, kind: str = "image_generation") -> Reply:
        number = number_of(body["prompt"])
        self.delays.arrived(number)
        picture = base64.b64encode(picture_of(number)).decode()
        answer = {"created": 1, "data": [{"b64_json": picture}], "usage": USAGE}
        pieces = self.delays.in_two(json.dumps(answer).encode())
        length = sum(len(piece) for piece in pieces if isinstance(piece, bytes))
        return Reply(
            headers={"Content-Type": "application/json"},
            pieces=pieces,
            length=length,
            hold=self.delays.gate(0.1),
        )


class SlowReplicate(ReplicateServer):
    """Lets predictions take a while; some of them fail."""

    def __init__(self, delays: Delays) -> None:
        super().__init__(b"")
        self.delays = delays

    def answer(self, seen: ReceivedRequest) -> Reply:
        if self.route(seen) == "file":
            pieces = self.delays.in_two(picture_of(int(seen.path.rpartition("/")[2])))
            length = sum(len(piece) for piece in pieces if isinstance(piece, bytes))
            return Reply(pieces=pieces, length=length)
        self.looks = self.delays.looks()
        if self.route(seen) == "create":
            self.delays.arrived(number_of(seen.json()["input"]["prompt"]))
        return replace(super().answer(seen), hold=self.delays.gate(0.1))

    def _end(self, prediction: dict[str, Any]) -> None:
        number = number_of(prediction["input"]["prompt"])
        if number % FAILS_EVERY == 0:
            prediction |= {"status": "failed", "error": "out of paint"}
        else:
            prediction |= {"status": "succeeded", "output": [f"{self.origin}/files/{number}"]}
