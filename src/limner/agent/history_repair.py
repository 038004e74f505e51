"""A history as it was left -> one in which every call has its output and every output its call.

A process that dies in the middle of a turn leaves calls that nobody answered, and services refuse a
conversation with such a call in it. The history itself stays as it is: this is for what is sent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from limner.wires.items import Item

ABORTED = "aborted"

# The kind of each call, and of what answers it.
_ANSWERS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "local_shell_call": "function_call_output",
}
_OUTPUTS = frozenset(_ANSWERS.values())

_Key = tuple[str, str]


def closed(items: Iterable[Item], *, still_open: Collection[str] = ()) -> list[Item]:
    """The items with every unanswered call answered by ``aborted``, and without stray outputs.

    Calls with an id that is ``still_open`` are about to be answered, and stay as they are.

    An output is stray where its call does not come before it, or has been answered already. The
    answer that is added stands where the outputs of its turn begin, so that calls made together
    stay together.
    """
    history = list(items)
    answered = set(_answered(history))
    answered |= {key for item in history if (key := _call_key(item)) and key[1] in still_open}
    return list(_told(history, answered))


def _answered(history: Iterable[Item]) -> Iterator[_Key]:
    """The calls that have an output after them."""
    called: set[_Key] = set()
    for item in history:
        if (key := _call_key(item)) is not None:
            called.add(key)
        elif (key := _output_key(item)) is not None and key in called:
            yield key


def _told(history: Iterable[Item], answered: set[_Key]) -> Iterator[Item]:
    # What is open has yet to be answered; what is aborted never was, and is told so when its turn
    # ends.
    seen: set[str] = set()
    open_calls: set[_Key] = set()
    aborted: dict[_Key, Item] = {}
    for item in history:
        call, output = _call_key(item), _output_key(item)
        if output is not None or _ends_turn(item):
            yield from aborted.values()
            aborted.clear()
        if output is not None:
            if output in open_calls:
                open_calls.remove(output)
                yield item
            continue
        if call is not None:
            if call[1] in seen:
                continue  # a call told twice, as in a history that was joined from two files
            seen.add(call[1])
            if call in answered:
                open_calls.add(call)
            else:
                aborted[call] = _aborted(call)
        yield item
    yield from aborted.values()


def _call_key(item: Item) -> _Key | None:
    """What the output of a call is known by: its kind and the call's id."""
    kind = item.get("type")
    answer = _ANSWERS.get(kind) if isinstance(kind, str) else None
    if answer is None:
        return None
    call_id = item.get("call_id")
    if kind == "local_shell_call" and call_id is None:
        call_id = item.get("id")  # where older histories have it
    return (answer, call_id) if isinstance(call_id, str) else None


def _output_key(item: Item) -> _Key | None:
    kind, call_id = item.get("type"), item.get("call_id")
    if not isinstance(kind, str) or kind not in _OUTPUTS:
        return None
    return kind, call_id if isinstance(call_id, str) else ""


def _ends_turn(item: Item) -> bool:
    """Whether somebody other than the model speaks here."""
    return item.get("type") == "message" and item.get("role") != "assistant"


def _aborted(call: _Key) -> Mapping[str, Any]:
    kind, call_id = call
    return {"type": kind, "call_id": call_id, "output": ABORTED}
