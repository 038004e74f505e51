"""game-icons.net as two-tone silhouettes for the picture pack: which ones, their names and colours.

An icon is one white path on black. The parts between its strokes are transparent, so a darker shape
with the same outline is put behind it.
"""

from __future__ import annotations

import io

import cv2
import numpy as np
import resvg_py
from PIL import Image

from limner.rendering.canvas import mix

_EDGE, _BORDER, _PROBE = 512, 32, 144
_DARK = "#1c1030"

# Group -> colour -> icons; "crate=wooden-crate" is the picture crate from the icon wooden-crate.
SILHOUETTES = {
    "household": {
        "#b9824f": "barrel crate=wooden-crate easel rocking-chair "
        "wheelbarrow spinning-wheel wooden-stairs=stairs bird-cage dog-house "
        "coat-hanger=hanger ",
        "#dfe6ee": "fridge washing-machine toaster blender=blender sink "
        "vacuum-cleaner sewing-machine gas-stove",
        "#e8c9d6": "pillow blanket",
        "#4a5568": "cauldron",
        "#c9404a": "mailbox curtains=theater-curtains",
        "#c4703f": "flower-pot",
        "#b7c3d1": "whisk faucet=kitchen-tap",
        "#e39ac0": "perfume=perfume-bottle",
    },
    "place-building": {
        "#b8a894": "well stone-tower=stone-tower watchtower medieval-gate castle-ruins "
        "stone-wall clock-tower=clock-tower",
        "#9a6238": "wood-cabin treehouse barn=barn viking-longhouse beehive",
        "#e8d3a0": "pyramids=egyptian-pyramids sphinx=egyptian-sphinx",
        "#e9f2fa": "igloo",
        "#c9bfae": "windmill wind-turbine greek-temple=greek-temple",
        "#8a8f9c": "cave=cave-entrance oil-rig gas-pump water-tower",
    },
    "transport-water": {
        "#8a5a34": "galleon drakkar=drakkar paper-boat=paper-boat",
        "#7d8896": "submarine",
    },
    "transport-ground": {
        "#6b7a4a": "battle-tank",
        "#9a6238": "catapult chariot=chariot carriage=old-wagon",
        "#d9a62b": "bulldozer forklift=forklift",
    },
    "transport-air": {"#8fa0b8": "zeppelin=zeppelin drone=delivery-drone"},
    "tool": {
        "#c9a26b": "rope=rope-coil baseball-bat",
        "#8a93a6": "screw sword=broadsword",
        "#5c6472": "cannon anvil=anvil spear=stone-spear katana=katana trident=trident "
        "crossbow=crossbow rake=rake "
        "watering-can=watering-can",
    },
    "animal-mammal": {
        "#b9703f": "squirrel",
        "#8f98a6": "walrus=walrus-head",
    },
    "animal-bird": {
        "#e4e8ee": "seagull",
        "#7a6a58": "ostrich vulture",
        "#3fa58f": "hummingbird",
    },
    "animal-marine": {"#f0a53a": "seahorse starfish=sea-star", "#6f8fb0": "manta-ray"},
    "animal-bug": {"#4fa5b8": "dragonfly=dragonfly", "#7fae4a": "caterpillar praying-mantis"},
    "plant-other": {
        "#8a5a34": "branch=tree-branch acorn",
        "#4f9a47": "bush=berry-bush fern=fern vines=vine-leaf aloe=agave",
        "#3f9ac9": "waterfall",
    },
    "computer": {"#5c6b85": "server=server-rack database circuit-board=circuitry cctv-camera"},
    "person-fantasy": {
        "#e9e4d4": "skeleton mummy=mummy-head",
        "#a98a5c": "scarecrow minotaur centaur",
        "#7fae7a": "goblin=goblin-head orc=orc-head",
        "#5fae9f": "kraken=kraken-tentacle",
        "#8a93a6": "gargoyle golem=rock-golem werewolf",
    },
    "other-object": {
        "#c9b99a": "totem sarcophagus stone-statue=colombian-statue",
        "#b0455a": "matryoshka=matryoshka-dolls voodoo-doll",
        "#8a8f9c": "bird-house stapler calculator",
        "#3f4a5c": "binoculars",
        "#4f7fb5": "postage-stamp=post-stamp sleeping-bag",
        "#9a6238": "wallet chessboard=empty-chessboard",
        "#d9a62b": "lamp-genie=magic-lamp church-bell=ringing-bell tambourine chess-king "
        "chess-queen chess-knight chess-rook chess-bishop chess-pawn",
    },
    "clothing": {
        "#8a93a6": "samurai-helmet viking-helmet zipper",
        "#e8a0b8": "ballerina-shoes skirt",
        "#8a5a34": "belt",
        "#d9a62b": "earrings=drop-earrings necklace=pearl-necklace",
    },
}


def outline(body: str) -> str:
    """Path data of the outline of an icon, with the gaps between its strokes closed."""
    edge = _EDGE + 2 * _BORDER
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{-_BORDER} {-_BORDER} {edge} {edge}" '
        f'width="{_PROBE}" height="{_PROBE}">{body.replace("currentColor", "#000")}</svg>'
    )
    image = Image.open(io.BytesIO(resvg_py.svg_to_bytes(svg_string=svg))).convert("RGBA")
    mask = (np.array(image)[:, :, 3] > 100).astype(np.uint8) * 255
    disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (7, 7))
    closed = cv2.morphologyEx(mask, cv2.MORPH_CLOSE, disc)
    contours, _ = cv2.findContours(closed, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    scale = edge / _PROBE
    data = ""
    for contour in contours:
        if cv2.contourArea(contour) >= 30:
            points = cv2.approxPolyDP(contour, 0.8, closed=True)[:, 0, :]
            data += (
                "M"
                + " ".join(
                    f"{x * scale - _BORDER:.0f} {y * scale - _BORDER:.0f}" for x, y in points
                )
                + "Z"
            )
    return data


def two_toned(body: str, colour: str) -> str:
    """The drawing of an icon in a colour, lighter at the top, on its dark outline."""
    light, low = mix(colour, "#ffffff", 0.18), mix(colour, _DARK, 0.14)
    gradient = (
        '<defs><linearGradient id="tone" gradientUnits="userSpaceOnUse" x1="0" y1="0" x2="0" '
        f'y2="{_EDGE}"><stop stop-color="{light}"/><stop offset="1" stop-color="{low}"/>'
        "</linearGradient></defs>"
    )
    backing = f'<path d="{outline(body)}" fill="{mix(colour, _DARK, 0.5)}"/>'
    return gradient + backing + body.replace("currentColor", "url(#tone)")
