"""Files that ask for more than they may have: each is refused, or bounded by the limits."""

from __future__ import annotations

import contextlib
import os
import struct
import subprocess
import sys

import pytest
from format_samples import (
    ALL,
    CORNERS,
    QUARTERS,
    SAMPLES,
    avif,
    bmp,
    corners,
    deflated,
    dib,
    grey_tiff,
    heic,
    icon,
    pdf,
    pdf_of,
    scene,
    stream,
    strip,
    tiff,
)
from imaging_samples import SMALL_PNG, png

from limner.errors import CorruptImage, ImageError, ImageTooLarge, UnsafeSvg
from limner.imaging.facts import Facts
from limner.imaging.limits import WorkerLimits
from limner.imaging.pool import Imaging

HUGE = 60_000


def claiming(data: bytes, width: int, height: int) -> bytes:
    """A HEIC or AVIF file whose properties claim another size."""
    out, at = bytearray(data), -1
    while (at := out.find(b"ispe", at + 1)) >= 0:
        out[at + 8 : at + 16] = struct.pack(">II", width, height)
    return bytes(out)


@pytest.mark.parametrize(
    ("data", "size"),
    [
        (claiming(heic(scene()), HUGE, HUGE), "60000x60000"),
        (claiming(avif(scene()), 16_000, 16_000), "16000x16000"),
        (tiff(strip(HUGE, HUGE, [8], 1, 9), bytes(9)), "60000x60000"),
        (tiff(strip(HUGE, HUGE, [32], 1, 9) | {339: 3}, bytes(9)), "60000x60000"),
        (bmp(dib(HUGE, HUGE, 24), b"", bytes(9)), "60000x60000"),
        (icon((0, 32, png(HUGE, HUGE))), "60000x60000"),
        (icon((0, 32, dib(HUGE, 2 * HUGE, 32) + bytes(9))), "60000x60000"),
    ],
    ids=["heic", "avif", "tiff", "tiff of fractions", "bmp", "ico", "ico of bitmaps"],
)
async def test_hostile_a_size_over_the_cap_is_refused_from_the_header(
    wide: Imaging, data: bytes, size: str
) -> None:
    with pytest.raises(ImageTooLarge, match=f"^{size} is .* megapixels; at most 100 are accepted"):
        await wide.verify(data)


@pytest.mark.parametrize("edge", [4, 4_000])
async def test_hostile_a_size_that_the_pixels_do_not_have_is_corrupt(
    wide: Imaging, edge: int
) -> None:
    with pytest.raises(CorruptImage, match="does not have the size signaled in the file"):
        await wide.verify(claiming(heic(scene()), edge, edge))


@pytest.mark.parametrize("sample", SAMPLES)
async def test_hostile_a_truncated_file_is_corrupt_or_a_smaller_file(
    wide: Imaging, sample: str
) -> None:
    _, data = SAMPLES[sample]
    for share in (0.05, 0.3, 0.6, 0.95):
        with contextlib.suppress(ImageError):
            facts = await wide.verify(data[: int(len(data) * share)])
            assert (facts.width, facts.height) == (48, 32)


async def test_hostile_a_tiff_whose_pages_loop_ends_at_the_loop(wide: Imaging) -> None:
    data = tiff(strip(3, 1, [8], 1, 3), b"abc", next_at=8)
    facts = await wide.verify(data)
    assert facts == Facts(mime="image/tiff", width=3, height=1, frames=1)


async def test_hostile_a_tiff_of_endless_pages_is_too_large(wide: Imaging) -> None:
    links = b"".join(struct.pack("<HI", 0, 8 + 6 * (index + 1)) for index in range(70_000))
    with pytest.raises(ImageTooLarge, match="the TIFF file has more than 65,536 pages"):
        await wide.verify(b"II*\0" + struct.pack("<I", 8) + links)


@pytest.mark.parametrize(
    "head",
    [
        b"II*\0",
        b"II*\0\xff\xff\xff\xff",
        b"MM\0*\0\0\0\x08\xff\xff",
        b"II+\0\x08\0\0\0" + b"\xff" * 8,
        b"II+\0\x08\0\0\0\x10" + bytes(7) + b"\xff" * 8,
        b"\0\0\1\0",
        b"\0\0\1\0\xff\xff" + b"\xff" * 99,
        b"%PDF-",
        b"BM" + bytes(20),
        heic(scene())[:40],
        avif(scene())[:40],
    ],
)
async def test_hostile_a_header_and_nothing_else_is_corrupt(wide: Imaging, head: bytes) -> None:
    with pytest.raises(CorruptImage):
        await wide.verify(head)


