"""Sessions in the store: items, names, settings, forks, archives, spend."""

from __future__ import annotations

import json
import sqlite3
import uuid
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.agent.rollout_samples import call, output, said, shown
from tests.fuzz import SHARED_FIXTURE

from limner.agent.session import (
    MAX_NESTING,
    PAGE_ITEMS,
    Session,
    SessionAbout,
    decode_item,
    encode_item,
)
from limner.agent.sessions import Sessions
from limner.content import Picture
from limner.errors import InputInvalid
from limner.storage.queries import migrations
from limner.storage.store import Store
from limner.wires import items
from limner.wires.base import HANDLE_URL

HANDLE = "ab" * 32
START = datetime(2026, 11, 15, 12, tzinfo=UTC)
START_MS = int(START.timestamp() * 1000)


class Clock:
    """A second passes between one look and the next."""

    def __init__(self) -> None:
        self._now = START

    def __call__(self) -> datetime:
        self._now += timedelta(seconds=1)
        return self._now


@pytest.fixture
def sessions(store: Store) -> Sessions:
    return Sessions(store=store, clock=Clock())


async def kept(session: Session) -> list[dict[str, Any]]:
    return [stored.item async for stored in session.items()]


async def add_picture(store: Store, handle: str) -> None:
    about = {"mime": "image/png", "width": 1, "height": 1, "size_bytes": 1, "lineage": "{}"}
    row = {**about, "handle": handle, "parent": None, "created_ms": 1}
    await store.write(lambda tx: tx.run("picture_add", **row))


async def test_a_session_returns_the_items_that_were_added(sessions: Sessions) -> None:
    session = await sessions.create(cwd="/w", name="Trip", settings={"model": "openai/gpt-5.5"})
    assert (await session.append([said("hello"), call("a")])).first_seq == 0
    assert (await session.append([output("a")])).first_seq == 2
    assert await session.about() == SessionAbout(
        id=session.id,
        name="Trip",
        preview="hello",
        cwd="/w",
        settings={"model": "openai/gpt-5.5"},
        created_ms=START_MS + 1000,
        updated_ms=START_MS + 3000,
        archived_ms=None,
        forked_from=None,
        items=3,
        sends_from=0,
        read_untrusted_ms=None,
        spent_nano=0,
    )
    assert str(uuid.UUID(session.id)) == session.id
    assert await kept(session) == [said("hello"), call("a"), output("a")]
    assert [stored.created_ms for stored in await session.page(from_seq=1)] == [
        START_MS + 2000,
        START_MS + 3000,
    ]


async def test_items_come_in_pages(sessions: Sessions) -> None:
    session = await sessions.create(cwd="/w")
    items = [said(f"number {number}") for number in range(450)]
    await session.append(items)
    assert [stored.seq for stored in await session.page(from_seq=440, limit=5)] == [
        *range(440, 445)
    ]
    assert await kept(session) == items


async def test_nothing_is_kept_of_items_of_which_one_is_wrong(sessions: Sessions) -> None:
    session = await sessions.create(cwd="/w")
    for wrong in ({"at": datetime.now(UTC)}, {"nan": float("nan")}, {"bytes": b"x"}):
        with pytest.raises(InputInvalid, match="not JSON"):
            await session.append([said("fine"), wrong])
    assert await kept(session) == []


@pytest.mark.parametrize(
    "url", ["data:image/png;base64,iVBORw0KGgo=", "https://example.com/a.png", "file:///a.png"]
)
async def test_a_picture_that_is_not_a_handle_is_never_kept(sessions: Sessions, url: str) -> None:
    session = await sessions.create(cwd="/w")
    with pytest.raises(InputInvalid, match="is not a handle"):
        await session.append([output("a", [shown(url)])])


