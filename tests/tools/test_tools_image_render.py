"""`image_render`: a document in, an exact picture out, for free."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.agent.agent_pictures import program

import limner
from limner import Limner
from limner.errors import InputInvalid, UnsafeSvg
from limner.tools.base import ToolCall, ToolResult


@pytest.fixture(scope="module")
def lim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Limner]:
    made = program(tmp_path_factory.mktemp("rendering"))
    yield made
    asyncio.run(made.aclose())


SALES = {"type": "bar", "title": "Sales", "labels": ["Q1", "Q2"], "values": [12, 18]}


async def call(lim: Limner, **arguments: object) -> ToolResult:
    registry = limner.ToolRegistry(lim.tools())
    [result] = await registry.execute_parallel(
        [ToolCall(name="image_render", arguments=arguments)], lim.context()
    )
    return result


async def test_a_model_gets_the_picture_and_its_facts(lim: Limner) -> None:
    result = await call(lim, source=json.dumps(SALES), size="640x480")
    value = json.loads(result.value)
    assert {**value, "path": None, "image": None} == {
        "path": None,
        "dimensions": {"width": 640, "height": 480},
        "image": None,
        "source_format": "limner",
        "notes": [],
    }
    [picture] = result.content
    assert isinstance(picture, limner.Picture)
    assert (picture.handle, result.cost_nano) == (value["image"], 0)
    assert Path(value["path"]).read_bytes().startswith(b"\x89PNG")


async def test_help_is_a_text_and_draws_nothing(lim: Limner) -> None:
    result = await call(lim, help="charts")
    assert json.loads(result.value)["help"].startswith("bar: Bars; several series")
    assert result.content == ()


async def test_a_call_without_a_source_is_refused_with_an_example(lim: Limner) -> None:
    result = await call(lim)
    assert (result.code, result.field) == ("input_invalid", "source")
    assert (result.hint or "").startswith('For example {"type": "bar"')


async def test_a_program_may_pass_a_dictionary(lim: Limner, tmp_path: Path) -> None:
    drawn = await lim.render(SALES, output_path=tmp_path / "sales.webp", output_format="webp")
    assert (str(drawn.dimensions), drawn.image.mime) == ("1024x768", "image/webp")


async def test_svg_out_is_one_file_that_draws_the_same_picture(lim: Limner, tmp_path: Path) -> None:
    source = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 600 300">'
        '<asset name="moon" x="0" y="0" size="99"/><text y="200">a</text></svg>'
    )
    drawn = await lim.render(source, output_path=tmp_path / "night.svg")
    text = drawn.path.read_text(encoding="utf-8")
    assert (drawn.path.name, drawn.image.mime) == ("night.svg", "image/png")
    assert text.startswith('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 600 300"')
    assert ("<asset" in text, "font-family=\"'Arimo', sans-serif\"" in text) == (False, True)
    assert [*tmp_path.iterdir()] == [drawn.path]
    again = await lim.render(text)
    assert again.image.handle == drawn.image.handle
    chosen = await lim.render(SALES, output_format="svg")
    assert (chosen.path.suffix, chosen.path.read_bytes()[:4]) == (".svg", b"<svg")


async def test_the_name_of_the_file_chooses_its_format(lim: Limner, tmp_path: Path) -> None:
    drawn = await lim.render(SALES, output_path=tmp_path / "sales.webp")
    assert drawn.image.mime == "image/webp"
    with pytest.raises(InputInvalid, match=r"sales\.svg' says svg"):
        await lim.render(SALES, output_path=tmp_path / "sales.svg", output_format="png")


async def test_svg_keeps_its_size_and_everyday_words_find_pictures(lim: Limner) -> None:
    drawn = await lim.render(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 600 315">'
        '<asset name="moon" x="0" y="0" size="99"/><asset name="coffee" x="99" y="0" size="99"/>'
        '<asset name="quux" x="300" y="0" size="99"/>'
        '<text y="200" font-family="Palatino">ไ</text></svg>'
    )
    assert str(drawn.dimensions) == "600x315"
    assert drawn.extras == {
        "source_format": "svg",
        "notes": [
            "Palatino is not bundled; the text is set in Lora.",
            "No bundled font has these characters: ไ",
            "No ready-made picture is named 'quux'.",
        ],
    }


async def test_a_document_is_drawn_though_the_embedded_model_is_switched_off(
    tmp_path: Path,
) -> None:
    env = {"HOME": str(tmp_path), "LIMNER_IMAGES_EMBEDDED": "false"}
    async with Limner(env=env, cwd=tmp_path) as lim:
        assert (await lim.render(SALES)).cost_nano == 0


async def test_a_source_in_no_known_format_is_refused(lim: Limner) -> None:
    with pytest.raises(InputInvalid, match="starts with 'hello'"):
        await lim.render("hello")


async def test_hostile_svg_is_refused(lim: Limner) -> None:
    with pytest.raises(UnsafeSvg, match="remove <image>"):
        await lim.render(
            '<svg xmlns="http://www.w3.org/2000/svg"><image href="/etc/passwd"/></svg>'
        )