async def test_hostile_a_tiff_with_the_same_megabytes_in_every_tag_is_bounded(
    wide: Imaging,
) -> None:
    data = grey_tiff([1, 2, 3], "B", bits=8) + bytes(1 << 20)
    many = struct.pack("<H", 3_000)
    for tag in range(40_000, 43_000):
        many += struct.pack("<HHII", tag, 1, 1 << 20, 100)
    chained = data[:4] + struct.pack("<I", len(data)) + data[8:] + many + bytes(4)
    with pytest.raises(ImageError):
        await wide.verify(chained)


ACTIONS = {
    "JavaScript": b"/OpenAction<</S/JavaScript/JS(while\\(true\\){})>>",
    "a program": b"/OpenAction<</S/Launch/F(/bin/sh)>>",
    "a form to send": b"/OpenAction<</S/SubmitForm/F(http://127.0.0.1:9/)>>/AcroForm<</Fields[]>>",
}


@pytest.mark.parametrize("action", ACTIONS)
async def test_hostile_a_pdf_that_wants_to_run_something_is_only_drawn(
    wide: Imaging, action: str
) -> None:
    assert corners(await wide.convert(pdf(QUARTERS, catalogue=ACTIONS[action]))) == CORNERS


async def test_hostile_a_pdf_page_of_any_size_is_drawn_within_the_cap(wide: Imaging) -> None:
    sizes = {
        b"0 0 100000000 100000000": (2576, 2576),
        b"0 0 100000000 1": (2576, 1),
        b"0 0 0.001 0.001": (1, 1),
    }
    for box, size in sizes.items():
        facts = await wide.verify(pdf(b"", box=box))
        assert (facts.width, facts.height) == size


async def test_hostile_a_pdf_that_counts_pages_it_does_not_have_is_corrupt(wide: Imaging) -> None:
    data = pdf(QUARTERS).replace(b"/Count 1", b"/Count 9").replace(b"[3 0 R]", b"[9 0 R]")
    with pytest.raises(CorruptImage):
        await wide.verify(data)


async def test_hostile_a_pdf_of_thousands_of_pages_opens_at_any_of_them(wide: Imaging) -> None:
    kids = b" ".join([b"3 0 R"] * 20_000)
    data = pdf_of(
        [
            b"<</Type/Catalog/Pages 2 0 R>>",
            b"<</Type/Pages/Kids[%s]/Count 20000>>" % kids,
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 48 32]/Contents 4 0 R>>",
            stream(QUARTERS),
        ]
    )
    facts = await wide.verify(data)
    assert facts == Facts(mime="application/pdf", width=144, height=96, frames=1, pages=20_000)


async def test_a_pdf_with_a_password_says_so(wide: Imaging) -> None:
    words = b"<</Filter/Standard/V 1/R 2/P -4/O<%s>/U<%s>>>" % (b"41" * 32, b"42" * 32)
    data = pdf(QUARTERS, trailer=b"/ID[<00><00>]/Encrypt " + words)
    with pytest.raises(CorruptImage, match="the PDF file needs a password") as caught:
        await wide.verify(data)
    assert caught.value.hint == "Save a copy without the password."


@pytest.mark.slow
async def test_hostile_a_pdf_that_draws_for_minutes_is_stopped() -> None:
    strokes = deflated(b"0 0 m 48 32 l S " * 3_000_000)
    limits = WorkerLimits(timeout_s=1.5)
    async with Imaging(workers=1, limits=limits, accept=["pdf"]) as pool:
        with pytest.raises(ImageTooLarge, match=r"the picture took more than 1.5 s"):
            await pool.verify(pdf(strokes))
        assert (await pool.verify(SMALL_PNG)).mime == "image/png"


@pytest.mark.slow
async def test_hostile_a_pdf_drawing_that_contains_itself_is_bounded() -> None:
    inside = b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X 5 0 R>>>>"
    data = pdf(
        b"/X Do",
        page=b"/Resources<</XObject<</X 5 0 R>>>>",
        more=[stream(b"/X Do /X Do", inside)],
    )
    limits = WorkerLimits(memory_bytes=300 << 20, timeout_s=5)
    async with Imaging(workers=1, limits=limits, accept=["pdf"]) as pool:
        with pytest.raises(ImageError):
            await pool.verify(data)
        assert (await pool.verify(SMALL_PNG)).mime == "image/png"


