"""The items of a session -> its turns, each with the items that belong to it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from limner.agent.session import StoredItem
from limner.agent.untrusted import is_untrusted
from limner.wires.items import Item, first_text

ABORTED = "<turn_aborted>"
CALLS = frozenset({"function_call", "custom_tool_call"})
OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})

TOOL_OUTPUT = "tool_output"
"""The member of a message that names the tool it comes from; its first part names it too."""

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

    def add(self, stored: StoredItem) -> None:
        """Add an item, and note what it says about the turn."""
        self.items.append(stored)
        self.was_aborted = self.was_aborted or is_abort(stored.item)

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


class TurnNamer:
    """Finds the turns of the items of a session, one item after the other.

    Items that limner wrote name their turn. Imported items do not: there a turn starts with the
    first message after the model has spoken that is not the model's.
    """

    def __init__(self) -> None:
        self._name: str | None = None
        self._is_over = False
        self._calls: set[str] = set()

    def name_turn(self, stored: StoredItem) -> str:
        """The id of the turn during which the next item was added."""
        item = stored.item
        named = item.get("turn_id")
        if not isinstance(named, str):
            is_new = self._name is None or (self._is_over and _may_start_turn(item))
            named = f"turn-{stored.seq}" if self._name is None or is_new else self._name
        if named != self._name:
            self._name, self._is_over = named, False
        if item.get("type") in CALLS:
            self._calls.add(_call_id(item))
        # An answer may come in a turn after that of its call, before the model has spoken in it.
        is_late = item.get("type") in OUTPUTS and _call_id(item) in self._calls
        if is_abort(item) or (_is_of_model(item) and not is_late):
            self._is_over = True
        return named


def group_turns(stored: Iterable[StoredItem]) -> list[StoredTurn]:
    """The turns of a session, the oldest first; an output belongs to the turn of its call."""
    turns: dict[str, StoredTurn] = {}
    callers: dict[str, StoredTurn] = {}
    namer = TurnNamer()
    for one in without_copies(stored):
        named = namer.name_turn(one)
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
    if is_abort(item) or is_untrusted(item):
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


def _may_start_turn(item: Item) -> bool:
    """Whether an item that names no turn starts a new one if the turn before it is over."""
    return _is_message(item) and item.get("role") not in _MODEL_ROLES and not is_abort(item)


def _call_id(item: Item) -> str:
    return str(item.get("call_id"))


def _is_message(item: Item) -> bool:
    return item.get("type", "message") == "message"


def _is_of_model(item: Item) -> bool:
    return not _is_message(item) or item.get("role") in _MODEL_ROLES
