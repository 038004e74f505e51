"""Labels in files: standard texts that say what drew the picture, and leave it unchanged."""

from __future__ import annotations

import asyncio
import hashlib
import io
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from limner.content import Picture
from limner.imaging.pool import Imaging
from limner.pictures.labels import Label, is_copy, labelled, own_handle, read_label
from limner.pictures.take import Pictures
from limner.storage.blobs import Blobs
from limner.storage.files import write_new
from limner.storage.store import Store
from limner.storage.temp_file import Source, Spliced


def encoded(kind: str = "PNG", colour: str = "red") -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (8, 6), colour).save(out, kind)
    return out.getvalue()


PLAIN = encoded()
HANDLE = hashlib.sha256(PLAIN).hexdigest()
LABEL = Label(prompt="a fox,\nof snow ❄", model="openai-image/gpt-image-2.5-flare", handle=HANDLE)
PICTURE = Picture(handle=HANDLE, mime="image/png", width=8, height=6, size_bytes=len(PLAIN))


def joined(source: Source, data: bytes = PLAIN) -> bytes:
    if isinstance(source, bytes):
        return source
    assert isinstance(source, Spliced)
    return data[: source.at] + source.inserted + data[source.at :]


LABELLED = joined(labelled(Path(), LABEL))


def test_a_labelled_file_is_the_picture_with_standard_text_chunks(tmp_path: Path) -> None:
    (tmp_path / "blob").write_bytes(PLAIN)
    path = write_new(tmp_path / "fox.png", labelled(tmp_path / "blob", LABEL))
    assert path.read_bytes() == LABELLED
    with Image.open(path) as image:
        image.load()
        assert {key: text for key, text in image.info.items() if "xmp" not in key} == {
            "Software": "limner",
            "Source": "openai-image/gpt-image-2.5-flare",
            "Description": "a fox,\nof snow ❄",
            "limner:handle": HANDLE,
        }
        with Image.open(tmp_path / "blob") as blob:
            assert image.tobytes() == blob.tobytes()


def files() -> dict[str, bytes]:
    """One small picture of each kind that can have a label."""
    clear = Image.new("RGBA", (8, 6), (255, 0, 0, 90))
    made = {"jpeg": encoded("JPEG"), "webp": encoded("WEBP"), "png": PLAIN}
    for name, options in {
        "lossless webp": {"lossless": True},
        "clear lossless webp": {"lossless": True, "exact": True},
        "clear webp": {},
        "webp with a profile": {"icc_profile": b"profile"},
    }.items():
        out = io.BytesIO()
        (clear if "clear" in name else clear.convert("RGB")).save(out, "WEBP", **options)
        made[name] = out.getvalue()
    return made


FILES = files()


@pytest.mark.parametrize("name", FILES)
def test_every_kind_of_file_says_in_the_standard_way_that_no_camera_took_it(
    tmp_path: Path, name: str
) -> None:
    kind = next(kind for kind in ("jpeg", "webp", "png") if kind in name)
    data, mime = FILES[name], f"image/{kind}"
    blob, handle = tmp_path / "blob", hashlib.sha256(data).hexdigest()
    blob.write_bytes(data)
    label = Label(
        prompt='a "fox" & <owl>\x00',
        model="illustrator/'vector' \"v1\"",
        handle=handle,
        source_type="algorithmicMedia",
    )
    path = write_new(tmp_path / "fox", labelled(blob, label, mime))
    with Image.open(path) as image, Image.open(blob) as plain:
        packet = image.info["xmp"] if "xmp" in image.info else image.info["XML:com.adobe.xmp"]
        assert image.convert("RGBA").tobytes() == plain.convert("RGBA").tobytes()
        assert image.info.get("icc_profile") == plain.info.get("icc_profile")
    assert facts(packet) == {
        "DigitalSourceType": "http://cv.iptc.org/newscodes/digitalsourcetype/algorithmicMedia",
        "AISystemUsed": "illustrator/'vector' \"v1\"",
        "CreatorTool": "limner",
        "handle": handle,
        "description": 'a "fox" & <owl> ',
    }
    picture = Picture(handle=handle, mime=mime, width=8, height=6, size_bytes=len(data))
    with path.open("rb") as file:
        assert own_handle(file) == handle
        assert is_copy(file, picture)
        found = read_label(file)
    assert found is not None
    assert found[1] == data


