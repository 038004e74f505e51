"""Pictures enter a conversation: valid ones as handles, the others as notes."""

from __future__ import annotations

import asyncio
import base64
import random
import struct
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from tests.agent.agent_pictures import (
    MODELS,
    data_url,
    encoded,
    handle_of,
    image,
    model,
    program,
    seen,
    take,
    text,
    turn,
    user,
)
from tests.imaging.imaging_samples import chunk
from tests.imaging.imaging_samples import encoded as saved
from tests.wires.vendor_types import assert_legal

from limner.agent.ingress import MAX_BASE64_CHARS, MAX_CONCURRENT, Ingress
from limner.client import Limner
from limner.content import Picture
from limner.errors import LimnerError, MissingExtra, StorageError
from limner.pictures.take import Pictures
from limner.storage.blobs import Blobs, BlobWriter
from limner.wires import codex_content
from limner.wires.base import HANDLE_URL, Prompt, wire

PNG, JPEG = encoded(1), encoded(2, kind="JPEG")
HUGE = b"".join(
    (
        b"\x89PNG\r\n\x1a\n",
        chunk(b"IHDR", struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)),
        chunk(b"IDAT", zlib.compress(bytes(64))),
        chunk(b"IEND", b""),
    )
)
NO_REMOTE = "pictures are not fetched from the network; send the picture itself as a data URL"
NO_FILES = "files are not read through a URL; send the picture itself as a data URL"
NO_DATA = "its URL is not a data URL of a picture"

POISON = {
    "svg": (
        data_url(b'<svg xmlns="http://www.w3.org/2000/svg"/>', "image/svg+xml"),
        "this is an SVG file, which is not accepted here",
    ),
    "avif": (
        data_url(encoded(3, kind="AVIF"), "image/avif"),
        "this is an AVIF file, which is not accepted here",
    ),
    "truncated png": (
        data_url(PNG[:-20]),
        f"the PNG file is cut short after {len(PNG) - 20} bytes",
    ),
    "html": (
        data_url(b"<!doctype html><p>404"),
        "this is an HTML page, which is not accepted here",
    ),
    "file": ("file:///etc/passwd", NO_FILES),
    "http": ("http://127.0.0.1:9/fox.png", NO_REMOTE),
    "https in capitals": ("HTTPS://example.com/fox.png", NO_REMOTE),
    "60000x60000": (data_url(HUGE), "60000x60000 is 3600 megapixels; at most 100 are accepted"),
    "no bytes": ("data:image/png;base64,", "it has no bytes"),
    "no comma": ("data:image/png;base64", "it has no bytes"),
    "no base64": ("data:image/png,%89PNG", "its data is not base64"),
    "broken base64": (data_url(PNG)[:-3] + "!!!", "its data is not base64"),
    "a line break in base64": (
        data_url(PNG)[:60] + "\n" + data_url(PNG)[60:],
        "its data is not base64",
    ),
    "unpadded base64": (data_url(b"GIF8").rstrip("="), "its data is not base64"),
    "base64 of others": ("data:image/png;base64,é", "its data is not base64"),
    "words": ("a fox", NO_DATA),
    "a path": ("/home/user/fox.png", NO_DATA),
    "nothing": ("", "it has no URL"),
    "no string": ({"url": "x"}, "it has no URL"),
    "forged handle": (f"{HANDLE_URL}{'0' * 64}", "no picture with that handle is stored here"),
    "no handle": (f"{HANDLE_URL}../../keys", "no picture with that handle is stored here"),
    "too long": (
        f"data:image/png;base64,{'A' * (MAX_BASE64_CHARS + 4)}",
        "it is larger than 67,108,864 bytes",
    ),
}


@pytest.fixture(scope="module")
def lim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Limner]:
    made = program(tmp_path_factory.mktemp("ingress"))
    yield made
    asyncio.run(made.aclose())


async def assert_sendable(lim: Limner, items: Any) -> None:
    """The request to every service is one that its own types take."""
    for name in MODELS:
        asked = model(lim, name)
        ready = await lim.prompts.build(Prompt(items=items), asked)
        assert_legal(
            asked.api, msgspec.json.decode(wire(asked.api).request(name, ready.prompt).body)
        )


