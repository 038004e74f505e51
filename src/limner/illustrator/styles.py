"""The style or mood of a prompt -> outlines, flat colours, or a filter over the whole picture."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec.structs import replace

from limner.imaging.svg import Asset
from limner.rendering.canvas import Canvas

# Style -> the words for it.
STYLES = {
    "line": "line art, line drawing, minimalist line drawing, outline, sketch, pencil drawing, "
    "ink drawing, coloring page, colouring page, pencil sketch, line style",
    "blueprint": "blueprint, technical drawing, blueprint style",
    "black and white": "black and white, noir, monochrome, greyscale, grayscale, film noir",
    "sepia": "sepia, vintage photo, old photo",
    "pixel": "pixel art, pixel, pixelated, 8 bit, 8bit, 16 bit, pixel style",
    "flat": "flat design, flat, flat style, vector art, flat illustration, minimalist, minimal",
    "paper cut": "paper cut, papercut, paper cut art, paper cutout, paper art, paper craft, "
    "cut paper, paper collage",
    "watercolour": "watercolor, watercolour, water colour, water color, watercolor painting, "
    "watercolour painting, aquarelle, gouache",
    "duotone": "duotone, two tone, two colour, two color, risograph, screen print",
    # Moods
    "warm": "cozy, cosy, warm, warm light, warm colors, warm colours, romantic, golden light",
    "cold": "cold, chilly, cool tones, cold light, cool colors, cool colours",
    "gloomy": "gloomy, spooky, creepy, eerie, scary, melancholic, melancholy, dark, sinister, "
    "haunting, bleak, moody",
    "cheerful": "vibrant, vivid, colorful, colourful, joyful, bright, bright colors, "
    "bright colours, saturated",
    "dramatic": "dramatic, epic, cinematic, dramatic light, dramatic lighting",
    "pastel": "pastel, pastel colors, pastel colours, soft colors, soft colours, soft",
    "dreamy": "dreamy, magical, ethereal, fairytale, fairy tale, whimsical, enchanted, surreal",
    "faded": "vintage, retro, nostalgic, faded, old fashioned",
    "neon": "neon, cyberpunk, synthwave, vaporwave, neon lights",
}
STYLE_OF = {words: style for style, listed in STYLES.items() for words in listed.split(", ")}
# Style -> ink and paper of a drawing in lines.
INKS: Mapping[str, tuple[str, str]] = {
    "line": ("#2b2936", "#fdfcf8"),
    "blueprint": ("#e8f1ff", "#1f4e9a"),
}
# Styles without light and shade on the things.
FLAT = frozenset({"flat", "paper cut"})
SQUARES = 96
_MAX_LAYERS = 60
_RED, _GREEN, _BLUE = 0.3, 0.59, 0.11
Triple = tuple[float, float, float]


def _grade(
    saturation: float, gain: Triple = (1.0, 1.0, 1.0), lift: Triple = (0.0, 0.0, 0.0)
) -> str:
    """The values of a colour matrix: how colourful, then how bright each channel is."""
    rows: list[str] = []
    for channel in range(3):
        grey = [share * (1 - saturation) for share in (_RED, _GREEN, _BLUE)]
        grey[channel] += saturation
        row = [*(one * gain[channel] for one in grey), 0.0, lift[channel]]
        rows.append(" ".join(f"{one:.3f}" for one in row))
    return " ".join((*rows, "0 0 0 1 0"))


# Style -> the colour matrix of its filter.
_MATRICES: Mapping[str, str] = {
    "black and white": _grade(0.0, (1.1, 1.1, 1.1), (-0.04, -0.04, -0.04)),
    "sepia": _grade(0.12, (1.0, 0.88, 0.7), (0.1, 0.06, 0.0)),
    "warm": _grade(1.05, (1.06, 0.97, 0.8), (0.04, 0.01, -0.01)),
    "cold": _grade(0.85, (0.82, 0.95, 1.08), (0.0, 0.01, 0.05)),
    "gloomy": _grade(0.45, (0.85, 0.88, 0.96), (0.0, 0.01, 0.03)),
    "cheerful": _grade(1.4, (1.05, 1.05, 1.02), (0.01, 0.01, 0.0)),
    "dramatic": _grade(1.1, (1.3, 1.25, 1.22), (-0.17, -0.17, -0.14)),
    "pastel": _grade(0.7, (0.72, 0.72, 0.72), (0.27, 0.26, 0.28)),
    "dreamy": _grade(0.9, (0.82, 0.78, 0.86), (0.18, 0.12, 0.2)),
    "faded": _grade(0.55, (0.86, 0.82, 0.72), (0.13, 0.11, 0.1)),
    "neon": _grade(1.35, (1.15, 0.72, 1.2), (0.02, -0.06, 0.1)),
}
# The darkest and the lightest colour of a duotone, by channel.
_DUOTONE = (("0.15", "1"), ("0.09", "0.84"), ("0.4", "0.66"))
# Edges that run a little, washed colours, and the grain of paper.
_WATERCOLOUR = (
    '<feTurbulence type="fractalNoise" baseFrequency="0.012" numOctaves="3" seed="4" result="n"/>'
    '<feDisplacementMap in="SourceGraphic" in2="n" scale="9" xChannelSelector="R" '
    'yChannelSelector="G" result="d"/>'
    '<feComposite in="d" in2="SourceGraphic" operator="over" result="f"/>'
    '<feGaussianBlur in="f" stdDeviation="1.1" result="s"/>'
    '<feColorMatrix in="s" type="matrix" values="{wash}" result="w"/>'
    '<feTurbulence type="fractalNoise" baseFrequency="0.035" numOctaves="3" seed="9"/>'
    '<feColorMatrix type="matrix" values="0 0 0 0 1 0 0 0 0 1 0 0 0 0 1 0.7 0 0 0 -0.26" '
    'result="g"/><feComposite in="g" in2="w" operator="over"/>'
).replace("{wash}", _grade(0.8, (0.85, 0.85, 0.85), (0.14, 0.14, 0.14)))
_FILL = re.compile(r' fill="(?!none)[^"]*"')
_DROPPED = re.compile(r' (?:filter|stroke|stroke-width|(?:fill-|stroke-)?opacity)="[^"]*"')
_GRADIENT = re.compile(
    r'<(?:linear|radial)Gradient[^>]* ?id="([^"]+)".*?</(?:linear|radial)Gradient>'
)
_STOP = re.compile(r'stop-color="#([0-9a-fA-F]{6})"')
_SHADE = re.compile(r' filter="[^"]*"')


def filter_of(style: str) -> str:
    """The steps of the filter over the whole picture; empty if the style has none."""
    if style in _MATRICES:
        return f'<feColorMatrix type="matrix" values="{_MATRICES[style]}"/>'
    if style == "duotone":
        tables = "".join(
            f'<feFunc{channel} type="table" tableValues="{low} {high}"/>'
            for channel, (low, high) in zip("RGB", _DUOTONE, strict=True)
        )
        grey = f'<feColorMatrix type="matrix" values="{_grade(0.0)}"/>'
        return f"{grey}<feComponentTransfer>{tables}</feComponentTransfer>"
    return _WATERCOLOUR if style == "watercolour" else ""


def as_lines(asset: Asset, style: str) -> Asset:
    """A picture as an outline drawing."""
    ink, paper = INKS[style]
    width = float(asset.view_box.split()[2]) / 110
    line = f' fill="{paper}" stroke="{ink}" stroke-width="{width:.2f}"'
    return replace(asset, body=_FILL.sub(line, _DROPPED.sub("", asset.body)))


def as_paper(shapes: str, canvas: Canvas) -> str:
    """Shapes as layers of paper, each with a shadow on the one behind it."""
    drop = canvas.unit * 0.006
    shadow = canvas.define(
        '<filter id="{id}" x="-0.2" y="-0.2" width="1.4" height="1.4">'
        f'<feDropShadow dx="{drop:.1f}" dy="{drop:.1f}" stdDeviation="{drop:.1f}" '
        'flood-color="#1c1030" flood-opacity="0.45"/></filter>'
    )
    layers = re.compile(r'<path d="[^"]*" fill="#[0-9a-f]{6}"')
    if len(layers.findall(shapes)) <= _MAX_LAYERS:
        shapes = layers.sub(lambda found: f'{found[0]} filter="{shadow}"', shapes)
    return shapes.replace("<g opacity=", f'<g filter="{shadow}" opacity=').replace(
        "<asset ", f'<asset filter="{shadow}" '
    )


def as_flat(body: str, definitions: str = "") -> str:
    """A drawing with one colour instead of each gradient, and without shadows inside."""
    means: dict[str, str] = {}
    for found in _GRADIENT.finditer(definitions + body):
        stops = _STOP.findall(found[0])
        if stops and "stop-opacity" not in found[0]:
            means[found[1]] = _mean(stops)
    plain = _SHADE.sub("", body)
    return re.sub(r"url\(#([^)]+)\)", lambda found: means.get(found[1], found[0]), plain)


def _mean(colours: list[str]) -> str:
    channels = zip(
        *((int(one[at : at + 2], 16) for at in (0, 2, 4)) for one in colours), strict=True
    )
    return "#" + "".join(
        f"{round(sum(values) / len(values)):02x}" for values in map(list, channels)
    )