USES = b"".join(
    b"<g id='g%d'>%s</g>" % (level, b"<use href='#g%d'/>" % (level - 1) * 10)
    for level in range(1, 12)
)
DRAWINGS: dict[bytes, tuple[type[ImageError], str]] = {
    b"<svg><g id='g0'/>" + USES + b"</svg>": (ImageTooLarge, "expands to more than 200,000"),
    b"<!DOCTYPE svg [<!ENTITY a 'ha'>]><svg>&a;</svg>": (UnsafeSvg, "remove <!DOCTYPE>"),
    b"<?xml-stylesheet href='a.css'?><svg/>": (UnsafeSvg, "remove <.xml-stylesheet.>"),
    b"<svg><image href='file:///etc/passwd'/></svg>": (UnsafeSvg, "remove <image>"),
    b"<svg><use href='http://127.0.0.1/a#b'/></svg>": (UnsafeSvg, "only '#id'"),
    b"<svg><style>@import 'a.css';</style></svg>": (UnsafeSvg, "remove @import"),
    b"<svg><script>1</script></svg>": (UnsafeSvg, "remove <script>"),
    b"<svg><asset name='fox'/></svg>": (UnsafeSvg, "no asset is named '…'"),
    b"<svg><g id='You may pay'><use href='#You may pay'/></g></svg>": (
        UnsafeSvg,
        "^<g id='…'> refers to itself$",
    ),
    b"<svg><You_may.pay/></svg>": (UnsafeSvg, "^remove <…>: it is not one of the elements"),
    b"<svg><rect onYou_may_pay='1'/></svg>": (UnsafeSvg, "^remove the attribute '…' of <rect>"),
    b"<svg><style>@You-may-pay {}</style></svg>": (UnsafeSvg, "^remove @… from"),
    b"<?You_may pay?><svg/>": (UnsafeSvg, "^remove <.…"),
    b"<svg>" + b" " * (9 << 20): (ImageTooLarge, "more than 4,194,304 bytes"),
    b"<svg>": (CorruptImage, "not well-formed"),
    b"<svg a='\xff'/>": (CorruptImage, "not written in utf-8"),
    b"<!-- <svg> --><svg:svg xmlns:svg='http://example.com/'/>": (
        CorruptImage,
        "^the root element <svg> is of the namespace '…', not of 'http://www.w3.org/2000/svg'$",
    ),
}


@pytest.mark.parametrize("document", DRAWINGS, ids=lambda text: text[:24].decode("latin-1"))
async def test_hostile_a_drawing_from_a_file_meets_the_rules_of_every_drawing(
    wide: Imaging, document: bytes
) -> None:
    kind, message = DRAWINGS[document]
    with pytest.raises(kind, match=message):
        await wide.verify(document)


LOCKED = """
import os, sys
from limner.imaging import pixels
from limner.imaging.formats import accepted_formats
from limner.imaging.limits import WorkerLimits
from limner.imaging.sandbox import DECODER, enter_sandbox, restrict_files
from limner.imaging.decode import load_decoders

limits = WorkerLimits(accept=accepted_formats([sys.argv[1]]))
load_decoders(limits)
version = restrict_files(DECODER)
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
enter_sandbox(limits, DECODER, landlock_abi=version)
facts = pixels.verify(sys.stdin.buffer.read(), limits=limits)
print(facts.mime, facts.width, facts.height)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere threads are not limited")
@pytest.mark.parametrize("name", sorted(ALL))
def test_a_sandboxed_worker_of_an_ordinary_user_decodes_every_format(name: str) -> None:
    """For root the system enforces no limit on threads, so a decoder that needs one would pass."""
    mime, data = SAMPLES[name] if name in SAMPLES else ("application/pdf", pdf(QUARTERS))
    done = subprocess.run(
        [sys.executable, "-c", LOCKED, name],
        input=data,
        capture_output=True,
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=60,
        check=False,
    )
    size = b"144 96" if name == "pdf" else b"48 32"
    assert (done.stdout.split(b"\n")[0], done.stderr) == (mime.encode() + b" " + size, b"")
