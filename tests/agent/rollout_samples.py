"""Rollout files as Codex writes them, made by hand: one line for each thing that happened."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.agent.agent_pictures import data_url

THREAD = "01a1dcb7-7dea-7d33-8136-def2e2c6b1c2"
STARTED_MS = 1_794_704_375_189
META: dict[str, Any] = {
    "id": THREAD,
    "timestamp": "2026-11-15T00:59:35.189Z",
    "cwd": "/home/user/work",
    "originator": "codex_cli_rs",
    "cli_version": "0.166.0",
    "source": "cli",
    "model_provider": "openai",
    "base_instructions": {"text": "You are a coding agent."},
}


def line(kind: str, payload: Any, second: int = 0) -> bytes:
    """One line; ``second`` counts from the beginning."""
    told = {
        "timestamp": f"2026-11-15T00:59:{35 + second:02}.189Z",
        "ordinal": second,
        "type": kind,
        "payload": payload,
    }
    return json.dumps(told).encode() + b"\n"


def item(payload: Mapping[str, Any], second: int = 0) -> bytes:
    """A line with an item of the history."""
    return line("response_item", payload, second)


def said(words: str, *, role: str = "user") -> dict[str, Any]:
    """A message of words."""
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": words}]}


def shown(url: str, **more: Any) -> dict[str, Any]:
    """A picture as a part."""
    return {"type": "input_image", "image_url": url, **more}


def call(call_id: str, name: str = "take_screenshot") -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": "{}"}


def output(call_id: str, answer: Any = "done") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": answer}


def screenshot_session(picture: bytes, *, words: str = "What is on my screen?") -> list[bytes]:
    """A session of one turn: the user asks, the model takes a screenshot and answers."""
    url = data_url(picture)
    answer = [{"type": "input_text", "text": "Here:"}, shown(url, detail="high")]
    seen = {
        "type": "dynamicToolCall",
        "contentItems": [{"type": "inputImage", "imageUrl": url}],
    }
    return [
        line("session_meta", META),
        line("event_msg", {"type": "task_started", "model_context_window": 272_000}),
        line("turn_context", {"cwd": "/home/user/work", "model": "gpt-5.5", "effort": None}),
        item(said("<environment_context>\n  <cwd>/home/user/work</cwd>"), 1),
        item(said(words), 2),
        item({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAAB"}, 3),
        item({**call("call_1"), "id": "fc_1", "internal_chat_message_metadata_passthrough": {}}, 4),
        line("event_msg", {"type": "item_completed", "item": seen}, 5),
        item({**output("call_1", answer), "id": "fco_1"}, 6),
        item({**said("A red rectangle.", role="assistant"), "phase": "final_answer"}, 7),
        line("event_msg", {"type": "task_complete"}, 8),
    ]


def write(folder: Path, lines: list[bytes], name: str = "rollout.jsonl") -> Path:
    """The lines as a file."""
    path = folder / name
    path.write_bytes(b"".join(lines))
    return path
