"""What happens in a turn -> one event each, for a local agent and for a thread at an app-server.

`as_json` is the JSON that programs read, also from ``chat --stream``. Its types and members are a
promise: more may be added, none changes its meaning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from limner.content import Discreet, Picture
from limner.errors import NANO_PER_USD, LimnerError
from limner.json_shapes import as_list, as_object, decode_json
from limner.pictures.request import Progress
from limner.tools.base import ToolCall, ToolResult
from limner.wires.base import Usage
from limner.wires.items import Item

Json = dict[str, Any]
Status = Literal["completed", "interrupted", "failed"]


class TurnEvent(Discreet, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    """Something happened in a turn.

    ``raw`` is the params of the server's message if the event came from an app-server.
    """

    unshown = ("raw",)

    raw: Mapping[str, Any] | None = None

    def as_json(self) -> Json:
        """The event as a JSON object; its ``type`` says what happened, and ``raw`` is left out."""
        return msgspec.to_builtins(replace(self, raw=None))

    def _typed(self, members: Json) -> Json:
        return {"type": self.__struct_config__.tag, **members}


class TurnStarted(TurnEvent, frozen=True, kw_only=True, tag="turn_started"):
    """A turn begins."""

    turn_id: str = msgspec.field(name="turn")


class InputAdded(TurnEvent, frozen=True, kw_only=True, tag="input"):
    """The user's message is in the history, at the start or in the middle of a turn.

    ``item`` is as the session stores it; an app-server sends its own form.
    """

    item: Item


class TextDelta(TurnEvent, frozen=True, kw_only=True, tag="text"):
    """The next piece of the model's message with that id."""

    item_id: str
    text: str


class ItemAdded(TurnEvent, frozen=True, kw_only=True, tag="item"):
    """An item of the model is complete and in the history: a message, reasoning, a call.

    A message has the id of its `TextDelta` events. ``item`` is as the session stores it; an
    app-server sends its own form.
    """

    item: Item


class ToolStarted(TurnEvent, frozen=True, kw_only=True, tag="tool_started"):
    """A tool is called."""

    call: ToolCall

    def as_json(self) -> Json:
        """The call and its arguments."""
        return self._typed({**_named(self.call), "arguments": self.call.arguments})


class ToolProgress(TurnEvent, frozen=True, kw_only=True, tag="tool_progress"):
    """A running tool reports its progress."""

    call: ToolCall
    progress: Progress

    def as_json(self) -> Json:
        """The progress, without an unfinished picture."""
        progress = self.progress
        return self._typed(
            {
                **_named(self.call),
                "message": progress.message,
                "elapsed_s": progress.elapsed_s,
                "fraction": progress.fraction,
            }
        )


class ToolFinished(TurnEvent, frozen=True, kw_only=True, tag="tool_finished"):
    """A tool has returned; ``item`` is its output in the history."""

    call: ToolCall
    result: ToolResult
    item: Item
    duration_ms: int

    def as_json(self) -> Json:
        """How the call ended, its cost, its value and its pictures."""
        value = decode_json(self.result.value) if self.result.value else None
        return self._typed({**self.call_as_json(), "value": value, "images": images_of([self])})

    def call_as_json(self) -> Json:
        """How the call ended, and its cost."""
        result = self.result
        call: Json = {
            **_named(self.call),
            "ok": result.ok,
            "cost_usd": result.cost_usd,
            "cost_source": result.cost_source,
            "duration_ms": self.duration_ms,
        }
        return call if result.error is None else {**call, "error": _error(result)}


