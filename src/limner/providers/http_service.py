"""A request to a provider's service -> the response, decoded as the type that the author names."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TypeVar

import msgspec

from limner.errors import BadProviderImage
from limner.json_shapes import as_list, as_object
from limner.net.http import MultipartForm
from limner.net.json_pictures import PICTURE
from limner.net.service import Service, send_with_retries
from limner.net.sink import Sink
from limner.providers.base import Connection, ProviderSpec

ASK_TIMEOUT_S = 30.0
DRAW_TIMEOUT_S = 120.0

T = TypeVar("T")


class HttpService(Service):
    """The HTTP API of a provider's service, with its key; failures are limner's errors.

    A path starts with a slash and follows the base URL. A URL of the service's own is accepted in
    its place if it is at the origin of the base URL, so that the key goes nowhere else.

    Args:
        connection: what limner builds the provider from.
        spec: the provider's spec.
        picture_hosts: the hosts of the service's picture URLs, besides the base URL.
        headers: the headers of every request, with the key; the default is a bearer token.

    Raises:
        SettingsError: the base URL is not a URL.
        ProviderAuth: the key has characters that no key has.
    """

    def __init__(
        self,
        connection: Connection,
        spec: ProviderSpec,
        *,
        picture_hosts: Collection[str] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        vendor = spec.vendor(connection)
        super().__init__(connection, vendor, picture_hosts=picture_hosts, headers=headers)

    async def draw(
        self,
        path: str,
        response: type[T],
        *,
        picture: str,
        sink: Sink,
        body: Mapping[str, object] | None = None,
        form: MultipartForm | None = None,
        timeout_s: float = DRAW_TIMEOUT_S,
    ) -> T:
        """Buy one picture: post JSON or a form, and write the picture of the response to the sink.

        The request is sent again only if the service cannot have started anything.

        Args:
            path: the path of the request.
            response: the type of the response without the picture: a Struct, a dataclass or a
                TypedDict with the members to read.
            picture: the keys that lead to the picture, joined by dots; lists do not count
                (``"data.b64_json"``). It is base64, a ``data:`` URL, or a URL to download.
            sink: takes the bytes of the picture.
            body: the request as JSON.
            form: the request as a form, with files.
            timeout_s: the longest wait for the next bytes of the response.

        Raises:
            ProviderError: the service or the network failed.
            BadProviderImage: the response has no picture, or is not of the type.
        """

        async def attempt() -> object:
            return await self.call(
                "POST",
                self._url(path),
                body=body,
                form=form,
                read_timeout_s=timeout_s,
                paid=True,
                wanted={picture},
                sink=sink,
            )

        answer = await send_with_retries(attempt, self.clock)
        found = [value for value in _values_at(answer, picture.split(".")) if value]
        if PICTURE not in found:
            await self._download(found, sink)
        return self._decode(answer, response)

    async def ask(
        self,
        method: str,
        path: str,
        response: type[T],
        *,
        body: Mapping[str, object] | None = None,
        form: MultipartForm | None = None,
        paid: bool = False,
        timeout_s: float = ASK_TIMEOUT_S,
    ) -> T:
        """Send one request and decode its response; ``paid`` says that it buys something.

        Raises:
            ProviderError: the service or the network failed.
            BadProviderImage: the response is not of the type.
        """
        answer = await self.call(
            method,
            self._url(path),
            body=body,
            form=form,
            read_timeout_s=timeout_s,
            paid=paid,
        )
        return self._decode(answer, response)

    def _url(self, path: str) -> str:
        if path.startswith("/"):
            return f"{self.base_url}{path}"
        if self.is_own(path):
            return path
        raise self._bad_response("named a URL that is not its own")

    async def _download(self, found: list[object], sink: Sink) -> None:
        url = next((value for value in found if isinstance(value, str)), None)
        if url is None:
            raise self._bad_response("answered without a picture")
        await self.fetch(url, sink)

    def _decode(self, answer: object, response: type[T]) -> T:
        try:
            return msgspec.convert(answer, response)
        except msgspec.ValidationError as error:
            problem = self.safe_text(str(error))
            raise self._bad_response(f"answered in another form: {problem}") from None

    def _bad_response(self, problem: str) -> BadProviderImage:
        return BadProviderImage(
            f"{self.vendor.title} {problem}", extras={"provider": self.vendor.provider}
        )


def _values_at(value: object, keys: list[str]) -> Iterator[object]:
    """The values at a path; every item of a list is followed."""
    if items := as_list(value):
        for item in items:
            yield from _values_at(item, keys)
    elif not keys:
        yield value
    elif keys[0] in (members := as_object(value)):
        yield from _values_at(members[keys[0]], keys[1:])