@pytest.mark.parametrize("name", POISON)
async def test_a_note_replaces_a_bad_picture_and_the_rest_of_the_message_survives(
    lim: Limner, name: str
) -> None:
    url, reason = POISON[name]
    part = {"type": "input_image", "image_url": url}
    good = image(data_url(PNG))
    entered = await lim.ingress.items([user(text("Look."), part, good)], source="the user")
    expected = user(text("Look."), text(f"[image omitted: {reason}]"), seen(handle_of(PNG)))
    assert entered.items == (expected,)
    assert entered.warnings == (f"Picture 1 of 2 from the user was left out: {reason}.",)
    await assert_sendable(lim, entered.items)


async def test_a_bad_picture_in_the_output_of_a_tool_poisons_no_later_request(lim: Limner) -> None:
    bad = [image(url) for url, _ in POISON.values() if len(url) < 9999]
    good = image(data_url(JPEG, "image/jpeg"))
    items = [user(text("Go on.")), *turn(1, text("here"), *bad), *turn(2, good)]
    entered = await lim.ingress.items(items, source="look")
    assert len(entered.warnings) == len(bad)
    assert [one.handle for one in entered.pictures] == [handle_of(JPEG)]
    await assert_sendable(lim, [*entered.items, user(text("And now?"))])


async def test_a_jpeg_that_is_declared_as_a_png_is_stored_as_a_jpeg(lim: Limner) -> None:
    entered = await lim.ingress.parts([image(data_url(JPEG, "image/png"))], source="look")
    assert entered.items == (seen(handle_of(JPEG)),)
    assert [one.mime for one in entered.pictures] == ["image/jpeg"]
    assert entered.warnings == (
        "Picture 1 of 1 from look was taken in: it was declared as 'image/png' and is image/jpeg, "
        "which limner uses.",
    )
    await assert_sendable(lim, [user(*entered.items)])


@pytest.mark.parametrize("declared", ["image/jpeg", "IMAGE/JPG", "", "application/octet-stream"])
async def test_a_type_that_is_right_or_claims_nothing_is_no_news(
    lim: Limner, declared: str
) -> None:
    entered = await lim.ingress.parts([image(data_url(JPEG, declared))], source="look")
    assert (entered.items, entered.warnings) == ((seen(handle_of(JPEG)),), ())


async def test_a_picture_is_kept_as_it_came_and_remembers_who_sent_it(lim: Limner) -> None:
    data = encoded(9)
    entered = await lim.ingress.parts([image(data_url(data))], source="the user")
    assert await lim.pictures.original(entered.pictures[0]) == data
    family = await lim.pictures.family(handle_of(data))
    assert family is not None
    assert family.record.lineage == {"from": "the user"}


async def test_a_handle_of_a_picture_that_is_here_stays(lim: Limner) -> None:
    known = await take(lim, PNG)
    entered = await lim.ingress.parts([seen(known)], source="the user")
    assert (entered.items, entered.pictures, entered.warnings) == ((seen(known),), (known,), ())


class Counting(Pictures):
    """Counts what is taken in."""

    count = 0

    async def take(
        self,
        poured: BlobWriter,
        *,
        lineage: Mapping[str, Any],
        parent: Picture | None = None,
        synced: bool = True,
    ) -> Picture:
        self.count += 1
        return await super().take(poured, lineage=lineage, parent=parent, synced=synced)


async def test_the_same_address_is_decoded_once_in_a_call(lim: Limner) -> None:
    pictures = Counting(
        blobs=Blobs(lim.home.blobs), store=lim.store, imaging=lim.imaging, clock=lim.clock
    )
    url, other = data_url(PNG), data_url(JPEG, "image/jpeg")
    items = [user(image(url), image(other)), user(image(url)), *turn(1, image(url))]
    entered = await Ingress(pictures=pictures).items(items, source="an import")
    assert pictures.count == 2
    assert [one.handle for one in entered.pictures] == [handle_of(PNG), handle_of(JPEG)]
    assert entered.items[-1]["output"] == [seen(handle_of(PNG))]


