"""A request -> any server with OpenAI's images API (Azure, LocalAI, vLLM-Omni) -> a picture.

Such servers differ in the fields they know. So limner sends only the fields that all of them take.
The server answers with base64 or with a URL of its own, and seldom reports the cost.
"""

from __future__ import annotations

from msgspec.structs import replace

from limner.catalogue.images import picture_hosts
from limner.errors import ProviderBadRequest
from limner.net.http import parse_url
from limner.net.service import Service
from limner.net.sink import Sink
from limner.pictures.request import ImageRequest, ProviderCallbacks, Receipt
from limner.providers.base import Connection
from limner.providers.openai_images import ImagesApi
from limner.providers.specs import BUILT_IN

SPEC = BUILT_IN["openai-compatible"]
# The request then names no model, and the server uses its default.
SERVERS_CHOICE = "default"
AZURE_HOSTS = (".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com")
UNKNOWN_FIELD_CODES = frozenset({"unknown_parameter", "unsupported_parameter"})


class OpenAICompatible:
    """Draws and edits with any model of the server.

    The base URL may end with a query, such as Azure's ``?api-version=…``; every request gets it.
    """

    def __init__(self, connection: Connection) -> None:
        base_url, _, query = connection.base_url.partition("?")
        url = parse_url(base_url)
        host = "" if url is None else url.host
        server = host if url is None or url.port is None else f"{host}:{url.port}"
        is_azure = host.endswith(AZURE_HOSTS) or "api-version=" in query
        vendor = replace(
            SPEC.vendor(connection),
            title=server,
            account_url="" if url is None else f"{url.scheme}://{server}",
        )
        service = Service(
            replace(connection, base_url=base_url.rstrip("/")),
            vendor,
            picture_hosts=picture_hosts(SPEC.name) if is_azure else (),
            headers=_headers(connection.key, is_azure=is_azure),
        )
        # A server without a key has no account to bill.
        self._paid = bool(connection.key)
        self._api = ImagesApi(service, query=query, paid=self._paid)
        self._is_azure = is_azure

    async def generate(
        self, request: ImageRequest, sink: Sink, callbacks: ProviderCallbacks
    ) -> Receipt:
        """Draw one picture and write its bytes to the sink; raises as `Provider.generate`."""
        fields: dict[str, str | int | bool] = {
            "prompt": request.prompt,
            "size": f"{request.width}x{request.height}",
            "n": 1,
        }
        if request.model != SERVERS_CHOICE:
            fields["model"] = request.model
        in_base64 = self._answer_format(request)
        try:
            drawn = await self._api.draw(request, fields | in_base64, sink, callbacks)
        except ProviderBadRequest as error:
            if not in_base64 or error.extras.get("provider_code") not in UNKNOWN_FIELD_CODES:
                raise
            # The server rejected the request because of that field, so nothing was drawn.
            drawn = await self._api.draw(request, fields, sink, callbacks)
        prompt_used = drawn.revised_prompt or request.prompt
        return Receipt(prompt_used=prompt_used, cost_nano=None if self._paid else 0)

    def _answer_format(self, request: ImageRequest) -> dict[str, str]:
        """Request the bytes of the picture: a URL may be at a host that limner does not trust."""
        if self._is_azure or "gpt-image" in request.model:
            # These always answer in base64, and reject the field.
            return {}
        return {"response_format": "b64_json"}


def _headers(key: str, *, is_azure: bool) -> dict[str, str]:
    if not key:
        return {}
    return {"api-key": key} if is_azure else {"Authorization": f"Bearer {key}"}