def facts(packet: str | bytes) -> dict[str, str]:
    """What another reader finds in a packet: an XML parser that knows nothing of limner."""
    text = packet if isinstance(packet, str) else packet.decode()
    root = ElementTree.fromstring(text.removeprefix("\ufeff"))
    (about,) = root.iter("{http://www.w3.org/1999/02/22-rdf-syntax-ns#}Description")
    found = {key.partition("}")[2]: value for key, value in about.attrib.items()}
    del found["about"]
    (prompt,) = root.iter("{http://www.w3.org/1999/02/22-rdf-syntax-ns#}li")
    return {**found, "description": prompt.text or ""}


def test_a_prompt_of_any_length_fits_into_a_jpeg(tmp_path: Path) -> None:
    (tmp_path / "blob").write_bytes(FILES["jpeg"])
    label = Label(prompt="&" * 70_000, model="m", handle=hashlib.sha256(FILES["jpeg"]).hexdigest())
    path = write_new(tmp_path / "fox.jpg", labelled(tmp_path / "blob", label, "image/jpeg"))
    with Image.open(path) as image:
        image.load()
        assert b"trainedAlgorithmicMedia" in image.info["xmp"]
    with path.open("rb") as file:
        assert own_handle(file) == label.handle


prompts = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)


@given(prompt=prompts, model=prompts)
def test_property_a_labelled_file_is_recognized_with_any_label(prompt: str, model: str) -> None:
    data = joined(labelled(Path(), Label(prompt=prompt, model=model, handle=HANDLE)))
    assert own_handle(io.BytesIO(data)) == HANDLE
    assert is_copy(io.BytesIO(data), PICTURE)


@given(data=st.data())
def test_property_one_other_byte_and_it_is_another_picture(data: st.DataObject) -> None:
    place = data.draw(st.sampled_from([*range(33), *range(len(LABELLED) - 40, len(LABELLED))]))
    changed = bytearray(LABELLED)
    changed[place] ^= data.draw(st.integers(1, 255))
    assert own_handle(io.BytesIO(changed)) is None
    assert not is_copy(io.BytesIO(changed), PICTURE)


@given(data=st.binary(max_size=200))
def test_property_random_bytes_have_no_handle(data: bytes) -> None:
    for start in (b"", PLAIN[:33], LABELLED[:-60]):
        assert own_handle(io.BytesIO(start + data)) is None


def test_a_file_without_a_label_is_a_copy_too() -> None:
    assert is_copy(io.BytesIO(PLAIN), PICTURE)
    assert own_handle(io.BytesIO(PLAIN)) is None
    assert not is_copy(io.BytesIO(PLAIN[:-1] + b"?"), PICTURE)


def test_a_label_on_another_picture_proves_nothing() -> None:
    forged = joined(labelled(Path(), LABEL), encoded(colour="blue"))
    assert own_handle(io.BytesIO(forged)) is None
    assert not is_copy(io.BytesIO(forged), PICTURE)


@pytest.fixture(scope="module")
def imaging() -> Iterator[Imaging]:
    pool = Imaging(workers=1)
    yield pool
    asyncio.run(pool.aclose())


@pytest.fixture
async def pictures(tmp_path: Path, imaging: Imaging) -> AsyncIterator[Pictures]:
    store = Store(tmp_path / "limner.db")
    blobs = Blobs(tmp_path / "blobs")
    now = datetime(2026, 11, 15, 12, tzinfo=UTC)
    yield Pictures(blobs=blobs, store=store, imaging=imaging, clock=lambda: now)
    await store.aclose()


async def test_a_file_that_was_written_here_is_the_picture_it_was_written_from(
    pictures: Pictures, tmp_path: Path
) -> None:
    with pictures.sink() as sink:
        sink.write(PLAIN)
        picture = await pictures.take(sink, lineage={"prompt": "a fox"})
    path = write_new(tmp_path / "fox.png", labelled(pictures.local_path(picture), LABEL))
    assert await pictures.take_file(path) == picture == PICTURE
    assert [file.name for file in (tmp_path / "blobs").rglob("*") if file.is_file()] == [HANDLE]


async def test_a_file_that_was_written_elsewhere_is_stored_unchanged(
    pictures: Pictures, tmp_path: Path
) -> None:
    path = write_new(tmp_path / "fox.png", LABELLED)
    taken = await pictures.take_file(path)
    assert taken.handle == hashlib.sha256(LABELLED).hexdigest()
    assert await pictures.original(taken) == LABELLED


async def test_a_picture_whose_bytes_are_missing_is_stored_again(
    pictures: Pictures, tmp_path: Path
) -> None:
    with pictures.sink() as sink:
        sink.write(PLAIN)
        picture = await pictures.take(sink, lineage={})
    path = write_new(tmp_path / "fox.png", labelled(pictures.local_path(picture), LABEL))
    pictures.local_path(picture).unlink()
    assert (await pictures.take_file(path)).handle == hashlib.sha256(LABELLED).hexdigest()
