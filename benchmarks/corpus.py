"""A folder -> pictures of every kind that people hand to a model, made once and kept.

The folder's name holds a digest of everything that decides the pictures, so a change here or in
the painters makes them anew and a cached set is never stale.
"""

from __future__ import annotations

import hashlib
import io
import random
import shutil
import struct
import zlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import PIL
from PIL import Image, ImageFilter

from benchmarks.drawings import chart, diagram, icon_tile, line_art, logo, scan
from benchmarks.photos import noise, photo
from benchmarks.screens import code, desktop, full_screen, page, table

PAINTERS = ("corpus.py", "drawings.py", "photos.py", "screens.py")
EXIF_ORIENTATION = 0x0112
# What Pillow must do to store an upright picture under each EXIF orientation.
STORED_AS = {3: Image.Transpose.ROTATE_180, 6: Image.Transpose.ROTATE_90}

Paint = Callable[[], Image.Image]
Pack = Callable[[Image.Image], bytes]


@dataclass(frozen=True, slots=True)
class Entry:
    """One picture: its file name, how it is painted, and how it is encoded."""

    name: str
    paint: Paint
    pack: Pack
    quick: bool = False  # part of the small set


def corpus(folder: Path, *, quick: bool = False) -> list[Path]:
    """The paths of the pictures under ``folder``, making those that are missing."""
    return make(folder, [one for one in ENTRIES if one.quick or not quick], painters=PAINTERS)


def make(folder: Path, wanted: Sequence[Entry], *, painters: Collection[str]) -> list[Path]:
    """The paths of some pictures; ``painters`` are the modules that decide how they look."""
    home = folder / _digest(painters)
    if not home.exists():
        shutil.rmtree(folder, ignore_errors=True)
        home.mkdir(parents=True)
    missing = [entry for entry in wanted if not (home / entry.name).exists()]
    if missing:
        print(f"making {len(missing)} pictures, once (about a minute for all)", flush=True)
    for entry in missing:
        # Renamed when whole, so that an interrupted run leaves no half picture behind.
        part = home / f"{entry.name}.part"
        part.write_bytes(entry.pack(entry.paint()))
        part.rename(home / entry.name)
    return [home / entry.name for entry in wanted]


def _digest(painters: Collection[str]) -> str:
    sources = sorted(Path(__file__).parent.glob("*.py"))
    texts = [path.read_bytes() for path in sources if path.name in painters]
    return hashlib.sha256(b"".join([PIL.__version__.encode(), *texts])).hexdigest()[:16]


# How a picture is encoded


def encode(picture: Image.Image, *, kind: str, **options: object) -> bytes:
    """The picture in a format of Pillow's."""
    sink = io.BytesIO()
    picture.save(sink, kind, **options)
    return sink.getvalue()


def jpeg(quality: int = 90, **options: object) -> Pack:
    return partial(encode, kind="JPEG", quality=quality, **options)


def webp(**options: object) -> Pack:
    return partial(encode, kind="WEBP", **options)


def png(mode: str | None = None) -> Pack:
    """As PNG, converted to a mode of Pillow's first where one is named."""
    return lambda picture: encode(picture.convert(mode) if mode else picture, kind="PNG")


def palette_png(picture: Image.Image) -> bytes:
    """256 colours, transparency included where there is some."""
    method = Image.Quantize.FASTOCTREE if picture.mode == "RGBA" else Image.Quantize.MEDIANCUT
    return encode(picture.quantize(256, method), kind="PNG")


def rotated_jpeg(orientation: int) -> Pack:
    """Stored turned, with the EXIF tag that says how to turn it back."""

    def pack(picture: Image.Image) -> bytes:
        exif = Image.Exif()
        exif[EXIF_ORIENTATION] = orientation
        stored = picture.transpose(STORED_AS[orientation])
        return encode(stored, kind="JPEG", quality=90, exif=exif)

    return pack


def animated(kind: str, *, frames: int) -> Pack:
    """The picture sliding past, frame by frame."""

    def pack(picture: Image.Image) -> bytes:
        width, height = picture.width * 3 // 4, picture.height
        views = [picture.crop((step, 0, step + width, height)) for step in range(0, frames * 8, 8)]
        return encode(views[0], kind=kind, save_all=True, append_images=views[1:], duration=80)

    return pack


def deep_png(picture: Image.Image) -> bytes:
    """16 bits in each channel; Pillow itself writes such PNG only in grey."""
    grey = picture.mode == "L"
    high = picture.tobytes()
    samples = bytearray(2 * len(high))
    samples[::2] = high
    samples[1::2] = random.Random("deep").randbytes(len(high))
    stride = len(samples) // picture.height
    rows = (samples[start : start + stride] for start in range(0, len(samples), stride))
    raw = b"".join(b"\0" + row for row in rows)
    header = struct.pack(">IIBBBBB", *picture.size, 16, 0 if grey else 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(raw, 6)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, body) for kind, body in chunks)


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


# How a picture is painted


def _photo(width: int, height: int, *, seed: int, mode: str = "RGB") -> Paint:
    return lambda: photo((width, height), seed=seed).convert(mode)


def _soft_photo(width: int, height: int, *, seed: int) -> Paint:
    """Out of focus but for a disc in the middle, as a portrait is."""

    def paint() -> Image.Image:
        sharp = photo((width, height), seed=seed)
        near = Image.radial_gradient("L").resize(sharp.size)
        blurred = sharp.filter(ImageFilter.GaussianBlur(width / 400))
        return Image.composite(blurred, sharp, near.point([min(255, 2 * v) for v in range(256)]))

    return paint


