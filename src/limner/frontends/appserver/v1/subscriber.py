"""The notifications and requests of a thread -> one subscriber that speaks the first protocol."""

from __future__ import annotations

from limner.frontends.appserver.connection import ClientConnection
from limner.frontends.appserver.protocol.notifications import Notice
from limner.frontends.appserver.v1.approvals import to_v1_request
from limner.frontends.appserver.v1.event_translation import to_events, turn_of
from limner.frontends.appserver.v1.events import Event, EventMsg, RawResponseItem
from limner.net.jsonrpc_peer import PendingRequest
from limner.wires.items import Item


def send_events(
    client: ClientConnection, conversation_id: str, *messages: EventMsg, turn_id: str = ""
) -> None:
    """Send events of a conversation to one client."""
    for msg in messages:
        event = Event(id=turn_id, msg=msg, conversation_id=conversation_id)
        client.notify(event.method, event)


class V1Subscriber:
    """A client that subscribes to a conversation; ``wants_items`` asks for every stored item."""

    def __init__(
        self, client: ClientConnection, conversation_id: str, *, wants_items: bool
    ) -> None:
        self.client = client
        self._conversation_id, self._wants_items = conversation_id, wants_items

    def notify(self, notice: Notice) -> None:
        """Send a notification as events."""
        events = to_events(notice)
        send_events(self.client, self._conversation_id, *events, turn_id=turn_of(notice))

    def send_item(self, item: Item, *, turn_id: str) -> None:
        """Send a stored item, if the client wants them."""
        if self._wants_items:
            raw = RawResponseItem(item=dict(item))
            send_events(self.client, self._conversation_id, raw, turn_id=turn_id)

    def request(self, request: PendingRequest) -> None:
        """Send a request of the server."""
        request.send_to(self.client, translated=to_v1_request(request.params))
