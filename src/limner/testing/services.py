"""A test's script -> services on this machine that follow it, and a `Limner` that talks to them.

`FakeServices` is one HTTP server on loopback. It speaks the APIs of OpenAI (pictures and
Responses), Anthropic, Google (pictures and conversations) and Replicate, and it counts what these
services would charge.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import os
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

import msgspec
from msgspec.structs import replace

from limner.catalogue.images import ImageModel, all_image_models, cost_of_usage
from limner.catalogue.prices import AreaTokensPrice, GptImageTokens, PriceRequest
from limner.catalogue.sizes import Size, parse_size
from limner.catalogue.vision import services, vision_models
from limner.client import Limner
from limner.components import utc_now
from limner.errors import NANO_PER_USD
from limner.json_shapes import as_list, as_object
from limner.providers.specs import all_specs
from limner.settings import load
from limner.testing.sample_pictures import make_png
from limner.testing.servers.anthropic_server import AnthropicServer
from limner.testing.servers.gemini_image_server import GeminiImageServer
from limner.testing.servers.gemini_server import GeminiServer
from limner.testing.servers.http_server import (
    Gate,
    LocalServer,
    ReceivedRequest,
    Reply,
    cut_short,
    json_reply,
)
from limner.testing.servers.model_server import (
    ModelAnswer,
    ModelServer,
    ScriptedCall,
    TokenCounts,
)
from limner.testing.servers.openai_server import OpenAIServer, error_reply
from limner.testing.servers.replicate_server import ReplicateServer
from limner.testing.servers.responses_server import ResponsesServer

REFUSAL = "The request was rejected by the safety system."
REPLY = "OK."
# Every answer of a model counts so many input tokens.
INPUT_TOKENS = 1_000
CHARS_PER_TOKEN = 4
SOURCE_TOKENS = 1_000
SIDE = 1024
_BASE_URLS = {
    "OPENAI": "/openai/v1",
    "ANTHROPIC": "/anthropic",
    "GEMINI": "/gemini",
    "REPLICATE": "/replicate/v1",
}
_KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "REPLICATE_API_TOKEN")

S = TypeVar("S", bound=LocalServer)
Draw = Callable[[str, Size], bytes]


class Charge(msgspec.Struct, frozen=True, kw_only=True):
    """What a service charges for one request."""

    service: str
    model: str
    cost_nano: int

    @property
    def cost_usd(self) -> float:
        """The amount in dollars."""
        return self.cost_nano / NANO_PER_USD


class Bill(msgspec.Struct, frozen=True, kw_only=True):
    """What the services charge in all."""

    charges: tuple[Charge, ...]

    @property
    def cost_usd(self) -> float:
        """The sum in dollars."""
        return sum(charge.cost_nano for charge in self.charges) / NANO_PER_USD


class HeldReply:
    """A reply that the service holds back until the test releases it."""

    # The service calls these.
    _internal = frozenset({"__init__", "hold"})

    def __init__(self) -> None:
        self._gate = Gate()
        self._arrived = threading.Event()

    def release(self) -> None:
        """Let the service send the reply."""
        self._gate.open()

    def wait(self, timeout_s: float = 30.0) -> None:
        """Wait until the request has arrived.

        Raises:
            TimeoutError: it has not.
        """
        if not self._arrived.wait(timeout_s):
            raise TimeoutError("the request has not arrived")

    async def arrived(self, timeout_s: float = 30.0) -> None:
        """As `wait`, in an event loop."""
        await asyncio.to_thread(self.wait, timeout_s)

    def hold(self, reply: Reply) -> Reply:
        """The reply, which waits; called by the service."""
        self._arrived.set()
        return replace(reply, hold=self._gate)


class FakeService(Generic[S]):
    """One service. It works normally, unless its next requests are scripted.

    Each scripted reply is for one paid request, in the order of the calls.
    """

    # `FakeServices` makes it and its server calls it.
    _internal = frozenset({"__init__", "reply_to"})

    def __init__(self, name: str, server: S, charges: list[Charge]) -> None:
        self.name = name
        self.server = server
        self.requests: list[ReceivedRequest] = []
        self._charges = charges
        self._script: deque[Callable[[ReceivedRequest], Reply]] = deque()
        self._holds: deque[HeldReply] = deque()

    def hold(self) -> HeldReply:
        """The service works on the next request, and holds its reply until it is released."""
        held = HeldReply()
        self._holds.append(held)
        return held

    def outage(self, *, status: int = 503, times: int = 1) -> None:
        """The next requests fail with this status. The service charges nothing."""
        for _ in range(times):
            self.respond(status, {"error": {"message": "The service is down."}})

    def respond(
        self, status: int, body: object, *, headers: Mapping[str, str] | None = None
    ) -> None:
        """The next request gets exactly this reply. The service charges nothing."""
        reply = json_reply(body, status=status, headers=headers)
        self._script.append(lambda _: reply)

    def hang_up(self) -> None:
        """The service charges for the next request, and hangs up in the middle of its reply."""
        self._script.append(lambda request: cut_short(self._work(request)))

    def reply_to(self, request: ReceivedRequest) -> Reply:
        """The reply to a request: the next scripted one if the request is paid."""
        self.requests.append(request)
        if not self._is_paid(request):
            return self._work(request)
        reply = self._script.popleft()(request) if self._script else self._work(request)
        return self._holds.popleft().hold(reply) if self._holds else reply

    def _is_paid(self, request: ReceivedRequest) -> bool:
        return request.method == "POST"

    def _work(self, request: ReceivedRequest) -> Reply:
        return self.server.answer(request)

    def _charge(self, model: str, cost_nano: int | None) -> None:
        if cost_nano is not None:
            charge = Charge(service=self.name, model=model, cost_nano=cost_nano)
            self._charges.append(charge)


class FakePictureService(FakeService[S]):
    """A service that draws. Without a script, a picture has one colour, made from its prompt."""

    def __init__(
        self,
        name: str,
        charges: list[Charge],
        *,
        server: Callable[[Draw, Callable[[str, int | None], None]], S],
        refusal: Callable[[S, ReceivedRequest, str], Reply],
    ) -> None:
        super().__init__(name, server(self._draw, self._charge), charges)
        self._refusal = refusal
        self._picture: bytes | None = None

    def draw(self, picture: bytes) -> None:
        """The next picture has these bytes."""

        def work(request: ReceivedRequest) -> Reply:
            self._picture = picture
            try:
                return self._work(request)
            finally:
                self._picture = None

        self._script.append(work)

    def refuse(self, message: str = REFUSAL) -> None:
        """The service refuses the next picture because of its content, and charges nothing."""
        self._script.append(lambda request: self._refusal(self.server, request, message))

    def _is_paid(self, request: ReceivedRequest) -> bool:
        return self.server.route(request) in ("generate", "edit", "create")

    def _draw(self, prompt: str, size: Size) -> bytes:
        if self._picture is not None:
            return self._picture
        red, green, blue = hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).digest()[:3]
        return make_png(size.width, size.height, pixel=bytes([red, green, blue, 255]))


class FakeModelService(FakeService[ModelServer]):
    """A service with models that talk and look. It refuses a history that the real one refuses."""

    def __init__(
        self, name: str, server: ModelServer, charges: list[Charge], *, provider: str
    ) -> None:
        super().__init__(name, server, charges)
        self._provider = provider
        self._call_ids = itertools.count(1)

    def reply(self, text: str) -> None:
        """The model's next answer is this text."""
        self._answer(ModelAnswer(pieces=(text,), usage=_count(text)))

    def call_tool(self, name: str, arguments: Mapping[str, Any], *, text: str = "") -> None:
        """The model's next answer is this text and a call of a tool."""
        encoded = json.dumps(arguments)
        call = ScriptedCall(
            name=name, arguments=encoded, call_id=f"call_{self.name}_{next(self._call_ids)}"
        )
        pieces = (text,) if text else ()
        self._answer(ModelAnswer(pieces=pieces, calls=(call,), usage=_count(text + encoded)))

    def refuse(self, message: str = REFUSAL) -> None:
        """The model's next answer is a refusal; the service charges for it."""
        self._answer(ModelAnswer(pieces=(), refusal=message, usage=_count(message)))

    def _answer(self, answer: ModelAnswer) -> None:
        self._script.append(lambda request: self._say(answer, request))

    def _work(self, request: ReceivedRequest) -> Reply:
        return self._say(ModelAnswer(pieces=(REPLY,), usage=_count(REPLY)), request)

    def _say(self, answer: ModelAnswer, request: ReceivedRequest) -> Reply:
        problem = self.server.objection(request)
        if problem is not None:
            return problem
        # Google's API has the model in the path.
        model = request.json().get("model") or request.path.rpartition("/")[2].partition(":")[0]
        self._charge(model, _answer_price(f"{self._provider}/{model}", answer.usage))
        return self.server.reply_with(answer, request)


