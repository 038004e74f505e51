"""A prompt -> an HTTP request, events -> an answer: the types that all wires share.

A wire writes a conversation for one API. It knows the paths, the headers and the JSON of the API
and nothing else: it opens no connection and reads no file. A new wire is a module here and a line
in ``WIRES``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, Literal, Protocol, cast, runtime_checkable

import msgspec
from msgspec.structs import replace

from limner.base64_text import encode_base64
from limner.content import Discreet

WIRES = {
    "openai-responses": "limner.wires.openai_responses:WIRE",
    "openai-chat": "limner.wires.openai_chat:WIRE",
    "anthropic-messages": "limner.wires.anthropic_messages:WIRE",
    "gemini-generate-content": "limner.wires.gemini_generate_content:WIRE",
}

NATIVE_API = "openai-responses"
"""The API whose items a conversation consists of: it reads every kind as it came."""

HANDLE_URL = "limner://image/"
"""The URL of a picture in an item is this and its handle; an item never contains bytes."""

DEFAULT_MAX_OUTPUT_TOKENS = 16_384

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
Stop = Literal["end", "length", "refusal", "error"]


class ModelPicture(Discreet, frozen=True, kw_only=True):
    """A picture as a model gets it: fitted, and of a type that the model takes.

    ``detail`` is a value of the model's own service; None leaves it to the service. A caller that
    sends the same picture again keeps its ``quoted_base64``.
    """

    unshown = ("data", "quoted_base64")

    mime: str
    data: bytes
    detail: str | None = None
    quoted_base64: bytes = b""

    def with_base64(self) -> ModelPicture:
        """The picture with its ``quoted_base64``."""
        quoted = self.quoted_base64 or f'"{encode_base64(self.data)}"'.encode()
        return replace(self, quoted_base64=quoted)

    def json_text(self, start: str = "") -> PictureText:
        """Its base64 after this start, as a JSON string for `encode_body`."""
        quoted = self.with_base64().quoted_base64
        return PictureText(msgspec.json.encode(start)[:-1], memoryview(quoted)[1:])


class PictureText:
    """A JSON string in two parts. The second is the base64 of a picture, and ends the string."""

    # Not a struct, which the encoder would encode by itself.
    __slots__ = ("rest", "start")

    def __init__(self, start: bytes, rest: memoryview) -> None:
        self.start, self.rest = start, rest


class ToolOffer(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that the model may call: its name, what it is for, and a schema of its arguments."""

    name: str
    description: str
    schema: Mapping[str, Any]


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that one request contains.

    Attributes:
        items: the conversation, as JSON objects in the shape of OpenAI's Responses API. A picture
            is ``{"type": "input_image", "image_url": "limner://image/<handle>"}``, an audio clip
            is ``{"type": "input_audio", "audio_url": "data:audio/…;base64,…"}``.
        pictures: the pictures of the items, by handle.
        omitted: the reason for each picture of the items that is not sent, by handle; a note with
            the handle and the reason replaces it.
        takes_images: False if the model is sent no pictures at all.
        takes_audio: True if the model is sent audio; for other models a note replaces it.
        tools: what the model may call.
        instructions: the system prompt.
        schema: a JSON schema; the answer's text is then a JSON object that matches it.
        effort: how much the model should reason; None leaves it to the service.
        max_output_tokens: the most tokens of an answer, reasoning included.
        conversation: the id of the conversation that this request continues. A service may cache
            the start of its requests under this id.
        stream: False if the answer is wanted in one piece, as in a batch of the vendor.
    """

    items: Sequence[Mapping[str, Any]]
    pictures: Mapping[str, ModelPicture] = msgspec.field(default_factory=dict[str, ModelPicture])
    omitted: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    takes_images: bool = True
    takes_audio: bool = False
    tools: Sequence[ToolOffer] = ()
    instructions: str | None = None
    schema: Mapping[str, Any] | None = None
    effort: Effort | None = None
    max_output_tokens: int = DEFAULT_MAX_OUTPUT_TOKENS
    conversation: str | None = None
    stream: bool = True


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """The tokens that a service counted; None if it does not say.

    The input includes tokens that were read from or written to a cache, and the output includes
    reasoning, however the service itself counts.
    """

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None

    def __add__(self, other: Usage) -> Usage:
        """The sum; a count that only one of them has is kept."""
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=_sum(self.cache_read_tokens, other.cache_read_tokens),
            cache_write_tokens=_sum(self.cache_write_tokens, other.cache_write_tokens),
            reasoning_tokens=_sum(self.reasoning_tokens, other.reasoning_tokens),
        )


def _sum(one: int | None, other: int | None) -> int | None:
    return other if one is None else one + (other or 0)


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of a model, or why there is none.

    Attributes:
        text: the text, as far as it arrived.
        stop: why it ends: the model was done, the limit was reached, it was refused, it failed.
        model: the model that answered, as the service names it.
        usage: the tokens, if the service counts them.
        message: the service's message about a refusal or a failure.
        code: the service's code for it.
        items: everything the model made, in order, as items of the conversation: reasoning,
            messages and calls of tools. An answer that calls tools has the stop "end". If the stop
            is "length", the last call may be cut off.
    """

    text: str
    stop: Stop
    model: str | None = None
    usage: Usage | None = None
    message: str | None = None
    code: str | None = None
    items: tuple[Mapping[str, Any], ...] = ()


