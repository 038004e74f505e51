"""DALL·E 3: a request -> OpenAI's images API -> a picture and the prompt it rewrote."""

from __future__ import annotations

from limner.catalogue.images import image_models
from limner.net.sink import Sink
from limner.pictures.request import ImageRequest, ProviderCallbacks, Receipt
from limner.providers.base import Connection, ProviderSpec
from limner.providers.openai_images import BASE_URL, BASE_URL_ENV, KEY_ENV, openai_api

NAME = "openai-dalle"


class OpenAIDalle:
    """Draws with DALL·E 3, where it is still served."""

    def __init__(self, connection: Connection) -> None:
        self._api = openai_api(connection, provider=NAME)

    async def generate(self, request: ImageRequest, sink: Sink, desk: ProviderCallbacks) -> Receipt:
        """Draw, pouring the bytes into the sink; raises as `Provider.generate`."""
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


SPEC = ProviderSpec(
    name=NAME,
    key_env=KEY_ENV,
    base_url_env=BASE_URL_ENV,
    base_url=BASE_URL,
    models=image_models(NAME),
    build=OpenAIDalle,
)