class FakeServices:
    """Fake services on loopback, in a thread, while the ``with`` block runs.

    Args:
        folder: the home and the working folder of `limner` are below it; a temporary folder if
            left out.

    Attributes:
        images: OpenAI's pictures.
        responses: OpenAI's models.
        anthropic: Anthropic's models.
        gemini: Google's models that talk and look.
        gemini_images: Google's models that draw.
        replicate: Replicate's models that draw.
        folder: where relative paths of `limner` are.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._charges: list[Charge] = []
        charges = self._charges
        self.images = FakePictureService(
            "images", charges, server=_OpenAIPictures, refusal=_openai_refusal
        )
        self.responses = FakeModelService(
            "responses", ResponsesServer(), charges, provider="openai"
        )
        self.anthropic = FakeModelService(
            "anthropic", AnthropicServer(), charges, provider="anthropic"
        )
        self.gemini = FakeModelService("gemini", GeminiServer(), charges, provider="google")
        self.gemini_images = FakePictureService(
            "gemini_images", charges, server=_GeminiPictures, refusal=_gemini_refusal
        )
        self.replicate = FakePictureService(
            "replicate", charges, server=_ReplicatePictures, refusal=_replicate_refusal
        )
        self._gateway = _Gateway(self)
        self._given_folder = folder
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Start the services."""
        with self._stack as stack:
            folder = self._given_folder
            if folder is None:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="limner-")))
            self.folder = folder
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(self._gateway)
            self.replicate.server.port = self._gateway.port
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exc: object) -> None:
        """Stop the services; an exception inside one of them is raised here."""
        self._stack.close()

    @property
    def requests(self) -> list[ReceivedRequest]:
        """Every request, in the order of arrival."""
        return list(self._gateway.requests)

    def bill(self) -> Bill:
        """What the services charge so far."""
        return Bill(charges=tuple(self._charges))

    @property
    def env(self) -> dict[str, str]:
        """The variables with which limner, here or in another process, uses these services."""
        origin = self._gateway.origin
        urls = {f"{name}_BASE_URL": f"{origin}{path}" for name, path in _BASE_URLS.items()}
        keys = {name: f"fake-{name.lower()}-0123456789" for name in _KEYS}
        return {"LIMNER_HOME": str(self.folder / "home"), **keys, **urls}

    def real_variables(self) -> set[str]:
        """The variables of this process that would lead limner to other services or settings."""
        specs = [*all_specs(embedded=True).values(), *services().values()]
        known = {name for spec in specs for name in (spec.key_env, spec.base_url_env) if name}
        return {
            name
            for name in os.environ
            if (name in known or name.startswith("LIMNER_")) and name not in self.env
        }

    def limner(
        self,
        *,
        settings: Mapping[str, object] | None = None,
        budget_usd: Decimal | float | str | None = None,
        clock: Callable[[], datetime] = utc_now,
    ) -> Limner:
        """A `Limner` that talks to these services, with its home in the folder.

        Args:
            settings: values by dotted key, such as ``{"images.provider": "replicate-flux"}``.
            budget_usd: as for `Limner`.
            clock: as for `Limner`.
        """
        loaded = load(env=self.env, cwd=self.folder, flags=settings)
        return Limner(loaded, budget_usd=budget_usd, env=self.env, cwd=self.folder, clock=clock)


