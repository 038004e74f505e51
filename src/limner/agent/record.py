"""What is said and done in a turn -> the session, and then whoever listens, in that order."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence

from limner.agent.call_items import is_call
from limner.agent.events import Event, InputAdded, ItemAdded
from limner.agent.session import Session
from limner.wires.items import Item, image_handles

DrawnHere = Callable[[Collection[str]], Awaitable[bool]]
"""Whether nobody else made these pictures."""


class TurnRecord:
    """The history of a session while a turn of it is taken.

    Args:
        session: where it is kept.
        turn_id: the turn that adds to it.
        tell: hears of what was added.
        drawn_here: tells pictures from outside from our own.

    Attributes:
        items: what a model is to be sent.
        has_read_untrusted: content from outside is or was among them.
    """

    def __init__(
        self,
        session: Session,
        *,
        turn_id: str,
        tell: Callable[[Event], None],
        drawn_here: DrawnHere,
    ) -> None:
        self._session, self._turn_id = session, turn_id
        self._tell, self._drawn_here = tell, drawn_here
        self.items: list[Item] = []
        self.has_read_untrusted = False

    async def open(self, *, pending: Iterable[Item]) -> None:
        """Read the history; the ``pending`` calls in it are about to be answered."""
        still_open = {str(call.get("call_id")) for call in pending}
        about, self.items = await self._session.whole(still_open=still_open)
        self.has_read_untrusted = about.read_untrusted_ms is not None

    async def hear(self, said: Sequence[Item]) -> None:
        """Add what the user says."""
        handles = {handle for item in said for handle in image_handles(item)}
        if handles and not await self._drawn_here(handles):
            await self.note_untrusted()
        for item in await self.add(*said):
            self._tell(InputAdded(item=item))

    async def keep(self, made: Sequence[Item]) -> list[Item]:
        """Add what the model made; the answer is the calls among it."""
        kept = await self.add(*self._told_apart(made))
        for item in kept:
            self._tell(ItemAdded(item=item))
        return [item for item in kept if is_call(item)]

    async def add(self, *items: Item) -> list[Item]:
        """Add items without a word; the answer is how they stand in the history."""
        kept = [self._labelled(item) for item in items]
        if kept:
            await self._session.append(kept)
            self.items.extend(kept)
        return kept

    async def compact(self, items: Iterable[Item], *, item_id: str) -> None:
        """Put these in place of everything that a model would be sent."""
        # What stands twice in the store is one thing to whoever reads it.
        kept: list[Item] = [{**self._labelled(item), "compaction": item_id} for item in items]
        await self._session.compact(kept)
        self.items = kept

    async def note_untrusted(self) -> None:
        """Note, for good, that content from outside has come in."""
        if not self.has_read_untrusted:
            await self._session.note_untrusted()
            self.has_read_untrusted = True

    def _told_apart(self, made: Sequence[Item]) -> list[Item]:
        """The items, each call with an id of its own: some services give the same ones again."""
        taken = {item.get("call_id") for item in self.items if is_call(item)}
        apart: list[Item] = []
        for item in made:
            is_taken = is_call(item) and item.get("call_id") in taken
            apart.append({**item, "call_id": f"call_{uuid.uuid4().hex}"} if is_taken else item)
            taken.add(item.get("call_id"))
        return apart

    def _labelled(self, item: Item) -> Item:
        # Both stay in the store: no service is ever sent them.
        return {"id": f"item_{uuid.uuid4().hex}", "turn_id": self._turn_id, **item}
