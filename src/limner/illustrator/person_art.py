"""A person -> the drawing of the whole figure in a square of 48 units, and points on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from limner.illustrator.people import Person
from limner.imaging.svg import Asset
from limner.rendering.canvas import mix

VIEW_BOX = "0 0 48 48"
_SHOES = "#4b3a3a"
_EDGE = 48.0


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """The drawing of a person, its box as fractions of the square, and its anchors.

    ``hands`` are drawn over a thing in them. The anchors are of the kinds that pictures have.
    """

    asset: Asset
    box: tuple[float, float, float, float]
    anchors: Mapping[str, tuple[float, ...]]
    hands: Asset | None = None


def draw_person(person: Person) -> Figure:
    """Draw a person in their pose."""
    low = {"sitting": 41.5, "riding": 46.0}.get(person.pose, 46.0)
    arms, hands = _arms(person)
    behind = _hair_behind(person) + _legs(person)
    body = _shades(person) + behind + _torso(person) + arms + _head(person)
    over = _shades(person) + "".join(_hand(*at) for at in hands)
    held = hands[-1]
    if person.grip == "both":
        held = ((hands[0][0] + hands[1][0]) / 2, hands[1][1])
    points = {
        "hand": held,
        "other hand": (48 - held[0], held[1]),
        "head": (24.0, 5.2, 19.5),
        "face": (24.0, 12.3, 13.0),
        "mouth": (24.0, 17.5),
        "shoulder": (12.0 if person.grip else 36.0, 23.0),
        "seat": (24.0, 35.0 if person.pose in ("sitting", "riding") else low),
        "top": (24.0, 2.0),
    }
    if person.grip == "both":
        points["both hands"] = held
    return Figure(
        asset=Asset(view_box=VIEW_BOX, body=body),
        box=(12 / _EDGE, (0.5 if person.hat else 2.0) / _EDGE, 36 / _EDGE, low / _EDGE),
        anchors={kind: tuple(n / _EDGE for n in point) for kind, point in points.items()},
        hands=Asset(view_box=VIEW_BOX, body=over) if person.grip else None,
    )


def _gradient(name: str, colour: str) -> str:
    light, dark = mix(colour, "#ffffff", 0.18), mix(colour, "#1c1030", 0.2)
    return (
        f'<linearGradient id="{name}" x1="0" y1="0" x2="0" y2="1"><stop stop-color="{light}"/>'
        f'<stop offset="1" stop-color="{dark}"/></linearGradient>'
    )


def _shades(person: Person) -> str:
    light, shade = mix(person.skin, "#ffffff", 0.2), _dark_skin(person)
    skin = (
        f'<radialGradient id="skin" cx="0.55" cy="0.4" r="0.75"><stop stop-color="{light}"/>'
        f'<stop offset="0.6" stop-color="{person.skin}"/><stop offset="1" stop-color="{shade}"/>'
        "</radialGradient>"
    )
    colours = {"top": person.top_colour, "legs": person.legs_colour, "hair": person.hair_colour}
    return f"<defs>{skin}{''.join(_gradient(name, one) for name, one in colours.items())}</defs>"


def _dark_skin(person: Person) -> str:
    return mix(person.skin, "#c25a00", 0.3)


def _limb(data: str, paint: str, width: float) -> str:
    return (
        f'<path d="{data}" fill="none" stroke="{paint}" stroke-width="{width}" '
        'stroke-linecap="round" stroke-linejoin="round"/>'
    )


_STEPS = {
    "standing": ("M21.3 32L21.2 43", "M26.7 32L26.8 43"),
    "waving": ("M21.3 32L20.4 43", "M26.7 32L27.6 43"),
    "walking": ("M22 32L18.6 43", "M26 32L29.6 42.6"),
    "running": ("M22 32L17.2 37.5L13.8 42", "M26 32L30.6 36.5L30.2 43"),
    "sitting": ("M21.4 33L18.6 34.2L18.8 39", "M26.6 33L29.4 34.2L29.2 39"),
    # Across a saddle only the near leg is seen.
    "riding": ("M25.5 33L19.8 36.5L21.5 43.5",),
    "dancing": ("M21.8 32L20.8 43", "M26.7 32L32 35.6L34 40.6"),
    "jumping": ("M21.4 32L16.6 35.5L15.5 40", "M26.6 32L31.4 35.5L32.5 40"),
}


def _legs(person: Person) -> str:
    steps = _STEPS.get(person.pose, _STEPS["standing"])
    bare = person.top in ("dress", "robe")
    paint = _dark_skin(person) if person.top == "dress" else person.legs_colour
    legs = "".join(_limb(step, paint, 4.2 if bare else 5) for step in steps)
    shoes = ""
    for step in steps:
        x, y = map(float, step.rsplit("L", 1)[1].split())
        turn = -1.2 if x < 24 else 1.2
        shoes += (
            f'<path d="M{x - 2.8 + turn:.1f} {y + 2.9:.1f}v-1.6a2.8 2.6 0 0 1 5.6 0v1.6z" '
            f'fill="{person.shoes_colour or _SHOES}"/>'
        )
    return legs + shoes


_TORSO = (
    "M19.5 20.4h9c2.6 0 4 1.6 4.2 3.6l.3 3.4c-1 .9-2 1-2.6.8l.5 5.6c-4 1.4-9.8 1.4-13.8 0"
    "l.5-5.6c-.6.2-1.6.1-2.6-.8l.3-3.4c.2-2 1.6-3.6 4.2-3.6z"
)


def _torso(person: Person) -> str:
    paint = "url(#top)"
    dark = mix(person.top_colour, "#1c1030", 0.3)
    if person.top in ("dress", "robe"):
        low = 37.5 if person.top == "dress" else 43.5
        if person.pose in ("sitting", "riding"):
            low = 37.0
        return (
            f'<path d="M19.5 20.4h9c2.6 0 4 1.6 4.2 3.6l.3 3.4l-2.7.6'
            f'L34 {low}c-6 2-14 2-20 0L17.7 28l-2.7-.6l.3-3.4c.2-2 1.6-3.6 4.2-3.6z" '
            f'fill="{paint}"/><path d="M18 28.5h12" stroke="{dark}" stroke-width="1.2"/>'
        )
    return f'<path d="{_TORSO}" fill="{paint}"/>' + _TOPS.get(person.top, _plain)(dark)


def _plain(dark: str) -> str:
    return _limb("M21.5 20.4Q24 23 26.5 20.4", dark, 0.9)


def _coat(dark: str) -> str:
    return (
        '<path d="M21.2 20.2L24 26l2.8-5.8z" fill="#8fb8d8"/>'
        + _limb("M24 26V34M20.9 20.4L24 26.2L27.1 20.4", dark, 0.7)
        + '<circle cx="25.3" cy="28.5" r="0.5" fill="#5a6072"/>'
        '<circle cx="25.3" cy="31" r="0.5" fill="#5a6072"/>'
    )


def _suit(dark: str) -> str:
    return (
        '<path d="M21 20.2L24 27l3-6.8z" fill="#ffffff"/>'
        '<path d="M23.3 21.5h1.4l.5 4L24 27l-1.2-1.5z" fill="#c9304a"/>'
        + _limb("M24 27V34", dark, 0.7)
    )


def _overall(dark: str) -> str:
    return (
        '<path d="M16.5 21.5c1-.8 2-1.1 3-1.1h9c1 0 2 .3 3 1.1l1.5 6c-1 .9-2 1-2.6.8'
        'L29 27h-1.5v-6h-1.5v4h-4v-4h-1.5v6H19l-1.4 1.3c-.6.2-1.6.1-2.6-.8z" fill="#d9483f"/>'
        + _limb("M21.5 28h5", dark, 0.8)
    )


def _vest(dark: str) -> str:
    return '<path d="M21.5 20.4h5l1.2 13.4c-2.4.5-5 .5-7.4 0z" fill="#f4ead2"/>' + _limb(
        "M18 31.5h12", dark, 1.1
    )


def _apron(dark: str) -> str:
    return '<path d="M21 23h6l1.5 10.6c-3 .6-6 .6-9 0z" fill="#c9654a"/>' + _limb(
        "M21 23L19.8 20.5M27 23L28.2 20.5", dark, 0.6
    )


def _armour(dark: str) -> str:
    return (
        _limb("M24 21v12.5M18 26.5Q24 29 30 26.5M18 30Q24 32.5 30 30", dark, 0.7)
        + '<ellipse cx="17" cy="22.8" rx="2.8" ry="2.4" fill="#d5dbe6"/>'
        '<ellipse cx="31" cy="22.8" rx="2.8" ry="2.4" fill="#d5dbe6"/>'
    )


def _space(dark: str) -> str:
    return (
        '<rect x="20.5" y="24.5" width="7" height="5" rx="1" fill="#c3cbd9"/>'
        '<circle cx="22.5" cy="26.5" r="0.7" fill="#e0403f"/>'
        '<circle cx="25.5" cy="26.5" r="0.7" fill="#3f8fd9"/>' + _limb("M18 32h12", dark, 0.8)
    )


def _tunic(dark: str) -> str:
    return (
        _limb("M21.5 20.4L24 23.5L26.5 20.4", "#ffffff", 1)
        + '<path d="M26.5 25.5h1.2v1.2h1.2v1.2h-1.2v1.2h-1.2v-1.2h-1.2v-1.2h1.2z" '
        f'fill="#e0403f"/>{_limb("M19 33h10", dark, 0.5)}'
    )


_TOPS: Mapping[str, Callable[[str], str]] = {
    "coat": _coat,
    "suit": _suit,
    "overall": _overall,
    "vest": _vest,
    "apron": _apron,
    "armour": _armour,
    "space": _space,
    "tunic": _tunic,
}


_LEFT, _RIGHT = "M16.8 23.5L14.8 30", "M31.2 23.5L33.2 30"
_ARMS = {
    "waving": (_LEFT, "M31.2 23.5L35.6 16.5"),
    "running": ("M16.8 23.5L14.5 27.5L17 29.5", "M31.2 23.5L33.8 27L32.5 30"),
    "walking": ("M16.8 23.5L14.5 27.5L17 29.5", "M31.2 23.5L33.8 27L32.5 30"),
    "sitting": ("M16.8 23.5L15.8 29L19 32", "M31.2 23.5L32.2 29L29 32"),
    "riding": ("M16.8 23.5L14.6 27L11.6 28.6", "M30.6 23.5L24 28.4L14.5 29.6"),
    "dancing": ("M16.8 23.5L11.6 20.5", "M31.2 23.5L35.6 16.5"),
    "jumping": ("M16.8 23.5L12.4 16.5", "M31.2 23.5L35.6 16.5"),
    "pointing": ("M16.8 23.5L9.5 20.5", _RIGHT),
}
# How the right arm holds a thing: at the side, up, or at the mouth.
_GRIPS = {
    "side": "M31.2 23.5L34 28.2L37.2 26.6",
    "high": "M31.2 23.5L36.4 17.5",
    "mouth": "M31.2 23.5L35 27.6L29.6 21.2",
    "each": "M31.2 23.5L34 28.2L37.2 26.6",
}

Hand = tuple[float, float]


def _arms(person: Person) -> tuple[str, list[Hand]]:
    """The arms, and the middle of each hand."""
    left, right = _ARMS.get(person.pose, (_LEFT, _RIGHT))
    right = _GRIPS.get(person.grip, right)
    if person.grip == "each":
        left = "M16.8 23.5L14 28.2L10.8 26.6"
    elif person.grip == "both":
        near, far = 24 - person.span, 24 + person.span
        left = f"M16.8 23.5L{min(15.6, near - 1):.1f} 28L{near:.1f} 29"
        right = f"M31.2 23.5L{max(32.4, far + 1):.1f} 28L{far:.1f} 29"
    made, hands = "", list[Hand]()
    for arm in (left, right):
        x, y = map(float, arm.rsplit("L", 1)[1].split())
        made += _limb(arm, mix(person.top_colour, "#1c1030", 0.1), 4)
        hands.append((x, y + 0.6))
    drawn = "".join(_hand(*at) for at in hands)
    return made + drawn, hands if person.grip in ("both", "each") else hands[1:]


def _hand(x: float, y: float) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.1" fill="url(#skin)"/>'


def _head(person: Person) -> str:
    face = (
        '<circle cx="15.4" cy="12.6" r="1.9" fill="url(#skin)"/>'
        '<circle cx="32.6" cy="12.6" r="1.9" fill="url(#skin)"/>'
        '<path d="M24 3.2c5.6 0 8.8 3.6 8.8 8.9c0 5.6-3.4 9.1-8.8 9.1s-8.8-3.5-8.8-9.1'
        'c0-5.3 3.2-8.9 8.8-8.9z" fill="url(#skin)"/>'
        '<ellipse cx="20.6" cy="12.2" rx="1.5" ry="1.9" fill="#ffffff"/>'
        '<ellipse cx="27.4" cy="12.2" rx="1.5" ry="1.9" fill="#ffffff"/>'
        '<circle cx="20.8" cy="12.4" r="1.15" fill="#3a2230"/>'
        '<circle cx="27.2" cy="12.4" r="1.15" fill="#3a2230"/>'
        '<circle cx="21.2" cy="11.9" r="0.35" fill="#ffffff"/>'
        '<circle cx="27.6" cy="11.9" r="0.35" fill="#ffffff"/>'
        f'<path d="M24 12.8q1.3 2 .3 2.4q-.6.2-1.1-.1" fill="none" stroke="{_dark_skin(person)}" '
        'stroke-width="0.7" stroke-linecap="round"/>'
    )
    brow = mix(person.hair_colour, "#2a1a18", 0.35)
    face += _limb(
        "M19 9.6l2.4-.9M29 9.6l-2.4-.9" if person.sad else "M19 9q1.5-1 3-.3M26 8.7q1.5-.7 3 .3",
        brow,
        0.8,
    )
    if person.beard:
        face += (
            '<path d="M15.6 13.5c.6 1.6 2 2.2 4 2.2c1.5 0 2.7-.7 4.4-.7s2.9.7 4.4.7c2 0 3.4-.6 '
            f'4-2.2c.5 6-2.4 10.7-8.4 10.7s-8.9-4.7-8.4-10.7z" fill="{person.beard}"/>'
        )
        if person.long_beard:
            face += (
                f'<path d="M17 17c2 3 12 3 14 0c.4 6-2.6 11-7 15c-4.4-4-7.4-9-7-15z" '
                f'fill="{person.beard}"/>'
            )
    if person.moustache:
        face += _limb("M19.6 16.6Q22 14.6 24 16Q26 14.6 28.4 16.6", person.moustache, 1.7)
    mouth = "M21.5 18.5Q24 16.5 26.5 18.5" if person.sad else "M21 16.8Q24 20 27 16.8"
    if person.moustache and not person.sad:
        mouth = "M22 18Q24 19.6 26 18"
    face += _limb(mouth, "#8a1f3a", 0.9)
    face += _HAIR.get(person.hair, "").replace("HAIR", "url(#hair)")
    if person.glasses:
        face += (
            '<g fill="#cfe6ff" fill-opacity="0.35" stroke="#2f2d3a" stroke-width="0.7">'
            '<circle cx="20.4" cy="12.3" r="2.7"/><circle cx="27.6" cy="12.3" r="2.7"/>'
            '</g><path d="M23.1 12.1h1.8" stroke="#2f2d3a" stroke-width="0.7"/>'
        )
    return face + _HATS.get(person.hat or "", "")


def _hair_behind(person: Person) -> str:
    drawn = {
        "long": '<path d="M24 2.4c7 0 10.2 4 10.2 9.6c0 5 1.4 9 .6 13.5c-5 2.6-16.6 2.6-21.6 0'
        'c-.8-4.5.6-8.5.6-13.5c0-5.6 3.2-9.6 10.2-9.6z" fill="url(#hair)"/>',
        "bob": '<path d="M24 2.4c7 0 10.2 4 10.2 9.6c0 3 .6 5 .2 7.5c-5 2-15.8 2-20.8 0'
        'c-.4-2.5.2-4.5.2-7.5c0-5.6 3.2-9.6 10.2-9.6z" fill="url(#hair)"/>',
        "bun": '<circle cx="24" cy="2.8" r="3" fill="url(#hair)"/>',
        "tails": '<path d="M15 8c-4 0-5.5 4-4.5 9.5c2 .5 4-1 4.6-3zM33 8c4 0 5.5 4 4.5 9.5'
        'c-2 .5-4-1-4.6-3z" fill="url(#hair)"/>',
    }
    return drawn.get(person.hair, "")


_FRINGE = (
    '<path d="M15 11.5c-1-6 3-9.6 9-9.6s10 3.6 9 9.6c-.8-1.2-1.2-2.4-1.6-3.8'
    'c-2.4.8-4.6.4-6.4-.8c-2 1.5-5 2-8.2 1c-.4 1.3-1 2.5-1.8 3.6z" fill="HAIR"/>'
)
_HAIR = {
    "short": _FRINGE,
    "long": _FRINGE,
    "bob": _FRINGE,
    "bun": _FRINGE,
    "tails": _FRINGE,
    "sides": '<path d="M15.2 13c-1.8-1-2-4.6-.2-6.6c1.2 1 1.7 3 1.4 5.6zM32.8 13c1.8-1 2-4.6'
    '.2-6.6c-1.2 1-1.7 3-1.4 5.6z" fill="HAIR"/>',
    "curly": '<g fill="HAIR"><circle cx="16.5" cy="8" r="3"/><circle cx="19.5" cy="4.8" r="3.2"/>'
    '<circle cx="24" cy="3.6" r="3.3"/><circle cx="28.5" cy="4.8" r="3.2"/>'
    '<circle cx="31.5" cy="8" r="3"/></g>',
    "bald": "",
}
_HATS = {
    "straw": '<ellipse cx="24" cy="6.5" rx="13" ry="2.6" fill="#d9a94e"/>'
    '<path d="M16.5 6.5c0-4.5 3-6 7.5-6s7.5 1.5 7.5 6z" fill="#ecc26a"/>'
    '<path d="M16.5 5.6h15v1.4h-15z" fill="#a5522f"/>',
    "brim": '<ellipse cx="24" cy="6.5" rx="11.5" ry="2" fill="#6b5138"/>'
    '<path d="M16.8 6.5l1-5c3-1.5 9.4-1.5 12.4 0l1 5z" fill="#8a6a48"/>',
    "toque": '<path d="M17 8c-3-1-3-5.5 1-5.8c1-2.6 11-2.6 12 0c4 .3 4 4.8 1 5.8z" '
    'fill="#ffffff"/><path d="M17 6.5h14v2.2c-4 .9-10 .9-14 0z" fill="#e6e9f0"/>',
    "hardhat": '<path d="M15 8.2c0-5 3.6-7.6 9-7.6s9 2.6 9 7.6z" fill="#f6b81f"/>'
    '<path d="M13.5 7.6h21v1.6h-21z" fill="#d9970f"/>',
    "fire": '<path d="M15 8.2c0-5 3.6-7.6 9-7.6s9 2.6 9 7.6z" fill="#c9302a"/>'
    '<path d="M13 7.6h22v1.8h-22z" fill="#a02220"/><circle cx="24" cy="5" r="1.8" '
    'fill="#f6c84a"/>',
    "cap": '<path d="M15.2 7.6c.2-4.6 3.6-6.6 8.8-6.6s8.6 2 8.8 6.6z" fill="#2a3a66"/>'
    '<path d="M17 7.4h14l1 2c-5-1.3-11-1.3-16 0z" fill="#171f3a"/>'
    '<circle cx="24" cy="4.6" r="1.3" fill="#f6c84a"/>',
    "santa": '<path d="M15.2 8C15.6 2.6 19.5.4 24.6.6c4.6.2 8.6 2.6 10.4 8.2l-3-1.2z" '
    'fill="#d3263a"/><rect x="14" y="6.6" width="20" height="3.2" rx="1.6" fill="#ffffff"/>'
    '<circle cx="35.4" cy="9.6" r="2" fill="#ffffff"/>',
    "elf": '<path d="M15 8L24 .4L33 8z" fill="#2f9e4f"/><path d="M14.4 7h19.2v2.2H14.4z" '
    'fill="#c9302a"/><circle cx="24" cy="1.2" r="1.2" fill="#f6c84a"/>',
    "witch": '<path d="M15.5 7.8L20 3.4l5.5-3.1l2.4 3.6l4.6 3.9z" fill="#2f2a44"/>'
    '<ellipse cx="24" cy="7.5" rx="13" ry="2.2" fill="#241f36"/>'
    '<path d="M16.2 6h15.6v1.4H16.2z" fill="#8145b8"/>',
    "bearskin": '<path d="M15.4 9C14.6 3.4 18.4.3 24 .3S33.4 3.4 32.6 9z" fill="#26222e"/>',
    "veil": '<path d="M15.4 7c1-4.4 4.4-6 8.6-6s7.6 1.6 8.6 6c2.4 5 3 11 2.6 17l-2.8.4V11'
    'c-2-4-14.8-4-16.8 0v13.4l-2.8-.4c-.4-6 .2-12 2.6-17z" fill="#ffffff" fill-opacity="0.8"/>'
    '<path d="M16.4 6.4q7.6-3.6 15.2 0" fill="none" stroke="#f4c9d8" stroke-width="1.4"/>',
    "beret": '<ellipse cx="25.5" cy="4.8" rx="9.5" ry="3.4" fill="#b8304a"/>'
    '<path d="M24 1.6l.6-1.2" stroke="#7a1f30" stroke-width="1"/>',
    "nurse": '<path d="M18.5 6.5l1-4.5h9l1 4.5c-3.5-1-7.5-1-11 0z" fill="#ffffff"/>'
    '<path d="M23.5 2.8h1v1h1v1h-1v1h-1v-1h-1v-1h1z" fill="#e0403f"/>',
    "board": '<path d="M24 .8l11 3.7l-11 3.7l-11-3.7z" fill="#2f3350"/>'
    '<path d="M33 5v5" stroke="#f6c84a" stroke-width="0.9"/>',
    "crown": '<path d="M16.5 7.5l-.8-6l3.8 2.6l4.5-3.8l4.5 3.8l3.8-2.6l-.8 6z" fill="#f6c437"/>'
    '<path d="M16.5 6.3h15v1.7h-15z" fill="#dfa01f"/><circle cx="24" cy="7.1" r="0.8" '
    'fill="#e0304a"/>',
    "pirate": '<path d="M12.5 7.8c1-6 5-7.3 11.5-7.3s10.5 1.3 11.5 7.3c-6-2.2-17-2.2-23 0z" '
    'fill="#2b2936"/><circle cx="24" cy="4" r="1.5" fill="#ffffff"/>'
    '<ellipse cx="27.5" cy="12.3" rx="2.5" ry="2.3" fill="#2b2936"/>'
    '<path d="M16 8.5L32.5 14" stroke="#2b2936" stroke-width="0.7"/>',
    "pointed": '<path d="M14.5 7.8L20 3.4l6-3.1l2 3.4l5.5 4.1z" fill="#5a46b0"/>'
    '<ellipse cx="24" cy="7.5" rx="12.5" ry="2.2" fill="#46358f"/>'
    '<circle cx="24" cy="3.5" r="1" fill="#f6d04a"/>',
    "helmet": '<path d="M14.6 15V10.5C14.6 4.6 18.5 1.5 24 1.5s9.4 3.1 9.4 9V15l-1.8 5.5'
    'c-2 1-13.2 1-15.2 0z" fill="#aab3c4"/><path d="M17 10h14v4.6h-14z" fill="#2b2936"/>'
    '<circle cx="20.8" cy="12.3" r="1" fill="#ffffff"/><circle cx="27.2" cy="12.3" r="1" '
    'fill="#ffffff"/><path d="M24 1.5v8.5M20 17h8M20 18.8h8" stroke="#6d7689" '
    'stroke-width="0.8"/><path d="M23.2 1.8c-3-3 4-4.5 7-1.3c-2 .8-3 .2-5.4 1.5z" '
    'fill="#d9304a"/>',
    "hood": '<path d="M14.6 20V11c0-6 3.6-9.2 9.4-9.2s9.4 3.2 9.4 9.2v9c-6 2.5-12.8 2.5-18.8 0z'
    'M17.5 10v4.8h13V10z" fill="#2f2d3a" fill-rule="evenodd"/>',
    "space": '<circle cx="24" cy="12" r="11.2" fill="#bfe3ff" fill-opacity="0.28" '
    'stroke="#eef1f7" stroke-width="1.8"/><path d="M16 7c1.5-2.5 3.5-3.8 6-4.2" fill="none" '
    'stroke="#ffffff" stroke-width="1.2" stroke-linecap="round" stroke-opacity="0.8"/>',
}
