"""A Python function as a tool: what it answers, and what comes of that."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from tests.agent.agent_pictures import encoded, handle_of, program, take, unique

import limner
from limner import Limner, Picture, Text, Tool, ToolCall, ToolContext, ToolRegistry, ToolResult
from limner.errors import InputInvalid
from limner.storage.reach import Reach

PNG = encoded(1)
FACTS = {
    "image": handle_of(PNG),
    "mime": "image/png",
    "dimensions": {"width": 16, "height": 12},
}


@pytest.fixture(scope="module")
def lim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Limner]:
    made = program(tmp_path_factory.mktemp("functions"))
    yield made
    asyncio.run(made.aclose())


async def call(
    lim: Limner, tool: Tool, *, context: ToolContext | None = None, **arguments: Any
) -> ToolResult:
    asked = [ToolCall(name=tool.name, arguments=arguments)]
    (result,) = await lim.registry([tool]).execute_parallel(asked, context or ToolContext())
    return result


async def answered(lim: Limner, answer: Any, **rest: Any) -> ToolResult:
    """The result of a tool that answers with that."""

    @limner.tool
    def give() -> Any:
        """Give something."""
        return answer

    return await call(lim, give, **rest)


@dataclass
class Point:
    x: int


@pytest.mark.parametrize(
    ("answer", "value", "content"),
    [
        ("words", {"text": "words"}, ("words",)),
        ("", {"text": ""}, ("",)),
        (Text("words"), {"text": "words"}, ("words",)),
        (["a", Text("b")], {"text": "a\nb"}, ("a", "b")),
        ({"a": [1, None]}, {"a": [1, None]}, ()),
        (Point(x=1), {"x": 1}, ()),
        ([Point(x=1)], {"result": [{"x": 1}]}, ()),
        (["a", "b"], {"result": ["a", "b"]}, ()),
        ([], {"result": []}, ()),
        (None, {"result": None}, ()),
        (7, {"result": 7}, ()),
        ({1: "a"}, {"1": "a"}, ()),
    ],
)
async def test_words_are_content_and_what_is_json_is_the_value(
    lim: Limner, answer: Any, value: Any, content: tuple[str, ...]
) -> None:
    result = await answered(lim, answer)
    assert (result.ok, json.loads(result.value)) == (True, value)
    assert result.content == tuple(map(Text, content))


@pytest.mark.parametrize("wrapped", [bytes, bytearray, memoryview])
async def test_bytes_are_a_picture(lim: Limner, wrapped: Callable[[bytes], Any]) -> None:
    result = await answered(lim, wrapped(PNG))
    (picture,) = result.content
    assert isinstance(picture, Picture)
    assert json.loads(result.value) == {"images": [FACTS]}
    assert await lim.pictures.original(picture) == PNG


async def test_a_path_is_the_picture_in_that_file(lim: Limner, tmp_path: Path) -> None:
    (tmp_path / "fox.png").write_bytes(PNG)
    context = ToolContext(cwd=tmp_path, reach=Reach.for_model(home=lim.home.folder, cwd=tmp_path))
    result = await answered(lim, Path("fox.png"), context=context)
    assert json.loads(result.value) == {"images": [FACTS]}


@pytest.mark.parametrize(
    ("path", "code"), [("/etc/hostname", "PATH_DENIED"), ("none.png", "FILE_NOT_FOUND")]
)
async def test_a_path_out_of_reach_or_to_nowhere_is_an_error(
    lim: Limner, tmp_path: Path, path: str, code: str
) -> None:
    context = ToolContext(cwd=tmp_path, reach=Reach.for_model(home=lim.home.folder, cwd=tmp_path))
    result = await answered(lim, Path(path), context=context)
    assert (result.ok, result.domain_code) == (False, code)


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "1", "P"])
async def test_a_pillow_image_is_a_picture(lim: Limner, mode: str) -> None:
    result = await answered(lim, Image.new(mode, (5, 3)))
    (picture,) = result.content
    assert isinstance(picture, Picture)
    assert (picture.mime, picture.width, picture.height) == ("image/png", 5, 3)


async def test_a_picture_that_is_known_stays_what_it_is(lim: Limner) -> None:
    fox = await take(lim, unique())
    result = await answered(lim, ("look", fox))
    assert result.content == (Text("look"), fox)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b"<html>", "this is an HTML page, which is not accepted here"),
        (PNG[:-20], f"the PNG file is cut short after {len(PNG) - 20} bytes"),
        (Image.new("CMYK", (2, 2)), "it cannot be written as PNG: cannot write mode CMYK as PNG"),
    ],
)
async def test_a_bad_picture_becomes_words_and_the_rest_of_the_answer_survives(
    lim: Limner, bad: Any, reason: str
) -> None:
    result = await answered(lim, ["before", bad, PNG, {"after": 1}])
    before, words, picture, after = result.content
    omitted = f"[image omitted: {reason}]"
    assert (before, words, after) == (Text("before"), Text(omitted), Text('{"after":1}'))
    assert isinstance(picture, Picture)
    assert json.loads(result.value) == {
        "text": f'before\n{omitted}\n{{"after":1}}',
        "images": [FACTS],
        "warnings": [f"A picture was left out: {reason}."],
    }


async def test_a_picture_inside_of_json_is_no_answer_and_never_base64(lim: Limner) -> None:
    result = await answered(lim, {"picture": PNG})
    assert (result.ok, result.domain_code, result.value) == (False, "TOOL_CRASHED", "")


async def test_plain_functions_leave_the_event_loop_alone_and_async_ones_run_on_it(
    lim: Limner,
) -> None:
    @limner.tool
    def plain() -> str:
        """Tell the thread."""
        return str(threading.get_ident())

    @limner.tool
    async def asynchronous() -> str:
        """Tell the thread."""
        await asyncio.sleep(0)
        return str(threading.get_ident())

    here = str(threading.get_ident())
    assert (await call(lim, plain)).content != (Text(here),)
    assert (await call(lim, asynchronous)).content == (Text(here),)


async def test_arguments_are_checked_and_defaults_are_the_functions_own(lim: Limner) -> None:
    @limner.tool
    def shout(words: str, times: int = 2, *, context: ToolContext) -> str:
        """Shout."""
        return f"{context.session_id}: {words.upper() * times}"

    context = ToolContext(session_id="s")
    result = await call(lim, shout, context=context, words="ho", surplus=1)
    assert result.content == (Text("s: HOHO"),)
    wrong = await call(lim, shout, words=7)
    assert (wrong.code, wrong.field) == ("input_invalid", "words")
    assert "context" not in str(shout.schema["properties"])


async def test_what_a_function_raises_is_told_as_any_tools_failure(lim: Limner) -> None:
    @limner.tool
    def picky() -> None:
        """Refuse."""
        raise InputInvalid("not today", field="day")

    @limner.tool
    def broken() -> None:
        """Break."""
        raise KeyError("x")

    assert (await call(lim, picky)).error == "not today"
    assert (await call(lim, broken)).domain_code == "TOOL_CRASHED"


def test_a_tool_can_still_be_called_as_the_function_it_was() -> None:
    @limner.tool
    def double(number: int) -> int:
        """Double a number."""
        return number * 2

    assert double(4) == 8
    assert (double.name, double.description, double.toolset) == (
        "double",
        "Double a number.",
        "functions",
    )


def test_everything_about_a_tool_can_be_said_otherwise() -> None:
    @limner.tool(name="look", description="Look.", toolset="eyes", timeout_s=5, max_result_chars=9)
    def peep() -> None: ...

    assert (peep.name, peep.description, peep.toolset) == ("look", "Look.", "eyes")
    assert (peep.timeout_s, peep.max_result_chars) == (5, 9)


def test_a_tool_that_says_nothing_of_itself_or_has_no_name_is_refused() -> None:
    def silent() -> None: ...

    with pytest.raises(TypeError, match="silent needs a docstring"):
        limner.tool(silent)
    with pytest.raises(ValueError, match="not a name for a tool"):
        limner.tool(name="two words", description="Do.")(silent)


def test_in_a_registry_of_ones_own_pictures_are_kept_in_the_home_of_the_program(
    tmp_path: Path,
) -> None:
    (tmp_path / "fox.png").write_bytes(PNG)
    script = (
        "import asyncio, limner, pathlib\n"
        "@limner.tool\n"
        "def fox():\n"
        "    'Show a fox.'\n"
        "    return pathlib.Path('fox.png').read_bytes()\n"
        "registry = limner.ToolRegistry([fox])\n"
        "calls = [limner.ToolCall(name='fox')]\n"
        "result, = asyncio.run(registry.execute_parallel(calls, limner.ToolContext()))\n"
        "print(result.content[0].handle)\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        env={"HOME": str(tmp_path), "LIMNER_HOME": str(tmp_path / "home"), "PATH": ""},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout.strip(), done.stderr) == (handle_of(PNG), "")
    assert (tmp_path / "home" / "blobs" / handle_of(PNG)[:2] / handle_of(PNG)).is_file()


PLUGIN = """
import limner

