"""OpenAI's images endpoint, as both of its providers use it: a body out, a picture back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from limner.errors import BadProviderImage
from limner.net.json_pictures import PICTURE
from limner.pictures.order import Sink
from limner.providers.base import Connection
from limner.providers.failures import MAX_MESSAGE_CHARS, Vendor
from limner.providers.service import Service, patiently
from limner.providers.untrusted import as_list, as_object

BASE_URL = "https://api.openai.com/v1"
BASE_URL_ENV = "OPENAI_BASE_URL"
KEY_ENV = "OPENAI_API_KEY"
# The vendor's own client waits as long: a large picture at the best quality takes minutes.
READ_TIMEOUT_S = 600.0
PICTURE_HOSTS = ("*.blob.core.windows.net",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """What the endpoint said about a picture whose bytes are in the sink."""

    revised_prompt: str | None
    usage: object


class ImagesEndpoint:
    """``POST /images/generations``, on behalf of one provider."""

    def __init__(self, connection: Connection, *, provider: str) -> None:
        vendor = Vendor(
            provider=provider,
            title="OpenAI",
            key_env=KEY_ENV,
            base_url_env=BASE_URL_ENV,
            account_url="https://platform.openai.com/usage",
        )
        self._service = Service(connection, vendor, picture_hosts=PICTURE_HOSTS)

    async def draw(self, body: Mapping[str, Any], sink: Sink) -> Drawn:
        """Ask for one picture.

        Raises:
            ProviderError: the service failed.
            BadProviderImage: it answered, but with no picture.
        """

        async def attempt() -> Any:
            return await self._service.call(
                "POST",
                f"{self._service.base_url}/images/generations",
                body=body,
                read_timeout_s=READ_TIMEOUT_S,
                paid=True,
                wanted={"data.b64_json"},
                sink=sink,
            )

        answer = as_object(await patiently(attempt, self._service.clock))
        item = await self._picture_of(answer, sink)
        revised = item.get("revised_prompt")
        return Drawn(
            revised_prompt=self._service.for_reader(revised) if isinstance(revised, str) else None,
            usage=answer.get("usage"),
        )

    async def _picture_of(self, answer: Mapping[str, Any], sink: Sink) -> Mapping[str, Any]:
        """The item of the answer whose picture is in the sink, fetched if it came by address."""
        items = [as_object(item) for item in as_list(answer.get("data"))]
        for item in items:
            if item.get("b64_json") is PICTURE:
                return item
        for item in items:
            url = item.get("url")
            if isinstance(url, str):
                await self._service.fetch(url, sink)
                return item
        raise self._no_picture(answer)

    def _no_picture(self, answer: Mapping[str, Any]) -> BadProviderImage:
        said = as_object(answer.get("error")).get("message")
        words = self._service.for_reader(said)[:MAX_MESSAGE_CHARS] if isinstance(said, str) else ""
        return BadProviderImage(
            f"OpenAI answered without a picture{': ' if words else ''}{words}",
            extras={"provider": self._service.vendor.provider},
        )
