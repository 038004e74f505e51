"""A stored session as clients see it: turns, items, pages, and pictures within bounds."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.agent.agent_pictures import (
    data_url,
    encoded,
    handle_of,
    program,
    seen,
    take,
    text,
    unique,
    user,
)

from limner.agent.call_items import SAYS_IT_FAILED
from limner.agent.session import Session, StoredItem
from limner.agent.stored_turns import group_turns
from limner.client import Limner
from limner.errors import InputInvalid
from limner.frontends.appserver.inline_pictures import PictureInliner
from limner.frontends.appserver.protocol.base import (
    AudioInput,
    ImageInput,
    InputImage,
    InputText,
    LocalImageInput,
    TextInput,
)
from limner.frontends.appserver.protocol.items import (
    AgentMessage,
    ContextCompaction,
    DynamicToolCall,
    FunctionCallOutput,
    ImageGeneration,
    ImageView,
    Reasoning,
    UserMessage,
)
from limner.frontends.appserver.protocol.threads import ItemAnchor
from limner.frontends.appserver.thread_history import HistoryContext, ThreadHistory, read_turns
from limner.frontends.appserver.tool_specs import ToolSpec

PNG = encoded(9)
ABORTED = "<turn_aborted>\nThe user interrupted.\n</turn_aborted>"
SHOT = ToolSpec(name="shot", namespace="screen", description="", schema={})
TIMES: dict[str, Any] = {"started_at_ms": 1_000, "completed_at_ms": 1_000}


@pytest.fixture
async def lim(tmp_path: Path) -> AsyncIterator[Limner]:
    async with program(tmp_path) as lim:
        yield lim


@pytest.fixture
async def session(lim: Limner) -> Session:
    await take(lim, PNG)
    return await lim.sessions.create(cwd="/desk")


def history(lim: Limner, max_chars: int = 1_000_000) -> ThreadHistory:
    return ThreadHistory(inliner=PictureInliner(pictures=lim.pictures, max_chars=max_chars))


async def keep(session: Session, turn_id: str | None, *items: Any, at_ms: int = 1_000) -> None:
    named = {} if turn_id is None else {"turn_id": turn_id}
    await session.append([{**item, **named} for item in items], created_ms=[at_ms] * len(items))


def spoken(words: str, **more: Any) -> dict[str, Any]:
    part = {"type": "output_text", "text": words}
    return {"type": "message", "role": "assistant", "content": [part], **more}


def called(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    given = json.dumps(arguments)
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": given}


def answered(call_id: str, *parts: Any, **more: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": list(parts), **more}


async def shown(lim: Limner, session: Session, told: HistoryContext | None = None) -> list[Any]:
    (turn,) = await history(lim).turns(session, told or HistoryContext())
    return list(turn.items)


async def test_a_tool_turn_is_shown_with_its_picture_inline(lim: Limner, session: Session) -> None:
    await keep(session, "t1", {**user(text("What is on screen?")), "id": "u1", "client_id": "mine"})
    await keep(session, "t1", called("c1", "screen__shot", target="window"))
    output = answered("c1", text("taken"), seen(handle_of(PNG), detail="high"), success=True)
    await keep(session, "t1", output, at_ms=1_250)
    await keep(session, "t1", spoken("A dot.", id="m1", phase="final_answer"), at_ms=3_000)

    (turn,) = await history(lim).turns(session, HistoryContext(tools={"screen__shot": SHOT}))

    assert turn.items == (
        UserMessage(
            id="u1", client_id="mine", content=(TextInput(text="What is on screen?"),), **TIMES
        ),
        DynamicToolCall(
            id="c1",
            namespace="screen",
            tool="shot",
            arguments={"target": "window"},
            status="completed",
            content_items=(InputText(text="taken"), InputImage(image_url=data_url(PNG))),
            success=True,
            duration_ms=250,
            started_at_ms=1_000,
            completed_at_ms=1_250,
        ),
        AgentMessage(
            id="m1",
            text="A dot.",
            phase="final_answer",
            started_at_ms=3_000,
            completed_at_ms=3_000,
        ),
    )
    about = (turn.id, turn.root_turn_id, turn.status, turn.items_view)
    assert about == ("t1", "t1", "completed", "full")
    assert (turn.started_at, turn.completed_at, turn.duration_ms) == (1, 3, 2_000)


async def test_what_a_user_showed_is_shown_as_it_was_given(lim: Limner, session: Session) -> None:
    await keep(
        session,
        "t1",
        user(
            text('<image name=[Image #1] path="/a.png">'),
            seen(handle_of(PNG), detail="low"),
            text("</image>"),
            text('<image name=[Image #2] path="/b.png">'),
            text("[image omitted: it has no bytes]"),
            text("</image>"),
            seen(handle_of(PNG), detail="original"),
            {"type": "input_audio", "audio_url": "data:audio/wav;base64,AAAA"},
            text("<b>look</b>"),
        ),
    )
    (message,) = await shown(lim, session)
    assert message.content == (
        LocalImageInput(path="/a.png", detail="low"),
        LocalImageInput(path="/b.png"),
        ImageInput(url=data_url(PNG), detail="original"),
        AudioInput(url="data:audio/wav;base64,AAAA"),
        TextInput(text="<b>look</b>"),
    )
    assert message.id == "item-0"


async def test_pictures_that_were_made_and_looked_at_have_items_of_their_own(
    lim: Limner, session: Session
) -> None:
    value = json.dumps({"path": "/g/1.png", "prompt_used": "a dot"})
    await keep(session, "t1", called("c1", "image_generate", prompt="dot"))
    await keep(session, "t1", called("c2", "inspect_image", path="a.png", question="?"))
    await keep(session, "t1", called("c3", "inspect_image", path="b.png", question="?"))
    await keep(session, "t1", called("c4", "image_edit", prompt="dot"))
    await keep(session, "t1", answered("c1", text(value), seen(handle_of(PNG)), success=True))
    await keep(session, "t1", answered("c2", text("It is a dot."), success=True))
    await keep(session, "t1", answered("c3", text("no such file"), success=False))

    assert await shown(lim, session, HistoryContext(cwd="/desk", running="t1")) == [
        ImageGeneration(
            id="c1",
            status="completed",
            result=data_url(PNG).partition(",")[2],
            revised_prompt="a dot",
            saved_path="/g/1.png",
            **TIMES,
        ),
        ImageView(id="c2", path="/desk/a.png", **TIMES),
        DynamicToolCall(
            id="c3",
            tool="inspect_image",
            arguments={"path": "b.png", "question": "?"},
            status="failed",
            content_items=(InputText(text="no such file"),),
            success=False,
            duration_ms=0,
            **TIMES,
        ),
        ImageGeneration(id="c4", status="in_progress", result="", started_at_ms=1_000),
    ]


async def test_thoughts_summaries_and_uncalled_outputs_are_shown(
    lim: Limner, session: Session
) -> None:
    thought = {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "Hm"}]}
    news = {"name": "news", "output": [seen(handle_of(PNG))]}
    drawn = {"type": "image_generation_call", "id": "g", "status": "completed"}
    summary = user(text("<conversation_summary>\nIt began.\n</conversation_summary>"))
    await keep(session, "t1", thought)
    await keep(session, "t1", {"type": "function_call_output", "call_id": "x", **news})
    await keep(session, "t1", {"type": "function_call_output", "call_id": "y", "output": "lost"})
    await keep(session, "t1", {**drawn, "result": f"limner://image/{handle_of(PNG)}"})
    again = [{**item, "turn_id": "t1", "compaction": "c"} for item in (summary, thought)]
    await session.compact(again, created_ms=[1_000, 1_000])
    await keep(session, "t1", {"type": "ghost_snapshot"}, {"type": "message", "role": "user"})

    picture = {"type": "input_image", "image_url": data_url(PNG)}
    assert await shown(lim, session) == [
        Reasoning(id="r", summary=("Hm",), **TIMES),
        FunctionCallOutput(id="item-1", name="news", output=[picture], **TIMES),
        ImageGeneration(
            id="g", status="completed", result=data_url(PNG).partition(",")[2], **TIMES
        ),
        ContextCompaction(id="c", **TIMES),
    ]


@pytest.mark.parametrize(
    ("told", "turn_status", "call_status"),
    [
        (HistoryContext(), "interrupted", "failed"),
        (HistoryContext(pending={"c1"}), "inProgress", "inProgress"),
        (HistoryContext(running="t1"), "inProgress", "inProgress"),
    ],
)
async def test_a_call_without_an_answer_is_open_or_failed(
    lim: Limner, session: Session, told: HistoryContext, turn_status: str, call_status: str
) -> None:
    await keep(session, "t1", user(text("go")), called("c1", "shot"))
    (turn,) = await history(lim).turns(session, told)
    call = turn.items[-1]
    assert isinstance(call, DynamicToolCall)
    assert (turn.status, call.status) == (turn_status, call_status)
    assert (turn.completed_at is None) == (turn_status == "inProgress")
    assert call.content_items == (None if call_status == "inProgress" else ())


async def test_a_call_that_is_stored_twice_is_shown_once(lim: Limner, session: Session) -> None:
    await keep(session, None, called("c1", "shot"), called("c1", "shot"), answered("c1"))
    (call,) = await shown(lim, session)
    assert (call.id, call.status) == ("c1", "completed")


async def test_an_answer_that_comes_in_a_later_turn_belongs_to_its_call(
    lim: Limner, session: Session
) -> None:
    await keep(session, "t1", user(text("go")), called("c1", "shot"))
    await keep(session, "t2", answered("c1", text("late")), spoken("done"))
    first, second = await history(lim).turns(session, HistoryContext())
    assert [turn.status for turn in (first, second)] == ["interrupted", "completed"]
    call = first.items[1]
    assert isinstance(call, DynamicToolCall)
    assert (call.status, call.content_items) == ("completed", (InputText(text="late"),))
    assert [type(item) for item in second.items] == [AgentMessage]
    assert [turn.last_seq for turn in await read_turns(session)] == [1, 3]


async def test_an_aborted_turn_is_interrupted_and_its_mark_is_not_shown(
    lim: Limner, session: Session
) -> None:
    await keep(session, "t1", user(text("go")), called("c1", "shot"))
    await keep(
        session, "t1", answered("c1", text(SAYS_IT_FAILED), text("cancelled"), success=False)
    )
    await keep(session, "t1", user(text(ABORTED)))
    (turn,) = await history(lim).turns(session, HistoryContext())
    assert turn.status == "interrupted"
    assert [type(item) for item in turn.items] == [UserMessage, DynamicToolCall]
    call = turn.items[1]
    assert isinstance(call, DynamicToolCall)
    assert (call.status, call.content_items) == ("failed", (InputText(text="cancelled"),))


async def test_an_imported_history_is_split_into_turns_by_role(
    lim: Limner, session: Session
) -> None:
    context = "<environment_context>\n<cwd>/desk</cwd>\n</environment_context>"
    await keep(
        session,
        None,
        {"type": "message", "role": "developer", "content": [text("be nice")]},
        user(text("# AGENTS.md instructions for /desk")),
        user(text(context)),
        user(text("first")),
        called("c1", "shell"),
        answered("c1", text("done")),
        spoken("one"),
        user(text(context)),
        user(text("second")),
        user(text(ABORTED)),
        user(text("third")),
        spoken("three"),
    )
    turns = await history(lim).turns(session, HistoryContext())
    words = [[getattr(i, "text", None) or i.content[0].text for i in _talk(turn)] for turn in turns]
    assert words == [["first", "one"], ["second"], ["third", "three"]]
    assert [turn.status for turn in turns] == ["completed", "interrupted", "completed"]
    assert [turn.id for turn in turns] == ["turn-0", "turn-7", "turn-10"]
    assert [turn.last_seq for turn in await read_turns(session)] == [6, 9, 11]


def _talk(turn: Any) -> list[Any]:
    return [item for item in turn.items if isinstance(item, UserMessage | AgentMessage)]


async def test_turns_come_in_pages_the_newest_first_and_back_again(
    lim: Limner, session: Session
) -> None:
    for number in range(5):
        await keep(session, f"t{number}", user(text(f"{number}?")), spoken("no"), spoken("yes"))
    reader = history(lim)

    first = await reader.turns_page(session, HistoryContext(), limit=2)
    second = await reader.turns_page(session, HistoryContext(), limit=2, cursor=first.next_cursor)
    last = await reader.turns_page(session, HistoryContext(), limit=2, cursor=second.next_cursor)
    back = await reader.turns_page(
        session, HistoryContext(), limit=3, cursor=second.backwards_cursor, direction="asc"
    )

    pages = [[turn.id for turn in page.data] for page in (first, second, last, back)]
    assert pages == [["t4", "t3"], ["t2", "t1"], ["t0"], ["t2", "t3", "t4"]]
    assert (last.next_cursor, back.next_cursor) == (None, None)
    summary = first.data[0]
    assert summary.items_view == "summary"
    assert [getattr(item, "text", "4?") for item in summary.items] == ["4?", "yes"]
    bare = await reader.turns_page(session, HistoryContext(), view="notLoaded", limit=1)
    assert bare.data[0].items == ()
    with pytest.raises(InputInvalid, match="invalid cursor: >gone"):
        await reader.turns_page(session, HistoryContext(), cursor=">gone")


async def test_items_come_in_pages_of_a_thread_or_a_turn(lim: Limner, session: Session) -> None:
    for number in range(3):
        await keep(session, f"t{number}", {**spoken("a"), "id": f"a{number}"})
        await keep(session, f"t{number}", {**spoken("b"), "id": f"b{number}"})
    reader = history(lim)

    async def ids(**wanted: Any) -> list[tuple[str, str]]:
        page = await reader.items_page(session, HistoryContext(), **wanted)
        return [(entry.turn_id, entry.item.id) for entry in page.data]

    assert await ids(limit=3) == [("t0", "a0"), ("t0", "b0"), ("t1", "a1")]
    assert await ids(limit=3, cursor=">t1/a1") == [("t1", "b1"), ("t2", "a2"), ("t2", "b2")]
    assert await ids(turn_id="t1", direction="desc") == [("t1", "b1"), ("t1", "a1")]
    assert await ids(cursor=ItemAnchor(item_id="a2")) == [("t2", "b2")]
    with pytest.raises(InputInvalid, match="turn not found: t9"):
        await ids(turn_id="t9")


async def test_pictures_are_inline_the_newest_first_until_there_is_no_room(
    lim: Limner, session: Session
) -> None:
    pictures = [unique() for _ in range(4)]
    for number, data in enumerate(pictures):
        await take(lim, data)
        await keep(session, f"t{number}", user(seen(handle_of(data))))
    room = sum(len(data_url(data).partition(",")[2]) for data in pictures[2:])

    turns = await history(lim, max_chars=room).turns(session, HistoryContext())
    page = await history(lim, max_chars=room).turns_page(session, HistoryContext())

    named = [f"limner://image/{handle_of(data)}" for data in pictures[:2]]
    urls = [*named, *map(data_url, pictures[2:])]
    shown: list[Any] = [turn.items[0] for turn in turns]
    on_page: list[Any] = [turn.items[0] for turn in reversed(page.data)]
    assert [item.content[0].url for item in shown] == urls
    assert [item.content[0].url for item in on_page] == urls


async def test_a_picture_that_is_gone_is_named(lim: Limner, session: Session) -> None:
    gone = "0" * 64
    await keep(session, "t1", user(seen(gone)))
    (message,) = await shown(lim, session)
    assert message.content == (ImageInput(url=f"limner://image/{gone}"),)


items = st.lists(
    st.tuples(
        st.sampled_from([None, "t1", "t2"]),
        st.sampled_from(
            [
                user(text("hi")),
                user(text(ABORTED)),
                spoken("yes"),
                called("c", "shot"),
                answered("c", text("done")),
                {"type": "reasoning", "summary": []},
                {"type": "something new"},
            ]
        ),
    ),
    max_size=12,
)


@given(items)
def test_every_item_is_in_one_turn_and_in_its_order_property(drawn: Any) -> None:
    stored = [
        StoredItem(
            seq=seq,
            created_ms=seq,
            item=item if turn_id is None else {**item, "turn_id": turn_id},
        )
        for seq, (turn_id, item) in enumerate(drawn)
    ]
    turns = group_turns(stored)
    held = [[one.seq for one in turn.items] for turn in turns]
    assert sorted(seq for seqs in held for seq in seqs) == list(range(len(stored)))
    assert held == [sorted(seqs) for seqs in held if seqs]
    assert len({turn.id for turn in turns}) == len(turns)
