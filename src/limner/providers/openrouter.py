"""OpenRouter: a request for any vendor's model -> its Image API -> a picture and its cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from limner.base64_text import encode_base64
from limner.catalogue.images import ImageModel, Size
from limner.catalogue.prices import cost_of_dollars
from limner.errors import BadProviderImage, LimnerError
from limner.json_shapes import as_list, as_object
from limner.net.json_pictures import PICTURE
from limner.net.service import Service, send_with_retries
from limner.net.sink import Sink
from limner.pictures.request import (
    ImageRequest,
    Progress,
    ProviderCallbacks,
    Receipt,
    SourceImage,
)
from limner.providers.base import Connection
from limner.providers.model_inputs import COMMON_RATIOS, nearest_aspect_ratio
from limner.providers.specs import BUILT_IN

SPEC = BUILT_IN["openrouter"]
READ_TIMEOUT_S = 600.0
# Every model draws up to so many pixels by default; larger tiers have names.
UNNAMED_TIER_PIXELS = 1_100_000
TIERS = ((4_400_000, "2K"), (17_600_000, "4K"))


class OpenRouter:
    """Draws with any model of the service, and reports what the service charged."""

    def __init__(self, connection: Connection) -> None:
        self._service = Service(connection, SPEC.vendor(connection))

    async def generate(
        self, request: ImageRequest, sink: Sink, callbacks: ProviderCallbacks
    ) -> Receipt:
        """Draw one picture and write its bytes to the sink; raises as `Provider.generate`."""
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

        callbacks.progress(Progress(message=f"{SPEC.title} is drawing", elapsed_s=0.0))
        answer = as_object(await send_with_retries(attempt, self._service.clock))
        cost_nano = _cost(as_object(answer.get("usage")))
        items = as_list(answer.get("data"))
        if not any(as_object(item).get("b64_json") is PICTURE for item in items):
            raise self._no_picture(answer, cost_nano)
        if cost_nano is None:
            return Receipt(prompt_used=request.prompt)
        return Receipt(prompt_used=request.prompt, cost_nano=cost_nano, cost_source="provider")

    def _no_picture(self, answer: Mapping[str, Any], cost_nano: int | None) -> LimnerError:
        """The error for a response with status 200 that has an error or no picture."""
        error = as_object(answer.get("error"))
        if error:
            kind, message = as_object(error.get("metadata")).get("error_type"), error.get("message")
            code = kind if isinstance(kind, str) else error.get("code")
            return self._service.reported_error(
                None if code is None else str(code),
                message if isinstance(message, str) else None,
                paid=True,
            )
        problem = BadProviderImage(
            f"{SPEC.title} answered without a picture", extras={"provider": SPEC.name}
        )
        if cost_nano is not None:
            problem.charge(cost_nano, "provider")
        return problem


def _body(request: ImageRequest, model: ImageModel) -> dict[str, Any]:
    body: dict[str, Any] = {"model": request.model, "prompt": request.prompt, "n": 1}
    body |= request.vendor_fields
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
    ratio = {"aspect_ratio": nearest_aspect_ratio(size.width, size.height, COMMON_RATIOS)}
    if size.pixels <= UNNAMED_TIER_PIXELS:
        return ratio
    return ratio | {
        "resolution": next(name for max_pixels, name in TIERS if size.pixels <= max_pixels)
    }


def _reference(source: SourceImage) -> dict[str, Any]:
    # Raw: the encoder need not escape megabytes of base64.
    url = msgspec.Raw(f'"data:{source.mime};base64,{encode_base64(source.data)}"'.encode())
    return {"type": "image_url", "image_url": {"url": url}}


def _cost(usage: Mapping[str, Any]) -> int | None:
    """What the service says it charged, in nano-dollars; None if it does not say."""
    parts = [usage.get("cost")]
    if usage.get("is_byok") is True:
        # With the user's own key, the vendor sends another bill.
        parts.append(as_object(usage.get("cost_details")).get("upstream_inference_cost"))
    nano = [cost_of_dollars(part) for part in parts]
    return None if None in nano else sum(filter(None, nano))
