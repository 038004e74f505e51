"""Furniture and other things drawn for limner, in addition to those of own_pictures.py."""

from __future__ import annotations

from own_pictures import OwnPicture, fade


def _wood(name: str) -> str:
    return fade(name, "#B97B45", "#8A5630")


FIREPLACE = OwnPicture(
    name="fireplace",
    title="fireplace",
    group="household",
    tags="fire,hearth,chimney,warm,home",
    body=(
        f"<defs>{fade('brick', '#C4674E', '#9A4636')}{_wood('shelf')}</defs>"
        '<rect x="5" y="1" width="22" height="9" fill="url(#brick)"/>'
        '<rect x="2.5" y="12" width="27" height="19" fill="url(#brick)"/>'
        '<path d="M5 4h22M5 7h22M2.5 15h27M2.5 18h6M23.5 18h6M2.5 21h6M23.5 21h6M2.5 24h6'
        'M23.5 24h6M2.5 27h6M23.5 27h6M10 1v3M18 1v3M14 4v3M22 4v3M8 12v3M16 12v3M24 12v3" '
        'stroke="#7E372B" stroke-width="0.4" fill="none"/>'
        '<rect x="1" y="9.5" width="30" height="3" rx="0.8" fill="url(#shelf)"/>'
        '<path d="M8.5 31V22c0-4 3-6.5 7.5-6.5s7.5 2.5 7.5 6.5v9z" fill="#2B1A1E"/>'
        '<path d="M10.5 29.5l11-1.5M10.5 28l11 1.5" stroke="#7A4A2A" stroke-width="1.6" '
        'stroke-linecap="round"/>'
        '<path d="M16 18c1.5 3 4.5 4 4.5 7.5c0 2.5-2 3.7-4.5 3.7s-4.5-1.2-4.5-3.7'
        'c0-1.8 1-2.6 1.7-4c.6 1 .8 1.4 1.6 1.6c0-2 .5-3.5 1.2-5.1z" fill="#FF8A2B"/>'
        '<path d="M16 22.5c.8 1.6 2.3 2.3 2.3 4c0 1.5-1 2.3-2.3 2.3s-2.3-.8-2.3-2.3'
        'c0-1.7 1.5-2.4 2.3-4z" fill="#FFD84A"/>'
    ),
)
RUG = OwnPicture(
    name="rug",
    title="rug",
    group="household",
    tags="carpet,mat,floor",
    body=(
        '<ellipse cx="16" cy="27" rx="15.5" ry="4.2" fill="#9A3B45"/>'
        '<ellipse cx="16" cy="26.8" rx="13" ry="3.3" fill="#E9C9A0"/>'
        '<ellipse cx="16" cy="26.7" rx="11" ry="2.6" fill="#B84A52"/>'
        '<ellipse cx="16" cy="26.6" rx="6" ry="1.3" fill="#E9C9A0"/>'
    ),
)
FLOOR_LAMP = OwnPicture(
    name="floor-lamp",
    title="floor lamp",
    group="household",
    tags="lamp,light,table lamp,desk lamp",
    body=(
        f"<defs>{fade('cone', '#FFE9A8', '#F0B64A')}{fade('brass', '#C79A4A', '#8A6426')}</defs>"
        '<circle cx="16" cy="9" r="9" fill="#FFE58A" fill-opacity="0.3"/>'
        '<rect x="15.3" y="11" width="1.4" height="17" fill="url(#brass)"/>'
        '<path d="M10 31c0-2 3-3.2 6-3.2s6 1.2 6 3.2z" fill="url(#brass)"/>'
        '<path d="M11.5 2.5h9l4 10.5h-17z" fill="url(#cone)"/>'
    ),
)
LAID_TABLE = OwnPicture(
    name="laid-table",
    title="table with a checkered tablecloth",
    group="household",
    tags="tablecloth,checkered,picnic,dining",
    body=(
        f"<defs>{_wood('leg')}</defs>"
        '<path fill="url(#leg)" d="M4 22h2.6l-.5 9H4.4zM25.4 22H28l-.4 9h-1.7z"/>'
        '<path d="M2 13.5h28l1.5 4H.5z" fill="#FBFBFD"/>'
        '<path d="M.5 17.5h31V23l-2 1.5l-2.5-1.5l-2.5 1.5l-2.5-1.5l-2.5 1.5l-2.5-1.5l-2.5 1.5'
        'l-2.5-1.5l-2.5 1.5l-2.5-1.5l-2.5 1.5l-2.5-1.5l-1.5 1z" fill="#FBFBFD"/>'
        '<g fill="#D9343F">'
        + "".join(
            f'<rect x="{0.5 + 3.1 * column:.1f}" y="{17.5 + 2.6 * row:.1f}" width="1.55" '
            'height="2.6" fill-opacity="0.9"/>'
            for row in range(2)
            for column in range(10)
        )
        + "".join(
            f'<path d="M{2 + 2.8 * column:.1f} 13.5h1.4l{-0.3 + 0.06 * column:.2f} 4h-1.5z" '
            'fill-opacity="0.75"/>'
            for column in range(10)
        )
        + '</g><rect x="1" y="15.3" width="30" height="0.9" fill="#D9343F" fill-opacity="0.45"/>'
        '<rect x="0.5" y="19" width="31" height="1.2" fill="#D9343F" fill-opacity="0.45"/>'
    ),
)
FENCE = OwnPicture(
    name="fence",
    title="fence",
    group="household",
    tags="wood,garden,picket",
    body=(
        f"<defs>{fade('slat', '#F6EFE2', '#CDBFA8')}</defs>"
        '<rect x="0.5" y="20" width="31" height="1.8" fill="#C9B99E"/>'
        '<rect x="0.5" y="26" width="31" height="1.8" fill="#C9B99E"/>'
        + "".join(
            f'<path d="M{x} 31V18l1.6-2.5l1.6 2.5v13z" fill="url(#slat)"/>'
            for x in (1.2, 5.8, 10.4, 15, 19.6, 24.2, 28.4)
        )
    ),
)
BAMBOO = OwnPicture(
    name="bamboo",
    title="bamboo",
    group="plant-other",
    tags="plant,grass,stalk,forest",
    body=(
        f"<defs>{fade('stalk', '#7BC24E', '#3F8A34', sideways=True)}</defs>"
        + "".join(
            f'<rect x="{x}" y="{top}" width="{wide}" height="{31 - top}" fill="url(#stalk)"/>'
            + "".join(
                f'<rect x="{x - 0.3}" y="{y}" width="{wide + 0.6}" height="0.7" fill="#2F6E2A"/>'
                for y in range(top + 4, 31, 6)
            )
            for x, top, wide in ((8, 4, 2.4), (14.5, 1, 2.8), (21, 6, 2.2))
        )
        + '<g fill="#4FA53C">'
        + "".join(
            f'<path d="M{x} {y}q{dx} -2.5 {2 * dx} 1q{-dx} 1.2 {-2 * dx} -1z"/>'
            for x, y, dx in (
                (10, 8, 3),
                (9, 12, -3.5),
                (16.5, 5, 3.5),
                (15, 9, -3),
                (22.5, 10, 3.5),
                (21.5, 15, -3),
                (17, 14, 3),
                (9.5, 18, 3),
            )
        )
        + "</g>"
    ),
)
CHEESE_WHEEL = OwnPicture(
    name="cheese-wheel",
    title="wheel of cheese",
    group="food-prepared",
    tags="cheese,wheel,round,dairy",
    body=(
        f"<defs>{fade('rind', '#FFC93C', '#E59A12')}</defs>"
        '<path d="M1 14v10c0 4 7 7 15 7s15-3 15-7V14z" fill="url(#rind)"/>'
        '<ellipse cx="16" cy="14" rx="15" ry="7" fill="#FFE27A"/>'
        '<path d="M16 14L27 9.3A15 7 0 0 1 30.9 14.5z" fill="#F2B632"/>'
        '<path d="M16 14L30.9 14.5V23c0 .5-.1 1-.3 1.4L16 22z" fill="#FFD658"/>'
        '<g fill="#E0A021"><circle cx="21" cy="18" r="1.3"/><circle cx="26" cy="20" r="1.6"/>'
        '<circle cx="7" cy="23" r="1.5"/><circle cx="11.5" cy="26" r="1.2"/></g>'
        '<g fill="#F0C24A"><ellipse cx="8" cy="13" rx="1.8" ry="0.8"/>'
        '<ellipse cx="14" cy="10" rx="1.4" ry="0.6"/><ellipse cx="12" cy="17" rx="1.5" '
        'ry="0.7"/></g>'
    ),
)
STONE_BRIDGE = OwnPicture(
    name="stone-bridge",
    title="stone bridge",
    group="place-other",
    tags="bridge,arch,river,crossing",
    body=(
        f"<defs>{fade('stone', '#C9C3BC', '#8F8880')}</defs>"
        '<path d="M0 16h32v15h-3c0-6-3-9.5-6-9.5s-5.5 3.5-5.5 9.5h-3c0-6-2.5-9.5-5.5-9.5'
        's-6 3.5-6 9.5H0z" '
        'fill="url(#stone)"/><rect y="14" width="32" height="2.6" fill="#A59D94"/>'
        + "".join(
            f'<rect x="{x}" y="11.5" width="1.2" height="2.7" fill="#8F8880"/>'
            for x in (1, 7, 13, 18, 24, 30)
        )
        + '<rect y="11" width="32" height="1" fill="#B5ADA4"/>'
        '<path d="M2 19h4M26 19h4M14.5 20h3M1 24h2M29 24h2M15 25h2" stroke="#776F67" '
        'stroke-width="0.4"/>'
    ),
)
DOUBLE_DECKER = OwnPicture(
    name="double-decker-bus",
    title="double-decker bus",
    group="transport-ground",
    tags="bus,london,red,vehicle",
    body=(
        f"<defs>{fade('red', '#F04A44', '#B8222C')}{fade('glass', '#CFEFFF', '#7FBFE4')}</defs>"
        '<path d="M2 6.5C2 5 3 4 4.5 4h23C29 4 30 5 30 6.5V27H2z" fill="url(#red)"/>'
        '<g fill="url(#glass)"><rect x="3.5" y="6.5" width="25" height="5" rx="0.8"/>'
        '<rect x="3.5" y="16" width="17.5" height="5" rx="0.8"/>'
        '<rect x="23" y="16" width="5" height="9.5" rx="0.6"/></g>'
        '<path d="M8.5 6.5v5M13.5 6.5v5M18.5 6.5v5M23.5 6.5v5M8 16v5M12.5 16v5M17 16v5" '
        'stroke="#C22A33" stroke-width="0.7"/>'
        '<rect x="2" y="13" width="28" height="1.4" fill="#FFE9B8"/>'
        '<g fill="#2B2936"><circle cx="8.5" cy="27.3" r="3.2"/><circle cx="23" cy="27.3" '
        'r="3.2"/></g><g fill="#B9B6C6"><circle cx="8.5" cy="27.3" r="1.3"/>'
        '<circle cx="23" cy="27.3" r="1.3"/></g>'
        '<rect x="1.6" y="22.5" width="1.4" height="1.6" rx="0.5" fill="#FFE58A"/>'
    ),
)


