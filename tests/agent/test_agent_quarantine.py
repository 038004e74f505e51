"""Later requests leave out a picture that a service refused, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from tests.agent.agent_pictures import accept, model, program, seen, take, text, unique, user

from limner.agent.picture_slots import REFUSED
from limner.client import Limner
from limner.content import Picture
from limner.errors import ProviderBadRequest, ProviderError, ProviderRateLimited
from limner.wires.base import Prompt

NAME = "openai/gpt-5.5"


@pytest.fixture(scope="module")
def lim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Limner]:
    made = program(tmp_path_factory.mktemp("quarantine"))
    yield made
    asyncio.run(made.aclose())


@pytest.fixture
async def pictures(lim: Limner) -> list[Picture]:
    return [await take(lim, unique(), prompt=f"fox {number}") for number in range(5)]


def refusal(words: str | None = None, *, status: int = 400, code: str = "") -> ProviderError:
    extras: dict[str, Any] = {"status": status} | ({"provider_code": code} if code else {})
    return ProviderBadRequest("OpenAI answered 400", provider_message=words, extras=extras)


async def sent(lim: Limner, *pictures: Picture, to: str = NAME) -> tuple[str, ...]:
    prompt = Prompt(items=[user(seen(picture)) for picture in pictures])
    return (await lim.prompts.build(prompt, model(lim, to))).sent


def handles(*pictures: Picture) -> tuple[str, ...]:
    return tuple(picture.handle for picture in pictures)


@pytest.mark.parametrize(
    "error",
    [
        refusal("The image data you provided does not represent a valid image."),
        refusal("messages.0.content.1.image.source.base64.data: invalid"),
        refusal("Unable to process input image. Please retry."),
        refusal("media_type must match", status=422),
        refusal("Bad request", code="image_parse_error"),
        ProviderBadRequest("broke off", extras={"provider_code": "invalid_image"}),
    ],
)
async def test_a_picture_that_the_service_names_is_not_sent_again(
    lim: Limner, pictures: list[Picture], error: ProviderError
) -> None:
    old, new, *_ = pictures
    await accept(lim, handles(old), model=NAME)
    assert await lim.quarantine.refused(error, handles(old, new), model=NAME) == handles(new)
    prompt = Prompt(items=[user(text("Both."), seen(old), seen(new))])
    ready = await lim.prompts.build(prompt, model(lim))
    note = f"[picture {new.handle[:12]}: fox 1; {REFUSED}]"
    assert ready.sent == handles(old)
    assert ready.prompt.items == [user(text("Both."), seen(old), text(note))]


async def test_another_model_is_still_sent_the_picture(
    lim: Limner, pictures: list[Picture]
) -> None:
    fox = pictures[0]
    await lim.quarantine.refused(refusal("bad image"), handles(fox), model=NAME)
    assert await sent(lim, fox) == ()
    assert await sent(lim, fox, to="anthropic/claude-opus-4-8") == handles(fox)


async def test_the_next_process_knows_what_was_refused(
    lim: Limner, pictures: list[Picture]
) -> None:
    await lim.quarantine.refused(refusal("bad image"), handles(pictures[0]), model=NAME)
    async with program(lim.home.folder.parent) as later:
        assert await sent(later, *pictures[:2]) == handles(pictures[1])


async def test_of_several_new_pictures_the_newer_half_leaves_until_the_rest_is_accepted(
    lim: Limner, pictures: list[Picture]
) -> None:
    error = refusal("an image is invalid")
    # The third one is the bad one, which nobody says.
    left: list[tuple[str, ...]] = []
    while pictures[2].handle in (now := await sent(lim, *pictures)):
        left.append(await lim.quarantine.refused(error, now, model=NAME))
    assert left == [handles(*pictures[2:])]
    await accept(lim, now, model=NAME)
    assert await sent(lim, *pictures) == handles(*pictures[:2])
    assert await lim.quarantine.refused(error, now, model=NAME) == ()


async def test_however_often_a_service_refuses_the_conversation_goes_on(
    lim: Limner, pictures: list[Picture]
) -> None:
    refusals = 0
    while now := await sent(lim, *pictures):
        refusals += 1
        assert await lim.quarantine.refused(refusal("no images here"), now, model=NAME)
    assert refusals == 3


async def test_if_the_service_does_not_say_what_is_wrong_the_second_refusal_counts(
    lim: Limner, pictures: list[Picture]
) -> None:
    fox = pictures[0]
    assert await lim.quarantine.refused(refusal("bad request"), handles(fox), model=NAME) == ()
    assert await sent(lim, fox) == handles(fox)
    told = await lim.quarantine.refused(refusal("bad request"), handles(fox), model=NAME)
    assert (told, await sent(lim, fox)) == (handles(fox), ())


async def test_a_suspect_that_is_accepted_after_all_is_never_to_blame(
    lim: Limner, pictures: list[Picture]
) -> None:
    fox = handles(pictures[0])
    await lim.quarantine.refused(refusal("bad request"), fox, model=NAME)
    await accept(lim, fox, model=NAME)
    assert await lim.quarantine.refused(refusal("bad image"), fox, model=NAME) == ()


@pytest.mark.parametrize(
    "error",
    [
        refusal("The model `x` does not take images or does not exist", status=404),
        ProviderRateLimited("too many images", extras={"status": 429}),
        ProviderError("no image"),
    ],
)
async def test_an_error_that_is_not_about_the_request_blames_no_picture(
    lim: Limner, pictures: list[Picture], error: ProviderError
) -> None:
    fox = handles(pictures[0])
    for _ in range(2):
        assert await lim.quarantine.refused(error, fox, model=NAME) == ()
    assert await sent(lim, pictures[0]) == fox


async def test_without_pictures_there_is_nothing_to_note(lim: Limner) -> None:
    await accept(lim, (), model=NAME)
    assert await lim.quarantine.refused(refusal("bad image"), (), model=NAME) == ()
    # A picture that was deleted meanwhile has no verdict either.
    await accept(lim, ("0" * 64,), model=NAME)
