"""Bytes -> fitted bytes by Pillow alone: the rules of the seed, plainly written down."""

from __future__ import annotations

import io

from PIL import Image, ImageOps

EDGE = 1568
MAX_BYTES = 500 * 1024
QUALITY = 75
QUALITIES = (70, 60, 50, 40)
SCALES = (0.75, 0.5, 0.35, 0.25)
MIN_EDGE = 100
EXIF_ORIENTATION = 0x0112

Fitted = tuple[bytes, str, int, int]


def ladder(data: bytes) -> Fitted:
    """The original where it is small, else the smallest of three formats, then ever smaller."""
    picture = Image.open(io.BytesIO(data))
    if _may_pass(picture, data):
        return data, Image.MIME[picture.format or ""], *picture.size
    picture = _shrunk(picture)
    best = _smallest(picture, ("PNG", "JPEG", "WEBP"), QUALITY)
    rungs = [(scale, quality) for scale in (1, *SCALES) for quality in QUALITIES]
    for scale, quality in rungs:
        size = (round(picture.width * scale), round(picture.height * scale))
        if len(best[0]) <= MAX_BYTES or min(size) < MIN_EDGE:
            break
        scaled = picture if scale == 1 else picture.resize(size, Image.Resampling.LANCZOS)
        best = min(best, _smallest(scaled, ("JPEG", "WEBP"), quality), key=lambda got: len(got[0]))
    return best


def target(size: tuple[int, int]) -> tuple[int, int]:
    """A size within the box, in proportion."""
    scale = min(1, EDGE / max(size))
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


def eight_bit(picture: Image.Image) -> Image.Image:
    """As grey or colours that can be averaged, with alpha where there is some."""
    if picture.mode.startswith("I"):
        return picture.convert("I").point(lambda value: value * (1 / 256)).convert("L")
    if picture.mode in ("L", "RGB", "RGBA"):
        return picture
    return picture.convert("RGBA" if picture.has_transparency_data else "RGB")


def encode(picture: Image.Image, kind: str, quality: int) -> bytes:
    """In one of Pillow's formats; a JPEG shows transparency on white."""
    if kind == "JPEG" and picture.mode == "RGBA":
        white = Image.new("RGB", picture.size, "white")
        white.paste(picture, mask=picture.getchannel("A"))
        picture = white
    sink = io.BytesIO()
    picture.save(sink, kind, quality=quality)
    return sink.getvalue()


def _may_pass(picture: Image.Image, data: bytes) -> bool:
    # Asking a PNG for EXIF it does not have would decode it.
    turned = "exif" in picture.info and picture.getexif().get(EXIF_ORIENTATION, 1) != 1
    return max(picture.size) <= EDGE and len(data) <= MAX_BYTES // 4 and not turned


def _shrunk(picture: Image.Image) -> Image.Image:
    if picture.format != "JPEG":
        # Only a JPEG can be decoded small; the others need pixels that can be averaged first.
        picture = eight_bit(picture)
    picture.thumbnail((EDGE, EDGE), Image.Resampling.LANCZOS)
    return ImageOps.exif_transpose(eight_bit(picture))


def _smallest(picture: Image.Image, kinds: tuple[str, ...], quality: int) -> Fitted:
    candidates = [(encode(picture, kind, quality), Image.MIME[kind]) for kind in kinds]
    return *min(candidates, key=lambda candidate: len(candidate[0])), *picture.size
