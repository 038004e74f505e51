"""What every wire takes in and gives back: a prompt in, a request out; events in, an answer out.

A wire is one API's way of writing the same conversation. It knows the API's addresses, headers
and JSON and nothing else: it opens no connection and reads no file. A new one is a module here
and a line in ``WIRES``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Literal, Protocol, cast

import msgspec

from limner.content import Discreet

WIRES = {
    "openai-responses": "limner.wires.openai_responses:WIRE",
    "openai-chat": "limner.wires.openai_chat:WIRE",
    "anthropic-messages": "limner.wires.anthropic_messages:WIRE",
    "gemini-generate-content": "limner.wires.gemini_generate_content:WIRE",
}

HANDLE_URL = "limner://image/"
"""A picture in an item is named by this and its handle, never by its bytes."""

DEFAULT_MAX_OUTPUT_TOKENS = 16_384

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
Stop = Literal["end", "length", "refusal", "error"]


class ModelPicture(Discreet, frozen=True, kw_only=True):
    """A picture as a model gets it: fitted, of a type the model reads.

    ``detail`` is how closely the model should look, in the word of its own service; None leaves
    that to the service.
    """

    unshown = ("data",)

    mime: str
    data: bytes
    detail: str | None = None


class ToolOffer(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that the model may call: its name, what it is for, and a schema of its arguments."""

    name: str
    description: str
    schema: Mapping[str, Any]


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """Everything one request says.

    Attributes:
        items: the conversation, as JSON objects in the shape of OpenAI's Responses API; a picture
            in them is ``{"type": "input_image", "image_url": "limner://image/<handle>"}``, a sound
            ``{"type": "input_audio", "audio_url": "data:audio/…;base64,…"}``.
        pictures: the pictures that the items name, by handle.
        omitted: for pictures that the items name and that are not sent, by handle, why; words
            that name the handle stand in their place.
        takes_images: False for a model that is sent no picture at all.
        takes_audio: True for a model that is sent sounds; others get words in their place.
        tools: what the model may call.
        instructions: the system prompt.
        schema: a JSON schema; the answer's text is then a JSON object that follows it.
        effort: how hard the model should think; None leaves that to the service.
        max_output_tokens: the most an answer may take, thinking included.
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


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """The tokens a service counted; None where it does not say.

    Those read from a cache or written to it are among the input, and the reasoning is among the
    output, however the service itself adds up.
    """

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None

    def plus(self, other: Usage) -> Usage:
        """Both together; what only one of them says counts."""
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
    """What a model said, or what was said instead.

    Attributes:
        text: the answer's text, as far as it came.
        stop: why it ends: the model was done, the limit was reached, it was refused, it failed.
        model: the model that answered, in the service's words.
        usage: what was counted, where the service says.
        message: the service's own words about a refusal or a failure.
        code: its own code for it.
        items: everything the model made, in its order, as items of the conversation: what it
            thought, its words, and the tools it calls. An answer that calls tools has the stop
            "end"; where the stop is "length", the last call may be cut.
    """

    text: str
    stop: Stop
    model: str | None = None
    usage: Usage | None = None
    message: str | None = None
    code: str | None = None
    items: tuple[Mapping[str, Any], ...] = ()


class ModelRequest(Discreet, frozen=True, kw_only=True):
    """One HTTP request to be sent: the address past the base URL, and the body of JSON."""

    unshown = ("body",)

    path: str
    body: bytes


class StreamReader(Protocol):
    """Follows one streamed answer, event by event."""

    def feed(self, name: str, data: str) -> str:
        """Take the next server-sent event; the text it adds to the answer, often none.

        Raises:
            ModelBadAnswer: the event is not one of this API.
        """
        ...

    def finish(self) -> Answer | None:
        """The whole answer once the stream has ended; None where it ended before its time."""
        ...


class Wire(Protocol):
    """One API: how it is addressed, asked and understood."""

    @property
    def version(self) -> str | None:
        """The version that its paths begin with where the base URL does not end in one."""
        ...

    def headers(self, key: str) -> Mapping[str, str]:
        """What names the caller, and the edition of the API; an empty key names nobody."""
        ...

    def request(self, model: str, prompt: Prompt) -> ModelRequest:
        """The request for a streamed answer of the model with that id.

        Raises:
            InputInvalid: something in the prompt has no place on this wire.
        """
        ...

    def reader(self) -> StreamReader:
        """A reader for one answer."""
        ...


def wire(api: str) -> Wire:
    """The wire of an API in the table."""
    module, _, attribute = WIRES[api].partition(":")
    return cast("Wire", getattr(import_module(module), attribute))
