"""What happens and is asked in a thread -> one client that listens by the first protocol."""

from __future__ import annotations

from limner.frontends.appserver.connection import ClientConnection
from limner.frontends.appserver.protocol.notifications import Notice
from limner.frontends.appserver.v1.approvals import translated
from limner.frontends.appserver.v1.event_translation import narrated, turn_of
from limner.frontends.appserver.v1.events import Event, EventMsg, RawResponseItem
from limner.net.jsonrpc_peer import PendingRequest
from limner.wires.items import Item


def tell(
    client: ClientConnection, conversation_id: str, *happened: EventMsg, turn_id: str = ""
) -> None:
    """Tell one client what happened in a conversation."""
    for msg in happened:
        event = Event(id=turn_id, msg=msg, conversation_id=conversation_id)
        client.notify(event.method, event)


class V1Subscriber:
    """A client that listens to a conversation, and maybe wants every item as it is kept."""

    def __init__(
        self, client: ClientConnection, conversation_id: str, *, wants_items: bool
    ) -> None:
        self.client = client
        self._conversation_id, self._wants_items = conversation_id, wants_items

    def hear(self, notice: Notice) -> None:
        """Tell the client what others are told."""
        tell(self.client, self._conversation_id, *narrated(notice), turn_id=turn_of(notice))

    def hear_item(self, item: Item, *, turn_id: str) -> None:
        """Show the client an item that was kept, if it wants to see them."""
        if self._wants_items:
            kept = RawResponseItem(item=dict(item))
            tell(self.client, self._conversation_id, kept, turn_id=turn_id)

    def ask(self, question: PendingRequest) -> None:
        """Put a question to the client."""
        question.send_to(self.client, translated=translated(question.params))
