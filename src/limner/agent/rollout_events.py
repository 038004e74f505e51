"""The items of a session -> the events from which Codex shows its turns: messages and pictures.

Codex sends the items of a rollout to its model, and shows what its events say. It has no event for
the call of another tool in such a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from limner.agent.session import StoredItem
from limner.agent.stored_turns import CALLS, OUTPUTS, TOOL_OUTPUT, TurnNamer, is_abort, is_context
from limner.json_shapes import as_list, as_object, decode_json
from limner.tools.built_in.image_edit import IMAGE_EDIT
from limner.tools.built_in.image_generate import IMAGE_GENERATE
from limner.wires.items import GENERATED, PICTURE_TAGS, Item, first_text, image_urls, iter_parts

DRAWING = frozenset({IMAGE_GENERATE.name, IMAGE_EDIT.name})
"""The tools of limner whose calls are shown as generated pictures."""

Payload = dict[str, Any]


class RolloutEvents:
    """Makes the events of one session, item by item."""

    def __init__(self) -> None:
        self._turns = TurnNamer()
        self._turn_id: str | None = None
        self._started_ms = self._last_ms = 0
        self._last_message: str | None = None
        self._was_aborted = False
        self._drawing: set[object] = set()

    def before(self, stored: StoredItem) -> Iterator[Payload]:
        """The events before an item: a turn ends and the next one starts."""
        if "compaction" in stored.item:
            return  # a copy of an earlier item, or the summary of all of them
        turn_id = self._turns.name_turn(stored)
        if turn_id != self._turn_id:
            yield from self.end()
            self._turn_id, self._started_ms = turn_id, stored.created_ms
            self._last_message, self._was_aborted = None, False
            yield {
                "type": "task_started",
                "turn_id": turn_id,
                "started_at": stored.created_ms // 1000,
                "model_context_window": None,
            }
        self._last_ms = stored.created_ms

    def after(self, item: Item) -> Iterator[Payload]:
        """The events of an item, whose pictures are data URLs."""
        if "compaction" in item:
            return
        self._was_aborted = self._was_aborted or is_abort(item)
        if item.get("type") in CALLS and item.get("name") in DRAWING:
            self._drawing.add(item.get("call_id"))
        elif item.get("type") in OUTPUTS and item.get("call_id") in self._drawing:
            yield _drawn(item)
        for event in _EVENTS.get(str(item.get("type", "message")), _no_events)(item):
            if event["type"] == "agent_message":
                self._last_message = event["message"]
            yield event

    def end(self) -> Iterator[Payload]:
        """The event at the end of the last turn."""
        if self._turn_id is None:
            return
        times = {
            "started_at": self._started_ms // 1000,
            "completed_at": self._last_ms // 1000,
            "duration_ms": max(0, self._last_ms - self._started_ms),
        }
        if self._was_aborted:
            reason = {"reason": "interrupted"}
            yield {"type": "turn_aborted", "turn_id": self._turn_id, **reason, **times}
        else:
            last = {"last_agent_message": self._last_message}
            yield {"type": "task_complete", "turn_id": self._turn_id, **last, **times}


def _no_events(_: Item) -> Iterator[Payload]:
    yield from ()


def _message(item: Item) -> Iterator[Payload]:
    texts = [part["text"] for part in iter_parts(item) if isinstance(part.get("text"), str)]
    words = "".join(text for text in texts if not text.startswith(PICTURE_TAGS))
    if item.get("role") == "assistant" and words:
        yield {"type": "agent_message", "message": words, "phase": item.get("phase")}
    elif item.get("role") == "user" and TOOL_OUTPUT not in item and not is_context(item):
        yield {
            "type": "user_message",
            "message": words,
            "images": image_urls(item),
            "local_images": [],
            "text_elements": [],
        }


def _reasoning(item: Item) -> Iterator[Payload]:
    for part in as_list(item.get("summary")):
        if isinstance(text := as_object(part).get("text"), str):
            yield {"type": "agent_reasoning", "text": text}


def _web_search(item: Item) -> Iterator[Payload]:
    action = as_object(item.get("action"))
    if isinstance(query := action.get("query"), str):
        named = {"call_id": str(item.get("id") or "web_search"), "query": query}
        yield {"type": "web_search_end", **named, "action": action}


def _generated(item: Item) -> Iterator[Payload]:
    """The event of a picture that the model's service drew."""
    yield {
        "type": "image_generation_end",
        "call_id": str(item.get("id") or "image"),
        "status": str(item.get("status") or "completed"),
        "revised_prompt": item.get("revised_prompt"),
        "result": str(item.get("result") or ""),
    }


def _drawn(item: Item) -> Payload:
    """The event of a picture that limner's tool drew; the first one, if there are several."""
    value = as_object(decode_json(first_text(item)))
    urls = image_urls(item)
    return {
        "type": "image_generation_end",
        "call_id": str(item.get("call_id")),
        "status": "failed" if item.get("success") is False else "completed",
        "revised_prompt": value.get("prompt_used"),
        "result": urls[0].partition(",")[2] if urls else "",
        "saved_path": value.get("path"),
    }


_EVENTS: Mapping[str, Callable[[Item], Iterator[Payload]]] = {
    "message": _message,
    "reasoning": _reasoning,
    "web_search_call": _web_search,
    GENERATED: _generated,
}