class ModelRequest(Discreet, frozen=True, kw_only=True):
    """One HTTP request: the path after the base URL, and the pieces of the JSON body."""

    unshown = ("pieces",)

    path: str
    pieces: Sequence[bytes | memoryview]

    @property
    def body(self) -> bytes:
        """The whole body, as a copy."""
        return b"".join(self.pieces)


def encode_body(body: Mapping[str, Any]) -> list[bytes | memoryview]:
    """The pieces of a JSON body; no picture in it is copied.

    A conversation sends its pictures again with every request, so copies are most of the work.
    """
    # What is encoded cannot contain a mark that did not exist before.
    mark = os.urandom(16).hex().encode()
    pictures: list[memoryview] = []

    def leave_out(text: object) -> msgspec.Raw:
        if not isinstance(text, PictureText):
            raise NotImplementedError(type(text).__name__)
        pictures.append(text.rest)
        return msgspec.Raw(text.start + mark)

    first, *others = msgspec.json.encode(body, enc_hook=leave_out).split(mark)
    pieces: list[bytes | memoryview] = [first]
    for picture, text in zip(pictures, others, strict=True):
        pieces += (picture, text)
    return pieces


class StreamReader(Protocol):
    """Reads one streamed answer, event by event."""

    def feed(self, name: str, data: str) -> str:
        """Read the next server-sent event, and return the text that it adds to the answer.

        Raises:
            ModelBadAnswer: the event is not one of this API.
        """
        ...

    def finish(self) -> Answer | None:
        """The whole answer once the stream has ended; None if the stream broke off."""
        ...

    @property
    def has_usage(self) -> bool:
        """Whether the service has reported tokens, so that it charges for them."""
        ...


class Wire(Protocol):
    """One API: its headers, its requests and its answers."""

    @property
    def version(self) -> str | None:
        """The version that its paths start with if the base URL does not end in one."""
        ...

    def headers(self, key: str) -> Mapping[str, str]:
        """The headers with the key and the version of the API; no key if it is empty."""
        ...

    def request(self, model: str, prompt: Prompt) -> ModelRequest:
        """The request for a streamed answer of the model with that id.

        Raises:
            InputInvalid: something in the prompt cannot be sent with this API.
        """
        ...

    def reader(self) -> StreamReader:
        """A reader for one answer."""
        ...


@runtime_checkable
class BatchWire(Wire, Protocol):
    """An API whose requests the vendor takes in batches too."""

    @property
    def batch_api(self) -> str:
        """The vendor's batch API."""
        ...

    def events(self, whole: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
        """The events that a reader gets for an answer that came in one piece."""
        ...


def wire(api: str) -> Wire:
    """The wire of an API in the table."""
    module, _, attribute = WIRES[api].partition(":")
    return cast("Wire", getattr(import_module(module), attribute))