class _Gateway(LocalServer):
    """The one server that listens; it passes each request on to the service of its path."""

    def __init__(self, fake: FakeServices) -> None:
        super().__init__()
        self._fake = fake

    def answer(self, seen: ReceivedRequest) -> Reply:
        _, root, *_ = f"{seen.path}/".split("/")
        service = self._service(root, seen)
        if service is None:
            return json_reply({"error": {"message": f"no service at {seen.path}"}}, status=404)
        return service.reply_to(replace(seen, target=seen.target.removeprefix(f"/{root}")))

    def _service(self, root: str, seen: ReceivedRequest) -> FakeService[Any] | None:
        fake = self._fake
        if root == "openai":
            return fake.responses if seen.path.endswith("/responses") else fake.images
        if root == "gemini":
            return fake.gemini_images if _wants_picture(seen) else fake.gemini
        return {"anthropic": fake.anthropic, "replicate": fake.replicate}.get(root)


class _OpenAIPictures(OpenAIServer):
    def __init__(self, draw: Draw, charge: Callable[[str, int | None], None]) -> None:
        super().__init__(b"")
        self._draw, self._charge = draw, charge

    def drawn(self, body: Mapping[str, Any], *, kind: str = "image_generation") -> Reply:
        name, prompt = str(body.get("model")), str(body["prompt"])
        model = _image_model(name)
        size = _size(body.get("size"))
        quality = str(body.get("quality", "medium"))
        self.usage = _image_usage(model, size, quality, prompt, is_edit=kind == "image_edit")
        self.picture = self._draw(prompt, size)
        self._charge(name, _picture_price(model, size, quality, prompt, self.usage))
        return super().drawn(body, kind=kind)


