"""What two app-servers said to one script -> where they differ: in order, in fields, in values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

Message = dict[str, Any]

# What no two runs have in common.
_ID = re.compile(
    r"(?:fco_)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    r"|(?:msg|compaction)_[0-9a-f]{8,}"
)
_FOLDER = re.compile(r"/[\w./-]*?/(?:codex|limner)/")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT[\d:.-]*\dZ?")
_NUMBER = re.compile(r"\[\d+\]")
MISSING = "(missing)"


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One place where they differ.

    Attributes:
        scene: when.
        where: which message, and which of its members; a place in a list is ``[]``.
        codex: what the real Codex has there.
        ours: what limner has there.
    """

    scene: str
    where: str
    codex: Any
    ours: Any

    def __str__(self) -> str:
        return f"[{self.scene}] {self.where}: {self.codex!r} is {self.ours!r}"


class Allowed(msgspec.Struct, frozen=True, kw_only=True):
    """A difference that is meant.

    Attributes:
        where: the place, as a pattern for all of it.
        why: what users are told.
        scene: when.
        is_read: the SDK reads this place too, and its type there allows for both.
    """

    where: str
    why: str
    scene: str = ".*"
    is_read: bool = False

    def has(self, one: Difference) -> bool:
        in_scene = re.fullmatch(self.scene, one.scene) is not None
        return in_scene and re.fullmatch(self.where, one.where) is not None


def unexplained(found: Iterable[Difference], rows: Iterable[Allowed]) -> list[str]:
    """The differences that no row explains."""
    rows = tuple(rows)
    return [str(one) for one in found if not any(row.has(one) for row in rows)]


def label(message: Message) -> str:
    """What kind of message it is, as far as its order matters."""
    if "to" in message:
        return f"{message['to']} {'refused' if 'error' in message else 'answered'}"
    method, params = message["method"], message.get("params") or {}
    match params:
        case {"item": {"type": kind}}:
            return f"{method} {kind}"
        case {"status": {"type": kind}}:
            return f"{method} {kind}"
        case _:
            return method


def in_order(scene: str, codex: Sequence[Message], ours: Sequence[Message]) -> Iterator[Difference]:
    """Where the kinds of messages do not come in one order.

    Answers are in the order of their requests, which wait for them. Whether one comes just before
    or just after what it gives rise to is left to chance by Codex.
    """
    left = [label(one) for one in codex if "to" not in one]
    right = [label(one) for one in ours if "to" not in one]
    if left != right:
        yield Difference(scene=scene, where="order", codex=left, ours=right)


def in_fields(
    scene: str,
    codex: Sequence[Message],
    ours: Sequence[Message],
    *,
    seen_as: Callable[[Message], Any] = lambda message: message,
) -> Iterator[Difference]:
    """Where messages of one kind, the first with the first and so on, have different members.

    ``seen_as`` is the part of a message that somebody reads; None where nobody reads it.
    """
    pairs = _numbered(ours)
    for name, message in _numbered(codex).items():
        other = pairs.get(name)
        left, right = seen_as(message), None if other is None else seen_as(other)
        if left is None or right is None:
            continue
        one, two = dict(leaves(left)), dict(leaves(right))
        for path in sorted({*one, *two}):
            has, found = one.get(path, MISSING), two.get(path, MISSING)
            if has != found:
                where = f"{name[0]} {_NUMBER.sub('[]', path)}"
                yield Difference(scene=scene, where=where, codex=has, ours=found)


def _numbered(messages: Sequence[Message]) -> dict[tuple[str, str, int], Message]:
    """Messages by their kind, and by how many of that kind came before.

    What is said about one call is compared with what is said about the same one.
    """
    counted: Counter[tuple[str, str]] = Counter()
    numbered: dict[tuple[str, str, int], Message] = {}
    for message in messages:
        kind = (label(message), _call_of(message))
        numbered[*kind, counted[kind]] = message
        counted[kind] += 1
    return numbered


def _call_of(message: Message) -> str:
    match message.get("params"):
        case {"callId": name} | {"item": {"type": "dynamicToolCall", "id": name}}:
            return name
        case _:
            return ""


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value that has no members, by its place; what differs between runs is made equal."""
    match value:
        case Mapping() if value:
            for name, inner in value.items():
                plain = _plain(str(name))
                yield from leaves(inner, f"{path}.{plain}" if path else plain)
        case list() if value:
            for number, inner in enumerate(value):
                yield from leaves(inner, f"{path}[{number}]")
        case str():
            yield path, _plain(value)
        case bool():
            yield path, value
        case int() | float():
            # Of numbers only the codes of errors are words of the protocol.
            yield path, value if value < 0 else "<number>"
        case _:
            yield path, value


def _plain(text: str) -> str:
    """A text without what no two runs have in common."""
    return _MOMENT.sub("<moment>", _FOLDER.sub("<folder>/", _ID.sub("<id>", text)))
