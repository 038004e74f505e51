"""One history with every kind of item: what the model receives from the real Codex and from limner.

The history is made from two schemas: the published one of `resumeConversation`, and the one that
Codex prints. Codex comes with the package `openai-codex`, no part of the ordinary tools:
`pip install --group local`. ``LIMNER_TEST_CODEX=/path/to/codex`` tries another release.
"""

from __future__ import annotations

import asyncio
import difflib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.appserver_shapes import MISSING, Allowed, Difference, leaves, unexplained
from tests.acceptance.hardship import limner
from tests.acceptance.history_items import ODD, as_on_the_wire, whole_history
from tests.servers.appserver_side import Side, Talk, TalkingServer, side_of
from tests.servers.codex_process import MODEL
from tests.servers.codex_schema import recorded
from tests.servers.components import needs
from tests.servers.scripted import says
from tests.wires.seed_schema import ROOT

pytestmark = [pytest.mark.slow, needs("codex_cli_bin")]

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "app-server.md"
UNKNOWN = "00000000-0000-7000-8000-000000000000"
# What Codex says to its models by itself.
OF_CODEX = re.compile(r"You are Codex|<(permissions|skills_instructions|environment_context)")

_NUMBER = re.compile(r"\[\d+\]")

Json = dict[str, Any]
Items = list[Json]

HISTORY: Items = [
    *whole_history(ROOT["definitions"], first_call=1),
    *whole_history(recorded().types, first_call=1001),
    *ODD,
]


# What comes of runs alone.
SETUP = (Allowed(where=r".* id", why="Codex gives every item an id of its own."),)
_PARTS = r"(content|output)\[\]\."
NO_PARTS = (
    "A message of the model goes out as one text, because the public API asks for an id with each "
    "part. A picture in it becomes a note."
)
ALLOWED = (
    Allowed(where=r"assistant message content.*", why=NO_PARTS),
    Allowed(
        where=r"system message added",
        why="Messages with the role `system` go out. Codex drops them.",
    ),
    Allowed(
        where=rf".* {_PARTS}(detail|type|image_url)",
        why="A picture always has a `detail`, `auto` if the client gave none, and `low` is sent. "
        "Codex replaces a picture of the detail `low` by a text.",
    ),
    Allowed(
        where=rf".* {_PARTS}text",
        why="The texts in place of pictures and audio that a model is not sent have other words.",
    ),
    Allowed(
        where=r"(user|developer) message content\[\]\.(type|annotations.*|logprobs.*)",
        why="`output_text` in a message of the user goes out as `input_text`, without annotations.",
    ),
    Allowed(
        where=r".* (status|phase)|custom_tool_call_output name",
        why="`status` is not sent back, `phase` only with messages of the model and its two public "
        "values, and the output of a custom tool has no `name`.",
    ),
)
# A turn that was added.
TURN = ["assistant message", "user message"]
# Pictures that neither takes in, and what each says in their place.
OMITTED = (
    (
        "image content omitted because remote image URLs are not supported",
        "[image omitted: pictures are not fetched from the network; send the picture itself as a "
        "data URL]",
    ),
    (
        "image content omitted because it could not be processed",
        "[image omitted: its data is not base64]",
    ),
)


async def turn(talk: Talk, model: TalkingServer, thread_id: str) -> Items:
    """What the model receives if the conversation goes on."""
    model.script("ask", model.streamed(says("Yes."), {"model": MODEL}))
    ended = await talk.ended((await talk.turn(thread_id, "Go on."))["id"])
    assert (ended["status"], ended["error"]) == ("completed", None)
    return received(model)


def received(model: TalkingServer) -> Items:
    """The items of the last request, without what Codex says by itself."""
    items = model.sent("ask")[-1].json()["input"]
    return [item for item in items if not OF_CODEX.search(str(item.get("content")))]


async def first_version(talk: Talk, model: TalkingServer) -> Items:
    """The same over v1, with outputs as the published schema has them."""
    model.script("ask", model.streamed(says("Yes."), {"model": MODEL}))
    made = await talk.request("resumeConversation", history=HISTORY)
    name = {"conversationId": made["conversationId"]}
    await talk.request("addConversationListener", **name)
    said = [{"type": "text", "data": {"text": "Go on."}}]
    await talk.request("sendUserMessage", **name, items=said)
    await talk.wait(method="codex/event/task_complete")
    return received(model)


async def resumed(talk: Talk, **params: Any) -> str:
    return (await talk.request("thread/resume", threadId=UNKNOWN, **params))["thread"]["id"]


async def exported(side: Side, thread_id: str) -> Path:
    path = side.cwd / "exported.jsonl"
    words = ("sessions", "export", thread_id, "--out", str(path))
    status, said = await limner(*words, env=side.env, cwd=side.cwd)
    assert status == 0, said
    return path


