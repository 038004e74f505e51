"""The items of a turn -> the session, and then events for the subscriber, in that order."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence

from limner.agent.events import Event, InputAdded, ItemAdded
from limner.agent.session import Session
from limner.wires.items import Item, image_handles, is_call

DrawnHere = Callable[[Collection[str]], Awaitable[bool]]
"""Whether limner drew all of these pictures."""


class TurnRecord:
    """The history of a session during a turn.

    Args:
        session: stores the history.
        turn_id: the turn that adds to it.
        on_event: gets an event for each new item.
        drawn_here: whether limner drew all of some pictures.

    Attributes:
        items: what a model is sent.
        has_read_untrusted: the session contains or contained content from outside.
    """

    def __init__(
        self,
        session: Session,
        *,
        turn_id: str,
        on_event: Callable[[Event], None],
        drawn_here: DrawnHere,
    ) -> None:
        self._session, self._turn_id = session, turn_id
        self._emit, self._drawn_here = on_event, drawn_here
        self.items: list[Item] = []
        self.has_read_untrusted = False

    async def open(self, *, pending: Iterable[Item]) -> None:
        """Load the history; its ``pending`` calls will get their outputs in this turn."""
        open_calls = {str(call.get("call_id")) for call in pending}
        about, self.items = await self._session.load(open_calls=open_calls)
        self.has_read_untrusted = about.read_untrusted_ms is not None

    async def add_input(self, given: Sequence[Item]) -> None:
        """Add the user's input."""
        handles = {handle for item in given for handle in image_handles(item)}
        if handles and not await self._drawn_here(handles):
            await self.note_untrusted()
        for item in await self.append(*given):
            self._emit(InputAdded(item=item))

    async def add_answer(self, made: Sequence[Item]) -> list[Item]:
        """Add the items of the model; return the calls among them."""
        added = await self.append(*self._with_unique_calls(made))
        for item in added:
            self._emit(ItemAdded(item=item))
        return [item for item in added if is_call(item)]

    async def append(self, *items: Item) -> list[Item]:
        """Add items without an event; return them as they are stored."""
        added = [self._with_ids(item) for item in items]
        if added:
            await self._session.append(added)
            self.items.extend(added)
        return added

    async def replace_all(self, items: Iterable[Item], *, item_id: str) -> None:
        """Replace everything that a model is sent by these items."""
        # The store keeps the old items too: the mark tells a reader which ones are repeated.
        new: list[Item] = [{**self._with_ids(item), "compaction": item_id} for item in items]
        await self._session.compact(new)
        self.items = new

    async def note_untrusted(self) -> None:
        """Record permanently that content from outside came into the session."""
        if not self.has_read_untrusted:
            await self._session.note_untrusted()
            self.has_read_untrusted = True

    def _with_unique_calls(self, made: Sequence[Item]) -> list[Item]:
        """The items, each call with an id of its own: some services use the same ids again."""
        used = {item.get("call_id") for item in self.items if is_call(item)}
        unique: list[Item] = []
        for item in made:
            is_used = is_call(item) and item.get("call_id") in used
            unique.append({**item, "call_id": f"call_{uuid.uuid4().hex}"} if is_used else item)
            used.add(item.get("call_id"))
        return unique

    def _with_ids(self, item: Item) -> Item:
        # Both are for the store: they are never sent to a service.
        return {"id": f"item_{uuid.uuid4().hex}", "turn_id": self._turn_id, **item}
