"""The items of a turn -> the session, and then events for the subscriber, in that order."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence

from limner.agent.events import Event, InputAdded, ItemAdded
from limner.agent.session import Addition, Session
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
        spent_nano: what was paid for the session before the turn; None until it is loaded.
        paid_nano: what was paid for it when the last items were added; None if more may have been
            paid since.
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
        self.spent_nano: int | None = None
        self.paid_nano: int | None = None

    async def open(self, *, pending: Iterable[Item] = (), given: Sequence[Item] = ()) -> None:
        """Load the history and add the user's input to it, in one transaction.

        Args:
            pending: calls of the history that will get their outputs in this turn.
            given: the input.
        """
        open_calls = {str(call.get("call_id")) for call in pending}
        adding = await self._input(given) if given else None
        about, self.items = await self._session.load(open_calls=open_calls, adding=adding)
        self.spent_nano = about.spent_nano
        self.has_read_untrusted = about.read_untrusted_ms is not None
        if adding is not None:
            self._note_input(adding)

    async def add_input(self, given: Sequence[Item]) -> None:
        """Add the user's input."""
        if given:
            addition = await self._input(given)
            await self._session.add(addition)
            self._note_input(addition)

    def answer(self, made: Sequence[Item]) -> Addition:
        """The items of the model, to be stored with their price; then call `note_answer`."""
        return self._addition(self._with_unique_calls(made))

    def note_answer(self, addition: Addition) -> list[Item]:
        """Note that the items of the model are stored; return the calls among them."""
        self._note(addition)
        for item in addition.items:
            self._emit(ItemAdded(item=item))
        return [item for item in addition.items if is_call(item)]

    async def add_answer(self, made: Sequence[Item]) -> list[Item]:
        """Add the items of the model; return the calls among them."""
        addition = self.answer(made)
        await self._session.add(addition)
        return self.note_answer(addition)

    async def append(self, *items: Item, untrusted: bool = False) -> Sequence[Item]:
        """Add items without an event; return them as they are stored.

        ``untrusted`` if content from outside comes into the session with them.
        """
        addition = self._addition(items, untrusted=untrusted)
        await self._session.add(addition)
        self._note(addition)
        return addition.items

    async def replace_all(self, items: Iterable[Item], *, item_id: str) -> None:
        """Replace everything that a model is sent by these items."""
        # The store keeps the old items too: the mark tells a reader which ones are repeated.
        new: list[Item] = [{**self._with_ids(item), "compaction": item_id} for item in items]
        await self._session.compact(new)
        self.items = new

    async def _input(self, given: Sequence[Item]) -> Addition:
        handles = {handle for item in given for handle in image_handles(item)}
        is_foreign = bool(handles) and not await self._drawn_here(handles)
        return self._addition(given, untrusted=is_foreign)

    def _note_input(self, addition: Addition) -> None:
        self._note(addition)
        for item in addition.items:
            self._emit(InputAdded(item=item))

    def _addition(self, items: Iterable[Item], *, untrusted: bool = False) -> Addition:
        with_ids = [self._with_ids(item) for item in items]
        return self._session.addition(with_ids, untrusted=untrusted)

    def _note(self, addition: Addition) -> None:
        self.paid_nano = addition.spent_nano
        self.has_read_untrusted |= addition.untrusted
        self.items.extend(addition.items)

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