async def test_an_item_too_deep_to_be_read_back_is_never_kept(sessions: Sessions) -> None:
    session = await sessions.create(cwd="/w")
    deep: dict[str, Any] = {}
    for _ in range(MAX_NESTING):
        deep = {"in": deep}
    with pytest.raises(InputInvalid, match="nested deeper"):
        await session.append([deep])
    await session.append([deep["in"]])
    assert await kept(session) == [deep["in"]]


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec=None)),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(), inside, max_size=3),
    max_leaves=8,
)
unknown_items = st.dictionaries(st.text(), json_values, max_size=4).map(
    lambda fields: {**fields, "type": "of_tomorrow"}
)


@given(unknown_items)
def test_unknown_kinds_and_fields_survive(item: dict[str, Any]) -> None:
    text = encode_item(item)
    text.encode()  # a database takes whole characters only
    assert json.dumps(decode_item(text)) == json.dumps(item)


@settings(max_examples=20, suppress_health_check=SHARED_FIXTURE)
@given(items=st.lists(unknown_items, max_size=3))
async def test_the_store_gives_back_the_same_json(
    sessions: Sessions, items: list[dict[str, Any]]
) -> None:
    session = await sessions.create(cwd="/w")
    await session.append(items)
    assert json.dumps(await kept(session)) == json.dumps(items)


async def test_history_is_sent_closed_and_kept_open(sessions: Sessions) -> None:
    session = await sessions.create(cwd="/w")
    await session.append([output("stray"), said("go"), call("a")])
    assert await session.history() == [said("go"), call("a"), output("a", "aborted")]
    assert await kept(session) == [output("stray"), said("go"), call("a")]


@pytest.mark.parametrize("count", [0, 1, PAGE_ITEMS - 1, PAGE_ITEMS, PAGE_ITEMS + 1, 401])
async def test_history_is_whole_however_many_pages_it_has(sessions: Sessions, count: int) -> None:
    session = await sessions.create(cwd="/w")
    items = [said(f"number {number}") for number in range(count)]
    if items:
        await session.append(items)
    about, history = await session.load()
    assert (about, history) == (await session.about(), items)
    assert about.items == count
    assert await kept(session) == items


async def test_a_model_is_sent_only_what_follows_a_compaction(sessions: Sessions) -> None:
    session = await sessions.create(cwd="/w")
    await session.append([said("a long story")])
    assert (await session.compact([said("in short: …")])).first_seq == 1
    await session.append([said("and now?")])
    assert await session.history() == [said("in short: …"), said("and now?")]
    assert len(await kept(session)) == 3


async def test_an_id_may_be_shortened_while_it_is_the_only_one(sessions: Sessions) -> None:
    first = await sessions.create(cwd="/", session_id="11111111-0000-4000-8000-000000000001")
    await sessions.create(cwd="/", session_id="11111111-0000-4000-8000-000000000002")
    third = await sessions.create(cwd="/", session_id="22222222-0000-4000-8000-000000000003")
    assert (await sessions.open("2")).id == third.id
    assert (await sessions.open(first.id)).id == first.id
    with pytest.raises(InputInvalid, match="Several sessions start with '1111'"):
        await sessions.open("1111")
    for nobody in ("", "3", "%", "_", "2222222_"):
        with pytest.raises(InputInvalid, match="There is no session"):
            await sessions.open(nobody)


async def test_an_id_from_elsewhere_is_taken_once_and_only_if_it_is_a_uuid(
    sessions: Sessions,
) -> None:
    there = str(uuid.uuid4())
    assert (await sessions.create(cwd="/", session_id=there.upper())).id == there
    with pytest.raises(InputInvalid, match="already") as caught:
        await sessions.create(cwd="/", session_id=there)
    assert caught.value.code == "SESSION_EXISTS"
    with pytest.raises(InputInvalid, match="is not the id of a session"):
        await sessions.create(cwd="/", session_id="../../etc")


async def test_the_one_used_last_is_listed_first_a_page_at_a_time(sessions: Sessions) -> None:
    made = [await sessions.create(cwd="/") for _ in range(5)]
    await made[0].append([said("again")])
    order = [made[n].id for n in (0, 4, 3, 2, 1)]
    first = await sessions.list(limit=3)
    rest = await sessions.list(limit=3, after=first[-1].place)
    assert [about.id for about in [*first, *rest]] == order


