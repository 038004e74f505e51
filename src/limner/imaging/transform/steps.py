"""Untrusted bytes and a request -> the transformed picture. Runs inside a worker only."""

from __future__ import annotations

import math
from io import BytesIO

from PIL import Image, ImageFilter, ImageOps

from limner.errors import ImageTooLarge, InputInvalid
from limner.imaging.decode import open_picture
from limner.imaging.fit.encoders import jpeg, webp
from limner.imaging.fit.request import Region
from limner.imaging.limits import WorkerLimits
from limner.imaging.orientation import (
    check_pixels,
    convert_to_srgb,
    flatten_on_white,
    turn_upright,
)
from limner.imaging.pixels import encode
from limner.imaging.svg.renderer import render
from limner.imaging.transform.background import cut_out
from limner.imaging.transform.request import Transformed, TransformRequest

# A blurred part shows no more than this many blocks on its shorter side.
_BLOCKS = 6
_MIN_QUALITY, _MAX_QUALITY = 30, 90
_SMALLER = 0.85
_MIN_EDGE = 16


def transform(
    data: bytes, request: TransformRequest, *, limits: WorkerLimits
) -> tuple[Transformed, bytes]:
    """Do each step of a request with a picture.

    Raises:
        ImageError: as `open_picture`; or the background is not flat.
        InputInvalid: a part lies outside the picture.
        ImageTooLarge: the result is over a limit, or does not fit into its bytes.
    """
    _, opened = open_picture(data, limits=limits)
    picture = convert_to_srgb(turn_upright(opened.image, opened.orientation))
    for part in request.blur:
        picture = _blurred(picture, part)
    if request.overlay is not None:
        picture = _overlaid(picture, request.overlay, limits)
    if request.crop is not None:
        picture = picture.crop(_box(request.crop, picture, "crop"))
    picture = _turned(picture, request)
    if request.grey:
        picture = picture.convert("LA" if picture.has_transparency_data else "L")
        picture = picture.convert("RGBA" if picture.mode == "LA" else "RGB")
    if request.cut_out:
        picture = cut_out(picture)
    picture = _resized(picture, request, limits)
    picture = _padded(picture, request, limits)
    notes: list[str] = []
    if request.max_bytes is None:
        result = encode(picture, request.to)
    else:
        picture, result = _within_bytes(picture, request, request.max_bytes, notes)
    return Transformed(width=picture.width, height=picture.height, notes=tuple(notes)), result


def _box(part: Region, picture: Image.Image, field: str) -> tuple[int, int, int, int]:
    right, lower = part.x + part.width, part.y + part.height
    if right > picture.width or lower > picture.height:
        size = f"{picture.width}x{picture.height}"
        raise InputInvalid(f"{field} lies outside the picture, which is {size}", field=field)
    return part.x, part.y, right, lower


def _overlaid(picture: Image.Image, overlay: str, limits: WorkerLimits) -> Image.Image:
    drawn = render(overlay, width=picture.width, height=picture.height, assets={}, limits=limits)
    layer = Image.open(BytesIO(drawn), formats=["PNG"]).convert("RGBA")
    result = Image.alpha_composite(picture.convert("RGBA"), layer)
    return result if picture.has_transparency_data else result.convert("RGB")


def _blurred(picture: Image.Image, part: Region) -> Image.Image:
    """Replace a part by a few blocks of its mean colours: what was there cannot be computed."""
    box = _box(part, picture, "blur")
    shorter = min(part.width, part.height)
    blocks = (
        max(1, math.ceil(part.width * _BLOCKS / shorter)),
        max(1, math.ceil(part.height * _BLOCKS / shorter)),
    )
    content = picture.crop(box).convert("RGBA" if picture.has_transparency_data else "RGB")
    coarse = content.resize(blocks, Image.Resampling.BOX)
    smooth = coarse.resize(content.size, Image.Resampling.BICUBIC)
    result = picture.convert(content.mode)
    result.paste(smooth.filter(ImageFilter.GaussianBlur(shorter / _BLOCKS / 2)), box)
    return result


