"""A client's answer to a call of its tool -> what clients see of it, and what the model gets.

Whatever is wrong with an answer becomes words: a turn goes on, and the model learns what happened.
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
from limner.wires import items as made
from limner.wires.base import HANDLE_URL
from limner.wires.items import Item

MAX_MESSAGE_CHARS = 1_000
MAX_OUTPUT_CHARS = 40_000
DEFAULT_DETAIL = "high"

INVALID = "dynamic tool response was invalid"
REFUSED = "dynamic tool request failed"
CANCELLED = "dynamic tool call was cancelled before receiving a response"
TIMED_OUT = "dynamic tool call got no answer"
REMOTE = "remote image URLs are not supported; use an inline data URL instead"
NOT_INLINE = "image URLs must use an inline data URL"
REMOTE_SOUND = "audio URLs must use an inline data URL"
SHAPE = '{"contentItems": [{"type": "inputText", "text": "…"}], "success": true}'

_MARK = made.text_part(SAYS_IT_FAILED)

T = TypeVar("T")


class ClientAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one call.

    Attributes:
        status: of the item that clients see.
        success: whether the tool did what it was asked for.
        content_items: what it said, as it was sent.
        parts: the output that the model gets, its pictures named by handle.
        pictures: those among it.
        warnings: one sentence for each thing that somebody should know.
    """

    status: Literal["completed", "failed"]
    success: bool
    content_items: tuple[ContentItem, ...]
    parts: tuple[Item, ...]
    pictures: tuple[Picture, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def outcome(self) -> Outcome:
        """The answer as what a tool returns."""
        return Outcome(value={}, parts=self.parts, success=self.success, untrusted=True)


class ToolAnswers(msgspec.Struct, frozen=True, kw_only=True):
    """Reads answers. Pictures in them come in through the one door for that."""

    ingress: Ingress

    async def read(self, result: msgspec.Raw, *, tool: str) -> ClientAnswer:
        """The result that a client sent for a call of a tool.

        Raises:
            StorageError: a picture cannot be kept, as on a full disk.
        """
        try:
            answer = msgspec.json.decode(result, type=DynamicToolCallResponse)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            return _failed(_invalid(result, error))
        problem = next(filter(None, map(_refusal, answer.content_items)), None)
        if problem is not None:
            return _failed(problem)
        parts = [part for item in answer.content_items for part in _parts(item)]
        entered = await self.ingress.parts(parts, source=f"the tool {tool}")
        bounded = tuple(_bounded(entered.items))
        marked = bounded if answer.success else (_MARK, *bounded)
        return ClientAnswer(
            status="completed" if answer.success else "failed",
            success=answer.success,
            content_items=tuple(answer.content_items),
            parts=marked,
            pictures=entered.pictures,
            warnings=entered.warnings,
        )


def _bounded(parts: Sequence[Item]) -> Iterator[Item]:
    """The parts, their words cut where together they are too many; pictures stay."""
    lengths = [len(part["text"]) if part["type"] == "input_text" else 0 for part in parts]
    for part, room in zip(parts, share(MAX_OUTPUT_CHARS, lengths), strict=True):
        is_text = part["type"] == "input_text"
        yield made.text_part(shorten_text(part["text"], room)[0]) if is_text else part


def refused(message: str) -> ClientAnswer:
    """The client answered with an error; the model reads its message, without keys."""
    words = " ".join(redact(message[: 4 * MAX_MESSAGE_CHARS]).split())[:MAX_MESSAGE_CHARS]
    return _failed(f"{REFUSED}: {words}" if words else REFUSED)


def timed_out(seconds: float) -> ClientAnswer:
    """The client did not answer in time."""
    return _failed(f"{TIMED_OUT} within {seconds:g} seconds")


def cancelled() -> ClientAnswer:
    """The turn was interrupted before the client answered."""
    return ClientAnswer(
        status="failed", success=False, content_items=(), parts=(made.text_part(CANCELLED),)
    )


def _failed(words: str) -> ClientAnswer:
    return ClientAnswer(
        status="failed",
        success=False,
        content_items=(InputText(text=words),),
        parts=(made.text_part(words),),
    )


def _invalid(result: msgspec.Raw, error: Exception) -> str:
    """What is wrong with an answer that is none; one in the first form is shown today's."""
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


def _refusal(item: ContentItem) -> str | None:
    """Why an answer with this in it is not taken: such an address never leads to a picture."""
    if isinstance(item, InputText):
        return None
    url = item.audio_url if isinstance(item, InputAudio) else item.image_url
    scheme = url.lstrip()[:16].partition(":")[0].lower()
    if isinstance(item, InputAudio):
        return None if scheme == "data" else REMOTE_SOUND
    if scheme in ("http", "https"):
        return REMOTE
    if scheme == "data" or url.startswith(HANDLE_URL):
        return None
    return f"{NOT_INLINE}; {NO_FILES}" if scheme == "file" else NOT_INLINE


def _parts(item: ContentItem) -> Sequence[dict[str, Any]]:
    """The parts of an output that an item stands for; a label is words before its picture."""
    match item:
        case InputText():
            return [made.text_part(item.text)]
        case InputAudio():
            return [made.audio_part(item.audio_url.lstrip())]
        case InputImage():
            detail = item.detail if item.detail in DETAILS else DEFAULT_DETAIL
            picture = {"type": "input_image", "image_url": item.image_url, "detail": detail}
            label = item.label.strip() if isinstance(item.label, str) else ""
            return [made.text_part(label), picture] if label else [picture]
