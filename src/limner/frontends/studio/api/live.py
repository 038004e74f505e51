"""A page that listens -> the events of all runs, from where it left off."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from limner.frontends.studio.endpoints import Endpoint, EventAnswer, StudioParts


class EventsRequest(msgspec.Struct, frozen=True, kw_only=True):
    """From where to listen; browsers send the header Last-Event-ID when they connect again."""

    last_event_id: Annotated[str, Meta(max_length=100)] = ""


async def follow_events(studio: StudioParts, request: EventsRequest) -> EventAnswer:
    """The events of all runs, for ever."""
    return EventAnswer(events=studio.runs.events(request.last_event_id))


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/api/events",
        summary="Follow the runs: first `runs` with all of them, then `started`, `progress`, "
        "`partial`, `done` and `failed`, each with its run; `gallery` if the pictures changed.",
        request=EventsRequest,
        answer=EventAnswer,
        handler=follow_events,
    ),
)
