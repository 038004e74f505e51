"""OpenAI's images API, as every provider that speaks it uses it: a request out, a picture back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any

import msgspec

from limner.errors import BadProviderImage, ProviderError, ProviderUnavailable
from limner.json_shapes import as_list, as_object
from limner.net.clock import Clock
from limner.net.failures import MAX_MESSAGE_CHARS, MAY_BE_BILLED, Vendor
from limner.net.json_pictures import PICTURE, picture_events, read_json_with_pictures
from limner.net.request_body import MultipartForm, Upload
from limner.net.service import Service, patiently
from limner.net.sink import Sink
from limner.pictures.request import ImageRequest, Progress, ProviderCallbacks
from limner.providers.base import Connection

BASE_URL = "https://api.openai.com/v1"
BASE_URL_ENV = "OPENAI_BASE_URL"
KEY_ENV = "OPENAI_API_KEY"
# The vendor's own client waits as long: a large picture at the best quality takes minutes.
READ_TIMEOUT_S = 600.0
PICTURE_HOSTS = ("*.blob.core.windows.net",)
WANTED = frozenset({"data.b64_json"})

Fields = Mapping[str, str | int | bool]


class ImagesReply(msgspec.Struct, frozen=True, kw_only=True):
    """What the API said about a picture whose bytes are in the sink."""

    revised_prompt: str | None
    usage: object


class ImagesApi:
    """``POST /images/generations`` and ``/images/edits`` of one service.

    Args:
        service: whose API it is.
        query: what every address ends with, where the service wants something there.
        paid: whether somebody is charged for what is drawn.
    """

    def __init__(self, service: Service, *, query: str = "", paid: bool = True) -> None:
        self._service = service
        self._query = f"?{query}" if query else ""
        self._paid = paid

    async def draw(
        self, request: ImageRequest, fields: Fields, sink: Sink, desk: ProviderCallbacks
    ) -> ImagesReply:
        """Ask for one picture, drawn from the request's sources where it has such.

        ``fields`` is what the service is told besides these pictures.

        Raises:
            ProviderError: the service failed.
            BadProviderImage: it answered, but with no picture.
        """
        title = self._service.vendor.title
        desk.progress(Progress(message=f"{title} is drawing", elapsed_s=0.0))
        order = _Order(request, fields)
        ask = self._watch if request.partial_pictures else self._ask

        async def attempt() -> Mapping[str, Any]:
            return as_object(await ask(order, sink, desk))

        answer = await patiently(attempt, self._service.clock)
        item = await self._picture_of(answer, sink)
        revised = item.get("revised_prompt")
        return ImagesReply(
            revised_prompt=self._service.for_reader(revised) if isinstance(revised, str) else None,
            usage=answer.get("usage"),
        )

    def _url(self, order: _Order) -> str:
        return f"{self._service.base_url}{order.path}{self._query}"

    async def _ask(self, order: _Order, sink: Sink, desk: ProviderCallbacks) -> Any:
        return await self._service.call(
            "POST",
            self._url(order),
            body=order.body,
            form=order.form,
            read_timeout_s=READ_TIMEOUT_S,
            paid=self._paid,
            wanted=WANTED,
            sink=sink,
        )

    async def _watch(self, order: _Order, sink: Sink, desk: ProviderCallbacks) -> Any:
        """Ask, and show unfinished pictures on the way."""
        shown = _Shown(desk, self._service.clock, most=order.partial_pictures)
        async with (
            self._service.stream(
                self._url(order),
                content=None if order.body is None else msgspec.json.encode(order.body),
                form=order.form,
                read_timeout_s=READ_TIMEOUT_S,
                paid=self._paid,
            ) as response,
            aclosing(response.aiter_bytes()) as chunks,
        ):
            if "text/event-stream" in response.headers.get("content-type", ""):
                return await self._follow(chunks, sink, shown)
            # A proxy that knows no streams answers once, and what it answers is paid for.
            return await read_json_with_pictures(chunks, wanted=WANTED, sink=sink)

    async def _follow(
        self, chunks: AsyncIterator[bytes], sink: Sink, shown: _Shown
    ) -> Mapping[str, Any]:
        """Read events up to the finished picture; the answer as it is without events."""
        async with aclosing(picture_events(chunks, wanted={"b64_json"})) as events:
            async for event in events:
                body = as_object(event.body)
                kind = str(body.get("type", event.name))
                if kind == "error" or body.get("error"):
                    raise self._failure(body)
                has_picture = body.get("b64_json") is PICTURE
                if kind.endswith(".completed"):
                    if has_picture:
                        sink.write(event.picture)
                    return {"data": [body], "usage": body.get("usage")}
                if has_picture:
                    shown.show(event.picture)
        raise ProviderUnavailable(
            f"{self._service.vendor.title} ended its answer before the picture was finished; "
            f"{MAY_BE_BILLED}",
            may_be_billed=True,
            retryable=False,
        )

    def _failure(self, body: Mapping[str, Any]) -> ProviderError:
        told = as_object(body.get("error")) or body
        code, message = told.get("code") or told.get("type"), told.get("message")
        return self._service.failure_within_answer(
            code if isinstance(code, str) else None,
            message if isinstance(message, str) else None,
            paid=self._paid,
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
        vendor = self._service.vendor
        return BadProviderImage(
            f"{vendor.title} answered without a picture{': ' if words else ''}{words}",
            extras={"provider": vendor.provider},
        )


def openai_api(connection: Connection, *, provider: str) -> ImagesApi:
    """The API at OpenAI itself, or wherever its own variable points."""
    vendor = Vendor(
        provider=provider,
        title="OpenAI",
        key_env=KEY_ENV,
        base_url_env=BASE_URL_ENV,
        account_url="https://platform.openai.com/usage",
    )
    return ImagesApi(Service(connection, vendor, picture_hosts=PICTURE_HOSTS))


class _Shown:
    """The unfinished pictures of one request, as the caller gets to see them."""

    def __init__(self, desk: ProviderCallbacks, clock: Clock, *, most: int) -> None:
        self._desk, self._clock, self._most = desk, clock, most
        self._began = clock.now()
        self._count = 0

    def show(self, picture: memoryview) -> None:
        """Show the next one; more than were asked for are nobody's wish."""
        if self._count == self._most:
            return
        self._count += 1
        progress = Progress(
            message=f"Unfinished picture {self._count} of at most {self._most}",
            elapsed_s=self._clock.now() - self._began,
            picture=bytes(picture),
        )
        self._desk.progress(progress)


class _Order:
    """One request as it is sent: where to, and either as JSON or as a form with pictures."""

    def __init__(self, request: ImageRequest, fields: Fields) -> None:
        self.partial_pictures = request.partial_pictures
        if request.partial_pictures:
            fields = {**fields, "stream": True, "partial_images": request.partial_pictures}
        self.path = "/images/edits" if request.sources else "/images/generations"
        self.body = None if request.sources else fields
        self.form = (
            MultipartForm(fields=fields, uploads=_uploads(request)) if request.sources else None
        )


def _uploads(request: ImageRequest) -> list[Upload]:
    # As the vendor's own client does: some servers take a single picture under this name only.
    field = "image" if len(request.sources) == 1 else "image[]"
    uploads = [
        Upload(
            field=field,
            filename=f"image-{number}.{source.mime.partition('/')[2]}",
            mime=source.mime,
            data=source.data,
        )
        for number, source in enumerate(request.sources, start=1)
    ]
    if request.mask is not None:
        mask = request.mask
        uploads.append(Upload(field="mask", filename="mask.png", mime=mask.mime, data=mask.data))
    return uploads
