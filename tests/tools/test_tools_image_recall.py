"""A picture that is no longer sent comes back when a model asks for it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from tests.agent.agent_pictures import program, seen, take, text, unique, user

from limner import Limner, ToolCall, ToolContext, ToolRegistry, ToolResult
from limner.tools.built_in.image_recall import image_recall
from limner.tools.handles import Handles
from limner.wires.base import HANDLE_URL


@pytest.fixture(scope="module")
def lim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Limner]:
    made = program(tmp_path_factory.mktemp("recall"))
    yield made
    asyncio.run(made.aclose())


async def recall(lim: Limner, handle: Any, **context: Any) -> ToolResult:
    registry = ToolRegistry(lim.conversation_tools())
    call = ToolCall(name="image_recall", arguments={"handle": handle}, call_id="1")
    (result,) = await registry.execute_parallel([call], ToolContext(**context))
    return result


async def test_a_few_digits_bring_back_a_picture_of_the_conversation(lim: Limner) -> None:
    fox = await take(lim, unique())
    session = await lim.sessions.create(cwd="/")
    await session.append([user(text("A fox."), seen(fox))])
    result = await recall(lim, fox.handle[:12], session_id=session.id)
    assert result == ToolResult(
        call_id="1",
        name="image_recall",
        ok=True,
        value=f'{{"image":"{fox.handle}","mime":"image/png",'
        '"dimensions":{"width":16,"height":12}}',
        content=(fox,),
        untrusted=True,
    )


@pytest.mark.parametrize("spelled", ["{}", f"{HANDLE_URL}{{}}", "  {}\n"])
async def test_a_whole_handle_is_found_wherever_it_was_taken_in(lim: Limner, spelled: str) -> None:
    fox = await take(lim, unique())
    result = await recall(lim, spelled.format(fox.handle))
    assert (result.ok, result.content) == (True, (fox,))


async def test_digits_of_a_picture_of_another_conversation_find_nothing(lim: Limner) -> None:
    fox = await take(lim, unique())
    other = await lim.sessions.create(cwd="/")
    await other.append([user(seen(fox))])
    mine = await lim.sessions.create(cwd="/")
    result = await recall(lim, fox.handle[:20], session_id=mine.id)
    assert (result.ok, result.domain_code, result.content) == (False, "NO_SUCH_PICTURE", ())


@pytest.mark.parametrize(
    ("handle", "code"),
    [
        ("0" * 64, "NO_SUCH_PICTURE"),
        ("deadbeef", "NO_SUCH_PICTURE"),
        ("abcdef1", "INPUT_INVALID"),
        ("", "INPUT_INVALID"),
        ("../../../etc/passwd", "INPUT_INVALID"),
        ("fox.png in the snow", "INPUT_INVALID"),
        (7, "INPUT_INVALID"),
    ],
)
async def test_a_handle_that_somebody_made_up_is_an_error(
    lim: Limner, handle: Any, code: str
) -> None:
    result = await recall(lim, handle)
    assert (result.ok, result.domain_code, result.content) == (False, code, ())


async def test_digits_that_two_pictures_begin_with_are_too_few(lim: Limner) -> None:
    async def known(session_id: str | None) -> list[str]:
        return ["ab" * 32, "ab" * 31 + "cd"]

    tool = image_recall(lim.pictures, handles=Handles(pictures=lim.pictures, known=known))
    call = ToolCall(name=tool.name, arguments={"handle": "ab" * 8})
    (result,) = await ToolRegistry([tool]).execute_parallel([call], ToolContext())
    assert (result.error, result.hint) == (
        f"2 pictures of this conversation begin with {'ab' * 8!r}",
        "Give more digits.",
    )
