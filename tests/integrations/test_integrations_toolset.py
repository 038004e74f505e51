"""What every integration shares: a call -> words, fitted pictures, cost, and a signal to retry."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from limner.blocking import wait_for
from limner.client import Limner
from limner.errors import InputInvalid
from limner.integrations import needs
from limner.integrations.toolset import ToolAnswer, Toolset
from limner.testing import FakeServices
from limner.tools.base import Question

MODULES = sorted(
    path.stem
    for path in (Path(__file__).parents[2] / "src/limner/integrations").glob("*.py")
    if path.stem not in ("__init__", "toolset")
)


async def test_a_picture_comes_with_its_words_its_cost_and_its_handle() -> None:
    with FakeServices() as fake:
        async with fake.limner() as lim:
            own = Toolset(lim, model="openai/gpt-5.5")
            answer = await own.call("image_generate", {"prompt": "a fox", "size": None, "seed": ""})
            value = json.loads(answer.words)
            (picture,) = answer.pictures
            assert (answer.ok, answer.invites_retry, picture.model) == (
                True,
                False,
                "openai/gpt-5.5",
            )
            assert answer.facts == {
                "tool": "image_generate",
                "ok": True,
                "cost_usd": fake.bill().cost_usd,
                "cost_source": "computed",
                "images": [f"limner://image/{value['image']}"],
            }
            assert picture == await lim.picture(value["image"]).fit(model="openai/gpt-5.5")


async def test_a_wrong_argument_invites_the_model_to_call_again() -> None:
    answer = await Toolset().call("image_generate", {"prompt": "a fox", "size": "huge"})
    error = json.loads(answer.words)["error"]
    assert (answer.ok, answer.invites_retry, answer.pictures) == (False, True, ())
    assert (error["code"], error["field"], answer.facts["cost_usd"]) == ("INPUT_INVALID", "size", 0)


async def test_the_budget_holds_for_all_calls_of_one_toolset_and_no_other() -> None:
    with FakeServices() as fake:
        async with fake.limner() as lim:
            own = Toolset(lim, budget_usd="0.03")
            answers = [await own.call("image_generate", {"prompt": f"fox {n}"}) for n in range(3)]
            refused = [one for one in answers if not one.ok]
            assert {one.result.domain_code for one in refused} == {"BUDGET_EXCEEDED"}
            assert fake.bill().cost_usd <= 0.03
            assert (await Toolset(lim).call("image_generate", {"prompt": "a fox"})).ok


async def test_a_question_goes_to_a_plain_or_an_async_function() -> None:
    asked: list[str] = []

    def plain(question: Question) -> bool:
        asked.append(question.text)
        return True

    async def later(question: Question) -> bool:
        return plain(question)

    with FakeServices() as fake:
        async with fake.limner(settings={"approval.policy": "untrusted"}) as lim:
            for ask in (plain, later):
                answer = await Toolset(lim, ask=ask).call("image_generate", {"prompt": "a fox"})
                assert answer.ok
            denied = await Toolset(lim).call("image_generate", {"prompt": "a fox"})
            assert (denied.result.domain_code, denied.invites_retry) == ("APPROVAL_DENIED", False)
    assert len(asked) == 2


async def test_an_exception_of_the_function_that_is_asked_leaves_the_call_unpaid() -> None:
    class Paused(Exception):
        pass

    def pause(question: Question) -> bool:
        raise Paused(question.text)

    with FakeServices() as fake:
        async with fake.limner(settings={"approval.policy": "untrusted"}) as lim:
            with pytest.raises(Paused, match="costs"):
                await Toolset(lim, ask=pause).call("image_generate", {"prompt": "a fox"})
        assert fake.bill().charges == ()


async def test_blocked_pictures_are_replaced_by_words() -> None:
    with FakeServices() as fake:
        async with fake.limner(settings={"images.block_images": True}) as lim:
            answer = await Toolset(lim).call("image_generate", {"prompt": "a fox"})
    note = "[image omitted: the setting images.block_images keeps pictures from models]"
    assert (answer.pictures, answer.words.splitlines()[1:]) == ((), [note])


async def test_a_framework_without_async_calls_from_inside_of_an_event_loop() -> None:
    with FakeServices() as fake:
        lim = fake.limner()
        answer = Toolset(lim).call_blocking("image_generate", {"prompt": "a fox"})
        wait_for(lim.aclose())
    assert isinstance(answer, ToolAnswer)
    assert len(answer.pictures) == 1


def test_an_unknown_model_is_refused_at_once() -> None:
    with pytest.raises(InputInvalid):
        Toolset(Limner(), model="nothing")


def test_a_framework_that_is_missing_is_named_with_its_command() -> None:
    with pytest.raises(ImportError) as caught, needs("some-framework"):
        import some_framework  # type: ignore[import-not-found]  # noqa: F401
    said = "No module named 'some_framework'. Install it: pip install some-framework"
    assert str(caught.value) == said


def test_each_module_without_its_framework_says_what_to_install() -> None:
    code = """
import importlib, sys
import limner.integrations.toolset

class Nothing:
    def find_spec(self, name, path=None, target=None):
        first = name.partition(".")[0]
        if first != "limner" and first not in sys.stdlib_module_names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Nothing())
for module in sys.argv[1:]:
    try:
        importlib.import_module(f"limner.integrations.{module}")
    except ImportError as error:
        print(str(error).partition(": ")[2])
"""
    done = subprocess.run(
        [sys.executable, "-c", code, *MODULES], capture_output=True, text=True, check=True
    )
    said = done.stdout.splitlines()
    assert [line.startswith("pip install ") for line in said] == [True] * len(MODULES)
