"""GPT Image: a request -> OpenAI's images API -> a picture, priced by the tokens it took."""

from __future__ import annotations

from limner.catalogue.images import cost_of_usage, image_models
from limner.net.sink import Sink
from limner.pictures.request import ImageRequest, ProviderCallbacks, Receipt
from limner.providers.base import Connection, ProviderSpec
from limner.providers.openai_images import BASE_URL, BASE_URL_ENV, KEY_ENV, openai_api

NAME = "openai-image"
MODELS = image_models(NAME)


class OpenAIImage:
    """Draws and edits with the GPT Image models."""

    def __init__(self, connection: Connection) -> None:
        self._api = openai_api(connection, provider=NAME)

    async def generate(self, request: ImageRequest, sink: Sink, desk: ProviderCallbacks) -> Receipt:
        """Draw, pouring the bytes into the sink; raises as `Provider.generate`."""
        model = next(row for row in MODELS if row.id == request.model)
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


SPEC = ProviderSpec(
    name=NAME,
    key_env=KEY_ENV,
    base_url_env=BASE_URL_ENV,
    base_url=BASE_URL,
    models=MODELS,
    build=OpenAIImage,
)
