"""OpenAI's image models: a request -> its images API -> a picture, and its price by tokens."""

from __future__ import annotations

from limner.catalogue.images import cost_of_usage, picture_hosts
from limner.net.service import Service
from limner.net.sink import Sink
from limner.pictures.request import ImageRequest, ProviderCallbacks, Receipt
from limner.providers.base import Connection
from limner.providers.openai_images import ImagesApi
from limner.providers.specs import BUILT_IN


class OpenAIDalle:
    """Draws with DALL·E 3, if a proxy still serves it. The API rewrites the prompt."""

    def __init__(self, connection: Connection) -> None:
        self._api = _images_api(connection, "openai-dalle")

    async def generate(self, request: ImageRequest, sink: Sink, desk: ProviderCallbacks) -> Receipt:
        """Draw one picture and write its bytes to the sink; raises as `Provider.generate`."""
        fields = {
            "model": request.model,
            "prompt": request.prompt,
            "size": f"{request.width}x{request.height}",
            "quality": request.quality,
            "response_format": "b64_json",
            "n": 1,
        }
        drawn = await self._api.draw(request, fields, sink, desk)
        return Receipt(prompt_used=drawn.revised_prompt or request.prompt)


class OpenAIImage:
    """Draws and edits with the GPT Image models."""

    def __init__(self, connection: Connection) -> None:
        self._api = _images_api(connection, "openai-image")

    async def generate(self, request: ImageRequest, sink: Sink, desk: ProviderCallbacks) -> Receipt:
        """Draw one picture and write its bytes to the sink; raises as `Provider.generate`."""
        model = next(row for row in BUILT_IN["openai-image"].models if row.id == request.model)
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
        drawn = await self._api.draw(request, fields, sink, desk)
        prompt_used = drawn.revised_prompt or request.prompt
        cost_nano = cost_of_usage(model, drawn.usage)
        if cost_nano is None:
            return Receipt(prompt_used=prompt_used)
        return Receipt(prompt_used=prompt_used, cost_nano=cost_nano, cost_source="computed")


def _images_api(connection: Connection, name: str) -> ImagesApi:
    vendor = BUILT_IN[name].vendor(connection)
    return ImagesApi(Service(connection, vendor, picture_hosts=picture_hosts(name)))