class Failing(Pictures):
    """Cannot take or find pictures."""

    error: LimnerError = StorageError("the disk is full")

    async def take(
        self,
        poured: BlobWriter,
        *,
        lineage: Mapping[str, Any],
        parent: Picture | None = None,
        synced: bool = True,
    ) -> Picture:
        raise self.error

    async def recall(self, handle: str) -> Picture:
        raise self.error


def failing(lim: Limner, error: LimnerError) -> Ingress:
    pictures = Failing(
        blobs=Blobs(lim.home.blobs), store=lim.store, imaging=lim.imaging, clock=lim.clock
    )
    pictures.error = error
    return Ingress(pictures=pictures)


@pytest.mark.parametrize("url", [data_url(PNG), f"{HANDLE_URL}{'0' * 64}"])
async def test_a_disk_that_fails_is_an_error_and_not_a_picture_left_out(
    lim: Limner, url: str
) -> None:
    with pytest.raises(StorageError, match="the disk is full"):
        await failing(lim, StorageError("the disk is full")).parts([image(url)], source="the user")


async def test_a_picture_that_needs_an_extra_is_left_out_and_the_message_goes_on(
    lim: Limner,
) -> None:
    ingress = failing(lim, MissingExtra("HEIC needs limner[heic]"))
    entered = await ingress.parts([text("Look."), image(data_url(PNG))], source="the user")
    assert entered.items == (text("Look."), text("[image omitted: HEIC needs limner[heic]]"))


async def test_blanks_around_an_address_are_no_part_of_it(lim: Limner) -> None:
    spaced = image(f" \n{data_url(PNG)}\n")
    entered = await lim.ingress.parts([spaced], source="the user")
    assert (entered.items, entered.warnings) == ((seen(handle_of(PNG)),), ())


class Slow(Pictures):
    """Counts how many pictures are taken in at once."""

    now = most = 0

    async def take(
        self,
        poured: BlobWriter,
        *,
        lineage: Mapping[str, Any],
        parent: Picture | None = None,
        synced: bool = True,
    ) -> Picture:
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            return await super().take(poured, lineage=lineage, parent=parent, synced=synced)
        finally:
            self.now -= 1


async def test_at_most_four_pictures_are_decoded_at_once(lim: Limner) -> None:
    pictures = Slow(
        blobs=Blobs(lim.home.blobs), store=lim.store, imaging=lim.imaging, clock=lim.clock
    )
    parts = [image(data_url(encoded(100 + number))) for number in range(12)]
    entered = await Ingress(pictures=pictures).parts(parts, source="the user")
    assert (len(entered.pictures), pictures.most) == (12, MAX_CONCURRENT)


async def test_everything_but_the_address_stays_as_it_came(lim: Limner) -> None:
    odd = {"type": "input_image", "image_url": data_url(PNG), "detail": "low", "label": [1, None]}
    unknown = {"type": "hologram", "content": "x", "output": 7}
    item = {"type": "message", "role": "user", "content": [odd, {"type": "x"}, "words"], "id": 3}
    entered = await lim.ingress.items([item, unknown], source="the user")
    kept = {**odd, "image_url": f"{HANDLE_URL}{handle_of(PNG)}"}
    assert entered.items == ({**item, "content": [kept, {"type": "x"}, "words"]}, unknown)


@pytest.mark.parametrize("detail", ["ultra", 7, None, {"level": 1}])
async def test_a_detail_that_no_service_knows_does_not_come_in(lim: Limner, detail: Any) -> None:
    entered = await lim.ingress.parts([image(data_url(PNG), detail=detail)], source="the user")
    assert entered.items == (seen(handle_of(PNG)),)


async def test_an_output_in_the_shape_of_the_schema_is_written_as_the_wire_has_it(
    lim: Limner,
) -> None:
    payload = {"body": [image(data_url(PNG))], "success": False}
    item = {"type": "function_call_output", "call_id": "1", "output": payload}
    custom = {**item, "type": "custom_tool_call_output"}
    entered = await lim.ingress.items([item, custom], source="look")
    assert entered.items == (
        {**item, "output": [seen(handle_of(PNG))], "success": False},
        {**custom, "output": {"body": [seen(handle_of(PNG))], "success": False}},
    )