async def play(folder: Path) -> dict[str, Items]:
    """What the model receives in the end, by the way that the history took."""
    on_the_wire = [as_on_the_wire(item) for item in HISTORY]
    found: dict[str, Items] = {}
    with TalkingServer() as model:
        ours, codex = (side_of(kind, folder, model) for kind in ("limner", "codex"))
        async with ours.server() as talk:
            thread_id = await resumed(talk, history=on_the_wire)
            found["v2"] = await turn(talk, model, thread_id)
            found["v1"] = await first_version(talk, model)
            forked = await talk.request("thread/fork", threadId=thread_id)
            found["fork"] = await turn(talk, model, forked["thread"]["id"])
            await talk.close()
        path = await exported(ours, thread_id)
        async with codex.server() as talk:
            thread_id = await resumed(talk, history=on_the_wire)
            found["codex"] = await turn(talk, model, thread_id)
            thread_id = await resumed(talk, path=str(path))
            found["exported"] = await turn(talk, model, thread_id)
            await talk.close()
        async with side_of("limner", folder / "other", model).server() as talk:
            thread_id = await resumed(talk, path=str(path))  # to which Codex has added its turn
            found["back"] = await turn(talk, model, thread_id)
            await talk.close()
    return found


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Items]:
    return asyncio.run(play(tmp_path_factory.mktemp("histories")))


def differences(codex: Items, ours: Items) -> Iterator[Difference]:
    """Where two requests differ, item by item; null is the same as nothing."""
    keys = ([_key(item) for item in one] for one in (codex, ours))
    matcher = difflib.SequenceMatcher(None, *keys, autojunk=False)
    for how, start, end, our_start, our_end in matcher.get_opcodes():
        left, right = codex[start:end], ours[our_start:our_end]
        if how == "equal":
            for one, other in zip(left, right, strict=True):
                yield from _in_item(one, other)
            continue
        for item in left:
            yield Difference(scene="", where=f"{_name(item)} left out", codex=item, ours=MISSING)
        for item in right:
            yield Difference(scene="", where=f"{_name(item)} added", codex=MISSING, ours=item)


def _key(item: Json) -> tuple[str, str]:
    return _name(item), str(item.get("call_id"))


def _name(item: Json) -> str:
    return f"{item.get('role')} message" if item["type"] == "message" else item["type"]


def _in_item(codex: Json, ours: Json) -> Iterator[Difference]:
    left, right = dict(leaves(codex)), dict(leaves(ours))
    for path in sorted({*left, *right}):
        has, found = left.get(path), right.get(path)
        if has != found:
            where = f"{_name(codex)} {_NUMBER.sub('[]', path)}"
            yield Difference(scene="", where=where, codex=has, ours=found)


def test_the_model_receives_what_it_receives_from_codex(played: dict[str, Items]) -> None:
    found = list(differences(played["codex"], played["v2"]))
    assert unexplained(found, (*SETUP, *ALLOWED)) == []
    idle = [row.where for row in (*SETUP, *ALLOWED) if not any(row.has(one) for one in found)]
    assert idle == []


def test_every_item_of_codex_has_one_here(played: dict[str, Items]) -> None:
    assert (len(HISTORY), len(played["codex"])) == (454, 414)
    missing = [one for one in differences(played["codex"], played["v2"]) if one.ours is MISSING]
    assert missing == []


def test_the_first_version_of_the_protocol_is_the_same(played: dict[str, Items]) -> None:
    assert played["v1"] == played["v2"]


def test_a_fork_starts_with_the_same(played: dict[str, Items]) -> None:
    assert played["fork"][: len(played["v2"])] == played["v2"]
    assert [_name(item) for item in played["fork"][len(played["v2"]) :]] == TURN


def test_codex_goes_on_with_an_export(played: dict[str, Items]) -> None:
    codex, exported = played["codex"], played["exported"]
    assert [_name(item) for item in exported[len(codex) :]] == TURN
    found = list(differences(codex, exported[: len(codex)]))
    assert unexplained(found, SETUP) == [
        str(Difference(scene="", where="user message content[].text", codex=theirs, ours=ours))
        for theirs, ours in OMITTED
    ]


def test_it_comes_back_from_codex(played: dict[str, Items]) -> None:
    """A file is not the client's own word: its orders come back as quoted text."""
    v2, back = ([item for item in played[way] if not is_order(item)] for way in ("v2", "back"))
    assert back[: len(v2)] == v2
    assert [_name(item) for item in back[len(v2) :]] == [*TURN, *TURN]
    assert len(played["back"]) - len(back) == len(played["v2"]) - len(v2)


def is_order(item: Json) -> bool:
    """Whether an item gives orders to the model, as it came or quoted."""
    return item.get("role") in ("developer", "system") or "A message of the role" in str(item)


def test_the_guide_gives_every_reason() -> None:
    section = GUIDE.read_text().split("A test sends a history")[1].split("\n## ")[0]
    listed = [line.removeprefix("- ") for line in section.splitlines() if line.startswith("- ")]
    assert sorted({row.why for row in ALLOWED}) == sorted(listed)
