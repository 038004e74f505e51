"""Conversations for `limner/offline`: the tools as they really are, and histories to speak into."""

from __future__ import annotations

from typing import Any

import msgspec

from limner.models.offline.model import answer
from limner.tools.built_in.asset_search import ASSET_SEARCH
from limner.tools.built_in.image_batch import IMAGE_BATCH
from limner.tools.built_in.image_check import IMAGE_CHECK
from limner.tools.built_in.image_edit import IMAGE_EDIT
from limner.tools.built_in.image_generate import IMAGE_GENERATE
from limner.tools.built_in.image_recall import IMAGE_RECALL
from limner.tools.built_in.image_render import IMAGE_RENDER
from limner.tools.built_in.image_transform import IMAGE_TRANSFORM
from limner.tools.built_in.inspect_image import INSPECT_IMAGE
from limner.wires import items
from limner.wires.base import Prompt, ToolOffer

ROBOT, CAT, PHOTO = "ab" * 32, "cd" * 32, "ef" * 32

TOOLS = (
    IMAGE_GENERATE,
    IMAGE_EDIT,
    IMAGE_RENDER,
    IMAGE_TRANSFORM,
    INSPECT_IMAGE,
    IMAGE_CHECK,
    IMAGE_RECALL,
    ASSET_SEARCH,
    IMAGE_BATCH,
)
OFFERS = [ToolOffer(name=tool.name, description="", schema=tool.schema) for tool in TOOLS]

Step = tuple[str, dict[str, Any]] | str


def user(words: str, *handles: str) -> dict[str, Any]:
    return items.message(
        "user", *(items.image_part(handle) for handle in handles), items.text_part(words)
    )


def called(name: str, call_id: str, **arguments: Any) -> dict[str, Any]:
    written = msgspec.json.encode(arguments).decode()
    return items.function_call(call_id=call_id, name=name, arguments=written)


def answered(
    call_id: str, value: object, *handles: str, success: bool | None = True
) -> dict[str, Any]:
    words = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    parts = [items.text_part(words), *(items.image_part(handle) for handle in handles)]
    return items.function_call_output(call_id=call_id, parts=parts, success=success)


def drawn(prompt: str, handle: str, **facts: Any) -> dict[str, Any]:
    """What `image_generate` answers."""
    return {
        "path": f"/g/{handle[:2]}.png",
        "dimensions": {"width": 1024, "height": 1024},
        "cost_usd": 0.0,
        "provider": "illustrator",
        "prompt_used": prompt,
        "image": handle,
        **facts,
    }


def turn(prompt: str, handle: str, *, arguments: Any = None, **facts: Any) -> list[dict[str, Any]]:
    """A picture was drawn."""
    call_id = f"call_{handle[:4]}"
    return [
        user(f"draw {prompt}"),
        called("image_generate", call_id, prompt=prompt, **(arguments or {})),
        answered(call_id, drawn(prompt, handle, **facts), handle),
        items.message("assistant", items.text_part("Here it is.")),
    ]


ONE = turn("a red robot", ROBOT)
WIDE = {"width": 1360, "height": 768}
TWO = [*ONE, *turn("a blue cat with a hat", CAT, dimensions=WIDE)]


def next_step(history: list[dict[str, Any]], offers: list[ToolOffer] | None = None) -> Step:
    """What the rules do next: a tool and its arguments, or words."""
    found = answer(Prompt(items=history, tools=OFFERS if offers is None else offers))
    return found.words if found.call is None else (found.call.tool, dict(found.call.arguments))


def said(words: str, *handles: str, after: list[dict[str, Any]] | None = None) -> Step:
    """What the rules do when somebody says that."""
    return next_step([*(after or []), user(words, *handles)])
