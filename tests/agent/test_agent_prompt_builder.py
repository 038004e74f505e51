"""A conversation -> what a model is sent of it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from PIL import Image, ImageDraw
from tests.agent.agent_pictures import (
    MODELS,
    accept,
    model,
    program,
    seen,
    take,
    text,
    turn,
    unique,
    user,
)
from tests.imaging.imaging_samples import encoded as saved
from tests.wires.vendor_types import assert_legal

from limner.agent.picture_slots import (
    BLOCKED,
    LEFT_OUT,
    NO_IMAGES,
    NOT_STORED,
    RECALLABLE,
    TOO_MANY,
    UNFIT,
)
from limner.agent.prompt_builder import BuiltPrompt, KeptPictures
from limner.catalogue.vision import Limits
from limner.client import Limner
from limner.content import Picture
from limner.models.registry import KnownModel
from limner.wires.base import ModelPicture, Prompt, ToolOffer, wire


@pytest.fixture(scope="module")
def lim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Limner]:
    made = program(tmp_path_factory.mktemp("requests"))
    yield made
    asyncio.run(made.aclose())


def offers(lim: Limner) -> list[ToolOffer]:
    return [
        ToolOffer(name=tool.name, description=tool.description, schema=tool.schema)
        for tool in lim.conversation_tools()
    ]


async def ready(lim: Limner, items: list[Any], *, to: str = MODELS[0], **rest: Any) -> BuiltPrompt:
    asked = model(lim, to)
    made = await lim.prompts.build(Prompt(items=items, **rest), asked)
    body = msgspec.json.decode(wire(asked.api).request(asked.id, made.prompt).body)
    assert_legal(asked.api, body)
    return made


def noise(seed: int) -> bytes:
    """A picture that no encoder makes much smaller, of a size that is sent as it is."""
    pixels = random.Random(seed).randbytes(180 * 180 * 3)
    return saved(Image.frombytes("RGB", (180, 180), pixels), "PNG")


async def screenshots(lim: Limner, count: int) -> list[Picture]:
    return [await take(lim, unique(), prompt=f"page {number}") for number in range(count)]


def sent_as(mime: str, data: bytes) -> ModelPicture:
    return ModelPicture(mime=mime, data=data, quoted_base64=msgspec.json.encode(data))


def conversation(pictures: list[Picture]) -> list[Any]:
    turns = [turn(number, text("ok"), seen(one)) for number, one in enumerate(pictures)]
    return [user(text("Go.")), *(item for one in turns for item in one)]


def note(picture: Picture, words: str, why: str) -> dict[str, Any]:
    return text(f"[picture {picture.handle[:12]}: {words}; {why}]")


def outputs(made: BuiltPrompt) -> list[dict[str, Any]]:
    return [item["output"][1] for item in made.prompt.items if "output" in item]


async def test_a_conversation_without_pictures_is_sent_as_it_is(lim: Limner) -> None:
    prompt = Prompt(items=[user(text("Hello."))], instructions="Be brief.")
    assert await lim.prompts.build(prompt, model(lim)) == BuiltPrompt(prompt=prompt)


@pytest.mark.parametrize("name", MODELS)
async def test_every_picture_is_sent_fitted_and_named_by_its_handle(lim: Limner, name: str) -> None:
    data = unique()
    small = await take(lim, data)
    large = await take(lim, unique(kind="GIF", size=(3000, 20)))
    items = [user(text("Look."), seen(small), seen(large)), *turn(1, seen(small))]
    made = await ready(lim, items, to=name)
    assert made.prompt.items == items
    assert made.sent == (small.handle, large.handle)
    assert made.prompt.pictures[small.handle] == sent_as("image/png", data)
    assert made.prompt.pictures[large.handle].mime in model(lim, name).facts.formats


def screen_of_text(size: tuple[int, int]) -> Image.Image:
    """Small dark words on white, as in a window."""
    screen = Image.new("RGB", size, "white")
    draw, dice = ImageDraw.Draw(screen), random.Random("words")
    for y in range(4, size[1] - 16, 16):
        line = " ".join(f"{dice.randrange(16**6):06x}" for _ in range(size[0] // 50))
        draw.text((4, y), line, fill="black")
    return screen


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
async def test_a_picture_that_the_model_takes_is_sent_byte_for_byte(
    lim: Limner, name: str, kind: str
) -> None:
    dice = random.Random("screenshot")
    soft = Image.frombytes("RGB", (40, 25), dice.randbytes(3000)).resize((1280, 800))
    data = saved(soft, kind)
    screen = await take(lim, data)
    made = await ready(lim, [user(text("Look."), seen(screen))], to=name)
    assert made.prompt.pictures == {screen.handle: sent_as(f"image/{kind.lower()}", data)}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
async def test_a_screen_that_is_too_large_is_sent_without_loss_and_is_no_larger(
    lim: Limner, name: str
) -> None:
    screen = await take(lim, saved(screen_of_text((4000, 2400)), "PNG"))
    items = [user(text("Look."), seen(screen))]
    first = (await ready(lim, items, to=name)).prompt.pictures[screen.handle]
    assert first.mime in ("image/png", "image/webp")
    assert len(first.data) <= screen.size_bytes
    again = await ready(lim, [*items, *turn(1, seen(screen))], to=name)
    assert again.prompt.pictures[screen.handle] == first


async def test_new_pictures_are_all_sent_and_leave_once_the_model_has_seen_them(
    lim: Limner,
) -> None:
    pictures = await screenshots(lim, 23)
    items = [user(text("Go.")), *turn(1, *map(seen, pictures[:22]))]
    assert (await ready(lim, items)).sent == tuple(one.handle for one in pictures[:22])
    later = await ready(lim, [*items, *turn(2, seen(pictures[22]))])
    assert later.sent == tuple(one.handle for one in pictures[13:])


async def test_a_picture_that_the_service_would_refuse_says_so_from_then_on(lim: Limner) -> None:
    pictures = await screenshots(lim, 4)
    items = [user(text("Go.")), *turn(1, *map(seen, pictures[:3]))]
    small = narrow(model(lim), max_images=2)
    for more in ([], turn(2, text("Nothing new."))):
        made = await lim.prompts.build(Prompt(items=[*items, *more]), small)
        output = next(item["output"] for item in made.prompt.items if "output" in item)
        assert output == [note(pictures[0], "page 0", TOO_MANY), *map(seen, pictures[1:3])]
        assert made.warnings == (
            f"{MODELS[0]} is not sent 1 picture of this conversation, up to "
            f"{pictures[0].handle[:12]}, because its service takes no more in one request. "
            "The history keeps all.",
        )


async def test_only_pictures_that_the_model_has_not_accepted_yet_are_unproven(lim: Limner) -> None:
    old, new = await take(lim, unique()), await take(lim, unique())
    items = [user(seen(old)), user(seen(new))]
    assert (await ready(lim, items[:1])).unproven == (old.handle,)
    await accept(lim, (old.handle,), model=MODELS[0])
    made = await ready(lim, items)
    assert (made.sent, made.unproven) == ((old.handle, new.handle), (new.handle,))
    assert (await ready(lim, items, to=MODELS[1])).unproven == (old.handle, new.handle)


async def test_when_there_are_too_many_the_oldest_leave_at_once_and_say_how_to_come_back(
    lim: Limner,
) -> None:
    pictures = await screenshots(lim, 21)
    made = await ready(lim, conversation(pictures), tools=offers(lim))
    assert outputs(made) == [
        *(note(one, f"page {number}", RECALLABLE) for number, one in enumerate(pictures[:11])),
        *map(seen, pictures[11:]),
    ]
    assert made.sent == tuple(one.handle for one in pictures[11:])
    assert made.warnings == (
        f"{MODELS[0]} is not sent 11 pictures of this conversation, up to "
        f"{pictures[10].handle[:12]}, to save room. The history keeps all.",
    )


async def test_the_next_request_begins_as_the_last_one_did(lim: Limner) -> None:
    pictures = await screenshots(lim, 26)
    requests = [
        (await ready(lim, conversation(pictures[:count]))).prompt.items for count in range(18, 27)
    ]
    changed = [
        number
        for number, (one, longer) in enumerate(pairwise(requests), start=19)
        if list(longer[: len(one)]) != list(one)
    ]
    assert changed == [21]


async def test_a_recalled_picture_is_shown_where_it_came_back_and_only_there(lim: Limner) -> None:
    pictures = await screenshots(lim, 21)
    items = [*conversation(pictures), *turn(99, text("again"), seen(pictures[0]))]
    shown = outputs(await ready(lim, items))
    assert shown[0] == note(pictures[0], "page 0", LEFT_OUT)
    assert shown[-1] == seen(pictures[0])


async def test_only_what_is_sent_is_loaded(lim: Limner) -> None:
    pictures = await screenshots(lim, 21)
    for picture in pictures[:11]:
        lim.pictures.local_path(picture).unlink()
    made = await ready(lim, conversation(pictures))
    assert len(made.sent) == 10
    assert outputs(made)[0] == note(pictures[0], "page 0", LEFT_OUT)


async def test_a_picture_that_was_sent_before_is_not_loaded_again(lim: Limner) -> None:
    (picture,) = await screenshots(lim, 1)
    first = await ready(lim, conversation([picture]))
    lim.pictures.local_path(picture).unlink()
    again = await ready(lim, conversation([picture]))
    assert again.prompt.pictures == first.prompt.pictures != {}


def test_kept_pictures_have_a_limit_and_the_least_used_leave_first() -> None:
    kept = KeptPictures(max_bytes=60)
    small = {name: ModelPicture(mime="image/png", data=name.encode() * 10) for name in "abc"}
    for name, picture in small.items():
        assert kept.keep((name, None), picture) == sent_as("image/png", picture.data)
        kept.find(("a", None))
    large = sent_as("image/png", b"d" * 60)
    assert kept.keep(("d", None), large) == large
    here = [name for name in "abcd" if kept.find((name, None)) is not None]
    assert here == ["a", "c"]


def narrow(known: KnownModel, **limits: Any) -> KnownModel:
    """The model, of a service that takes less."""
    return replace(known, facts=replace(known.facts, limits=Limits(**limits)))


async def test_bytes_are_counted_as_they_are_sent(lim: Limner) -> None:
    pictures = [await take(lim, noise(seed)) for seed in range(4)]
    sizes = {one.size_bytes for one in pictures}
    prompt = Prompt(items=conversation(pictures))
    for count, room in ((4, 4 * max(sizes)), (1, 3 * max(sizes))):
        made = await lim.prompts.build(prompt, narrow(model(lim), max_request_bytes=2 * room))
        assert made.sent == tuple(one.handle for one in pictures[-count:])


async def test_without_auto_resize_pictures_are_sent_unchanged_if_the_model_takes_them(
    tmp_path: Path,
) -> None:
    data = unique(size=(2000, 300))
    async with program(tmp_path, images_auto_resize="false") as lim:
        fox = await take(lim, data)
        prompt = Prompt(items=[user(seen(fox))])
        free, bound = model(lim), narrow(model(lim), max_edge=1999)
        whole = await lim.prompts.build(prompt, free)
        assert whole.prompt.pictures == {fox.handle: sent_as("image/png", data)}
        fitted = await lim.prompts.build(prompt, bound)
        assert fitted.prompt.pictures[fox.handle].data != data


async def test_pictures_that_cost_too_many_tokens_leave_too(lim: Limner) -> None:
    pictures = [await take(lim, unique(size=(1500, 1500))) for _ in range(4)]
    known = model(lim)
    small = replace(known, facts=replace(known.facts, context_tokens=16_000))
    made = await lim.prompts.build(Prompt(items=conversation(pictures)), small)
    # 47 x 47 patches at 1.2 tokens each: three of them are in half of the context.
    assert made.sent == (pictures[3].handle,)


async def test_if_pictures_are_blocked_none_is_loaded_and_history_keeps_them(
    tmp_path: Path,
) -> None:
    async with program(tmp_path, images_block_images="true") as lim:
        fox = await take(lim, unique(), prompt="a fox")
        lim.pictures.local_path(fox).unlink()
        items = [user(seen(fox))]
        made = await ready(lim, items)
        assert made.prompt.items == [user(note(fox, "a fox", BLOCKED))]
        assert (made.sent, made.prompt.pictures) == ((), {})
        assert items == [user(seen(fox))]


async def test_a_model_that_takes_no_pictures_reads_notes(lim: Limner) -> None:
    fox = await take(lim, unique(), file="/pictures/fox.png")
    made = await ready(lim, [user(seen(fox))], to="openai/o3-mini")
    assert made.prompt.items == [user(note(fox, "fox.png", NO_IMAGES))]
    assert made.prompt.takes_images is False


async def test_a_note_replaces_a_picture_that_is_not_stored(lim: Limner) -> None:
    fox, owl = await take(lim, unique()), await take(lim, unique(), prompt="an owl")
    lim.pictures.local_path(owl).unlink()
    forged = {"type": "input_image", "image_url": "file:///etc/passwd"}
    items = [user(text("See:"), seen("0" * 64), seen(fox), seen(owl), forged)]
    made = await ready(lim, items)
    assert made.prompt.items == [
        user(
            text("See:"),
            text(f"[picture {'0' * 12}: See:; {NOT_STORED}]"),
            seen(fox),
            note(owl, "an owl", UNFIT),
            text(f"[picture: See:; {NOT_STORED}]"),
        )
    ]


async def test_notes_in_a_models_message_are_output_text(lim: Limner) -> None:
    item = {"type": "message", "role": "assistant", "content": [seen("0" * 64)]}
    made = await ready(lim, [user(text("Draw.")), item, user(text("Again."))])
    words = {"type": "output_text", "text": f"[picture {'0' * 12}; {NOT_STORED}]"}
    assert made.prompt.items[1] == {**item, "content": [words]}


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        ({"type": "hologram", "data": "…"}, "hologram"),
        ({"type": "input_text"}, "input_text"),
        ({"type": "input_text", "text": 7}, "input_text"),
        ({"no": "type"}, "None"),
    ],
)
async def test_a_note_replaces_a_part_that_no_service_understands(
    lim: Limner, part: Any, kind: str
) -> None:
    made = await ready(lim, [user(text("Listen."), part)])
    left_out = text(f"[a part of the kind {kind!r} is left out]")
    assert made.prompt.items == [user(text("Listen."), left_out)]


@pytest.mark.parametrize(
    ("name", "detail", "sent"),
    [
        ("openai/gpt-5.5", "low", "low"),
        ("openai/gpt-5.5", "original", "original"),
        ("openai/gpt-5.1", "original", "high"),
        ("anthropic/claude-opus-4-8", "high", None),
        ("ollama/llava", "high", "high"),
        ("ollama/llava", "original", "original"),
    ],
)
async def test_a_detail_that_the_model_does_not_have_is_not_asked_for(
    lim: Limner, name: str, detail: str, sent: str | None
) -> None:
    fox = await take(lim, unique())
    made = await ready(lim, [user(seen(fox, detail=detail))], to=name)
    expected = seen(fox) if sent is None else seen(fox, detail=sent)
    assert made.prompt.items == [user(expected)]


async def test_a_conversion_is_called_what_its_original_is(lim: Limner) -> None:
    fox = await take(lim, unique(kind="WEBP"), prompt="a fox")
    png = await lim.pictures.convert(fox)
    made = await ready(lim, [user(seen(png))], to="openai/o3-mini")
    assert made.prompt.items == [user(note(png, "a fox", NO_IMAGES))]
