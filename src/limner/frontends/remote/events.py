"""What a server tells of a turn -> small values, each with the message that it came in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Literal

import msgspec
from msgspec.structs import asdict

from limner.content import Discreet
from limner.errors import NANO_PER_USD
from limner.json_shapes import as_object
from limner.pictures.request import Progress
from limner.tools.base import ToolCall, ToolResult

Raw = Mapping[str, Any]
Item = Mapping[str, Any]
Status = Literal["completed", "interrupted", "failed"]


class RemoteTokenUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens as the server counts them; the cached are among the input."""

    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0
    reasoning_output_tokens: int = 0
    total_tokens: int = 0

    def __add__(self, other: RemoteTokenUsage) -> RemoteTokenUsage:
        mine, others = asdict(self), asdict(other)
        return RemoteTokenUsage(**{name: mine[name] + others[name] for name in mine})


class TurnError(msgspec.Struct, frozen=True, kw_only=True):
    """Why a turn did not end well; ``info`` is the server's own word for it."""

    message: str
    info: Any = None


class TurnResult(Discreet, frozen=True, kw_only=True):
    """What became of a turn.

    Attributes:
        turn_id: the turn, where the server has named it.
        status: how it ended.
        text: the model's last words, empty where it said none.
        items: everything that was made in it, as the server told it.
        usage: the tokens of its requests together.
        cost_nano: what the tools cost that ran here, in nano-dollars.
        error: why it failed or was interrupted, where anybody says.
    """

    unshown = ("items",)

    turn_id: str | None
    status: Status
    text: str = ""
    items: tuple[Item, ...] = ()
    usage: RemoteTokenUsage = RemoteTokenUsage()
    cost_nano: int = 0
    error: TurnError | None = None

    @property
    def cost_usd(self) -> float:
        """What the tools cost that ran here, in dollars."""
        return self.cost_nano / NANO_PER_USD


class RemoteEvent(Discreet, frozen=True, kw_only=True):
    """Something that came in a message of the server's, which is kept: ``raw`` has its params."""

    unshown = ("raw",)

    raw: Raw


class TurnStarted(RemoteEvent, frozen=True, kw_only=True):
    """The server has begun."""

    turn_id: str


class TextDelta(RemoteEvent, frozen=True, kw_only=True):
    """The model speaks: the next piece of a message."""

    item_id: str
    text: str


class ItemStarted(RemoteEvent, frozen=True, kw_only=True):
    """Something is being made: a message, a thought, a call."""

    item: Item


class ItemCompleted(RemoteEvent, frozen=True, kw_only=True):
    """Something is whole."""

    item: Item


class ToolCalled(RemoteEvent, frozen=True, kw_only=True):
    """A tool of this client begins to run."""

    call: ToolCall


class ToolProgress(msgspec.Struct, frozen=True, kw_only=True):
    """A tool of this client says how far it is."""

    call: ToolCall
    progress: Progress


class ToolAnswered(msgspec.Struct, frozen=True, kw_only=True):
    """A tool of this client is done."""

    call: ToolCall
    result: ToolResult


class UsageUpdated(RemoteEvent, frozen=True, kw_only=True):
    """A request to the model was counted: it alone, and the whole thread."""

    last: RemoteTokenUsage
    total: RemoteTokenUsage


class Reconnected(msgspec.Struct, frozen=True, kw_only=True):
    """The link was lost and is back.

    ``goes_on`` says that the turn that was running still is; it may have been told in part.
    """

    reason: str
    goes_on: bool


class TurnCompleted(RemoteEvent, frozen=True, kw_only=True):
    """The turn is over: the last of its events."""

    result: TurnResult


class RawNotification(RemoteEvent, frozen=True, kw_only=True):
    """Anything else that the server says about the thread."""

    method: str


Event = (
    TurnStarted
    | TextDelta
    | ItemStarted
    | ItemCompleted
    | ToolCalled
    | ToolProgress
    | ToolAnswered
    | UsageUpdated
    | Reconnected
    | TurnCompleted
    | RawNotification
)


class _Turn(msgspec.Struct):
    id: str


class _Started(msgspec.Struct):
    turn: _Turn


class _Delta(msgspec.Struct, rename="camel"):
    item_id: str
    delta: str


class _OfItem(msgspec.Struct):
    item: dict[str, Any]


class _Usage(msgspec.Struct, rename="camel"):
    token_usage: dict[str, Any]


def read(method: str, params: Raw) -> Event:
    """The event that a notice is; one of another shape than promised is told as it came."""
    reader = _READERS.get(method)
    if reader is not None:
        with suppress(msgspec.ValidationError):
            return reader(params)
    return RawNotification(method=method, raw=params)


def _started(params: Raw) -> TurnStarted:
    return TurnStarted(turn_id=msgspec.convert(params, _Started).turn.id, raw=params)


def _delta(params: Raw) -> TextDelta:
    told = msgspec.convert(params, _Delta)
    return TextDelta(item_id=told.item_id, text=told.delta, raw=params)


def _item_started(params: Raw) -> ItemStarted:
    return ItemStarted(item=msgspec.convert(params, _OfItem).item, raw=params)


def _item_completed(params: Raw) -> ItemCompleted:
    return ItemCompleted(item=msgspec.convert(params, _OfItem).item, raw=params)


def _usage(params: Raw) -> UsageUpdated:
    told = msgspec.convert(params, _Usage).token_usage
    return UsageUpdated(
        last=_tokens(told.get("last")), total=_tokens(told.get("total")), raw=params
    )


def _tokens(value: object) -> RemoteTokenUsage:
    counted = as_object(value)
    return RemoteTokenUsage(
        input_tokens=_count(counted.get("inputTokens")),
        cached_input_tokens=_count(counted.get("cachedInputTokens")),
        output_tokens=_count(counted.get("outputTokens")),
        reasoning_output_tokens=_count(counted.get("reasoningOutputTokens")),
        total_tokens=_count(counted.get("totalTokens")),
    )


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


_READERS: Mapping[str, Callable[[Raw], Event]] = {
    "turn/started": _started,
    "item/agentMessage/delta": _delta,
    "item/started": _item_started,
    "item/completed": _item_completed,
    "thread/tokenUsage/updated": _usage,
}
