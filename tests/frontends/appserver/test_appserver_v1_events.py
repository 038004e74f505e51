"""Notifications of the second protocol -> events of the first: each, in whole words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from limner.agent.session import StoredItem
from limner.frontends.appserver.protocol import items, notifications
from limner.frontends.appserver.protocol.base import AudioInput, TextInput
from limner.frontends.appserver.protocol.threads import Idle
from limner.frontends.appserver.protocol.turns import Turn, TurnError
from limner.frontends.appserver.v1.event_translation import item_to_events, to_events, turn_of

AT = {"thread_id": "c", "turn_id": "t"}
BROKEN = TurnError(
    message="It broke.", codex_error_info="usageLimitExceeded", additional_details="Wait."
)


def began(item: items.ThreadItem) -> notifications.Notice:
    return notifications.ItemStartedNotification(item=item, started_at_ms=1, **AT)


def done(item: items.ThreadItem) -> notifications.Notice:
    return notifications.ItemCompletedNotification(item=item, completed_at_ms=1, **AT)


def drawn(**more: Any) -> items.ThreadItem:
    return items.ImageGeneration(id="i", status="completed", **more)


def sent(events: Sequence[Any]) -> list[dict[str, Any]]:
    """Events as a client gets them."""
    return msgspec.json.decode(msgspec.json.encode(events))


TOLD: dict[str, tuple[notifications.Notice, list[dict[str, Any]]]] = {
    "a try that failed": (
        notifications.ErrorNotification(error=BROKEN, will_retry=True, **AT),
        [
            {
                "type": "stream_error",
                "message": "It broke.",
                "codex_error_info": "usage_limit_exceeded",
                "additional_details": "Wait.",
            }
        ],
    ),
    "a failure": (
        notifications.ErrorNotification(error=BROKEN, will_retry=False, **AT),
        [
            {
                "type": "error",
                "message": "It broke.",
                "codex_error_info": "usage_limit_exceeded",
            }
        ],
    ),
    "a thought": (
        done(items.Reasoning(id="r", summary=("a", "b"), content=("c",))),
        [
            {"type": "agent_reasoning", "text": "a"},
            {"type": "agent_reasoning", "text": "b"},
            {"type": "agent_reasoning_raw_content", "text": "c"},
        ],
    ),
    "a picture that is made": (
        began(drawn(result="")),
        [{"type": "image_generation_begin", "call_id": "i"}],
    ),
    "a picture that was made": (
        done(drawn(result="iVBO", revised_prompt="a fox", saved_path="/fox.png")),
        [
            {
                "type": "image_generation_end",
                "call_id": "i",
                "status": "completed",
                "revised_prompt": "a fox",
                "result": "iVBO",
                "saved_path": "/fox.png",
            }
        ],
    ),
    "a picture that was looked at": (
        done(items.ImageView(id="v", path="/fox.png")),
        [{"type": "view_image_tool_call", "call_id": "v", "path": "/fox.png"}],
    ),
    "a call": (
        done(
            items.DynamicToolCall(
                id="d", tool="shot", arguments={}, status="failed", duration_ms=1_250
            )
        ),
        [
            {
                "type": "dynamic_tool_call_response",
                "call_id": "d",
                "turn_id": "t",
                "namespace": None,
                "tool": "shot",
                "arguments": {},
                "content_items": [],
                "success": False,
                "error": None,
                "duration": {"secs": 1, "nanos": 250_000_000},
            }
        ],
    ),
    "an end": (
        notifications.TurnCompletedNotification(thread_id="c", turn=Turn(id="t", status="failed")),
        [{"type": "task_complete", "turn_id": "t", "last_agent_message": None}],
    ),
    "what is for the second protocol alone": (
        notifications.ThreadStatusChangedNotification(thread_id="c", status=Idle()),
        [],
    ),
}


@pytest.mark.parametrize("name", TOLD)
def test_a_notification_becomes_events_of_the_first_protocol(name: str) -> None:
    notice, expected = TOLD[name]
    assert sent(to_events(notice)) == expected
    assert turn_of(notice) == ("t" if expected else "")


def test_a_sound_is_no_reason_to_lose_what_was_said_with_it() -> None:
    said = items.UserMessage(
        id="u", content=(TextInput(text="hear"), AudioInput(url="data:audio/wav;base64,UklG"))
    )
    (event,) = sent(to_events(done(said)))
    assert (event["type"], event["message"]) == ("user_message", "hear")
    part = {"type": "input_audio", "audio_url": "data:audio/wav;base64,UklG"}
    item = {"type": "message", "role": "user", "content": [part]}
    stored = StoredItem(seq=0, created_ms=0, item=item)
    assert sent(item_to_events(stored)) == [{"type": "raw_response_item", "item": item}]