def _sleeping(name: str, *, coat: str, dark: str, pointed: bool) -> OwnPicture:
    """An animal that is curled up and sleeps."""
    ears = (
        f'<path d="M4.5 20l.5-4.5l3.5 2.5zM12.5 20l-.5-4.5l-3.5 2.5z" fill="{dark}"/>'
        if pointed
        else f'<ellipse cx="4.3" cy="21.5" rx="1.7" ry="3" fill="{dark}"/>'
        f'<ellipse cx="12.8" cy="21.5" rx="1.7" ry="3" fill="{dark}"/>'
    )
    return OwnPicture(
        name=f"{name}-sleeping",
        title=f"sleeping {name}",
        group="animal-mammal",
        tags=f"{name},sleep,curled,animal",
        body=(
            f"<defs>{fade('coat', coat, dark)}</defs>"
            '<path d="M6 30c-2-6 3-13 12.5-13c8 0 12.5 5 12.5 9.5c0 2.5-1.5 3.5-3 3.5z" '
            'fill="url(#coat)"/>'
            f'<path d="M27 29.5c-6 1.5-10-.5-14 .3" fill="none" stroke="{dark}" '
            'stroke-width="2.4" stroke-linecap="round"/>'
            f'{ears}<ellipse cx="8.5" cy="23.5" rx="5.2" ry="4.8" fill="url(#coat)"/>'
            '<path d="M5 23q1.2 1.2 2.4 0M9.6 23q1.2 1.2 2.4 0M8 26.3q.5.6 1 0" '
            'fill="none" stroke="#3A2230" stroke-width="0.6" stroke-linecap="round"/>'
            '<ellipse cx="8.5" cy="25.3" rx="0.9" ry="0.6" fill="#3A2230"/>'
            '<path d="M13 12h2.6l-2.6 3h2.6M17 7.5h3.2l-3.2 3.7h3.2M22 2.5h3.8l-3.8 4.4h3.8" '
            'fill="none" stroke="#7C8CC0" stroke-width="0.7"/>'
        ),
    )


