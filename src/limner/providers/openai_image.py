"""GPT Image: a request -> OpenAI's images endpoint -> a picture, priced by the tokens it took."""

from __future__ import annotations

from limner.catalogue.images import cost_of_usage, image_models
from limner.pictures.order import Desk, ImageRequest, Progress, Receipt, Sink
from limner.providers.base import Connection, ProviderSpec
from limner.providers.openai_images import BASE_URL, BASE_URL_ENV, KEY_ENV, ImagesEndpoint

NAME = "openai-image"
MODELS = image_models(NAME)


class OpenAIImage:
    """Draws with the GPT Image models."""

    def __init__(self, connection: Connection) -> None:
        self._endpoint = ImagesEndpoint(connection, provider=NAME)

    async def generate(self, request: ImageRequest, sink: Sink, desk: Desk) -> Receipt:
        """Draw, pouring the bytes into the sink; raises as `Provider.generate`."""
        model = next(row for row in MODELS if row.id == request.model)
        body = {
            "model": request.model,
            "prompt": request.prompt,
            "size": f"{request.width}x{request.height}",
            "quality": model.qualities[request.quality],
            "output_format": "png",
            "n": 1,
        }
        desk.progress(Progress(message="OpenAI is drawing", elapsed_s=0.0))
        drawn = await self._endpoint.draw(body, sink)
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
