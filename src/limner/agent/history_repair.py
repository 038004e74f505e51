"""A stored history -> one in which every call has its output and every output its call.

A process that dies in the middle of a turn leaves calls without outputs, and services refuse a
conversation with such a call. The store keeps the history as it is; only what is sent is repaired.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from limner.wires.items import OUTPUT_KINDS, Item

ABORTED = "aborted"

# The kind of each call, and of its output.
_OUTPUT_OF = {**OUTPUT_KINDS, "local_shell_call": "function_call_output"}
_OUTPUTS = frozenset(_OUTPUT_OF.values())

_Key = tuple[str, str]
# The key of an item as a call, and as an output.
_Keys = tuple[_Key | None, _Key | None]


def repair_history(items: Iterable[Item], *, open_calls: Collection[str] = ()) -> list[Item]:
    """The items with an output ``aborted`` for every call that has none, without stray outputs.

    Calls with an id in ``open_calls`` will get their outputs later, and stay as they are.

    An output is stray if its call does not come before it, or has an output already. An added
    output comes before the outputs of its turn, so that parallel calls stay together.
    """
    history = list(items)
    # Most items of a long conversation are messages.
    keys = [
        (None, None) if item.get("type") == "message" else (_call_key(item), _output_key(item))
        for item in history
    ]
    answered = set(_find_answered(keys))
    answered |= {call for call, _ in keys if call is not None and call[1] in open_calls}
    return list(_repair(history, keys, answered))


def _find_answered(keys: Iterable[_Keys]) -> Iterator[_Key]:
    """The calls that have an output after them."""
    called: set[_Key] = set()
    for call, output in keys:
        if call is not None:
            called.add(call)
        elif output is not None and output in called:
            yield output


def _repair(history: Iterable[Item], keys: Iterable[_Keys], answered: set[_Key]) -> Iterator[Item]:
    # Open calls have an output further on. Aborted calls have none, and get one at the end of
    # their turn.
    seen: set[str] = set()
    open_calls: set[_Key] = set()
    aborted: dict[_Key, Item] = {}
    for item, (call, output) in zip(history, keys, strict=True):
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
                continue  # a repeated call, as in a history that was joined from two files
            seen.add(call[1])
            if call in answered:
                open_calls.add(call)
            else:
                aborted[call] = _aborted(call)
        yield item
    yield from aborted.values()


def _call_key(item: Item) -> _Key | None:
    """What identifies the output of a call: its kind and the call's id."""
    kind = item.get("type")
    output = _OUTPUT_OF.get(kind) if isinstance(kind, str) else None
    if output is None:
        return None
    call_id = item.get("call_id")
    if kind == "local_shell_call" and call_id is None:
        call_id = item.get("id")  # older histories have it there
    return (output, call_id) if isinstance(call_id, str) else None


def _output_key(item: Item) -> _Key | None:
    kind, call_id = item.get("type"), item.get("call_id")
    if not isinstance(kind, str) or kind not in _OUTPUTS:
        return None
    return kind, call_id if isinstance(call_id, str) else ""


def _ends_turn(item: Item) -> bool:
    """Whether an item is a message of another role than the model's."""
    return item.get("type") == "message" and item.get("role") != "assistant"


def _aborted(call: _Key) -> Mapping[str, Any]:
    kind, call_id = call
    return {"type": kind, "call_id": call_id, "output": ABORTED}
