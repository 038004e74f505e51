"""A request -> OpenAI's images API, which several services offer -> a picture."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any

import msgspec

from limner.base64_text import encode_base64
from limner.errors import BadProviderImage, ProviderError, ProviderUnavailable
from limner.json_shapes import as_list, as_object
from limner.net.clock import Clock
from limner.net.failures import MAX_MESSAGE_CHARS, MAY_BE_BILLED
from limner.net.http import MultipartForm, Upload
from limner.net.json_pictures import PICTURE, picture_events, read_json_with_pictures
from limner.net.service import Service, send_with_retries
from limner.net.sink import Sink
from limner.pictures.request import ImageRequest, Progress, ProviderCallbacks, SourceImage
from limner.wires.base import ModelRequest

# The vendor's own client has the same timeout: a large picture at the best quality takes minutes.
READ_TIMEOUT_S = 600.0
WANTED = frozenset({"data.b64_json"})

Fields = Mapping[str, str | int | bool]


class ImagesReply(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about a picture whose bytes are in the sink."""

    revised_prompt: str | None
    usage: object


class ImagesApi:
    """``POST /images/generations`` and ``/images/edits`` of one service.

    Args:
        service: the service's HTTP API.
        query: the query of every URL, if the service needs one.
        paid: whether the service charges for a picture.
    """

    def __init__(self, service: Service, *, query: str = "", paid: bool = True) -> None:
        self.service = service
        self._query = f"?{query}" if query else ""
        self._paid = paid

    async def draw(
        self, request: ImageRequest, fields: Fields, sink: Sink, callbacks: ProviderCallbacks
    ) -> ImagesReply:
        """Request one picture, drawn from the request's sources if it has any.

        ``fields`` has the fields of the request besides these pictures.

        Raises:
            ProviderError: the service failed.
            BadProviderImage: it answered without a picture.
        """
        title = self.service.vendor.title
        callbacks.progress(Progress(message=f"{title} is drawing", elapsed_s=0.0))
        body = _RequestBody(request, fields)
        send = self._stream if request.partial_pictures else self._send

        async def attempt() -> Mapping[str, Any]:
            return as_object(await send(body, sink, callbacks))

        return await self.read(await send_with_retries(attempt, self.service.clock), sink)

    async def read(self, answer: Mapping[str, Any], sink: Sink) -> ImagesReply:
        """Read a response whose picture is in the sink.

        Raises:
            BadProviderImage: it has no picture.
        """
        item = await self._find_picture(answer, sink)
        revised = item.get("revised_prompt")
        return ImagesReply(
            revised_prompt=self._clean(revised) if isinstance(revised, str) else None,
            usage=answer.get("usage"),
        )

    def _clean(self, prompt: str) -> str:
        """A revised prompt; a text in it that only looks like a key stays."""
        return self.service.mask(prompt.encode("utf-8", "replace").decode())

    def _url(self, body: _RequestBody) -> str:
        return f"{self.service.base_url}{body.path}{self._query}"

    async def _send(self, body: _RequestBody, sink: Sink, callbacks: ProviderCallbacks) -> Any:
        return await self.service.call(
            "POST",
            self._url(body),
            body=body.json,
            form=body.form,
            read_timeout_s=READ_TIMEOUT_S,
            paid=self._paid,
            wanted=WANTED,
            sink=sink,
        )

    async def _stream(self, body: _RequestBody, sink: Sink, callbacks: ProviderCallbacks) -> Any:
        """Send the request, and show partial pictures as they arrive."""
        previews = _Previews(callbacks, self.service.clock, max_count=body.partial_pictures)
        async with (
            self.service.stream(
                self._url(body),
                content=None if body.json is None else msgspec.json.encode(body.json),
                form=body.form,
                read_timeout_s=READ_TIMEOUT_S,
                paid=self._paid,
            ) as response,
            aclosing(response.aiter_bytes()) as chunks,
        ):
            if "text/event-stream" in response.headers.get("content-type", ""):
                return await self._read_events(chunks, sink, previews)
            # A proxy without streams sends one response, and the user pays for it.
            return await read_json_with_pictures(chunks, wanted=WANTED, sink=sink)

    async def _read_events(
        self, chunks: AsyncIterator[bytes], sink: Sink, previews: _Previews
    ) -> Mapping[str, Any]:
        """Read events up to the finished picture; returns the same shape as without streaming."""
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
                    previews.show(event.picture)
        raise ProviderUnavailable(
            f"{self.service.vendor.title} ended its answer before the picture was finished; "
            f"{MAY_BE_BILLED}",
            may_be_billed=True,
            retryable=False,
        )

    def _failure(self, body: Mapping[str, Any]) -> ProviderError:
        error = as_object(body.get("error")) or body
        code, message = error.get("code") or error.get("type"), error.get("message")
        return self.service.reported_error(
            code if isinstance(code, str) else None,
            message if isinstance(message, str) else None,
            paid=self._paid,
        )

    async def _find_picture(self, answer: Mapping[str, Any], sink: Sink) -> Mapping[str, Any]:
        """The item whose picture is in the sink; a picture that is only a URL is downloaded."""
        items = [as_object(item) for item in as_list(answer.get("data"))]
        for item in items:
            if item.get("b64_json") is PICTURE:
                return item
        for item in items:
            url = item.get("url")
            if isinstance(url, str):
                await self.service.fetch(url, sink)
                return item
        raise self._no_picture(answer)

    def _no_picture(self, answer: Mapping[str, Any]) -> BadProviderImage:
        message = as_object(answer.get("error")).get("message")
        reason = self.service.safe_text(message) if isinstance(message, str) else ""
        reason = reason[:MAX_MESSAGE_CHARS]
        vendor = self.service.vendor
        return BadProviderImage(
            f"{vendor.title} answered without a picture{': ' if reason else ''}{reason}",
            extras={"provider": vendor.provider},
        )