DATABASE = OwnPicture(
    name="database",
    title="database",
    group="computer",
    tags="data,storage,disk,sql,table,cylinder",
    body=(
        f"<defs>{fade('drum', '#5B8DEF', '#2F56B0', sideways=True)}</defs>"
        '<path d="M4 6v20c0 2.8 5.4 5 12 5s12-2.2 12-5V6z" fill="url(#drum)"/>'
        '<path d="M4.6 13.2c.4 2.6 5.3 4.6 11.4 4.6s11-2 11.4-4.6M4.6 20.2c.4 2.6 5.3 4.6 11.4 4.6'
        's11-2 11.4-4.6" '
        'fill="none" stroke="#DCE8FF" stroke-width="1.2"/>'
        '<ellipse cx="16" cy="6" rx="12" ry="5" fill="#9CC0FF"/>'
        '<circle cx="24" cy="16" r="1" fill="#BDF5C4"/><circle cx="24" cy="23" r="1" '
        'fill="#BDF5C4"/>'
    ),
)
SERVER = OwnPicture(
    name="server",
    title="server",
    group="computer",
    tags="rack,backend,host,data center,machine,computer",
    body=(
        f"<defs>{fade('case', '#6B7688', '#3C4554')}{fade('unit', '#EEF2F8', '#C3CCDA')}</defs>"
        '<rect x="4" y="1.5" width="24" height="29" rx="2" fill="url(#case)"/>'
        + "".join(
            f'<rect x="6" y="{top}" width="20" height="7" rx="1" fill="url(#unit)"/>'
            f'<path d="M12 {top + 2.5}h11M12 {top + 4.5}h11" stroke="#8B96A8" stroke-width="0.9"/>'
            f'<circle cx="8.7" cy="{top + 3.5}" r="1.2" fill="{light}"/>'
            for top, light in ((4, "#3CC46B"), (12.5, "#3CC46B"), (21, "#F2B233"))
        )
    ),
)
RIVER = OwnPicture(
    name="river",
    title="river",
    group="place-geographic",
    tags="stream,brook,water,creek,meadow",
    body=(
        f"<defs>{fade('grass', '#9BD770', '#4E9E44')}{fade('flow', '#8FD3F7', '#2D86D0')}</defs>"
        '<rect x="1" y="6" width="30" height="22" rx="4" fill="url(#grass)"/>'
        '<path d="M13 6c1 4 7 5 5.5 9S8 20 8.5 28h12c-.5-6 7-8 8-13c.8-4-6.5-5-7.5-9z" '
        'fill="url(#flow)"/>'
        '<path d="M17 9.5c1.5 1.5 4 2.2 4.5 4M21 17c-2 2-6 3.5-7 7M24 15c-1 2.5-5 4-6 7" '
        'fill="none" stroke="#E3F5FF" stroke-width="0.8" stroke-linecap="round"/>'
        '<circle cx="6" cy="11" r="2.6" fill="#3B8A3E"/><circle cx="8.5" cy="13" r="2" '
        'fill="#46994A"/><circle cx="27" cy="24" r="2.4" fill="#3B8A3E"/>'
    ),
)
OWN_THINGS: tuple[OwnPicture, ...] = (
    FIREPLACE,
    RUG,
    FLOOR_LAMP,
    LAID_TABLE,
    FENCE,
    BAMBOO,
    CHEESE_WHEEL,
    STONE_BRIDGE,
    DOUBLE_DECKER,
    DATABASE,
    SERVER,
    RIVER,
    _sleeping("cat", coat="#FFB25E", dark="#E08A34", pointed=True),
    _sleeping("black-cat", coat="#3A3844", dark="#26242E", pointed=True),
    _sleeping("dog", coat="#D9A066", dark="#A86D3B", pointed=False),
)
