"""`image_check`: measured first, a model only for the rest, within the budget."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image
from tests.testing.conftest import limner_fake

import limner
from limner import Limner
from limner.errors import InputInvalid, StorageError
from limner.testing import FakeServices
from limner.tools.base import ToolCall

__all__ = ["limner_fake"]

MODEL = {"model_roles.vision": "openai/gpt-5.5"}
PAGE = {
    "type": "page",
    "size": "640x360",
    "children": [
        {"type": "text", "text": "Account settings", "size": "heading"},
        {"type": "toggle", "text": "Dark mode", "on": True},
        {"type": "button", "text": "Save"},
    ],
}
MEASURABLE = ("shows 'Save'", "is 640 x 360", "text is readable")
OPEN = ("looks friendly", "the layout is balanced")


async def screen(lim: Limner) -> limner.Picture:
    return (await lim.render(PAGE)).image


def save(folder: Path, name: str, color: str, size: tuple[int, int] = (64, 48)) -> Path:
    path = folder / name
    Image.new("RGB", size, color).save(path)
    return path


async def test_pictures_that_look_the_same_pass_and_others_say_what_changed(
    limner_fake: FakeServices,
) -> None:
    folder = limner_fake.folder
    one, same = save(folder, "one.png", "white"), save(folder, "same.png", "white")
    wide = save(folder, "wide.png", "white", (80, 48))
    async with limner_fake.limner() as lim:
        equal = await lim.check(one, against=same, expect=["is 64 x 48"])
        assert (bool(equal), equal.difference) == (True, limner.PictureDifference(changed=False))
        other = await lim.check(wide, against=one)
    assert (other.passed, other.report) == (
        False,
        "fail: 1 difference from the reference\n"
        "  1. size of “the picture”: 64 x 48 -> 80 x 48 at 0,0,80,48",
    )
    assert limner_fake.requests == []


async def test_there_must_be_something_to_check(limner_fake: FakeServices) -> None:
    one = save(limner_fake.folder, "one.png", "white")
    async with limner_fake.limner() as lim:
        with pytest.raises(InputInvalid, match="there is nothing to check"):
            await lim.check(one)
        with pytest.raises(InputInvalid, match="a criterion is blank"):
            await lim.check(one, expect=[" "])


@pytest.mark.slow
async def test_only_what_cannot_be_measured_is_asked_in_one_request(
    limner_fake: FakeServices,
) -> None:
    answer = {
        "verdicts": [
            {"number": 2, "verdict": "pass", "evidence": "The title is large."},
            {"number": 5, "verdict": "fail", "evidence": "All is on the left."},
            {"number": 1, "verdict": "fail", "evidence": "It was not asked."},
        ]
    }
    limner_fake.responses.reply(json.dumps(answer))
    expect = [MEASURABLE[0], OPEN[0], *MEASURABLE[1:], OPEN[1]]
    async with limner_fake.limner(settings=MODEL) as lim:
        found = await lim.check(await screen(lim), expect=expect)
    [request] = limner_fake.requests
    asked = request.body.decode()
    assert [text in asked for text in (*OPEN, "shows 'Save'", "text is readable")] == [
        *(True, True),
        *(False, False),
    ]
    assert [(one.verdict, one.by) for one in found.criteria] == [
        ("pass", "limner"),
        ("pass", "openai/gpt-5.5"),
        ("pass", "limner"),
        ("pass", "limner"),
        ("fail", "openai/gpt-5.5"),
    ]
    assert (found.passed, found.criteria[4].evidence) == (False, "All is on the left.")
    assert found.cost_usd == limner_fake.bill().cost_usd > 0


@pytest.mark.slow
async def test_without_a_key_or_a_budget_the_rest_cannot_be_told(
    limner_fake: FakeServices,
) -> None:
    async with limner_fake.limner(settings=MODEL, budget_usd="0.000001") as lim:
        image = await screen(lim)
        poor = await lim.check(image, expect=[*MEASURABLE, *OPEN])
    offline = {"model_roles.vision": "limner/eyes"}
    async with limner_fake.limner(settings=offline) as lim:
        alone = await lim.check(image, expect=[*MEASURABLE, *OPEN])
    for found in (poor, alone):
        assert [one.verdict for one in found.criteria] == [*["pass"] * 3, *["cannot tell"] * 2]
        assert (found.passed, bool(found), found.cost_nano) == (None, False, 0)
    assert poor.criteria[3].evidence.startswith("no model could be asked: ")
    assert alone.criteria[3].evidence == (
        "no measurement decides it. For a model that sees, set OPENAI_API_KEY, "
        "ANTHROPIC_API_KEY or GEMINI_API_KEY."
    )
    assert limner_fake.requests == []


@pytest.mark.slow
async def test_a_model_that_fails_or_leaves_a_criterion_out_passes_nothing(
    limner_fake: FakeServices,
) -> None:
    async with limner_fake.limner(settings=MODEL) as lim:
        image = await screen(lim)
        limner_fake.responses.respond(400, {"error": {"message": "no"}})
        failed = await lim.check(image, expect=OPEN[:1])
        limner_fake.responses.reply('{"verdicts": []}')
        silent = await lim.check(image, expect=OPEN[1:])
    assert [found.criteria[0].verdict for found in (failed, silent)] == ["cannot tell"] * 2
    assert silent.criteria[0].evidence == "openai/gpt-5.5 gave no verdict"


@pytest.mark.slow
async def test_a_model_gets_the_verdicts_and_the_sheet(limner_fake: FakeServices) -> None:
    changed = {**PAGE, "children": [*PAGE["children"][:2], {"type": "button", "text": "Send"}]}
    async with limner_fake.limner(settings={"model_roles.vision": "limner/eyes"}) as lim:
        before, after = await screen(lim), (await lim.render(changed)).image
        [result] = await lim.registry().execute_parallel(
            [
                ToolCall(
                    name="image_check",
                    arguments={
                        "image": after.handle,
                        "against": before.handle,
                        "expect": ["shows 'Send'"],
                        "sheet": "sheet.png",
                    },
                )
            ],
            lim.context(),
        )
    value = json.loads(result.value)
    [change] = value["difference"]["boxes"]
    [picture] = result.content
    assert isinstance(picture, limner.Picture)
    assert (value["pass"], change["text"]) == (False, "“Save” -> “Send”")
    assert value["criteria"][0]["verdict"] == "pass"
    with Image.open(limner_fake.folder / "sheet.png") as sheet:
        assert sheet.size == (picture.width, picture.height)


async def test_a_sheet_that_cannot_be_written_costs_what_its_verdicts_cost(
    limner_fake: FakeServices,
) -> None:
    verdicts = [{"number": 1, "verdict": "pass", "evidence": "It smiles."}]
    limner_fake.responses.reply(json.dumps({"verdicts": verdicts}))
    one, folder = save(limner_fake.folder, "one.png", "white"), limner_fake.folder / "out"
    folder.mkdir()

    def replace_folder(_: limner.Progress) -> None:
        if folder.is_dir():
            folder.rmdir()
            folder.write_text("a file")

    async with limner_fake.limner(settings=MODEL) as lim:
        with pytest.raises(StorageError) as failed:
            await lim.check(
                one,
                expect=[OPEN[0]],
                sheet=folder / "sheet.png",
                progress=replace_folder,
            )
    assert failed.value.cost_usd == limner_fake.bill().cost_usd > 0
    assert "It smiles." in failed.value.extras["report"]
