"""Pictures, their places and a drawing -> one PNG with all of them. Runs inside a worker only."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO

from PIL import Image, ImageOps

from limner.imaging.decode import open_picture
from limner.imaging.facts import SheetRequest
from limner.imaging.limits import WorkerLimits
from limner.imaging.orientation import check_pixels, convert_to_srgb, turn_upright
from limner.imaging.pixels import encode
from limner.imaging.svg.renderer import render


def compose(
    request: SheetRequest, overlay: str, pictures: Sequence[bytes], *, limits: WorkerLimits
) -> bytes:
    """Paste each picture into its place, in proportion, and draw the document over them.

    Raises:
        ImageError: as `open_picture`; or the sheet is too large.
    """
    size = request.width, request.height
    check_pixels(size, max_pixels=limits.max_pixels)
    sheet = Image.new("RGB", size, request.background)
    for place, data in zip(request.places, pictures, strict=True):
        _, opened = open_picture(data, limits=limits)
        picture = convert_to_srgb(turn_upright(opened.image, opened.orientation))
        room = place.width, place.height
        if picture.size != room:
            picture = ImageOps.contain(picture, room, Image.Resampling.LANCZOS)
        x = place.x + (place.width - picture.width) // 2
        y = place.y + (place.height - picture.height) // 2
        sheet.paste(picture, (x, y), picture if picture.mode == "RGBA" else None)
    drawn = render(overlay, width=request.width, height=request.height, assets={}, limits=limits)
    layer = Image.open(BytesIO(drawn), formats=["PNG"]).convert("RGBA")
    return encode(Image.alpha_composite(sheet.convert("RGBA"), layer).convert("RGB"), "png")
