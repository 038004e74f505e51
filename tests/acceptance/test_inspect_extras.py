"""What `inspect_image` can do beyond its specification: parts, forms, memory, money, eyes."""

from __future__ import annotations

import json

import pytest
from tests.acceptance.conftest import Studio
from tests.acceptance.inspecting import (
    call,
    desk,
    openai,
    picture,
    put,
    sent,
    size_of,
    value,
)

from limner import ToolCall
from limner.testing.servers.anthropic_server import AnthropicServer
from limner.testing.servers.model_server import ModelAnswer
from limner.testing.servers.responses_server import ResponsesServer
from limner.wires.items import user_message

__all__ = ["desk", "openai"]


async def test_extra_paths_are_looked_at_together(desk: Studio, openai: ResponsesServer) -> None:
    put(desk)
    put(desk, "other.png", picture(90, 70))
    answer = value(await call(desk, paths=["other.png"]))
    content = openai.sent("ask")[0].json()["input"][0]["content"]
    assert [part["type"] for part in content] == ["input_image"] * 2 + ["input_text"] * 2
    assert content[3]["text"].splitlines()[1].startswith("Picture 2: other.png, 90x70 from 0,0")
    assert [image["imagePath"] for image in answer["details"]["images"]] == [
        str(desk.cwd / "pic.png"),
        str(desk.cwd / "other.png"),
    ]


async def test_extra_region_comes_from_the_original(desk: Studio, openai: ResponsesServer) -> None:
    put(desk, data=picture(2400, 1600))
    region = {"x": 2000, "y": 100, "width": 300, "height": 200}
    answer = value(await call(desk, region=region))
    assert size_of(sent(openai)[1]) == (300, 200)
    assert answer["details"]["part"] == region
    assert answer["details"]["scale"] == {"x": 1.0, "y": 1.0}


async def test_extra_schema_is_sent_as_the_form_of_the_answer(
    desk: Studio, openai: ResponsesServer
) -> None:
    put(desk)
    schema = {"type": "object", "properties": {"animal": {"type": "string"}}}
    await call(desk, schema=schema)
    form = openai.sent("ask")[0].json()["text"]["format"]
    assert (form["type"], form["schema"]) == ("json_schema", schema)


@pytest.mark.slow
async def test_extra_answers_are_remembered_only_when_the_setting_says_so(
    desk: Studio, openai: ResponsesServer
) -> None:
    put(desk)
    for _ in range(2):
        await call(desk)
    assert len(openai.sent("ask")) == 2
    desk.env["LIMNER_IMAGES_CACHE_ANSWERS"] = "true"
    first, second = await call(desk), await call(desk)
    assert len(openai.sent("ask")) == 3
    assert value(second)["text"] == value(first)["text"]
    assert (second.cost_nano, value(second)["details"]["remembered"]) == (0, True)
    await call(desk, question="What else is it?")
    put(desk, data=picture(61, 41))
    await call(desk)
    assert len(openai.sent("ask")) == 5


async def test_extra_tiles_are_sent_after_the_whole_picture(
    desk: Studio, openai: ResponsesServer
) -> None:
    desk.env["LIMNER_IMAGES_TILE"] = "auto"
    put(desk, data=picture(800, 4000))
    answer = value(await call(desk))
    content = openai.sent("ask")[0].json()["input"][0]["content"]
    assert [part["type"] for part in content] == ["input_image"] * 4 + ["input_text"] * 2
    assert [tile["part"]["y"] for tile in answer["details"]["tiles"]] == [0, 1300, 2601]


async def test_a_picture_over_the_pixel_cap_is_refused_from_its_header(
    desk: Studio, openai: ResponsesServer
) -> None:
    put(desk, data=_png_header(60_000, 60_000))
    result = await call(desk)
    assert result.domain_code == "IMAGE_TOO_LARGE"
    assert openai.sent("ask") == []


async def test_a_budget_is_checked_before_anything_is_sent(
    desk: Studio, openai: ResponsesServer
) -> None:
    put(desk)
    desk.env["LIMNER_BUDGET_CALL_USD"] = "0.001"
    assert (await call(desk)).domain_code == "BUDGET_EXCEEDED"
    assert openai.sent("ask") == []


async def test_without_a_key_the_embedded_eyes_answer_and_say_so(studio: Studio) -> None:
    put(studio, data=picture(300, 200))
    result = await call(studio, question="How large is it?")
    answer = value(result)
    assert answer["details"]["model"] == "limner/eyes"
    assert "300 x 200" in answer["text"]
    assert "limner/eyes" in answer["text"]
    assert (result.cost_nano, result.cost_source) == (0, "table")


async def test_a_call_that_was_cut_off_counts_at_its_quote(
    desk: Studio, openai: ResponsesServer
) -> None:
    put(desk)
    openai.model_answer = ModelAnswer(is_whole=False)
    result = await call(desk)
    assert (result.billed, result.cost_source) == (True, "unknown")
    async with desk.open() as lim:
        spend = await lim.money.spend()
    assert spend.unknown_nano == result.cost_nano > 0


async def test_another_vendor_is_asked_in_its_own_way(studio: Studio) -> None:
    put(studio)
    with AnthropicServer() as server:
        studio.env |= {
            "ANTHROPIC_API_KEY": "sk-ant-test-0123456789abcdef",
            "ANTHROPIC_BASE_URL": server.base_url,
        }
        result = await call(studio)
        (request,) = server.sent("ask")
    assert value(result)["details"]["model"].startswith("anthropic/")
    assert [part["type"] for part in request.json()["messages"][0]["content"]] == ["image", "text"]


def _png_header(width: int, height: int) -> bytes:
    small = bytearray(picture(8, 8))
    small[16:24] = width.to_bytes(4, "big") + height.to_bytes(4, "big")
    import zlib

    small[29:33] = zlib.crc32(bytes(small[12:29])).to_bytes(4, "big")
    return bytes(small)


async def test_the_embedded_eyes_look_at_a_region_without_loss(studio: Studio) -> None:
    put(studio, data=picture(2400, 1600))
    region = {"x": 100, "y": 50, "width": 2000, "height": 1500}
    answer = value(await call(studio, question="How large is it?", region=region))
    assert answer["details"]["mimeType"] == "image/png"
    assert "2000 x 1500" in answer["text"]


async def test_a_picture_is_looked_at_by_its_handle_or_the_first_digits_of_it(
    studio: Studio,
) -> None:
    async with studio.open() as lim:
        shown, _ = await lim.take_with_path(picture(90, 70))
        session = await lim.sessions.create(cwd=str(studio.cwd))
        await session.append([user_message("Look.", [(shown, None)])])
        context = studio.context(session_id=session.id)
        for name in (shown.handle, shown.handle[:12], f"limner://image/{shown.handle}"):
            asked = ToolCall(
                name="inspect_image", arguments={"path": name, "question": "Which colours?"}
            )
            (result,) = await lim.registry().execute_parallel([asked], context)
            assert json.loads(result.value)["details"]["imagePath"] == shown.handle
        elsewhere = studio.context(session_id="another")
        asked = ToolCall(
            name="inspect_image", arguments={"path": shown.handle[:12], "question": "?"}
        )
        (result,) = await lim.registry().execute_parallel([asked], elsewhere)
        assert result.domain_code == "FILE_NOT_FOUND"
