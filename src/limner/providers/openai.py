"""OpenAI's image models: a request -> its images API -> a picture, and its price by tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from limner.catalogue.images import ImageModel, cost_of_usage, picture_hosts
from limner.net.service import Service
from limner.net.sink import Sink
from limner.pictures.request import ImageRequest, ProviderCallbacks, Receipt
from limner.providers.base import Connection
from limner.providers.openai_images import Fields, ImagesApi, ImagesReply, batch_request
from limner.providers.specs import BUILT_IN
from limner.wires.base import ModelRequest


class OpenAIDalle:
    """Draws with DALL·E 3, if a proxy still serves it. The API rewrites the prompt."""

    def __init__(self, connection: Connection) -> None:
        self._api = _images_api(connection, "openai-dalle")

    async def generate(
        self, request: ImageRequest, sink: Sink, callbacks: ProviderCallbacks
    ) -> Receipt:
        """Draw one picture and write its bytes to the sink; raises as `Provider.generate`."""
        fields = {
            "model": request.model,
            "prompt": request.prompt,
            "size": f"{request.width}x{request.height}",
            "quality": request.quality,
            "response_format": "b64_json",
            "n": 1,
        }
        drawn = await self._api.draw(request, fields, sink, callbacks)
        return Receipt(prompt_used=drawn.revised_prompt or request.prompt)


class OpenAIImage:
    """Draws and edits with the GPT Image models."""

    batch_api = "openai"

    def __init__(self, connection: Connection) -> None:
        self._api = _images_api(connection, "openai-image")
        self.service = self._api.service

    async def generate(
        self, request: ImageRequest, sink: Sink, callbacks: ProviderCallbacks
    ) -> Receipt:
        """Draw one picture and write its bytes to the sink; raises as `Provider.generate`."""
        model = _model(request)
        drawn = await self._api.draw(request, self._fields(request, model), sink, callbacks)
        return _receipt(drawn, request, model)

    def batch_request(self, request: ImageRequest) -> ModelRequest:
        """The request for OpenAI's Batch API."""
        return batch_request(request, self._fields(request, _model(request)))

    async def read_batched(
        self, answer: Mapping[str, Any], request: ImageRequest, model: ImageModel, sink: Sink
    ) -> Receipt:
        """Read a response of the Batch API; raises as `Provider.generate`."""
        return _receipt(await self._api.read(answer, sink), request, model)

    def _fields(self, request: ImageRequest, model: ImageModel) -> Fields:
        fields: dict[str, str | int | bool] = {
            "model": request.model,
            "prompt": request.prompt,
            "size": f"{request.width}x{request.height}",
            "quality": model.qualities[request.quality],
            "output_format": "png",
            "n": 1,
        }
        if request.background is not None:
            fields["background"] = request.background
        return fields


def _model(request: ImageRequest) -> ImageModel:
    return next(row for row in BUILT_IN["openai-image"].models if row.id == request.model)


def _receipt(drawn: ImagesReply, request: ImageRequest, model: ImageModel) -> Receipt:
    prompt_used = drawn.revised_prompt or request.prompt
    cost_nano = cost_of_usage(model, drawn.usage)
    if cost_nano is None:
        return Receipt(prompt_used=prompt_used)
    return Receipt(prompt_used=prompt_used, cost_nano=cost_nano, cost_source="computed")


def _images_api(connection: Connection, name: str) -> ImagesApi:
    vendor = BUILT_IN[name].vendor(connection)
    return ImagesApi(Service(connection, vendor, picture_hosts=picture_hosts(name)))
