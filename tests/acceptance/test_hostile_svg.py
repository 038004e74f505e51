"""SVG documents that mean harm, through the whole program: refused, free of charge, forgotten."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from tests.acceptance.conftest import Studio
from tests.acceptance.hardship import limner
from tests.imaging.imaging_samples import worker_pids

from limner import Limner, LimnerError, ToolCall
from limner.errors import CorruptImage, ImageTooLarge, InputInvalid, UnsafeSvg
from limner.testing.servers.http_server import LocalServer
from limner.testing.servers.openai_server import OpenAIServer

pytestmark = pytest.mark.slow

XLINK = 'xmlns:xlink="http://www.w3.org/1999/xlink"'
ENDLESS = (
    '<filter id="f"><feTurbulence baseFrequency="0.05" numOctaves="5"/></filter>'
    + '<rect width="100" height="100" filter="url(#f)"/>' * 400
)
LAYERS = '<g opacity=".9">' * 90 + '<rect width="100" height="100"/>' + "</g>" * 90


def document(body: str) -> str:
    return f'<svg xmlns="http://www.w3.org/2000/svg" {XLINK} viewBox="0 0 100 100">{body}</svg>'


def multiplying(levels: int) -> str:
    """Each level uses the next one ten times."""
    ten_uses = '<use href="#a{}"/>' * 10
    groups = (
        f'<g id="a{level}">{ten_uses.format(*[level + 1] * 10)}</g>' for level in range(levels)
    )
    return document("".join(groups) + f'<rect id="a{levels}"/>')


HOSTILE: dict[str, tuple[str, type[LimnerError]]] = {
    "a picture of the web": (document('<image href="{server}/a.png"/>'), UnsafeSvg),
    "a picture of the machine": (document('<image href="{secret}"/>'), UnsafeSvg),
    "a picture by file address": (document('<image xlink:href="file://{secret}"/>'), UnsafeSvg),
    "a piece of another document": (document('<use href="{secret}#a"/>'), UnsafeSvg),
    "paint from the web": (document('<rect fill="url({server}/a.svg#b)"/>'), UnsafeSvg),
    "a style sheet of the web": (
        document("<style>@import url({server}/a.css);</style>"),
        UnsafeSvg,
    ),
    "a font of the web": (
        document("<style>@font-face {{ src: url({server}/a.ttf) }}</style>"),
        UnsafeSvg,
    ),
    "a filter with a file": (
        document("<filter><feImage href='{secret}'/></filter>"),
        UnsafeSvg,
    ),
    "a style sheet before the document": (
        f"<?xml-stylesheet href='{{server}}/a.css'?>{document('')}",
        UnsafeSvg,
    ),
    "a script": (document("<script>fetch('{server}')</script>"), UnsafeSvg),
    "an event handler": (document('<rect onload="fetch(1)"/>'), UnsafeSvg),
    "a foreign object": (
        document("<foreignObject><iframe src='{server}'/></foreignObject>"),
        UnsafeSvg,
    ),
    "an entity with a file": (
        '<!DOCTYPE svg [<!ENTITY x SYSTEM "file://{secret}">]>' + document("<text>&x;</text>"),
        UnsafeSvg,
    ),
    "entities that multiply": (
        '<!DOCTYPE svg [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
        + document("<text>&b;&b;</text>"),
        UnsafeSvg,
    ),
    "a document type of the web": (
        '<!DOCTYPE svg SYSTEM "{server}/a.dtd">' + document(""),
        UnsafeSvg,
    ),
    "a reference to itself": (document('<g id="a"><use href="#a"/></g>'), UnsafeSvg),
    "uses that multiply": (multiplying(12), ImageTooLarge),
    "a million elements": (document("<g/>" * 1_000_000), ImageTooLarge),
    "elements very deep": (document("<g>" * 20_000 + "</g>" * 20_000), ImageTooLarge),
    "more than a document": (document(" " * 5_000_000), InputInvalid),
    "half a character": (document("<text>\ud800</text>"), InputInvalid),
    "no document": ("a fox, please", CorruptImage),
    "a document that breaks off": (document("<g>")[:-8], CorruptImage),
    "another kind of document": ("<html><body>a fox</body></html>", CorruptImage),
    "an asset without a size": (document('<asset name="../../etc/passwd"/>'), UnsafeSvg),
}


class Watched(LocalServer):
    """A web server that nobody may call."""


@pytest.fixture
def watched() -> Any:
    with Watched() as server:
        yield server
        assert server.requests == []


async def assert_unharmed(studio: Studio, lim: Limner, openai: OpenAIServer) -> None:
    """Nothing was paid, sent or written; and the same program still draws."""
    spend = await lim.money.spend()
    assert spend.total_nano == spend.in_flight_nano == 0
    assert {row.state for row in spend.recent} <= {"released"}
    assert openai.requests == []
    assert studio.files == []
    assert list(studio.cwd.iterdir()) == []
    assert await lim.money.unfinished_jobs() == []
    red = document('<rect width="100" height="100" fill="red"/>')
    drawn = await lim.generate("x", svg=red, size="64x64")
    with Image.open(drawn.path) as image:
        assert (image.size, image.convert("RGB").getpixel((5, 5))) == ((64, 64), (255, 0, 0))


@pytest.mark.parametrize(("svg", "refusal"), HOSTILE.values(), ids=HOSTILE)
async def test_hostile_a_document_is_refused_and_the_program_goes_on(
    svg: str,
    refusal: type[LimnerError],
    studio: Studio,
    openai: OpenAIServer,
    watched: LocalServer,
    tmp_path: Path,
) -> None:
    secret = tmp_path / "secret.svg"
    secret.write_text(document('<g id="a"><text>SECRET</text></g>'))
    svg = svg.replace("{server}", watched.origin).replace("{secret}", str(secret))
    svg = svg.replace("{{", "{").replace("}}", "}")
    async with studio.connect(openai).open() as lim:
        with pytest.raises(refusal) as caught:
            await lim.generate("x", svg=svg, output_path="x.png")
        error = caught.value
        assert (error.billed, error.cost_nano, error.retryable) == (False, 0, False)
        assert "SECRET" not in str(error.as_json())
        assert len(error.message) < 500
        await assert_unharmed(studio, lim, openai)


@pytest.mark.parametrize("size", ["15x15", "4097x16", "16384x16384"])
async def test_hostile_a_huge_or_tiny_size_is_refused(
    studio: Studio, openai: OpenAIServer, size: str
) -> None:
    async with studio.connect(openai).open() as lim:
        with pytest.raises(InputInvalid) as caught:
            await lim.generate("x", svg=document("<g/>"), size=size)
        assert (caught.value.field, caught.value.code) == ("size", "INVALID_SIZE_FOR_PROVIDER")
        await assert_unharmed(studio, lim, openai)


async def test_hostile_a_document_of_huge_size_is_drawn_at_the_size_asked_for(
    studio: Studio,
) -> None:
    svg = '<svg xmlns="http://www.w3.org/2000/svg" width="1e9" height="999999999px"/>'
    async with studio.open() as lim:
        drawn = await lim.generate("x", svg=svg, size="64x64")
    assert drawn.dimensions == (64, 64)


async def test_hostile_a_document_that_takes_too_long_is_stopped_with_its_tool(
    studio: Studio, openai: OpenAIServer
) -> None:
    studio.env["LIMNER_TOOLS_TIMEOUT_S"] = "1"
    before = worker_pids()
    async with studio.connect(openai).open() as lim:
        arguments = {"prompt": "x", "svg": document(ENDLESS), "size": "4096x4096"}
        call = ToolCall(name="image_generate", arguments=arguments)
        (result,) = await lim.registry().execute_parallel([call], studio.context())
        assert (result.domain_code, result.billed) == ("TOOL_TIMEOUT", False)
        await assert_unharmed(studio, lim, openai)
    assert worker_pids() == before


@pytest.mark.parametrize("body", [ENDLESS, LAYERS], ids=["time", "memory"])
async def test_hostile_a_document_that_wants_too_much_is_stopped_by_the_workers_limits(
    studio: Studio, openai: OpenAIServer, body: str
) -> None:
    async with studio.connect(openai).open() as lim:
        with pytest.raises(ImageTooLarge) as caught:
            await lim.generate("x", svg=document(body), size="4096x4096")
        assert (caught.value.billed, caught.value.exit_status) == (False, 4)
        await assert_unharmed(studio, lim, openai)


async def test_hostile_many_documents_at_once_harm_none_of_their_neighbours(
    studio: Studio, openai: OpenAIServer
) -> None:
    hostile = [svg for svg, _ in HOSTILE.values() if len(svg) < 10_000]
    good = document('<circle cx="50" cy="50" r="40"/>')
    async with studio.connect(openai).open() as lim:
        calls = [
            ToolCall(name="image_generate", arguments={"prompt": "x", "svg": svg, "size": "64x64"})
            for bad in hostile
            for svg in (bad, good)
        ]
        results = await lim.registry().execute_parallel(calls, studio.context())
    assert [result.ok for result in results] == [False, True] * len(hostile)
    assert {result.domain_code for result in results} <= {
        None,
        "SVG_REFUSED",
        "IMAGE_CORRUPT",
        "IMAGE_TOO_LARGE",
        "INPUT_INVALID",
    }
    assert len(studio.files) == len(hostile)


async def test_hostile_the_command_line_exits_with_the_status_of_a_bad_image(
    studio: Studio,
) -> None:
    file = studio.cwd / "x.svg"
    file.write_text(document("<script/>"))
    status, said = await limner("generate", "--svg", "x.svg", env=studio.env, cwd=studio.cwd)
    error = said["error"]
    assert (status, error["code"], error["billed"]) == (4, "SVG_REFUSED", False)
    assert error["message"].startswith("remove <script>")


async def test_a_document_is_not_kept_in_the_journal(studio: Studio) -> None:
    async with studio.open() as lim:
        await lim.generate("x", svg=document("<!-- " + "long " * 400_000 + " -->"))
    database = studio.home / "limner.db"
    assert sum(file.stat().st_size for file in studio.home.glob(f"{database.name}*")) < 1_000_000
