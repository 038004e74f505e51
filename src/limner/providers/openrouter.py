"""OpenRouter: a request for any vendor's model -> its Image API -> a picture and what it cost."""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Any

import msgspec

from limner.catalogue.images import EditRule, ImageModel, Size, image_models
from limner.catalogue.prices import ReportedPrice
from limner.catalogue.sizes import AnySize
from limner.dollars import MAX_USD
from limner.errors import BadProviderImage, LimnerError
from limner.json_shapes import as_list, as_object
from limner.net.failures import Vendor
from limner.net.json_pictures import PICTURE
from limner.net.service import Service, patiently
from limner.net.sink import Sink
from limner.pictures.request import ImageRequest, Progress, ProviderCallbacks, Receipt, SourceImage
from limner.providers.base import Connection, ProviderSpec
from limner.providers.model_inputs import COMMON_RATIOS, nearest_aspect_ratio

NAME = "openrouter"
MODELS = image_models(NAME)
BASE_URL = "https://openrouter.ai/api/v1"
READ_TIMEOUT_S = 600.0
# Up to so many pixels every model draws without being told; larger tiers have names.
UNNAMED_TIER_PIXELS = 1_100_000
TIERS = ((4_400_000, "2K"), (17_600_000, "4K"))
VENDOR = Vendor(
    provider=NAME,
    title="OpenRouter",
    key_env="OPENROUTER_API_KEY",
    base_url_env="OPENROUTER_BASE_URL",
    account_url="https://openrouter.ai/activity",
)
# Of the models that come and go at the service. What one of them cannot do, the service refuses
# before it charges; the most is what the dearest picture of any costs.
OTHER_MODEL = ImageModel(
    provider=NAME,
    id="any",
    title="Any image model of OpenRouter",
    sizes=AnySize(min_edge=64, max_edge=4096),
    price=ReportedPrice(at_most_usd=Decimal("0.50")),
    max_prompt_chars=32_000,
    fit_to_size=True,
    edit=EditRule(max_sources=16, max_bytes=5_000_000),
    source="openrouter 1.3.84 (PyPI), images.generate",
    read=date(2026, 11, 15),
)


class OpenRouter:
    """Draws with whatever model is named, and reports what the service charged."""

    def __init__(self, connection: Connection) -> None:
        self._service = Service(connection, VENDOR)

    async def generate(self, request: ImageRequest, sink: Sink, desk: ProviderCallbacks) -> Receipt:
        """Draw, pouring the bytes into the sink; raises as `Provider.generate`."""
        model = SPEC.model(request.model)
        assert model is not None
        body = msgspec.json.encode(_body(request, model))

        async def attempt() -> Any:
            return await self._service.call(
                "POST",
                f"{self._service.base_url}/images",
                body=body,
                read_timeout_s=READ_TIMEOUT_S,
                paid=True,
                wanted={"data.b64_json"},
                sink=sink,
            )

        desk.progress(Progress(message="OpenRouter is drawing", elapsed_s=0.0))
        answer = as_object(await patiently(attempt, self._service.clock))
        cost_nano = _cost(as_object(answer.get("usage")))
        if not any(
            as_object(one).get("b64_json") is PICTURE for one in as_list(answer.get("data"))
        ):
            raise self._no_picture(answer, cost_nano)
        if cost_nano is None:
            return Receipt(prompt_used=request.prompt)
        return Receipt(prompt_used=request.prompt, cost_nano=cost_nano, cost_source="provider")

    def _no_picture(self, answer: Mapping[str, Any], cost_nano: int | None) -> LimnerError:
        """The error for an answer with status 200 that tells of one, or holds nothing."""
        error = as_object(answer.get("error"))
        if error:
            kind, said = as_object(error.get("metadata")).get("error_type"), error.get("message")
            code = kind if isinstance(kind, str) else error.get("code")
            return self._service.failure_within_answer(
                None if code is None else str(code),
                said if isinstance(said, str) else None,
                paid=True,
            )
        problem = BadProviderImage(
            "OpenRouter answered without a picture", extras={"provider": NAME}
        )
        if cost_nano is not None:
            problem.charge(cost_nano, "provider")
        return problem


def _body(request: ImageRequest, model: ImageModel) -> dict[str, Any]:
    body: dict[str, Any] = {"model": request.model, "prompt": request.prompt, "n": 1}
    body |= (
        _dimensions(request) if model.fit_to_size else {"size": f"{request.width}x{request.height}"}
    )
    if model.qualities:
        body["quality"] = model.qualities[request.quality]
    if request.background is not None:
        body |= {"background": request.background, "output_format": "png"}
    if request.sources:
        body["input_references"] = [_reference(source) for source in request.sources]
    return body


def _dimensions(request: ImageRequest) -> dict[str, str]:
    size = Size(request.width, request.height)
    shape = {"aspect_ratio": nearest_aspect_ratio(size.width, size.height, COMMON_RATIOS)}
    if size.pixels <= UNNAMED_TIER_PIXELS:
        return shape
    return shape | {"resolution": next(name for most, name in TIERS if size.pixels <= most)}


def _reference(source: SourceImage) -> dict[str, Any]:
    # Put into the body as it is: the encoder has nothing to look for in megabytes of base64.
    address = msgspec.Raw(b'"data:%b;base64,%b"' % (source.mime.encode(), b64encode(source.data)))
    return {"type": "image_url", "image_url": {"url": address}}


def _cost(usage: Mapping[str, Any]) -> int | None:
    """What the service says it charged, in nano-dollars; None where it does not say."""
    parts = [usage.get("cost")]
    if usage.get("is_byok") is True:
        # With a key of the user's own, its vendor sends another bill.
        parts.append(as_object(usage.get("cost_details")).get("upstream_inference_cost"))
    nano = [_nano(part) for part in parts]
    return None if None in nano else sum(filter(None, nano))


def _nano(usd: object) -> int | None:
    if not isinstance(usd, (int, float)) or isinstance(usd, bool) or not 0 <= usd <= MAX_USD:
        return None
    return math.ceil(Decimal(str(usd)).scaleb(9))


SPEC = ProviderSpec(
    name=NAME,
    key_env=VENDOR.key_env,
    base_url_env=VENDOR.base_url_env,
    base_url=BASE_URL,
    models=MODELS,
    build=OpenRouter,
    other_model=OTHER_MODEL,
)
