"""A request of OpenAI's images API -> a picture, as OpenAI words it."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from email import message_from_bytes
from functools import lru_cache
from typing import Any, NamedTuple

from limner.testing.servers.http_server import (
    Gate,
    LocalServer,
    ReceivedRequest,
    Reply,
    bytes_reply,
    json_reply,
)

USAGE = {
    "input_tokens": 50,
    "input_tokens_details": {"text_tokens": 50, "image_tokens": 0},
    "output_tokens": 439,
    "total_tokens": 489,
}
PATHS = {"/images/generations": "generate", "/images/edits": "edit"}
CREATED = 1715600000


class FormFile(NamedTuple):
    """A file of a form."""

    field: str
    filename: str
    mime: str
    data: bytes


class ReceivedForm(NamedTuple):
    """A form as it arrived."""

    fields: dict[str, str]
    files: list[FormFile]


def read_form(seen: ReceivedRequest) -> ReceivedForm:
    """Read ``multipart/form-data`` by the standard library's parser of MIME messages."""
    head = f"Content-Type: {seen.headers['content-type']}\r\n\r\n".encode()
    message = message_from_bytes(head + seen.body)
    assert message.get_content_type() == "multipart/form-data", seen.headers
    form = ReceivedForm({}, [])
    parts: Any = message.get_payload()
    for part in parts:
        field = part.get_param("name", header="content-disposition")
        data = part.get_payload(decode=True)
        filename = part.get_filename()
        if filename is None:
            assert field not in form.fields, "a field twice"
            form.fields[field] = data.decode()
        else:
            form.files.append(FormFile(field, filename, part.get_content_type(), data))
    return form


def error_reply(status: int, message: str, *, code: str | None = None, **more: Any) -> Reply:
    """An error as OpenAI words it."""
    headers = more.pop("headers", {})
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return json_reply({"error": {**error, **more}}, status=status, headers=headers)


def event(kind: str, **fields: Any) -> bytes:
    """One event of a stream, as OpenAI words it."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def events_reply(*pieces: bytes | Gate) -> Reply:
    """A stream of events, sent piece by piece."""
    return Reply(
        headers={"Content-Type": "text/event-stream; charset=utf-8"}, pieces=pieces, chunked=True
    )


class OpenAIServer(LocalServer):
    """Draws the same picture every time. Routes: "generate", "edit" and "file"."""

    prefix = "/v1"

    def __init__(self, picture: bytes, **rest: Any) -> None:
        super().__init__(**rest)
        self.picture = picture
        self.file = bytes_reply(picture, headers={"Content-Type": "image/png"})
        self.revised_prompt: str | None = "A fox, revised"
        self.usage: Any = USAGE

    @property
    def base_url(self) -> str:
        return f"{self.origin}{self.prefix}"

    def route(self, seen: ReceivedRequest) -> str:
        if seen.path.startswith("/files/"):
            return "file"
        return PATHS.get(seen.path.removeprefix(self.prefix), "generate")

    def answer(self, seen: ReceivedRequest) -> Reply:
        if self.route(seen) == "file":
            return self.file
        if seen.method != "POST" or seen.path.removeprefix(self.prefix) not in PATHS:
            return error_reply(404, f"Invalid URL ({seen.method} {seen.path})")
        if not self.is_allowed(seen.headers):
            return error_reply(401, "You didn't provide an API key.")
        if self.route(seen) == "generate":
            return self.drawn(seen.json(), kind="image_generation")
        form = read_form(seen)
        if not form.files:
            return error_reply(400, "Missing required parameter: 'image'.")
        return self.drawn(form.fields, kind="image_edit")

    def is_allowed(self, headers: Mapping[str, str]) -> bool:
        """Whether a request brings a key."""
        return headers.get("authorization", "").startswith("Bearer ")

    def drawn(self, body: Mapping[str, Any], *, kind: str = "image_generation") -> Reply:
        """The answer to a request that is accepted; a form has its numbers as text."""
        if body.get("stream") in (True, "true"):
            return self.streamed(int(body.get("partial_images", 0)), kind=kind)
        is_dalle = body.get("model") == "dall-e-3"
        item: dict[str, Any] = {}
        if is_dalle and self.revised_prompt is not None:
            item["revised_prompt"] = self.revised_prompt
        if body.get("response_format") == "url":
            item["url"] = f"{self.origin}/files/picture.png"
            return json_reply({"created": CREATED, "data": [item]})
        extras = {} if is_dalle else {"usage": self.usage, "output_format": "png"}
        before, after = json.dumps(
            {"created": CREATED, "data": [item | {"b64_json": "HERE"}], **extras}
        ).split("HERE")
        return Reply(
            headers={"Content-Type": "application/json"},
            pieces=(before.encode(), self._base64, after.encode()),
        )

    def streamed(self, partial_images: int, *, kind: str) -> Reply:
        """The picture in events: its unfinished states, then itself."""
        fields = {
            "b64_json": self._base64.decode(),
            "created_at": CREATED,
            "size": "1024x1024",
            "quality": "medium",
            "background": "auto",
            "output_format": "png",
        }
        partial = [
            event(
                f"{kind}.partial_image",
                **{**fields, "b64_json": base64.b64encode(self.draft(number)).decode()},
                partial_image_index=number,
            )
            for number in range(partial_images)
        ]
        completed = event(f"{kind}.completed", **fields, usage=self.usage)
        return events_reply(b": ping\n\n", *partial, completed)

    def draft(self, number: int) -> bytes:
        """An unfinished picture; a test may want a real one."""
        return b"unfinished %d" % number

    @property
    def _base64(self) -> bytes:
        return _encode(self.picture)


@lru_cache(maxsize=4)
def _encode(picture: bytes) -> bytes:
    return base64.b64encode(picture)