class _Previews:
    """The partial pictures of one request, reported to the caller."""

    def __init__(self, callbacks: ProviderCallbacks, clock: Clock, *, max_count: int) -> None:
        self._desk, self._clock, self._max_count = callbacks, clock, max_count
        self._started = clock.now()
        self._count = 0

    def show(self, picture: memoryview) -> None:
        """Show the next one, up to the number that the caller requested."""
        if self._count == self._max_count:
            return
        self._count += 1
        progress = Progress(
            message=f"Unfinished picture {self._count} of at most {self._max_count}",
            elapsed_s=self._clock.now() - self._started,
            picture=bytes(picture),
        )
        self._desk.progress(progress)


class _RequestBody:
    """The path and body of one request: JSON, or a form with pictures."""

    def __init__(self, request: ImageRequest, fields: Fields) -> None:
        vendor_fields: Mapping[str, Any] = request.vendor_fields
        fields = {**fields, **vendor_fields}
        self.partial_pictures = request.partial_pictures
        if request.partial_pictures:
            fields = {**fields, "stream": True, "partial_images": request.partial_pictures}
        self.path = "/images/edits" if request.sources else "/images/generations"
        self.json = None if request.sources else fields
        self.form = (
            MultipartForm(fields=fields, uploads=_uploads(request)) if request.sources else None
        )


def batch_request(request: ImageRequest, fields: Fields) -> ModelRequest:
    """The request for the Batch API, which takes no forms: pictures are data URLs."""
    body = _RequestBody(request, fields)
    content: dict[str, Any] = dict(body.json or (body.form.fields if body.form else {}))
    if request.sources:
        content["images"] = [_reference(source) for source in request.sources]
    if request.mask is not None:
        content["mask"] = _reference(request.mask)
    return ModelRequest(path=f"/v1{body.path}", pieces=(msgspec.json.encode(content),))


def _reference(source: SourceImage) -> dict[str, str]:
    data = encode_base64(source.data)
    return {"image_url": f"data:{source.mime};base64,{data}"}


def _uploads(request: ImageRequest) -> list[Upload]:
    # As in the vendor's own client: some servers take a single picture only under this name.
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