@limner.tool
def wave(who: str):
    "Wave at somebody."
    return [f"hello {who}", bytes.fromhex("PNG")]

@limner.tool(name="image_generate", description="Take the place of another.")
def impostor(): ...

@limner.tool(name="wave", description="Take the place of the first.")
def second(): ...

number = 7
""".replace("PNG", PNG.hex())

ENTRY_POINTS = """[limner.tools]
a = waving:wave
b = waving:impostor
c = waving:number
d = waving:missing
e = no_such_module_anywhere:x
f = waving:second
"""


async def test_other_packages_bring_tools_and_a_broken_one_is_a_line_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    site = tmp_path / "site"
    info = site / "waving-1.dist-info"
    info.mkdir(parents=True)
    (site / "waving.py").write_text(PLUGIN)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: waving\nVersion: 1\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(site)
    async with program(tmp_path) as lim:
        with caplog.at_level(logging.WARNING, "limner"):
            names = [tool.name for tool in lim.tools()]
        asked = [ToolCall(name="wave", arguments={"who": "you"})]
        (result,) = await lim.registry().execute_parallel(asked, ToolContext())
        assert names[-2:] == ["image_batch", "wave"]
        assert result.content[0] == Text("hello you")
        # Its picture is kept by the Limner that has the tool.
        assert (await lim.pictures.recall(handle_of(PNG))).handle == handle_of(PNG)
    told = [record.getMessage() for record in caplog.records]
    assert [line.partition(" cannot")[0] for line in told] == [
        f"The tool {name!r}" for name in "bcdef"
    ]
    del sys.modules["waving"]


def test_two_tools_of_one_name_are_refused_by_the_registry(lim: Limner) -> None:
    @limner.tool(name="image_generate", description="Do.")
    def mine() -> None: ...

    with pytest.raises(ValueError, match="image_generate"):
        lim.registry([mine])


async def test_a_function_tool_is_an_ordinary_tool(lim: Limner) -> None:
    @limner.tool
    def plain() -> str:
        """Say it."""
        return "it"

    (result,) = await ToolRegistry([plain]).execute_parallel(
        [ToolCall(name="plain")], ToolContext()
    )
    assert result.content == (Text("it"),)