async def test_an_archived_session_is_kept_whole_and_listed_apart(sessions: Sessions) -> None:
    session = await sessions.create(cwd="/")
    await session.append([said("hello")])
    await sessions.archive(session.id)
    assert await sessions.list() == []
    assert [about.id for about in await sessions.list(archived=True)] == [session.id]
    assert await kept(session) == [said("hello")]
    await sessions.unarchive(session.id)
    assert [about.archived_ms for about in await sessions.list()] == [None]


async def test_a_name_and_settings_can_be_changed(sessions: Sessions) -> None:
    session = await sessions.create(cwd="/")
    await sessions.rename(session.id, "Half a \ud800 character")
    await sessions.configure(session.id, {"model": "limner/eyes", "nested": {"a": [1]}})
    about = await session.about()
    assert (about.name, about.settings) == (
        "Half a \\ud800 character",
        {"model": "limner/eyes", "nested": {"a": [1]}},
    )


async def test_a_fork_goes_its_own_way(sessions: Sessions, store: Store) -> None:
    await add_picture(store, HANDLE)
    session = await sessions.create(cwd="/w", name="Trip", settings={"a": 1})
    await session.append([said("one"), output("a", [shown(f"{HANDLE_URL}{HANDLE}")]), said("two")])
    fork = await sessions.fork(session.id, before=2)
    await fork.append([said("other")])
    await session.append([said("three")])
    await sessions.delete(session.id)
    about = await fork.about()
    assert (about.name, about.settings, about.cwd, about.forked_from, about.preview) == (
        "Trip",
        {"a": 1},
        "/w",
        session.id,
        "one",
    )
    assert [item.get("role") for item in await kept(fork)] == ["user", None, "user"]
    assert await sessions.delete(fork.id) == (HANDLE,)


async def test_a_session_keeps_when_it_first_read_something_from_outside(
    sessions: Sessions,
) -> None:
    session = await sessions.create(cwd="/w")
    before = await session.about()
    await session.note_untrusted()
    await session.note_untrusted()
    after = await session.about()
    assert after == replace(before, read_untrusted_ms=START_MS + 2000)
    assert await sessions.list() == [after]


async def test_a_fork_has_read_what_its_session_has(sessions: Sessions) -> None:
    session = await sessions.create(cwd="/w")
    await session.append([said("one"), output("a")])
    clean = await sessions.fork(session.id)
    await session.note_untrusted()
    forks = [clean, await sessions.fork(session.id), await sessions.fork(session.id, before=1)]
    noted_ms = (await session.about()).read_untrusted_ms
    assert noted_ms is not None
    told = [(await fork.about()).read_untrusted_ms for fork in forks]
    assert told == [None, noted_ms, noted_ms]


async def test_a_session_of_an_older_limner_counts_as_untrusted(
    tmp_path: Path,
) -> None:
    path = tmp_path / "old.db"
    with closing(sqlite3.connect(path)) as old, old:
        for number, script in migrations()[:5]:
            old.executescript(script)
            old.execute(f"PRAGMA user_version = {number}")
        for name, items in (("used", 3), ("empty", 0)):
            old.execute(
                "INSERT INTO sessions (id, created_ms, updated_ms, cwd, items) "
                "VALUES (?, 1, 2, '/', ?)",
                (name, items),
            )
    store = Store(path)
    listed = await Sessions(store=store, clock=Clock()).list()
    await store.aclose()
    assert {about.id: about.read_untrusted_ms for about in listed} == {"used": 2, "empty": None}


async def test_a_fork_before_a_compaction_is_sent_from_its_beginning(sessions: Sessions) -> None:
    session = await sessions.create(cwd="/w")
    await session.append([said("one"), said("two")])
    await session.compact([said("both")])
    earlier, whole = await sessions.fork(session.id, before=2), await sessions.fork(session.id)
    assert await earlier.history() == [said("one"), said("two")]
    assert await whole.history() == [said("both")]