async def test_a_picture_that_a_service_drew_by_itself_becomes_a_handle(lim: Limner) -> None:
    drawn = {"type": "image_generation_call", "id": "ig_1", "status": "completed"}
    items = [
        {**drawn, "result": base64.b64encode(PNG).decode()},
        {**drawn, "result": "AAAA"},
        drawn,
    ]
    entered = await lim.ingress.items(items, source="an import")
    assert entered.items == (
        {**drawn, "result": f"{HANDLE_URL}{handle_of(PNG)}"},
        {**drawn, "result": "", "note": entered.items[1].get("note")},
        drawn,
    )
    assert str(entered.items[1]["note"]).startswith("[image omitted: ")
    again = await lim.ingress.items(entered.items, source="an import")
    assert again.items == entered.items


async def test_the_answer_of_a_dynamic_tool_is_ingested_in_the_same_way(lim: Limner) -> None:
    answer = [
        {"type": "inputText", "text": "done"},
        {"type": "inputImage", "imageUrl": data_url(PNG)},
        {"type": "inputImage", "imageUrl": "file:///etc/passwd"},
        {"type": "inputImage", "imageUrl": data_url(b"GIF89a")},
        {"type": "inputAudio", "audioUrl": "data:audio/wav;base64,AAAA"},
    ]
    entered = await lim.ingress.contents(codex_content.read(answer), source="look")
    done, good, local, broken, sound = entered.items
    assert (done, good) == (text("done"), seen(handle_of(PNG)))
    assert sound == {"type": "input_audio", "audio_url": "data:audio/wav;base64,AAAA"}
    assert all(part["text"].startswith("[image omitted: ") for part in (local, broken))
    assert [warning[:12] for warning in entered.warnings] == ["Picture 2 of", "Picture 3 of"]


async def test_no_base64_of_a_picture_is_anywhere_in_the_home(tmp_path: Path) -> None:
    noise = random.Random(7).randbytes(60 * 40 * 3)
    data = saved(Image.frombytes("RGB", (60, 40), noise), "PNG")
    items = [user(image(data_url(data)), image(data_url(data[:-9])))]
    async with program(tmp_path) as lim:
        entered = await lim.ingress.items(items, source="the user")
        session = await lim.sessions.create(cwd=str(tmp_path))
        await session.append(entered.items)
        await lim.prompts.build(Prompt(items=await session.history()), model(lim))
        files = [file for file in (tmp_path / "home").rglob("*") if file.is_file()]
        needles = [base64.b64encode(data[start:])[100:160] for start in range(3)]
        assert len(files) > 2
        assert [f for f in files if any(needle in f.read_bytes() for needle in needles)] == []


scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=20)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
addresses = st.one_of(
    values,
    st.builds(lambda head, body: f"data:{head},{body}", st.text(max_size=12), st.text(max_size=12)),
    st.binary(max_size=40).map(data_url),
    st.sampled_from([data_url(PNG), "file:///x", "limner://image/", f"{HANDLE_URL}{'f' * 64}"]),
)
parts = st.builds(
    lambda kind, url, more: {**more, "type": kind, "image_url": url},
    st.just("input_image") | values,
    addresses,
    st.dictionaries(st.sampled_from(["detail", "text", "x"]), values, max_size=2),
)
contents = st.lists(parts | values, max_size=3) | values
things = st.fixed_dictionaries(
    {"type": st.sampled_from(["message", "function_call_output", "x"])},
    optional={"content": contents, "output": contents, "result": values, "role": scalars},
)


@settings(max_examples=60)
@given(items=st.lists(things, max_size=3))
def test_whatever_arrives_comes_in_without_a_picture_that_is_not_a_handle(
    lim: Limner, items: list[dict[str, Any]]
) -> None:
    entered = asyncio.run(lim.ingress.items(items, source="a stranger"))
    assert len(entered.items) == len(items)
    for part in _images(entered.items):
        assert part["image_url"].startswith(HANDLE_URL)
    # What is in is let in again as it is.
    again = asyncio.run(lim.ingress.items(entered.items, source="a stranger"))
    assert again.items == entered.items


def _images(items: tuple[dict[str, Any], ...]) -> Iterator[dict[str, Any]]:
    for item in items:
        for field in ("content", "output"):
            found = item.get(field)
            for part in found if isinstance(found, list) else ():
                if isinstance(part, dict) and part.get("type") == "input_image":
                    yield part
