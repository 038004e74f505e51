"""One recorded client, two servers: the real Codex and limner answer it alike, field by field.

Where they do not, a row here says why, and the guide says it to users. Codex comes with the
package `openai-codex`, no part of the ordinary tools: `pip install --group local`.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.appserver_differences import (
    ALLOWED,
    REORDERED,
    SETUP,
    STEERED,
    TOLD,
    TWO_CLIENTS,
    common,
)
from tests.acceptance.appserver_script import Player, Scenes
from tests.acceptance.appserver_shapes import (
    Message,
    in_fields,
    in_order,
    label,
    unexplained,
)
from tests.servers.appserver_side import KINDS, TalkingServer, side_of
from tests.servers.codex_process import MODEL
from tests.servers.components import needs
from tests.servers.scripted import says

from limner.testing.servers.http_server import Gate

pytestmark = [
    pytest.mark.slow,
    pytest.mark.invalid_answers,
    needs("openai_codex", "codex_cli_bin"),
]

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "app-server.md"


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Scenes]:
    """What each of the two said."""

    async def play(kind: str) -> Scenes:
        with TalkingServer() as model:
            side = side_of(kind, tmp_path_factory.mktemp("played"), model)
            async with Player(side, model) as player:
                return await player.play()

    return {kind: asyncio.run(play(kind)) for kind in KINDS}


def pairs(played: dict[str, Scenes]) -> Iterable[tuple[str, list[Message], list[Message]]]:
    """The scenes of both, without what only one of them tells."""
    codex, ours = played["codex"], played["limner"]
    assert list(codex) == list(ours)
    for scene in codex:
        yield scene, common(scene, codex[scene], "by_codex"), common(scene, ours[scene], "by_us")


def test_notifications_come_in_the_same_order(played: dict[str, Scenes]) -> None:
    for scene, codex, ours in pairs(played):
        if scene in REORDERED:
            assert Counter(map(label, codex)) == Counter(map(label, ours))
        else:
            assert [str(one) for one in in_order(scene, codex, ours)] == []


def test_every_request_is_answered_or_refused_alike(played: dict[str, Scenes]) -> None:
    for _, codex, ours in pairs(played):
        assert [label(one) for one in codex if "to" in one] == [
            label(one) for one in ours if "to" in one
        ]


def test_every_message_has_the_same_members_and_words(played: dict[str, Scenes]) -> None:
    found = [one for scene in pairs(played) for one in in_fields(*scene)]
    assert unexplained(found, (*SETUP, *ALLOWED)) == []


def seen_by_sdk(message: Message) -> Any:
    """What the SDK makes of a message: kinds of values, and the words of its enumerations."""
    from openai_codex.generated.notification_registry import NOTIFICATION_MODELS

    if "error" in message:
        return {"error": _kinds(message["error"]) | {"code": message["error"]["code"]}}
    if "to" in message:
        place, model = "result", _answers().get(message["to"])
    else:
        place, model = "params", NOTIFICATION_MODELS.get(message["method"])
    if model is None:
        return None
    return {place: _kinds(model.model_validate(message[place]).model_dump(by_alias=True))}


def _answers() -> dict[str, Any]:
    from openai_codex.generated import v2_all as sdk
    from openai_codex.models import InitializeResponse

    return {
        "initialize": InitializeResponse,
        "thread/start": sdk.ThreadStartResponse,
        "thread/resume": sdk.ThreadResumeResponse,
        "thread/fork": sdk.ThreadForkResponse,
        "thread/read": sdk.ThreadReadResponse,
        "thread/list": sdk.ThreadListResponse,
        "thread/unarchive": sdk.ThreadUnarchiveResponse,
        "turn/start": sdk.TurnStartResponse,
        "turn/steer": sdk.TurnSteerResponse,
        "account/read": sdk.GetAccountResponse,
    }


def _kinds(value: Any) -> Any:
    match value:
        case dict():
            return {name: _kinds(inner) for name, inner in value.items()}
        case list():
            return [_kinds(inner) for inner in value]
        case Enum():
            return value.value
        case _:
            return type(value).__name__


def test_the_sdk_reads_the_same_kinds_and_enumerations(played: dict[str, Scenes]) -> None:
    found = [one for scene in pairs(played) for one in in_fields(*scene, seen_as=seen_by_sdk)]
    assert unexplained(found, [row for row in ALLOWED if row.is_read]) == []


def test_every_row_still_explains_something(played: dict[str, Scenes]) -> None:
    found = [one for scene in pairs(played) for one in in_fields(*scene)]
    idle = [row.where for row in (*SETUP, *ALLOWED) if not any(row.has(one) for one in found)]
    assert idle == []
    heard = {
        kind: {(scene, label(one)) for scene in scenes for one in scenes[scene]}
        for kind, scenes in played.items()
    }
    for row in TOLD:
        for kind, names in (("codex", row.by_codex), ("limner", row.by_us)):
            for name in names:
                told = [one for one in heard[kind] if one[1] == name]
                assert any(re.fullmatch(row.scene, scene) for scene, _ in told), name


@pytest.mark.parametrize("kind", KINDS)
async def test_codex_cuts_an_answer_off_that_is_steered_and_limner_finishes_it(
    kind: str, tmp_path: Path
) -> None:
    gate = Gate()
    with TalkingServer() as model:
        side = side_of(kind, tmp_path, model)
        told = (says("Once upon a time", gate=gate), says("The end."))
        model.script("ask", *(model.streamed(saying, {"model": MODEL}) for saying in told))
        async with side.server() as talk:
            thread_id = (await talk.request("thread/start"))["thread"]["id"]
            turn = await talk.turn(thread_id, "Tell me a story")
            await talk.wait(method="item/agentMessage/delta")
            said = [{"type": "text", "text": "Shorter"}]
            steering = {"threadId": thread_id, "expectedTurnId": turn["id"], "input": said}
            assert await talk.request("turn/steer", **steering) == {"turnId": turn["id"]}
            if kind == "codex":
                await model.wait_for_hangup()
            gate.open()
            assert (await talk.ended(turn["id"]))["status"] == "completed"
            await talk.close()
    completed = [one["params"]["item"] for one in talk.received if _completes(one)]
    assert [one["text"] for one in completed] == (
        ["The end."] if kind == "codex" else ["Once upon a time", "The end."]
    )


def _completes(message: Message) -> bool:
    match message:
        case {"method": "item/completed", "params": {"item": {"type": "agentMessage"}}}:
            return True
        case _:
            return False


def test_the_guide_gives_every_reason() -> None:
    section = GUIDE.read_text().split("## Where it differs from Codex")[1].split("\n## ")[0]
    reasons = [row.why for row in (*ALLOWED, *TOLD, *TWO_CLIENTS)] + [*REORDERED.values(), STEERED]
    listed = [line.removeprefix("- ") for line in section.splitlines() if line.startswith("- ")]
    assert sorted(set(reasons)) == sorted(listed)
