"""The items of a session -> its turns, each with the items that belong to it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from limner.agent.session import StoredItem
from limner.wires.items import Item, first_text

ABORTED = "<turn_aborted>"
CALLS = frozenset({"function_call", "custom_tool_call"})
OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})

# A message that is one tag with content was written by a program.
_WRAPPED = re.compile(r"\s*<(?P<tag>[a-z][a-z_ -]*)>.*</(?P=tag)>\s*", re.DOTALL)
_AGENTS_FILE = "# AGENTS.md"
_MODEL_ROLES = frozenset({"assistant", "model"})


class StoredTurn(msgspec.Struct, kw_only=True):
    """A turn and its items in their order.

    ``last_seq`` is the number of the last item that was added during the turn; a fork copies up to
    there. The answer to one of its calls may have come in a later turn. ``was_aborted`` is true if
    the user interrupted it.
    """

    id: str
    items: list[StoredItem] = msgspec.field(default_factory=list[StoredItem])
    last_seq: int = -1
    was_aborted: bool = False
    model_spoke: bool = False

    def add(self, stored: StoredItem) -> None:
        """Add an item, and note what it says about the turn."""
        self.items.append(stored)
        self.was_aborted = self.was_aborted or is_abort(stored.item)
        self.model_spoke = self.model_spoke or _is_of_model(stored.item)

    @property
    def broke_off(self) -> bool:
        """Whether a turn of limner has no end, because the process died."""
        last = self.items[-1].item
        is_ours = isinstance(last.get("turn_id"), str)
        is_end = last.get("role") in _MODEL_ROLES or "compaction" in last
        return is_ours and not is_end

    @property
    def unanswered(self) -> set[str]:
        """The ids of its calls that have no output."""
        calls = {_call_id(one.item) for one in self.items if one.item.get("type") in CALLS}
        answers = {_call_id(one.item) for one in self.items if one.item.get("type") in OUTPUTS}
        return calls - answers


def group_turns(stored: Iterable[StoredItem]) -> list[StoredTurn]:
    """The turns of a session, the oldest first.

    Items that limner wrote name their turn. Imported items do not: there a turn starts with the
    first message after the model has spoken that is not the model's. The output of a call belongs
    to the turn of the call.
    """
    turns: dict[str, StoredTurn] = {}
    callers: dict[str, StoredTurn] = {}
    current: StoredTurn | None = None
    for one in without_copies(stored):
        named = one.item.get("turn_id")
        if not isinstance(named, str):
            is_new = current is None or _starts_turn(one.item, current)
            named = f"turn-{one.seq}" if current is None or is_new else current.id
        current = turns.setdefault(named, StoredTurn(id=named))
        current.last_seq = one.seq
        if one.item.get("type") in CALLS:
            callers[_call_id(one.item)] = current
        is_answer = one.item.get("type") in OUTPUTS
        owner = callers.get(_call_id(one.item), current) if is_answer else current
        owner.add(one)
    return [turn for turn in turns.values() if turn.items]


def is_abort(item: Item) -> bool:
    """Whether an item says that the user interrupted its turn."""
    return _is_message(item) and first_text(item).lstrip().startswith(ABORTED)


def is_context(item: Item) -> bool:
    """Whether a program wrote this message in the name of the user."""
    if is_abort(item):
        return True
    if isinstance(item.get("turn_id"), str):
        return False
    words = first_text(item)
    return words.startswith(_AGENTS_FILE) or _WRAPPED.fullmatch(words) is not None


def without_copies(stored: Iterable[StoredItem]) -> Iterator[StoredItem]:
    """The items without the copies that a compaction made; its summary stays."""
    compactions: set[Any] = set()
    ids: set[Any] = set()
    for one in stored:
        compaction, item_id = one.item.get("compaction"), one.item.get("id")
        is_copy = item_id is not None and item_id in ids
        ids.add(item_id)
        if compaction is None:
            yield one
        elif compaction not in compactions and not is_copy:
            compactions.add(compaction)
            yield one


def _starts_turn(item: Item, turn: StoredTurn) -> bool:
    """Whether an item that names no turn starts a new one."""
    if not _is_message(item) or item.get("role") in _MODEL_ROLES or is_abort(item):
        return False
    return turn.was_aborted or turn.model_spoke


def _call_id(item: Item) -> str:
    return str(item.get("call_id"))


def _is_message(item: Item) -> bool:
    return item.get("type", "message") == "message"


def _is_of_model(item: Item) -> bool:
    return not _is_message(item) or item.get("role") in _MODEL_ROLES