async def test_a_session_knows_the_pictures_its_items_name(
    sessions: Sessions, store: Store
) -> None:
    named, mentioned, unknown = "a" * 64, "b" * 64, "c" * 64
    for handle in (named, mentioned):
        await add_picture(store, handle)
    session = await sessions.create(cwd="/")
    await session.append(
        [
            output("a", [shown(f"{HANDLE_URL}{named}"), shown(f"{HANDLE_URL}{named}")]),
            output("b", json.dumps({"handle": mentioned})),
            said(f"{unknown} and {'d' * 65}"),
        ]
    )
    assert await sessions.delete(session.id) == (named, mentioned)


async def test_the_cost_of_a_session_is_that_of_the_ledger(
    sessions: Sessions, store: Store
) -> None:
    session = await sessions.create(cwd="/")

    def paid(state: str, cost_nano: int, session_id: str) -> None:
        call = {"tool": "t", "provider": "p", "model": "m", "day": "2026-11-15", "now_ms": 1}
        owner = {"owner": None, "owner_pid": 1, "owner_start": "", "owner_boot": ""}
        spender = {"program": None, "scope": None, "idempotency_key": None}

        def work(tx: Any) -> None:
            row = tx.one(
                "ledger_reserve",
                **call,
                **owner,
                **spender,
                quoted_nano=cost_nano,
                session_id=session_id,
            )["id"]
            tx.run("ledger_sent", id=row, now_ms=1)
            if state == "settled":
                told = {"cost_source": "table", "picture": None, "error_code": None, "now_ms": 1}
                tx.run("ledger_settled", id=row, cost_nano=cost_nano, **told)

        return store.submit_write(work).result()

    paid("settled", 40, session.id)
    paid("sent", 7, session.id)
    paid("settled", 100, "another")
    assert (await session.about()).spent_nano == 40
    assert [about.spent_nano for about in await sessions.list()] == [40]
    await sessions.delete(session.id)
    row = await store.read(lambda tx: tx.one("spending_of", kind="session", name=session.id))
    assert row is not None
    assert row["settled_nano"] == 40


async def test_using_a_deleted_session_is_an_error(sessions: Sessions) -> None:
    session = await sessions.create(cwd="/")
    await session.append([said("hello")])
    await sessions.delete(session.id)
    for work in (
        session.append([said("late")]),
        session.about(),
        session.history(),
        sessions.rename(session.id, "x"),
        sessions.archive(session.id),
        sessions.configure(session.id, {}),
        session.note_untrusted(),
        sessions.fork(session.id),
        sessions.delete(session.id),
    ):
        with pytest.raises(InputInvalid) as caught:
            await work
        assert caught.value.code == "NO_SUCH_SESSION"
    assert await kept(session) == []


async def test_a_preview_is_the_users_own_text(sessions: Sessions) -> None:
    session = await sessions.create(cwd="/")
    await session.append(
        [
            said("# AGENTS.md instructions for /w"),
            said("<environment_context>"),
            said("I am ready.", role="assistant"),
            said("  draw\n me   a fox " + "!" * 400),
            said("thanks"),
        ]
    )
    assert (await session.about()).preview == ("draw me a fox " + "!" * 400)[:200]


async def test_a_picture_before_the_text_is_not_part_of_the_preview(sessions: Sessions) -> None:
    session = await sessions.create(cwd="/")
    fox = Picture(handle="f" * 64, mime="image/png", width=1, height=1, size_bytes=1)
    await session.append([items.user_message("What is this?", [(fox, Path("/w/fox.png"))])])
    assert (await session.about()).preview == "What is this?"


async def test_settings_keep_lone_surrogates_and_integers_of_any_size(sessions: Sessions) -> None:
    settings = {"note": "\ud83d", "many": 10**30, "nested": [None, True, 1.5]}
    session = await sessions.create(cwd="/w", settings=settings)
    assert (await session.about()).settings == settings
    await sessions.configure(session.id, {"note": "\ud83d"})
    assert (await session.about()).settings == {"note": "\ud83d"}
