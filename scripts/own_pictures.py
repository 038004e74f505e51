"""Pictures drawn for limner, to stand beside the ones of the icon set; read by build_assets.py.

The set has only the heads of many animals and no furniture to put things on. Every picture is
written the way a caller of the illustrator writes one: SVG in a box of 32 units, in which
``<asset name=... x=... y=... size=.../>`` places a picture of the set.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnPicture:
    """A picture of our own: its group and tags as in the index, and its drawing."""

    name: str
    title: str
    group: str
    tags: str
    body: str


def fade(name: str, light: str, dark: str, *, sideways: bool = False) -> str:
    """A gradient from a light colour to a dark one."""
    direction = 'x2="1" y2="0"' if sideways else 'x2="0" y2="1"'
    return (
        f'<linearGradient id="{name}" x1="0" y1="0" {direction}>'
        f'<stop stop-color="{light}"/><stop offset="1" stop-color="{dark}"/></linearGradient>'
    )


_BUSHY_TAIL = (
    '<path fill="url(#coat)" d="M20 29c6 1.5 10-1 10.4-6c.2-3-1.2-6-3.4-8c-.3 3-2 4.6-3.6 6.4'
    'c-1.8 2-3.4 4-3.4 7.6z"/><path fill="{tip}" d="M30.1 20.6c-.3-2.2-1.5-4.2-3.1-5.6'
    'c-.2 2-1 3.3-2 4.5c1.8-.3 3.6.1 5.1 1.1z"/>'
)
_THIN_TAIL = (
    '<path fill="none" stroke="{coat}" stroke-width="1.5" stroke-linecap="round" '
    'd="M22 28.5c4 1 6.5-.5 6.8-3.5c.1-1.5-.4-2.7-1.3-3.6"/>'
    '<circle cx="27.2" cy="21" r="1.7" fill="{tip}"/>'
)


def _sitting(
    head: str, *, coat: str, shade: str, belly: str, paws: str, tail: str = "", tip: str = ""
) -> OwnPicture:
    """An animal of which the set has the face only, sitting and looking at us."""
    body = (
        f"<defs>{fade('coat', coat, shade)}{fade('belly', belly, belly)}</defs>"
        + tail.format(coat=shade, tip=tip)
        + '<ellipse cx="10.2" cy="25.8" rx="4.2" ry="4.6" fill="url(#coat)"/>'
        '<ellipse cx="21.8" cy="25.8" rx="4.2" ry="4.6" fill="url(#coat)"/>'
        '<path fill="url(#coat)" d="M16 13c4.5 0 7 5 7.2 10c.2 4.5-2.5 7.5-7.2 7.5'
        's-7.4-3-7.2-7.5c.2-5 2.7-10 7.2-10z"/>'
        '<path fill="url(#belly)" d="M16 15c2.8 0 4.2 4 4.2 7.5c0 3.5-1.6 6-4.2 6'
        's-4.2-2.5-4.2-6c0-3.5 1.4-7.5 4.2-7.5z"/>'
        '<rect x="11.7" y="20.5" width="3.6" height="10" rx="1.8" fill="url(#coat)"/>'
        '<rect x="16.7" y="20.5" width="3.6" height="10" rx="1.8" fill="url(#coat)"/>'
        f'<g fill="{paws}"><ellipse cx="13.3" cy="29.7" rx="2.2" ry="1.3"/>'
        '<ellipse cx="18.7" cy="29.7" rx="2.2" ry="1.3"/>'
        '<ellipse cx="8.4" cy="29.8" rx="2.6" ry="1.2"/>'
        '<ellipse cx="23.6" cy="29.8" rx="2.6" ry="1.2"/></g>'
        f'<asset name="{head}" x="7" y="0.5" size="18"/>'
    )
    return OwnPicture(
        name=f"{head}-sitting",
        title=f"{head.replace('-', ' ')} sitting",
        group="animal-mammal",
        tags=f"{head.replace('-', ' ')},animal,sitting,whole",
        body=body,
    )


def _standing(head: str, *, shirt: str, shade: str, legs: str, shoes: str) -> OwnPicture:
    """A child of which the set has the face only, standing."""
    body = (
        f"<defs>{fade('shirt', shirt, shade)}{fade('skin', '#FFCB3A', '#F0A800')}</defs>"
        f'<g fill="{legs}"><rect x="11.9" y="23" width="3.8" height="7.5" rx="1.2"/>'
        '<rect x="16.3" y="23" width="3.8" height="7.5" rx="1.2"/></g>'
        f'<g fill="{shoes}"><rect x="11" y="29" width="4.8" height="2.2" rx="1.1"/>'
        '<rect x="16.2" y="29" width="4.8" height="2.2" rx="1.1"/></g>'
        '<g fill="none" stroke="url(#skin)" stroke-width="2.4" stroke-linecap="round">'
        '<path d="M11.6 18.4L8.7 23"/><path d="M20.4 18.4L23.3 23"/></g>'
        '<path fill="url(#shirt)" d="M12.6 15.8h6.8c1.9 0 2.9 1 3.1 2.5l-2.1 1l.5 5.7h-9.8'
        'l.5-5.7l-2.1-1c.2-1.5 1.2-2.5 3.1-2.5z"/>'
        f'<asset name="{head}" x="8.2" y="0.8" size="15.6"/>'
    )
    return OwnPicture(
        name=f"{head}-standing",
        title=f"{head} standing",
        group="person-activity",
        tags=f"{head},kid,person,standing,whole",
        body=body,
    )


_ROBOT = OwnPicture(
    name="robot-standing",
    title="robot standing",
    group="face-costume",
    tags="robot,machine,android,standing,whole",
    body=(
        f"<defs>{fade('steel', '#E4DAF0', '#A898BE')}"
        f"{fade('dark', '#6E6390', '#463A66')}</defs>"
        '<g fill="none" stroke="url(#dark)" stroke-width="1.8" stroke-linecap="round">'
        '<path d="M10 18.6c-2.8.6-4 2.6-4.2 5.2"/><path d="M22 18.6c2.8.6 4 2.6 4.2 5.2"/></g>'
        '<circle cx="5.8" cy="24.8" r="1.8" fill="#F92F60"/>'
        '<circle cx="26.2" cy="24.8" r="1.8" fill="#F92F60"/>'
        '<g fill="url(#dark)"><rect x="11.8" y="25" width="3" height="4.5"/>'
        '<rect x="17.2" y="25" width="3" height="4.5"/></g>'
        '<g fill="url(#steel)"><rect x="10.2" y="28.6" width="5.2" height="2.6" rx="1.3"/>'
        '<rect x="16.6" y="28.6" width="5.2" height="2.6" rx="1.3"/>'
        '<rect x="9.8" y="16" width="12.4" height="10.5" rx="2.8"/></g>'
        '<rect x="12.4" y="18.8" width="7.2" height="4.6" rx="1" fill="url(#dark)"/>'
        '<circle cx="14.4" cy="21.1" r="0.9" fill="#26EAFC"/>'
        '<circle cx="17.6" cy="21.1" r="0.9" fill="#FF8257"/>'
        '<asset name="robot" x="7.6" y="0.5" size="16.8"/>'
    ),
)

_TABLE = OwnPicture(
    name="table",
    title="table",
    group="household",
    tags="desk,furniture,wood,dining",
    body=(
        f"<defs>{fade('top', '#D9A066', '#B97B45')}{fade('leg', '#A86D3B', '#7C4A26')}</defs>"
        '<path fill="url(#leg)" d="M4 17h3.2l-.7 13.5H4.3zM24.8 17H28l-.3 13.5h-2.2z"/>'
        '<rect x="3" y="16" width="26" height="3.2" rx="0.6" fill="#8A5630"/>'
        '<rect x="1" y="13.5" width="30" height="3.4" rx="1.4" fill="url(#top)"/>'
        '<rect x="1.8" y="13.9" width="28.4" height="0.8" rx="0.4" fill="#EBBD88"/>'
    ),
)

_BENCH = OwnPicture(
    name="bench",
    title="bench",
    group="household",
    tags="seat,furniture,park,wood",
    body=(
        f"<defs>{fade('slat', '#CC8B50', '#A5683A')}</defs>"
        '<g fill="#4A4454"><rect x="4" y="12" width="1.8" height="18" rx="0.6"/>'
        '<rect x="26.2" y="12" width="1.8" height="18" rx="0.6"/>'
        '<rect x="4" y="22.5" width="24" height="1.4"/></g>'
        '<g fill="url(#slat)"><rect x="2" y="11" width="28" height="2.8" rx="0.9"/>'
        '<rect x="2" y="15" width="28" height="2.8" rx="0.9"/>'
        '<rect x="1.5" y="20" width="29" height="3" rx="1"/></g>'
    ),
)

_STREET_LAMP = OwnPicture(
    name="street-lamp",
    title="street lamp",
    group="light-video",
    tags="lamp post,lantern,light,street",
    body=(
        f"<defs>{fade('glass', '#FFF3B8', '#FFC83D')}"
        f"{fade('iron', '#5A5568', '#332E40')}</defs>"
        '<circle cx="16" cy="6.5" r="6.4" fill="#FFE58A" fill-opacity="0.35"/>'
        '<path fill="url(#iron)" d="M15.2 10h1.6l.4 17h-2.4zM13 27h6l1 4h-8z"/>'
        '<path fill="url(#glass)" d="M12.8 3.5h6.4l-1.3 6.5h-3.8z"/>'
        '<path fill="url(#iron)" d="M11.8 3.7l4.2-2.9l4.2 2.9zM13.6 9.6h4.8v1.4h-4.8z"/>'
    ),
)

_HOT_AIR_BALLOON = OwnPicture(
    name="hot-air-balloon",
    title="hot air balloon",
    group="transport-air",
    tags="aerostat,flight,sky,travel,balloon",
    body=(
        f"<defs>{fade('red', '#FF6B5B', '#D8263F')}{fade('gold', '#FFE066', '#F5A623')}"
        f"{fade('wicker', '#C88A4B', '#8A5428')}</defs>"
        '<path fill="url(#red)" d="M16 1c6.5 0 11 4.6 11 10.4c0 5.2-5 9.2-7.6 13h-6.8'
        'c-2.6-3.8-7.6-7.8-7.6-13C5 5.6 9.5 1 16 1z"/>'
        '<path fill="url(#gold)" d="M16 1c3.8 0 6.3 4.6 6.3 10.4c0 5-2.6 9.2-4 13h-4.6'
        'c-1.4-3.8-4-8-4-13C9.7 5.6 12.2 1 16 1z"/>'
        '<path fill="url(#red)" d="M16 1c1.6 0 2.6 4.6 2.6 10.4c0 5-1 9.2-1.6 13h-2'
        'c-.6-3.8-1.6-8-1.6-13C13.4 5.6 14.4 1 16 1z"/>'
        '<ellipse cx="10.5" cy="7" rx="1.5" ry="3" fill="#fff" fill-opacity="0.35" '
        'transform="rotate(25 10.5 7)"/>'
        '<path stroke="#6B4A2B" stroke-width="0.4" d="M12.8 24.4l.6 2.8M19.2 24.4l-.6 2.8"/>'
        '<rect x="12.9" y="27" width="6.2" height="4.2" rx="1" fill="url(#wicker)"/>'
        '<rect x="12.5" y="26.7" width="7" height="1.1" rx="0.5" fill="#E0A868"/>'
    ),
)

_SIGNBOARD = OwnPicture(
    name="signboard",
    title="signboard",
    group="other-object",
    tags="sign,notice,board,wood,blank",
    body=(
        f"<defs>{fade('post', '#A86D3B', '#7C4A26')}"
        f"{fade('board', '#F3D9AE', '#DDB57C')}</defs>"
        '<path fill="url(#post)" d="M6 16h2.6v15H6zM23.4 16H26v15h-2.6z"/>'
        '<rect x="1" y="3" width="30" height="15.4" rx="1.4" fill="#8A5630"/>'
        '<rect x="2" y="4" width="28" height="13.4" rx="0.8" fill="url(#board)"/>'
        '<g fill="#8A5630"><circle cx="3.4" cy="5.4" r="0.5"/><circle cx="28.6" cy="5.4" r="0.5"/>'
        '<circle cx="3.4" cy="16" r="0.5"/><circle cx="28.6" cy="16" r="0.5"/></g>'
    ),
)

_RAINBOW = OwnPicture(
    name="rainbow-arch",
    title="rainbow arch",
    group="sky-weather",
    tags="rainbow,sky,weather,colours",
    body='<g fill="none" stroke-width="1.5" stroke-opacity="0.85">'
    + "".join(
        f'<path stroke="{colour}" d="M{16 - radius:g} 23a{radius:g} {radius:g} 0 0 1 '
        f'{2 * radius:g} 0"/>'
        for colour, radius in (
            ("#F9485A", 14.8),
            ("#FF8A3D", 13.4),
            ("#FFD84D", 12.0),
            ("#54C86A", 10.6),
            ("#3FA0F5", 9.2),
            ("#6A6AE8", 7.8),
            ("#A45AD8", 6.4),
        )
    )
    + "</g>",
)

_BOOK_COLOURS = ("#D13438", "#0F7B6C", "#F2A33A", "#3B6FB6", "#7A4E9C", "#E8DCC4", "#2F5D50")


def _row_of_books(y: float, offset: int) -> str:
    parts: list[str] = []
    x = 4.2
    for place in range(11):
        kind = (place * 3 + offset) % 7
        width = (1.6, 2.2, 1.9, 2.5, 1.7, 2.0, 2.3)[kind]
        height = (5.8, 5.0, 6.2, 5.4, 6.0, 4.8, 5.6)[(place + offset * 2) % 7]
        if x + width > 27.8:
            break
        parts.append(
            f'<rect x="{x:.1f}" y="{y - height:.1f}" width="{width}" height="{height}" rx="0.2" '
            f'fill="{_BOOK_COLOURS[kind]}"/>'
        )
        x += width + 0.1
    return "".join(parts)


_BOOKSHELF = OwnPicture(
    name="bookshelf",
    title="bookshelf",
    group="household",
    tags="bookcase,books,furniture,library,shelf",
    body=(
        f"<defs>{fade('wood', '#9A6237', '#6B3F20', sideways=True)}</defs>"
        '<rect x="2" y="1" width="28" height="30" rx="0.8" fill="url(#wood)"/>'
        '<rect x="4" y="2.6" width="24" height="26.6" fill="#3C2415"/>'
        + "".join(_row_of_books(y, offset) for offset, y in enumerate((9.4, 16.2, 23.0, 29.2)))
        + "".join(
            f'<rect x="3.5" y="{y}" width="25" height="0.6" fill="#B97B45"/>'
            for y in (9.3, 16.1, 22.9)
        )
    ),
)

OWN_PICTURES: tuple[OwnPicture, ...] = (
    _TABLE,
    _BENCH,
    _STREET_LAMP,
    _HOT_AIR_BALLOON,
    _BOOKSHELF,
    _SIGNBOARD,
    _RAINBOW,
    _ROBOT,
    _sitting(
        "fox",
        coat="#FF9240",
        shade="#D95B12",
        belly="#FFE3BF",
        paws="#4A2C22",
        tail=_BUSHY_TAIL,
        tip="#FFF1DC",
    ),
    _sitting(
        "wolf",
        coat="#A9A6B8",
        shade="#716C86",
        belly="#E4E1EC",
        paws="#56516A",
        tail=_BUSHY_TAIL,
        tip="#C9C6D6",
    ),
    _sitting(
        "raccoon",
        coat="#A8A4B0",
        shade="#6E6878",
        belly="#D8D5DE",
        paws="#3E3848",
        tail=_BUSHY_TAIL,
        tip="#3E3848",
    ),
    _sitting(
        "lion",
        coat="#F3B45B",
        shade="#CF8430",
        belly="#FFDFA6",
        paws="#E0A050",
        tail=_THIN_TAIL,
        tip="#6E4528",
    ),
    _sitting("bear", coat="#9A6248", shade="#6B3F2C", belly="#C79A7E", paws="#5A3424"),
    _sitting("polar-bear", coat="#FBF9FF", shade="#CFC8DA", belly="#FFFFFF", paws="#DDD7E6"),
    _sitting("panda", coat="#4A4458", shade="#2A2536", belly="#F6F3FA", paws="#221E2C"),
    _sitting("koala", coat="#A6A2AE", shade="#77727F", belly="#E2DFE8", paws="#5E5966"),
    _sitting("hamster", coat="#F2B878", shade="#D08A48", belly="#FFF1DE", paws="#F3A9A0"),
    _sitting("frog", coat="#4FD36B", shade="#1F9C46", belly="#E4F7B5", paws="#178A3C"),
    _standing("boy", shirt="#3FA9F5", shade="#1B74D8", legs="#4B5B7A", shoes="#E8554E"),
    _standing("girl", shirt="#F77FB0", shade="#D8417F", legs="#7A5AA6", shoes="#5A3E8A"),
    _standing("child", shirt="#7CCB5A", shade="#3F9A3A", legs="#5A6B8C", shoes="#F2A33A"),
)