def _turned(picture: Image.Image, request: TransformRequest) -> Image.Image:
    degrees = request.rotate % 360
    if degrees in (90, 180, 270):
        # Pillow turns to the left.
        turn = {90: "ROTATE_270", 180: "ROTATE_180", 270: "ROTATE_90"}[int(degrees)]
        picture = picture.transpose(Image.Transpose[turn])
    elif degrees:
        fill = _fill(picture, request)
        picture = picture.convert("RGBA") if len(fill) == 4 else flatten_on_white(picture)
        picture = picture.rotate(
            -degrees, resample=Image.Resampling.BICUBIC, expand=True, fillcolor=fill
        )
    if request.flip == "horizontal":
        return ImageOps.mirror(picture)
    return ImageOps.flip(picture) if request.flip == "vertical" else picture


def _fill(picture: Image.Image, request: TransformRequest) -> tuple[int, ...]:
    """The colour of what is added around a picture; a JPEG has no transparency."""
    if request.background is not None:
        text = request.background
        plain = tuple(int(text[at : at + 2], 16) for at in (1, 3, 5))
        return (*plain, 255) if picture.has_transparency_data else plain
    return (255, 255, 255) if request.to == "jpeg" else (0, 0, 0, 0)


def _resized(picture: Image.Image, request: TransformRequest, limits: WorkerLimits) -> Image.Image:
    wide, high = picture.size
    if request.scale is not None:
        size = round(wide * request.scale), round(high * request.scale)
    elif request.width is not None and request.height is not None:
        size = request.width, request.height
    elif request.width is not None:
        size = request.width, round(high * request.width / wide)
    elif request.height is not None:
        size = round(wide * request.height / high), request.height
    else:
        return picture
    size = max(size[0], 1), max(size[1], 1)
    check_pixels(size, max_pixels=limits.max_pixels)
    return picture.resize(size, Image.Resampling.LANCZOS)


def _padded(picture: Image.Image, request: TransformRequest, limits: WorkerLimits) -> Image.Image:
    wide, high = picture.width + 2 * request.margin, picture.height + 2 * request.margin
    if request.canvas is not None:
        wide, high = max(wide, request.canvas[0]), max(high, request.canvas[1])
    if (wide, high) == picture.size:
        return picture
    check_pixels((wide, high), max_pixels=limits.max_pixels)
    fill = _fill(picture, request)
    result = Image.new("RGBA" if len(fill) == 4 else "RGB", (wide, high), fill)
    place = (wide - picture.width) // 2, (high - picture.height) // 2
    if picture.has_transparency_data:
        layer = picture.convert("RGBA")
        result.paste(layer, place, layer.getchannel("A") if len(fill) == 3 else None)
    else:
        result.paste(picture.convert("RGB"), place)
    return result


def _within_bytes(
    picture: Image.Image, request: TransformRequest, most: int, notes: list[str]
) -> tuple[Image.Image, bytes]:
    """Encode within a number of bytes: with less quality first, then with fewer pixels."""
    whole = picture.size
    while True:
        if (data := _smallest_loss(picture, request, most)) is not None:
            if picture.size != whole:
                notes.append(
                    f"It was scaled from {whole[0]}x{whole[1]} to {picture.width}x{picture.height} "
                    f"to fit into {most:,} bytes."
                )
            return picture, data
        size = round(picture.width * _SMALLER), round(picture.height * _SMALLER)
        if min(size) < _MIN_EDGE:
            raise ImageTooLarge(f"the picture does not fit into {most:,} bytes as {request.to}")
        picture = picture.resize(size, Image.Resampling.LANCZOS)


def _smallest_loss(picture: Image.Image, request: TransformRequest, most: int) -> bytes | None:
    data = encode(picture, request.to)
    if len(data) <= most:
        return data
    if request.to == "png":
        few = picture.convert("RGBA").quantize(256, method=Image.Quantize.FASTOCTREE)
        out = BytesIO()
        few.save(out, "PNG", optimize=True)
        return out.getvalue() if out.tell() <= most else None
    encode_lossy = jpeg if request.to == "jpeg" else webp
    best, low, high = None, _MIN_QUALITY, _MAX_QUALITY
    while low <= high:
        middle = (low + high) // 2
        data = encode_lossy(picture, middle).data
        if len(data) <= most:
            best, low = data, middle + 1
        else:
            high = middle - 1
    return best
