"""Prompts that the tests of all wires share."""

from __future__ import annotations

from typing import Any

import pytest

from limner.wires import bedrock_converse
from limner.wires.base import HANDLE_URL, WIRES, ModelPicture, Prompt, ToolOffer, Wire, wire

ALL_WIRES: dict[str, Wire] = {name: wire(name) for name in WIRES}
ALL_WIRES["bedrock-converse"] = bedrock_converse.WIRE

every_wire = pytest.mark.parametrize("api", ALL_WIRES)

FOX, OWL = "f0" * 32, "01" * 32
PICTURES = {
    FOX: ModelPicture(mime="image/png", data=b"\x89PNG fox"),
    OWL: ModelPicture(mime="image/jpeg", data=b"\xff\xd8 owl", detail="high"),
}
SCHEMA = {
    "type": "object",
    "properties": {"animal": {"type": "string"}, "count": {"type": "integer"}},
    "required": ["animal", "count"],
}
DRAW = ToolOffer(
    name="image_generate",
    description="Draw a picture.",
    schema={"type": "object", "properties": {"prompt": {"type": "string"}}},
)


def image(handle: str, **more: Any) -> dict[str, Any]:
    return {"type": "input_image", "image_url": f"{HANDLE_URL}{handle}", **more}


def text(words: str) -> dict[str, Any]:
    return {"type": "input_text", "text": words}


def user(*content: Any) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": list(content)}


def said(words: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": words}]
    return {"type": "message", "role": "assistant", "content": content}


def call(call_id: str, arguments: str = '{"prompt": "a fox"}') -> dict[str, Any]:
    return {
        "type": "function_call",
        "call_id": call_id,
        "name": "image_generate",
        "arguments": arguments,
    }


def output(call_id: str, *content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": list(content), **more}


def prompt(*items: Any, **rest: Any) -> Prompt:
    return Prompt(items=items, **{"pictures": PICTURES, **rest})


LOOK = prompt(user(image(FOX), text("What is it?")))
FULL = prompt(
    user(image(FOX), image(OWL), text("Which? “quoted” \u2028")),
    {"role": "assistant", "content": [{"type": "output_text", "text": "The fox."}]},
    {"role": "user", "content": "Sure?"},
    instructions="Look closely.",
    schema=SCHEMA,
    effort="high",
    max_output_tokens=500,
)
