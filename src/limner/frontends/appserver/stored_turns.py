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

# A message that is nothing but one tag and what is in it was written by a program.
_WRAPPED = re.compile(r"\s*<(?P<tag>[a-z][a-z_ -]*)>.*</(?P=tag)>\s*", re.DOTALL)
_AGENTS_FILE = "# AGENTS.md"
_MODEL_ROLES = frozenset({"assistant", "model"})


class StoredTurn(msgspec.Struct, kw_only=True):
    """A turn, and its items in their order.

    ``last_seq`` is the number in the session of the last item that was added in it, for whoever
    copies up to there; an answer to one of its calls may have come in a later turn. It
    ``was_aborted`` where the user ended it before its time.
    """

    id: str
    items: list[StoredItem] = msgspec.field(default_factory=list[StoredItem])
    last_seq: int = -1
    was_aborted: bool = False
    model_spoke: bool = False

    def add(self, stored: StoredItem) -> None:
        """Add an item. What it says of the turn is noted here, so that each is looked at once."""
        self.items.append(stored)
        self.was_aborted = self.was_aborted or is_abort(stored.item)
        self.model_spoke = self.model_spoke or _is_of_model(stored.item)

    @property
    def broke_off(self) -> bool:
        """Whether a turn that was taken here has no end: the process died in the middle of it."""
        last = self.items[-1].item
        is_ours = isinstance(last.get("turn_id"), str)
        is_end = last.get("role") in _MODEL_ROLES or "compaction" in last
        return is_ours and not is_end

    @property
    def unanswered(self) -> set[str]:
        """The ids of the calls in it that nobody answered."""
        calls = {_call_id(one.item) for one in self.items if one.item.get("type") in CALLS}
        answers = {_call_id(one.item) for one in self.items if one.item.get("type") in OUTPUTS}
        return calls - answers


def turns_of(stored: Iterable[StoredItem]) -> list[StoredTurn]:
    """The turns of a session, the oldest first.

    Items that were written here name their turn. Those that came from elsewhere are told apart by
    who speaks: a turn begins where somebody other than the model does, after the model has. The
    answer to a call belongs to the turn of the call.
    """
    turns: dict[str, StoredTurn] = {}
    callers: dict[str, StoredTurn] = {}
    current: StoredTurn | None = None
    for one in each_once(stored):
        named = one.item.get("turn_id")
        if not isinstance(named, str):
            is_new = current is None or _begins(one.item, current)
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
    """Whether an item says that its turn was ended by the user."""
    return _is_message(item) and first_text(item).lstrip().startswith(ABORTED)


def is_context(item: Item) -> bool:
    """Whether a message was written by a program in the user's name, and not by the user."""
    if is_abort(item):
        return True
    if isinstance(item.get("turn_id"), str):
        return False
    words = first_text(item)
    return words.startswith(_AGENTS_FILE) or _WRAPPED.fullmatch(words) is not None


def each_once(stored: Iterable[StoredItem]) -> Iterator[StoredItem]:
    """The items without those that a compaction wrote down again; of each, its summary stands."""
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


def _begins(item: Item, turn: StoredTurn) -> bool:
    """Whether an item that names no turn belongs to a new one."""
    if not _is_message(item) or item.get("role") in _MODEL_ROLES or is_abort(item):
        return False
    return turn.was_aborted or turn.model_spoke


def _call_id(item: Item) -> str:
    return str(item.get("call_id"))


def _is_message(item: Item) -> bool:
    return item.get("type", "message") == "message"


def _is_of_model(item: Item) -> bool:
    return not _is_message(item) or item.get("role") in _MODEL_ROLES