class _GeminiPictures(GeminiImageServer):
    def __init__(self, draw: Draw, charge: Callable[[str, int | None], None]) -> None:
        super().__init__(b"")
        self._draw, self._charge = draw, charge

    def answer(self, seen: ReceivedRequest) -> Reply:
        body = seen.json()
        config = body["generationConfig"].get("imageConfig", {})
        prompt = body["contents"][-1]["parts"][-1].get("text", "")
        self.picture = self._draw(prompt, _size(config.get("aspectRatio")))
        reply = super().answer(seen)
        if reply.status == 200:
            name = seen.path.rpartition("/")[2].partition(":")[0]
            model = _image_model(name)
            assert model is not None
            assert isinstance(model.price, AreaTokensPrice)
            image = self.usage["candidatesTokensDetails"][0]["tokenCount"]
            text = self.usage["candidatesTokenCount"] - image + self.usage["thoughtsTokenCount"]
            tokens_in = self.usage["promptTokenCount"]
            cost = model.price.cost(text_in=tokens_in, text_out=text, image_out=image)
            self._charge(name, cost)
        return reply


class _ReplicatePictures(ReplicateServer):
    mount = "/replicate"

    def __init__(self, draw: Draw, charge: Callable[[str, int | None], None]) -> None:
        super().__init__(b"")
        self._draw, self._charge = draw, charge
        self._files: dict[str, bytes] = {}

    def answer(self, seen: ReceivedRequest) -> Reply:
        if self.route(seen) == "file":
            return Reply(pieces=(self._files[seen.path.rpartition("/")[2]],))
        return super().answer(seen)

    def _end(self, prediction: dict[str, Any]) -> None:
        inputs, name = prediction["input"], prediction["model"]
        prompt = str(inputs.get("prompt", ""))
        size = _size(inputs.get("aspect_ratio"))
        file = f"{prediction['id']}.png"
        self._files[file] = self._draw(prompt, size)
        self._charge(name, _picture_price(_image_model(name), size, "", prompt, None))
        prediction |= {"status": "succeeded", "output": [f"{self.origin}/files/{file}"]}


def _openai_refusal(_: OpenAIServer, __: ReceivedRequest, message: str) -> Reply:
    return error_reply(400, message, code="moderation_blocked")


def _gemini_refusal(_: GeminiImageServer, __: ReceivedRequest, message: str) -> Reply:
    blocked = {"blockReason": "PROHIBITED_CONTENT", "blockReasonMessage": message}
    return json_reply({"promptFeedback": blocked})


def _replicate_refusal(server: ReplicateServer, request: ReceivedRequest, message: str) -> Reply:
    # Replicate marks a refusal with this code, and only there.
    error = f"{message} (E005)"
    prediction = server.add("", request.json()["input"], status="failed", error=error)
    return json_reply(prediction, status=201)


def _wants_picture(seen: ReceivedRequest) -> bool:
    config = as_object(as_object(seen.json() if seen.body else None).get("generationConfig"))
    return "IMAGE" in as_list(config.get("responseModalities"))


def _size(text: object) -> Size:
    """The size of ``1024x1536`` or of a shape such as ``3:2``."""
    if isinstance(text, str) and "x" in text:
        return parse_size(text)
    width, _, height = str(text).partition(":")
    if not (width.isdecimal() and height.isdecimal()):
        return Size(SIDE, SIDE)
    factor = SIDE / max(int(width), int(height))
    return Size(round(int(width) * factor), round(int(height) * factor))


def _image_model(name: str) -> ImageModel | None:
    return next((model for model in all_image_models() if model.id == name), None)


def _count(text: str) -> TokenCounts:
    output = 1 + len(text) // CHARS_PER_TOKEN
    return TokenCounts(input=INPUT_TOKENS, cached=0, output=output, reasoning=0)


def _image_usage(
    model: ImageModel | None, size: Size, quality: str, prompt: str, *, is_edit: bool
) -> dict[str, Any] | None:
    """The usage report of OpenAI's newer image models."""
    if model is None or not isinstance(model.price, GptImageTokens):
        return None
    text = 1 + len(prompt) // CHARS_PER_TOKEN
    image = SOURCE_TOKENS if is_edit else 0
    output = model.price.output_tokens(size, quality=quality)
    return {
        "input_tokens": text + image,
        "input_tokens_details": {"text_tokens": text, "image_tokens": image},
        "output_tokens": output,
        "total_tokens": text + image + output,
    }


def _picture_price(
    model: ImageModel | None, size: Size, quality: str, prompt: str, usage: object
) -> int | None:
    """The price of a picture; None if the catalogue does not know the model."""
    if model is None:
        return None
    if usage is not None:
        return cost_of_usage(model, usage)
    return model.price.quote(PriceRequest(size=size, quality=quality, prompt=prompt)).nano


def _answer_price(name: str, usage: TokenCounts | None) -> int | None:
    rate = next((model.rate for model in vision_models() if model.name == name), None)
    if rate is None or usage is None:
        return None
    return rate.cost(
        input_tokens=usage.input, output_tokens=usage.output, cache_read_tokens=usage.cached
    )