def _photo_desktop() -> Image.Image:
    return desktop((3840, 2160), seed=2, scale=1.5, wallpaper=photo((1920, 1080), seed=14))


def _corners_cut() -> Image.Image:
    """A window grabbed with its transparent corners."""
    grabbed = full_screen((2880, 1800), page, seed=7, scale=2).convert("RGBA")
    grabbed.paste((0, 0, 0, 0), (0, 0, 24, 24))
    grabbed.paste((0, 0, 0, 0), (2856, 0, 2880, 24))
    return grabbed


ENTRIES: tuple[Entry, ...] = (
    Entry("photo-24mp.jpg", _photo(6000, 4000, seed=1), jpeg(), quick=True),
    Entry("photo-12mp.jpg", _photo(4032, 3024, seed=2), jpeg(), quick=True),
    Entry("photo-12mp-best.jpg", _photo(4000, 3000, seed=3), jpeg(95, subsampling=0)),
    Entry("photo-12mp-soft.jpg", _soft_photo(3000, 4000, seed=4), jpeg(85)),
    Entry("photo-12mp-exif-6.jpg", _photo(3024, 4032, seed=5), rotated_jpeg(6), quick=True),
    Entry("photo-8mp-exif-3.jpg", _photo(3264, 2448, seed=6), rotated_jpeg(3)),
    Entry("photo-12mp-progressive.jpg", _photo(4032, 3024, seed=7), jpeg(progressive=True)),
    Entry("photo-5mp-progressive.jpg", _photo(2592, 1944, seed=8), jpeg(progressive=True)),
    Entry("photo-6mp-cmyk.jpg", _photo(3000, 2000, seed=9, mode="CMYK"), jpeg()),
    Entry("photo-6mp-grey.jpg", _photo(3000, 2000, seed=10, mode="L"), jpeg(), quick=True),
    Entry("photo-panorama.jpg", _photo(8000, 2000, seed=11), jpeg()),
    Entry("photo-2mp.jpg", _photo(1600, 1200, seed=12), jpeg()),
    Entry("photo-thumbnail.jpg", _photo(400, 300, seed=13), jpeg(80), quick=True),
    Entry("photo-3mp.png", _photo(2048, 1536, seed=15), png()),
    Entry("photo-2mp-16-bit.png", _photo(1600, 1200, seed=16), deep_png),
    Entry("photo-3mp-16-bit-grey.png", _photo(2000, 1500, seed=17, mode="L"), deep_png),
    Entry("photo-12mp.webp", _photo(4000, 3000, seed=18), webp(quality=80)),
    Entry("photo-6mp.webp", _photo(3000, 2000, seed=19), webp(quality=80), quick=True),
    Entry("photo.gif", _photo(1200, 800, seed=20), partial(encode, kind="GIF")),
    Entry("animation.gif", _photo(640, 480, seed=21), animated("GIF", frames=12)),
    Entry("animation.webp", _photo(640, 480, seed=22), animated("WEBP", frames=8)),
    Entry("screen-4k.png", lambda: desktop((3840, 2160), seed=1, scale=1.5), png(), quick=True),
    Entry("screen-4k-photo.png", _photo_desktop, png()),
    Entry("screen-1080p-code.png", lambda: full_screen((1920, 1080), code, seed=3), png()),
    Entry(
        "screen-9000-long.png", lambda: full_screen((1280, 9000), page, seed=4), png(), quick=True
    ),
    Entry("screen-9000-long.jpg", lambda: full_screen((1080, 9000), page, seed=5), jpeg(85)),
    Entry("screen-phone.png", lambda: full_screen((1170, 2532), page, seed=6, scale=2.4), png()),
    Entry("screen-window-alpha.png", _corners_cut, png()),
    Entry("screen-palette.png", lambda: desktop((1920, 1080), seed=8), palette_png),
    Entry("screen-1440p.jpg", lambda: desktop((2560, 1440), seed=9), jpeg(85)),
    Entry(
        "screen-1440p-lossless.webp", lambda: desktop((2560, 1440), seed=10), webp(lossless=True)
    ),
    Entry("screen-small-table.png", lambda: full_screen((1366, 768), table, seed=11), png()),
    Entry("line-art-1-bit.png", lambda: line_art((3000, 3000), seed=1), png("1")),
    Entry("line-art-grey.png", lambda: line_art((2400, 2400), seed=2), png(), quick=True),
    Entry("chart.png", lambda: chart((2000, 1200), seed=1), png()),
    Entry("chart-small.gif", lambda: chart((1000, 600), seed=2), partial(encode, kind="GIF")),
    Entry("diagram-transparent.png", lambda: diagram((1800, 1400), seed=1), png(), quick=True),
    Entry("diagram-palette.png", lambda: diagram((1800, 1200), seed=2), palette_png),
    Entry("logo-transparent.png", lambda: logo((1024, 1024), seed=1), png()),
    Entry("logo-transparent.webp", lambda: logo((2000, 2000), seed=2), webp(quality=85)),
    Entry("scan-a4.jpg", lambda: scan((2480, 3508), seed=1), jpeg(85)),
    Entry("noise.png", lambda: noise((1568, 1568), seed=1), png()),
    Entry("noise-6mp.jpg", lambda: noise((3000, 2000), seed=2), jpeg(75)),
    Entry("icon-32.png", lambda: icon_tile(32, seed=1), png(), quick=True),
    Entry("icon-64.gif", lambda: icon_tile(64, seed=2), partial(encode, kind="GIF")),
    Entry("icon-256.png", lambda: icon_tile(256, seed=3), png()),
)