class UsageUpdated(TurnEvent, frozen=True, kw_only=True, tag="usage"):
    """The tokens of one request to the model were counted.

    ``total`` is the sum of this conversation's turns; ``context_tokens`` how many tokens the model
    can hold, if that is known; ``session_usd`` what the whole session has cost, as far as this
    process knows.
    """

    last: Usage
    total: Usage
    context_tokens: int | None
    spent_nano: int

    @property
    def session_usd(self) -> float:
        """What the whole session has cost, in dollars."""
        return self.spent_nano / NANO_PER_USD

    def as_json(self) -> Json:
        """The tokens, and what the session has cost."""
        return self._typed(
            {
                "last": msgspec.to_builtins(self.last),
                "total": msgspec.to_builtins(self.total),
                "context_tokens": self.context_tokens,
                "session_usd": self.session_usd,
            }
        )


class Retrying(TurnEvent, frozen=True, kw_only=True, tag="retrying"):
    """A request failed and is sent again, as it was or in another form."""

    error: LimnerError

    def as_json(self) -> Json:
        """Why the request failed."""
        return self._typed({"error": self.error.as_json()})


class Compacting(TurnEvent, frozen=True, kw_only=True, tag="compacting"):
    """The conversation is being summarized: it is too long for the model, or the user asked."""

    item_id: str


class Compacted(TurnEvent, frozen=True, kw_only=True, tag="compacted"):
    """The conversation was summarized; ``dropped`` pictures are only named in the summary."""

    item_id: str
    summary: str
    dropped: tuple[str, ...]


class TurnEnded(TurnEvent, frozen=True, kw_only=True, tag="turn_ended"):
    """The last event of a turn.

    Attributes:
        turn_id: the turn.
        status: how it ended.
        text: the model's last message, empty if there is none.
        is_cut: that message ends early because it reached the longest length.
        error: why the turn failed.
        cost_usd: what the turn cost, tools and model together.
        session_usd: what the whole session has cost, as far as this process knows.
    """

    turn_id: str = msgspec.field(name="turn")
    status: Status
    text: str
    is_cut: bool
    error: LimnerError | None
    cost_nano: int
    spent_nano: int

    @property
    def cost_usd(self) -> float:
        """What the turn cost, in dollars."""
        return self.cost_nano / NANO_PER_USD

    @property
    def session_usd(self) -> float:
        """What the whole session has cost, in dollars."""
        return self.spent_nano / NANO_PER_USD

    def as_json(self) -> Json:
        """How the turn ended, its text and its cost; ``cut`` and ``error`` if there is one."""
        ended = self._typed(
            {
                "turn": self.turn_id,
                "status": self.status,
                "text": self.text,
                "cost_usd": self.cost_usd,
                "session_usd": self.session_usd,
            }
        )
        if self.is_cut:
            ended["cut"] = True
        if self.error is not None:
            ended["error"] = self.error.as_json()
        return ended


Event = (
    TurnStarted
    | InputAdded
    | TextDelta
    | ItemAdded
    | ToolStarted
    | ToolProgress
    | ToolFinished
    | UsageUpdated
    | Retrying
    | Compacting
    | Compacted
    | TurnEnded
)
"""Every event of a turn; match on its class, or read the ``type`` of its JSON."""


def images_of(calls: Sequence[ToolFinished]) -> list[Json]:
    """The pictures that tools returned, each once, and the files they were written to."""
    images: dict[str, Json] = {}
    for done in calls:
        paths = _paths(as_object(decode_json(done.result.value)))
        for part in done.result.content:
            if isinstance(part, Picture):
                images.setdefault(
                    part.handle, {"path": paths.get(part.handle), "handle": part.handle}
                )
    return list(images.values())


def _paths(answer: Mapping[str, Any]) -> dict[str, str]:
    """The file of each picture in a drawing tool's result."""
    rows = [answer, *map(as_object, as_list(answer.get("pictures")))]
    return {
        row["image"]: row["path"]
        for row in rows
        if isinstance(row.get("image"), str) and isinstance(row.get("path"), str)
    }


def _named(call: ToolCall) -> Json:
    return {"call_id": call.call_id, "name": call.name}


def _error(result: ToolResult) -> Json:
    return {
        "code": result.domain_code or result.code,
        "message": result.error,
        "retryable": result.retryable,
        "billed": result.billed,
        "hint": result.hint,
    }
