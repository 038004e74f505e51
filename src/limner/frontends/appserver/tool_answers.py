"""A client's answer to a tool call -> the content that clients see, and the parts for the model.

If an answer is invalid, the model gets a text that says why, and the turn goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, TypeVar

import msgspec

from limner.agent.call_items import SAYS_IT_FAILED
from limner.agent.ingress import DETAILS, NO_FILES, Ingress
from limner.content import Picture
from limner.frontends.appserver.protocol.base import ContentItem, InputAudio, InputImage, InputText
from limner.frontends.appserver.protocol.server_requests import DynamicToolCallResponse
from limner.net.redaction import redact
from limner.tools.base import Outcome
from limner.tools.result_budget import share, shorten_text
from limner.wires import items as wire_items
from limner.wires.base import HANDLE_URL
from limner.wires.items import Item

MAX_MESSAGE_CHARS = 1_000
MAX_OUTPUT_CHARS = 40_000
DEFAULT_DETAIL = "high"
"""The detail of a picture if the client does not say."""

INVALID = "dynamic tool response was invalid"
REFUSED = "dynamic tool request failed"
CANCELLED = "dynamic tool call was cancelled before receiving a response"
TIMED_OUT = "dynamic tool call got no answer"
REMOTE_IMAGE = "remote image URLs are not supported; use an inline data URL instead"
NOT_INLINE = "image URLs must use an inline data URL"
REMOTE_SOUND = "audio URLs must use an inline data URL"
SHAPE = '{"contentItems": [{"type": "inputText", "text": "…"}], "success": true}'

_FAILED_MARK = wire_items.text_part(SAYS_IT_FAILED)

T = TypeVar("T")


class ClientAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one call.

    Attributes:
        status: the status of the item that clients see.
        success: whether the call succeeded.
        content_items: the output as the client sent it.
        parts: the output for the model, with pictures named by handle.
        pictures: the pictures in it.
        warnings: one sentence for each picture or sound that was left out.
    """

    status: Literal["completed", "failed"]
    success: bool
    content_items: tuple[ContentItem, ...]
    parts: tuple[Item, ...]
    pictures: tuple[Picture, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def outcome(self) -> Outcome:
        """The answer as the outcome of a tool."""
        return Outcome(value={}, parts=self.parts, success=self.success, untrusted=True)


class ToolAnswers(msgspec.Struct, frozen=True, kw_only=True):
    """Decodes answers, and stores the pictures in them."""

    ingress: Ingress

    async def read(self, result: msgspec.Raw, *, tool: str) -> ClientAnswer:
        """Decode the response to a call of a tool.

        Raises:
            StorageError: a picture cannot be stored, for example on a full disk.
        """
        try:
            answer = msgspec.json.decode(result, type=DynamicToolCallResponse)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            return _failed(_invalid(result, error))
        problem = next(filter(None, map(_problem, answer.content_items)), None)
        if problem is not None:
            return _failed(problem)
        parts = [part for item in answer.content_items for part in _parts(item)]
        entered = await self.ingress.parts(parts, source=f"the tool {tool}")
        bounded = tuple(_shortened(entered.items))
        marked = bounded if answer.success else (_FAILED_MARK, *bounded)
        return ClientAnswer(
            status="completed" if answer.success else "failed",
            success=answer.success,
            content_items=tuple(answer.content_items),
            parts=marked,
            pictures=entered.pictures,
            warnings=entered.warnings,
        )


def _shortened(parts: Sequence[Item]) -> Iterator[Item]:
    """The parts, with texts shortened if together they are too long; pictures stay."""
    lengths = [len(part["text"]) if part["type"] == "input_text" else 0 for part in parts]
    for part, room in zip(parts, share(MAX_OUTPUT_CHARS, lengths), strict=True):
        is_text = part["type"] == "input_text"
        yield wire_items.text_part(shorten_text(part["text"], room)[0]) if is_text else part


def refused(message: str) -> ClientAnswer:
    """The client answered with an error; the model reads its message, without keys."""
    reason = " ".join(redact(message[: 4 * MAX_MESSAGE_CHARS]).split())[:MAX_MESSAGE_CHARS]
    return _failed(f"{REFUSED}: {reason}" if reason else REFUSED)


def timed_out(seconds: float) -> ClientAnswer:
    """The client did not answer in time."""
    return _failed(f"{TIMED_OUT} within {seconds:g} seconds")


def cancelled() -> ClientAnswer:
    """The turn was interrupted before the client answered."""
    return ClientAnswer(
        status="failed", success=False, content_items=(), parts=(wire_items.text_part(CANCELLED),)
    )


def _failed(text: str) -> ClientAnswer:
    return ClientAnswer(
        status="failed",
        success=False,
        content_items=(InputText(text=text),),
        parts=(wire_items.text_part(text),),
    )


def _invalid(result: msgspec.Raw, error: Exception) -> str:
    """Why an answer is invalid; an answer in the older form gets a hint."""
    members = _decoded(result, dict[str, msgspec.Raw]) or {}
    if "output" in members and "contentItems" not in members:
        return f"{INVALID}: `output` is no longer read, answer with {SHAPE}"
    reason = str(error).partition("\n")[0][:MAX_MESSAGE_CHARS]
    return f"{INVALID}: {reason[:1].lower()}{reason[1:]}; answer with {SHAPE}"


def _decoded(raw: msgspec.Raw, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None


def image_url_problem(url: str) -> str | None:
    """Why the URL of a picture is not accepted: it is neither a data URL nor that of a handle."""
    scheme = _scheme(url)
    if scheme in ("http", "https"):
        return REMOTE_IMAGE
    if scheme == "data" or url.startswith(HANDLE_URL):
        return None
    return f"{NOT_INLINE}; {NO_FILES}" if scheme == "file" else NOT_INLINE


def audio_url_problem(url: str) -> str | None:
    """Why the URL of a sound is not accepted: it is not a data URL."""
    return None if _scheme(url) == "data" else REMOTE_SOUND


def _scheme(url: str) -> str:
    return url.lstrip()[:16].partition(":")[0].lower()


def _problem(item: ContentItem) -> str | None:
    match item:
        case InputText():
            return None
        case InputAudio():
            return audio_url_problem(item.audio_url)
        case InputImage():
            return image_url_problem(item.image_url)


def _parts(item: ContentItem) -> Sequence[dict[str, Any]]:
    """The parts of an output for one item; a label is a text before its picture."""
    match item:
        case InputText():
            return [wire_items.text_part(item.text)]
        case InputAudio():
            return [wire_items.audio_part(item.audio_url.lstrip())]
        case InputImage():
            detail = item.detail if item.detail in DETAILS else DEFAULT_DETAIL
            picture = {"type": "input_image", "image_url": item.image_url, "detail": detail}
            label = item.label.strip() if isinstance(item.label, str) else ""
            return [wire_items.text_part(label), picture] if label else [picture]
