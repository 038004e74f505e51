"""Any server that speaks OpenAI's images API: Azure, LocalAI, vLLM-Omni, a proxy of one's own.

Such servers differ in what they know. They are asked with the few fields that all of them take,
answer in base64 or by an address of their own, and seldom say what a picture has cost.
"""

from __future__ import annotations

import httpx2
from msgspec.structs import replace

from limner.catalogue.images import image_models
from limner.errors import ProviderBadRequest
from limner.net.failures import Vendor
from limner.net.service import Service
from limner.net.sink import Sink
from limner.pictures.request import ImageRequest, ProviderCallbacks, Receipt
from limner.providers.base import Connection, ProviderSpec
from limner.providers.openai_images import PICTURE_HOSTS, ImagesApi

NAME = "openai-compatible"
KEY_ENV = "OPENAI_COMPATIBLE_API_KEY"
BASE_URL_ENV = "OPENAI_COMPATIBLE_BASE_URL"
MODELS = image_models(NAME)
# A server of one model needs no name for it; others have a default of their own.
SERVERS_CHOICE = "default"
AZURE_HOSTS = (".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com")
UNKNOWN_FIELD_CODES = frozenset({"unknown_parameter", "unsupported_parameter"})


class OpenAICompatible:
    """Draws and edits with whatever model the server has.

    The base URL may end with a query, such as Azure's ``?api-version=…``: every request gets it.
    """

    def __init__(self, connection: Connection) -> None:
        base_url, _, query = connection.base_url.partition("?")
        url = _url(base_url)
        host = url.host if url.port is None else f"{url.host}:{url.port}"
        is_azure = url.host.endswith(AZURE_HOSTS) or "api-version=" in query
        vendor = Vendor(
            provider=NAME,
            title=host,
            key_env=KEY_ENV,
            base_url_env=BASE_URL_ENV,
            account_url=f"{url.scheme}://{host}",
        )
        service = Service(
            replace(connection, base_url=base_url.rstrip("/")),
            vendor,
            picture_hosts=PICTURE_HOSTS if is_azure else (),
            headers=_headers(connection.key, is_azure=is_azure),
        )
        # Without a key there is nobody to bill.
        self._paid = bool(connection.key)
        self._api = ImagesApi(service, query=query, paid=self._paid)
        self._is_azure = is_azure

    async def generate(self, request: ImageRequest, sink: Sink, desk: ProviderCallbacks) -> Receipt:
        """Draw, pouring the bytes into the sink; raises as `Provider.generate`."""
        fields: dict[str, str | int | bool] = {
            "prompt": request.prompt,
            "size": f"{request.width}x{request.height}",
            "n": 1,
        }
        if request.model != SERVERS_CHOICE:
            fields["model"] = request.model
        in_base64 = self._answer_format(request)
        try:
            drawn = await self._api.draw(request, fields | in_base64, sink, desk)
        except ProviderBadRequest as error:
            if not in_base64 or error.extras.get("provider_code") not in UNKNOWN_FIELD_CODES:
                raise
            # It was turned down for that field: nothing was begun, and there is a way without it.
            drawn = await self._api.draw(request, fields, sink, desk)
        prompt_used = drawn.revised_prompt or request.prompt
        return Receipt(prompt_used=prompt_used, cost_nano=None if self._paid else 0)

    def _answer_format(self, request: ImageRequest) -> dict[str, str]:
        """Ask for the picture itself: an address may be at a host that nobody has vouched for."""
        if self._is_azure or "gpt-image" in request.model:
            # These answer in nothing else, and refuse to be asked.
            return {}
        return {"response_format": "b64_json"}


def _url(base_url: str) -> httpx2.URL:
    try:
        return httpx2.URL(base_url)
    except httpx2.InvalidURL:
        # Whose base URL is wrong is said where it is checked.
        return httpx2.URL()


def _headers(key: str, *, is_azure: bool) -> dict[str, str]:
    if not key:
        return {}
    return {"api-key": key} if is_azure else {"Authorization": f"Bearer {key}"}


SPEC = ProviderSpec(
    name=NAME,
    key_env=KEY_ENV,
    base_url_env=BASE_URL_ENV,
    base_url="",
    models=MODELS,
    build=OpenAICompatible,
    other_model=MODELS[0],
    named_only=True,
    key_optional=True,
)
