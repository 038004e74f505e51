"""`limner/offline` with the real tools and no key: what it calls works, and what it says is so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from limner import Limner
from limner.agent.call_items import output_item, parse_call
from limner.agent.untrusted import fence_items
from limner.models.offline import OfflineModel
from limner.models.registry import OFFLINE
from limner.settings import load
from limner.storage.reach import Reach
from limner.tools.base import ToolContext, ToolResult
from limner.tools.registry import ToolRegistry
from limner.wires import items
from limner.wires.base import Prompt, ToolOffer


class Conversation:
    """Somebody talks to the rules, and the tools they call are run."""

    def __init__(self, lim: Limner, cwd: Path) -> None:
        self._lim = lim
        self._tools = ToolRegistry(lim.conversation_tools())
        reach = Reach.for_model(home=lim.home.folder, cwd=cwd)
        self._context = ToolContext(cwd=cwd, reach=reach, active_model=OFFLINE)
        found = lim.models.find(OFFLINE)
        assert found is not None
        self._model = found.model
        self.history: list[Any] = []

    async def say(self, words: str) -> tuple[list[ToolResult], str]:
        """What was done about it, and what was answered."""
        self.history.append(items.message("user", items.text_part(words)))
        results: list[ToolResult] = []
        while True:
            answer = await OfflineModel().ask(await self._prompt())
            (made,) = answer.items
            self.history.append(made)
            if made["type"] == "message":
                return results, answer.text
            (result,) = await self._tools.execute_parallel([parse_call(made)], self._context)
            results.append(result)
            self.history.append(output_item(made, result))

    async def _prompt(self) -> Prompt:
        offers = [
            ToolOffer(name=tool.name, description=tool.description, schema=tool.schema)
            for tool in self._tools.definitions()
        ]
        prompt = Prompt(items=fence_items(self.history), tools=offers)
        return (await self._lim.prompts.build(prompt, self._model)).prompt


def value_of(result: ToolResult) -> dict[str, Any]:
    return msgspec.json.decode(result.value)


@pytest.mark.slow
async def test_draw_look_wider_compare_and_a_change_that_takes_a_service(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "LIMNER_HOME": str(tmp_path / "home")}
    cwd = tmp_path / "work"
    cwd.mkdir()
    settings = load(env=env, cwd=cwd)
    async with Limner(settings, env=env, cwd=cwd) as lim:
        talk = Conversation(lim, cwd)

        ((drawing,), told) = await talk.say("Please draw a red robot and save it as robot.png")
        robot = value_of(drawing)
        assert (robot["path"], robot["prompt_used"]) == (str(cwd / "robot.png"), "a red robot")
        assert told == (
            f"Here it is: {cwd / 'robot.png'} (1024 x 1024, free).\n\n"
            "(This is limner/offline: rules, not a language model.)"
        )

        ((look,), told) = await talk.say("what is its size?")
        assert (look.name, look.ok, told) == ("inspect_image", True, value_of(look)["text"])
        assert "1024 x 1024" in told
        assert value_of(look)["details"]["model"] == "limner/eyes"

        ((wider,), told) = await talk.say("make it wider")
        wide = value_of(wider)
        assert wide["dimensions"] == {"width": 1360, "height": 768}
        assert told == f"I drew it again: {wide['path']} (1360 x 768, free)."

        ((compared,), told) = await talk.say("compare them")
        images = value_of(compared)["details"]["images"]
        assert [image["image"] for image in images] == [robot["image"], wide["image"]]
        assert told == value_of(compared)["text"]

        ((recalled,), told) = await talk.say("show me the first one again")
        assert value_of(recalled)["image"] == robot["image"]
        assert told == f"Here it is again: picture {robot['image'][:12]} (1024 x 1024)."

        ((rotated,), told) = await talk.say("rotate it")
        assert (rotated.name, rotated.ok) == ("image_transform", True)
        assert value_of(rotated)["original"] == robot["image"]
        assert value_of(rotated)["path"] in told

        ((sharpened,), told) = await talk.say("sharpen it")
        assert (sharpened.name, sharpened.domain_code) == ("image_edit", "PROVIDER_CANNOT")
        assert told.startswith("That did not work: ")
        assert "OPENAI_API_KEY" in told

        for words, changes in (
            ("draw a house and a tree in a meadow", None),
            ("remove the tree", ["tree removed"]),
            ("make it night", ["scene: meadow, night"]),
            ("add a duck", ["duck added"]),
            ("two more ducks", ["3 ducks"]),
            ("bigger", ["duck: bigger"]),
            ("undo that", ["undone"]),
        ):
            ((edited,), told) = await talk.say(words)
            assert value_of(edited).get("changes") == changes
        assert "Changed: undone." in told

        results, told = await talk.say("draw a green cat, then describe it")
        assert [result.name for result in results] == ["image_generate", "inspect_image"]
        assert [result.ok for result in results] == [True, True]
        assert told.endswith(value_of(results[1])["text"])

        call_ids = [item["call_id"] for item in talk.history if item["type"] == "function_call"]
        assert len(call_ids) == len(set(call_ids)) == 16
