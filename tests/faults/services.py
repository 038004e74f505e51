"""The services of the fault sweep: each run has its own picture, and the bill is kept by number."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from msgspec.structs import replace
from PIL import Image

from limner.catalogue.images import cost_of_usage, image_models
from limner.catalogue.vision import vision_model
from limner.testing.servers.http_server import Gate, ReceivedRequest, Reply
from limner.testing.servers.model_server import ModelAnswer, ScriptedCall, TokenCounts
from limner.testing.servers.openai_server import PATHS, USAGE, OpenAIServer
from limner.testing.servers.replicate_server import ReplicateServer
from limner.testing.servers.responses_server import ResponsesServer

FLUX_NANO = 3_000_000
OPENAI_NANO = cost_of_usage(image_models("openai-image")[0], USAGE) or 0
_TOKENS = TokenCounts()
_RATE = vision_model("openai/gpt-5.4").rate
assert _RATE is not None
# What the model asks for one answer.
ANSWER_NANO = _RATE.cost(
    input_tokens=_TOKENS.input,
    output_tokens=_TOKENS.output,
    cache_read_tokens=_TOKENS.cached,
    cache_write_tokens=0,
)
_NUMBER = re.compile(r"picture number (\d+)")


@cache
def draw_picture(number: int) -> bytes:
    """A small PNG of noise that no other run gets; all have about the same size."""
    noise = random.Random(number).randbytes(64 * 64 * 3)
    out = io.BytesIO()
    Image.frombytes("RGB", (64, 64), noise).save(out, "PNG")
    return out.getvalue()


PICTURE_BYTES = len(draw_picture(0)) - 200


def handle_of(number: int) -> str:
    """The handle of a run's picture."""
    return hashlib.sha256(draw_picture(number)).hexdigest()


def _number_in(text: str) -> int:
    found = _NUMBER.search(text)
    assert found is not None, text[:200]
    return int(found[1])


class Bill:
    """What the services charge for each run, and for which runs they sent the whole picture."""

    def __init__(self) -> None:
        self._nano: Counter[int] = Counter()
        self._times: Counter[int] = Counter()
        self._delivered: set[int] = set()
        self._holds: dict[int, tuple[Callable[[], object], Gate]] = {}

    def hold(self, number: int, on_arrival: Callable[[], object]) -> Gate:
        """Hold the answer to a run until the gate opens; a thread calls ``on_arrival``."""
        gate = Gate()
        self._holds[number] = on_arrival, gate
        return gate

    def held(self, number: int, reply: Reply) -> Reply:
        """The answer to the request that buys what a run is about, held if that is asked."""
        if number not in self._holds:
            return reply
        on_arrival, gate = self._holds.pop(number)
        on_arrival()
        return replace(reply, hold=gate)

    def charge(
        self, number: int, nano: int, *, delivers: bool = False, may_repeat: bool = False
    ) -> None:
        """Charge a run for one request; ``may_repeat`` if the same one may come again."""
        self._nano[number] += nano
        self._times[number] += not may_repeat
        if delivers:
            self._delivered.add(number)

    def nano(self, number: int) -> int:
        """What a run is charged."""
        return self._nano[number]

    def times(self, number: int) -> int:
        """How many paid requests of a run arrived, without those that may repeat."""
        return self._times[number]

    def delivered(self, number: int) -> bool:
        """Whether a run's picture was sent to it."""
        return number in self._delivered


class DrawingService(OpenAIServer):
    """OpenAI's images API."""

    def __init__(self, bill: Bill) -> None:
        super().__init__(b"")
        self._bill = bill

    def drawn(self, body: Mapping[str, Any], *, kind: str = "image_generation") -> Reply:
        return draw(self._bill, body["prompt"])


def draw(bill: Bill, prompt: str) -> Reply:
    """Charge for a picture and send it."""
    number = _number_in(prompt)
    bill.charge(number, OPENAI_NANO, delivers=True)
    picture = base64.b64encode(draw_picture(number)).decode()
    answer = {"created": 1, "data": [{"b64_json": picture}], "usage": USAGE}
    body = json.dumps(answer).encode()
    reply = Reply(headers={"Content-Type": "application/json"}, pieces=(body,))
    return bill.held(number, reply)


class PredictionService(ReplicateServer):
    """Replicate's API."""

    def __init__(self, bill: Bill) -> None:
        super().__init__(b"")
        self._bill = bill

    def answer(self, seen: ReceivedRequest) -> Reply:
        if self.route(seen) == "file":
            return Reply(pieces=(draw_picture(int(seen.path.rpartition("/")[2])),))
        if self.route(seen) == "create":
            number = _number_in(seen.json()["input"]["prompt"])
            self._bill.charge(number, FLUX_NANO)
            return self._bill.held(number, super().answer(seen))
        return super().answer(seen)

    def _end(self, prediction: dict[str, Any]) -> None:
        number = _number_in(prediction["input"]["prompt"])
        prediction |= {"status": "succeeded", "output": [f"{self.origin}/files/{number}"]}


class TalkingService(ResponsesServer):
    """OpenAI's Responses API and its images API on one port.

    It asks for one picture if the conversation has a tool for that, then says that it is done.
    """

    def __init__(self, bill: Bill) -> None:
        super().__init__()
        self._bill = bill

    def objection(self, seen: ReceivedRequest) -> Reply | None:
        if seen.path.removeprefix("/v1") in PATHS:
            return None
        return super().objection(seen)

    def answer(self, seen: ReceivedRequest) -> Reply:
        if seen.path.removeprefix("/v1") in PATHS:
            return draw(self._bill, seen.json()["prompt"])
        if (problem := self.objection(seen)) is not None:
            return problem
        body = seen.json()
        number = _number_in(seen.body.decode())
        saying = ModelAnswer(pieces=("It is ", "done."))
        # A conversation asks again if an answer broke off; a look never does.
        self._bill.charge(number, ANSWER_NANO, may_repeat=bool(body.get("tools")))
        can_draw = any(tool.get("name") == "image_generate" for tool in body.get("tools", ()))
        if can_draw and b"function_call_output" not in seen.body:
            arguments = json.dumps({"prompt": f"picture number {number}"})
            call = ScriptedCall(name="image_generate", arguments=arguments, call_id="call_1")
            saying = ModelAnswer(pieces=(), calls=(call,))
        reply = self.streamed(saying, body)
        # In a conversation, the picture is what it is about.
        return reply if body.get("tools") else self._bill.held(number, reply)
