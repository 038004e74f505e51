from __future__ import annotations

import json
import os
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from imaging_samples import encoded
from PIL import Image, ImageDraw, ImageFont

from limner.errors import ImageTooLarge
from limner.imaging import limits
from limner.imaging.evidence import Box, TextLine
from limner.imaging.evidence.measure import MAX_OCR_PIXELS, ocr_size
from limner.imaging.evidence.ocr import (
    BAND_PIXELS,
    ENLARGED_PIXELS,
    MAX_ENLARGEMENT,
    OVERLAP_ROWS,
    bands,
    enlargement,
    is_credible,
    sort_into_rows,
)
from limner.imaging.pool import Imaging
from limner.imaging.process import OCR_WORKER, WorkerJob, WorkerProcess


def piece(text: str, x: int, y: int, *, height: int = 20) -> TextLine:
    box = Box(x=x, y=y, width=10 * len(text), height=height)
    return TextLine(text=text, box=box, confidence=99, row=0)


def page(*lines: str, size: tuple[int, int] = (600, 200)) -> bytes:
    image = Image.new("RGB", size, "white")
    pen = ImageDraw.Draw(image)
    for number, line in enumerate(lines):
        pen.text((40, 40 + 40 * number), line, "black", ImageFont.load_default(20))
    return encoded(image, "PNG")


def test_pieces_of_a_row_come_from_left_to_right_then_the_next_row() -> None:
    scattered = [
        piece("d", 300, 62),
        piece("b", 300, 12),
        piece("c", 10, 60),
        piece("a", 10, 10),
    ]
    assert [(line.text, line.row) for line in sort_into_rows(scattered)] == [
        ("a", 0),
        ("b", 0),
        ("c", 1),
        ("d", 1),
    ]


def test_small_lines_beside_a_large_one_stay_apart() -> None:
    lines = sort_into_rows(
        [piece("99", 0, 0, height=60), piece("new", 200, 2), piece("mail", 200, 34)]
    )
    assert [line.row for line in sorted(lines, key=lambda line: line.text)] == [1, 2, 0]


boxes = st.builds(piece, st.just("x"), st.integers(0, 500), st.integers(0, 500))


@given(st.lists(boxes, max_size=30))
def test_no_piece_is_lost_and_rows_go_down(pieces: list[TextLine]) -> None:
    ordered = sort_into_rows(pieces)
    assert sorted((line.box.x, line.box.y) for line in ordered) == sorted(
        (line.box.x, line.box.y) for line in pieces
    )
    assert [line.row for line in ordered] == sorted(line.row for line in ordered)


@given(st.integers(1, 20_000), st.integers(1, 60_000))
def test_bands_keep_every_row_once_and_stay_within_memory(width: int, height: int) -> None:
    parts = bands(width, height)
    assert [part.keep_from for part in parts[1:]] == [part.keep_to for part in parts[:-1]]
    assert (parts[0].keep_from, parts[-1].keep_to) == (0, height)
    for part in parts:
        assert 0 <= part.start <= part.keep_from < part.keep_to <= part.stop <= height
        assert (part.stop - part.start) * width <= max(BAND_PIXELS, 2 * OVERLAP_ROWS * width)
    inner = [part.stop - after.start for part, after in pairwise(parts)]
    assert all(shared >= OVERLAP_ROWS - 1 for shared in inner)


@given(st.integers(1, 30_000), st.integers(1, 30_000))
def test_ocr_gets_a_picture_that_is_neither_tiny_nor_huge(width: int, height: int) -> None:
    wide, high = ocr_size(width, height)
    assert wide * high <= max(MAX_OCR_PIXELS, width, height)
    if width * height <= MAX_OCR_PIXELS:
        assert (wide, high) == (width, height)
    assert 1 <= enlargement(width, height) <= MAX_ENLARGEMENT
    assert width * height < ENLARGED_PIXELS or enlargement(width, height) == 1


@pytest.mark.parametrize(
    ("text", "confidence", "credible"),
    [
        ("Invoice", 80, True),
        ("Invoice", 79, False),
        ("OK", 89, False),
        ("OK", 90, True),
        ("●", 99, False),
        ("--", 99, False),
        (" ", 99, False),
    ],
)
def test_only_text_with_enough_confidence_is_repeated(
    text: str, confidence: int, credible: bool
) -> None:
    assert is_credible(text, confidence) is credible


@pytest.mark.slow
async def test_text_has_its_position_in_the_original(imaging: Imaging) -> None:
    first, second = (await imaging.read_page(page("Total $199.99", "Paid in full"))).lines
    assert (first.text, first.row) == ("Total $199.99", 0)
    assert (second.text, second.row) == ("Paid in full", 1)
    assert 30 <= first.box.x <= 45
    assert 30 <= first.box.y <= 50
    assert 10 <= first.box.height <= 40


async def test_ocr_sees_a_sideways_photo_upright(imaging: Imaging) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    upright = Image.new("RGB", (400, 300), "white")
    ImageDraw.Draw(upright).text((40, 100), "This way up", "black", ImageFont.load_default(32))
    stored = upright.transpose(Image.Transpose.ROTATE_90)
    (line,) = (await imaging.read_page(encoded(stored, "JPEG", exif=exif, quality=95))).lines
    assert line.text == "This way up"


async def test_ocr_sees_transparency_as_white(imaging: Imaging) -> None:
    image = Image.new("RGBA", (400, 120), (0, 0, 0, 0))
    ImageDraw.Draw(image).text((30, 40), "See through", "black", ImageFont.load_default(28))
    (line,) = (await imaging.read_page(encoded(image, "PNG"))).lines
    assert line.text == "See through"


@pytest.mark.slow
async def test_the_ocr_worker_stays_warm_and_ends_with_its_pool() -> None:
    pool = Imaging(workers=1)
    before = _ocr_workers()
    await pool.read_page(page("one"))
    (worker,) = _ocr_workers() - before
    await pool.read_page(page("two"))
    assert _ocr_workers() - before == {worker}
    await pool.aclose()
    assert _ocr_workers() == before


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux only")
def test_an_ocr_worker_that_runs_out_of_memory_reports_it_and_goes_on() -> None:
    small = limits.WorkerLimits(memory_bytes=900 << 20, cpu_s=120, timeout_s=120)
    worker = WorkerProcess(small, OCR_WORKER)
    try:
        with pytest.raises(ImageTooLarge, match="memory"):
            worker.do(_job(2000, 2000))
        assert json.loads(worker.do(_job(40, 40)).payload)["lines"] == []
    finally:
        worker.close()


def _job(width: int, height: int) -> WorkerJob:
    sizes = {"width": width, "height": height}
    original = {"original_width": width, "original_height": height}
    return WorkerJob(header={"op": "ocr", **sizes, **original}, payload=bytes(3 * width * height))


def _ocr_workers() -> set[int]:
    """The OCR workers that this process started, as the system sees them."""
    found: set[int] = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if parent == os.getpid() and OCR_WORKER.encode() in command:
            found.add(int(folder.name))
    return found
