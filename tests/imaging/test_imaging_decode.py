"""Formats that are not accepted or lack their extra, and pages that do not exist."""

from __future__ import annotations

from pathlib import Path

import pytest
from format_samples import ALL, CORNERS, QUARTERS, SAMPLES, corners, pdf, scene, strip, tiff
from imaging_samples import SMALL_PNG, encoded
from PIL import Image

from limner.errors import ImageError, InputInvalid, UnrecognizedImage
from limner.imaging.facts import Facts
from limner.imaging.fit import FitRequest
from limner.imaging.pool import Imaging

USUAL = "use a PNG, JPEG, GIF or WebP file"
FILES = {name: SAMPLES[name][1] for name in ALL & SAMPLES.keys()} | {"pdf": pdf(QUARTERS)}
LABELS = {
    "avif": "an AVIF file",
    "bmp": "a BMP file",
    "heic": "a HEIC file",
    "ico": "an ICO file",
    "pdf": "a PDF file",
    "svg": "an SVG file",
    "tiff": "a TIFF file",
}


async def refused(pool: Imaging, data: bytes) -> tuple[type[ImageError], str, str | None]:
    with pytest.raises(ImageError) as caught:
        await pool.verify(data)
    return type(caught.value), caught.value.message, caught.value.hint


@pytest.mark.parametrize("name", sorted(ALL))
async def test_a_known_format_that_is_not_accepted_says_which_setting_accepts_it(
    imaging: Imaging, name: str
) -> None:
    assert await refused(imaging, FILES[name]) == (
        UnrecognizedImage,
        f"this is {LABELS[name]}, which is not accepted here",
        f"{USUAL}, or set images.accept (LIMNER_IMAGES_ACCEPT=png,jpeg,gif,webp,{name})",
    )


async def test_the_setting_that_is_named_keeps_what_is_accepted_already() -> None:
    async with Imaging(workers=1, accept=["tiff", "bmp"]) as pool:
        _, _, hint = await refused(pool, FILES["ico"])
        assert await pool.verify(SMALL_PNG) == Facts(mime="image/png", width=3, height=2, frames=1)
    assert hint == (
        "use a PNG, JPEG, GIF, WebP, BMP or TIFF file, or set images.accept "
        "(LIMNER_IMAGES_ACCEPT=png,jpeg,gif,webp,bmp,tiff,ico)"
    )


async def test_html_is_refused_by_every_pool(wide: Imaging) -> None:
    titles = "PNG, JPEG, GIF, WebP, AVIF, BMP, HEIC, ICO, PDF, SVG or TIFF"
    assert await refused(wide, b"<!doctype html><svg/>") == (
        UnrecognizedImage,
        "this is an HTML page, which is not accepted here",
        f"use a {titles} file",
    )


def test_an_unknown_format_is_an_error_at_once() -> None:
    with pytest.raises(ValueError, match="no such format: 'jpg'"):
        Imaging(accept={"jpg"})


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers that start now find neither extra installed: Python itself hides the packages."""
    hidden = "import sys\nsys.modules.update(pillow_heif=None, pypdfium2=None)\n"
    (tmp_path / "sitecustomize.py").write_text(hidden)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.parametrize("name", ["heic", "pdf"])
@pytest.mark.usefixtures("bare")
async def test_a_format_without_its_extra_names_the_command_that_installs_it(name: str) -> None:
    command = f"pip install 'limner[{name}]'"
    async with Imaging(workers=1, accept=ALL) as pool:
        assert await refused(pool, FILES[name]) == (
            UnrecognizedImage,
            f"this is {LABELS[name]}, and the package that decodes it is not installed",
            command,
        )
        assert corners(await pool.convert(FILES["avif"])) == CORNERS
    async with Imaging(workers=1) as pool:
        _, _, hint = await refused(pool, FILES[name])
    setting = f"LIMNER_IMAGES_ACCEPT=png,jpeg,gif,webp,{name}"
    assert hint == f"{USUAL}, or set images.accept ({setting}) and run: {command}"


TURNED = scene().transpose(Image.Transpose.ROTATE_90)
PAGED = {
    "pdf": pdf(QUARTERS, b"1 0 0 rg 0 0 48 32 re f", b""),
    "tiff": encoded(scene(), "TIFF", save_all=True, append_images=[TURNED, scene()]),
    "tiff by LZW": encoded(
        scene(), "TIFF", compression="tiff_lzw", save_all=True, append_images=[TURNED, scene()]
    ),
}


@pytest.mark.parametrize("name", PAGED)
async def test_the_requested_page_is_sent(wide: Imaging, name: str) -> None:
    facts = await wide.verify(PAGED[name])
    assert (facts.frames, facts.pages) == (1, 3)
    first, sent = await wide.fit(PAGED[name], FitRequest())
    assert (first.pages, first.animated, corners(sent)) == (3, False, CORNERS)
    second, sent = await wide.fit(PAGED[name], FitRequest(page=2))
    assert (second.pages, corners(sent)) == (
        3,
        ("red",) * 4 if name == "pdf" else ("lime", "white", "red", "blue"),
    )
    assert (await wide.fit(PAGED[name], FitRequest(page=3)))[0].pages == 3


@pytest.mark.parametrize("page", [-1, 0, 4, 2**70])
@pytest.mark.parametrize("name", PAGED)
async def test_a_page_that_does_not_exist_says_how_many_there_are(
    wide: Imaging, name: str, page: int
) -> None:
    with pytest.raises(InputInvalid) as caught:
        await wide.fit(PAGED[name], FitRequest(page=page))
    assert (caught.value.message, caught.value.hint) == (
        f"there is no page {page}: the file has 3 pages",
        "Give a page from 1 to 3.",
    )


@pytest.mark.parametrize("name", sorted(ALL))
async def test_a_second_page_of_a_picture_does_not_exist(wide: Imaging, name: str) -> None:
    with pytest.raises(InputInvalid) as caught:
        await wide.fit(FILES[name], FitRequest(page=2))
    assert (caught.value.message, caught.value.hint) == (
        "there is no page 2: the file has 1 page",
        "Leave the page out.",
    )


@pytest.mark.parametrize(("kind", "pages"), [(0, 2), (1, 1)])
async def test_smaller_copies_in_a_tiff_are_not_pages(wide: Imaging, kind: int, pages: int) -> None:
    pixels = scene().tobytes()
    tags = strip(48, 32, [8, 8, 8], 2, len(pixels))
    first, second = (bytearray(tiff(tags | {254: value}, pixels)) for value in (0, kind))
    next_at = 8 + 2 + 10 * 12
    first[next_at : next_at + 4] = len(first).to_bytes(4, "little")
    facts = await wide.verify(bytes(first + second[8:]))
    assert facts == Facts(mime="image/tiff", width=48, height=32, frames=1, pages=pages)
