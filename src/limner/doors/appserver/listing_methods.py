"""`thread/list`: the threads in the store, sorted, sifted and page by page."""

from __future__ import annotations

import bisect

from limner.agent.session import SessionAbout
from limner.doors.appserver.dispatch import Call
from limner.doors.appserver.kept import Kept
from limner.doors.appserver.protocol.threads import ThreadListParams, ThreadListResponse
from limner.doors.appserver.refusals import refusal
from limner.doors.appserver.thread_views import stored_view, thread_view
from limner.doors.appserver.threads import Threads

THREADS_PER_PAGE = 25
MAX_PER_PAGE = 100
_READ_AT_ONCE = 500

_Place = tuple[int, str]


async def list_threads(
    threads: Threads,
    call: Call,  # noqa: ARG001 - the shape of every method
    params: ThreadListParams,
) -> ThreadListResponse:
    """Some threads; the newest first, unless said otherwise. Those without an item are left out."""
    by_creation = params.sort_key in (None, "created_at")

    def place(about: SessionAbout) -> _Place:
        return (about.created_ms if by_creation else about.updated_ms), about.id

    found = sorted(await _sifted(threads, params), key=place)
    start = 0
    if params.sort_direction == "asc":
        if params.cursor is not None:
            start = bisect.bisect_right(found, _read_cursor(params.cursor), key=place)
    else:
        if params.cursor is not None:
            start = len(found) - bisect.bisect_left(found, _read_cursor(params.cursor), key=place)
        found.reverse()
    end = start + min(params.limit or THREADS_PER_PAGE, MAX_PER_PAGE)
    page = found[start:end]
    return ThreadListResponse(
        data=tuple([await stored_view(threads, about) for about in page]),
        next_cursor=_cursor(place(page[-1])) if page and end < len(found) else None,
        backwards_cursor=_cursor(place(page[0])) if page else None,
    )


async def _sifted(threads: Threads, params: ThreadListParams) -> list[SessionAbout]:
    """The threads that are wanted, in the order of the store."""
    found: list[SessionAbout] = []
    after: _Place | None = None
    sessions, archived = threads.limner.sessions, params.archived or False
    unwanted = frozenset(params.excluded_thread_ids or ())
    while page := await sessions.list(archived=archived, after=after, limit=_READ_AT_ONCE):
        found += [
            about
            for about in page
            if about.id not in unwanted and _is_wanted(threads, about, params)
        ]
        after = page[-1].place
    return found


def _is_wanted(threads: Threads, about: SessionAbout, params: ThreadListParams) -> bool:
    kept = Kept.read(about.settings)
    if not about.items or kept.rest.ephemeral:
        return False
    folders = [params.cwd] if isinstance(params.cwd, str) else params.cwd
    if folders and (kept.rest.cwd or about.cwd) not in folders:
        return False
    if params.model_providers or params.source_kinds:
        view = thread_view(about, kept, lim=threads.limner)
        if view.model_provider not in (params.model_providers or [view.model_provider]):
            return False
        if view.source not in (params.source_kinds or [view.source]):
            return False
    term = (params.search_term or "").casefold()
    return term in f"{about.name or ''}\n{about.preview or ''}".casefold()


def _cursor(place: _Place) -> str:
    at_ms, thread_id = place
    return f"{at_ms}|{thread_id}"


def _read_cursor(cursor: str) -> _Place:
    at_ms, bar, thread_id = cursor.partition("|")
    if not (bar and at_ms.isdecimal() and at_ms.isascii()):
        raise refusal(f"invalid cursor: {cursor[:80]}")
    return int(at_ms[:18]), thread_id
