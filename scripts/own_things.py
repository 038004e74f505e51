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
SAND_ISLAND = OwnPicture(
    name="sand-island",
    title="sandy island",
    group="place-geographic",
    tags="island,sand,beach,tropical",
    body=(
        f"<defs>{fade('sand', '#FBE3A6', '#DDB264')}</defs>"
        '<ellipse cx="16" cy="28.6" rx="15.8" ry="2.6" fill="#BDEBF7" fill-opacity="0.8"/>'
        '<path d="M1.5 28.4C5 24.5 9 22.6 15 22.4c7-.2 12 2.4 15.5 6c-8 1.8-21 1.8-29 0z" '
        'fill="url(#sand)"/>'
        '<path d="M6 26.8q3-2 7-2.4M20 25.2q3 .6 5 2" fill="none" stroke="#C99A4E" '
        'stroke-width="0.5" stroke-linecap="round"/>'
        '<ellipse cx="23.5" cy="26.9" rx="1.6" ry="0.8" fill="#A99A8C"/>'
    ),
)


def _pile(name: str, title: str, colours: tuple[str, ...]) -> OwnPicture:
    """Books that lie on each other."""
    body = ""
    for row, colour in enumerate(colours):
        y, left = 27.4 - 4.6 * row, 3.4 + (0.0, 1.6, 0.5, 2.2)[row % 4]
        body += (
            f'<rect x="{left + 0.8:.1f}" y="{y + 0.7:.1f}" width="23.4" height="3.2" '
            'fill="#FBF4E2"/>'
            f'<path d="M{left + 24.4:.1f} {y:.1f}H{left + 1.6:.1f}a2.3 2.3 0 0 0 0 4.6h22.8v-0.9'
            f'h-22.4a1.4 1.4 0 0 1 0-2.8h22.4z" fill="{colour}"/>'
            f'<path d="M{left + 2.6:.1f} {y + 2.3:.1f}h20" stroke="#D9CDB4" stroke-width="0.3"/>'
        )
    return OwnPicture(name=name, title=title, group="book-paper", tags="book,pile,stack", body=body)


BOOK_STACK = _pile("book-stack", "stack of books", ("#C9303A", "#D8434A", "#B8242E", "#E05058"))
FLYING_BIRD = OwnPicture(
    name="flying-bird",
    title="flying bird",
    group="animal-bird",
    tags="bird,fly,gull,seagull,wings,freedom",
    body=(
        f"<defs>{fade('wing', '#FFFFFF', '#C9D3E2')}{fade('tip', '#8FA0B8', '#5F708A')}</defs>"
        '<path d="M15 17.5C12 10 7 6.5 0.8 6c2.6 1.6 3.4 3 4.2 4.6c1.8 3.8 5 7.6 9.5 9.4z" '
        'fill="url(#wing)"/>'
        '<path d="M0.8 6c2.6 1.6 3.4 3 4.2 4.6l1.9-2.5C5.2 6.8 3.2 6.1 0.8 6z" fill="url(#tip)"/>'
        '<path d="M16.5 17.5c2-7 6.5-11 14.7-12.6c-2.8 1.9-3.6 3.4-4.3 5.2c-1.6 4-4.6 8-9.4 9.9z" '
        'fill="url(#wing)"/>'
        '<path d="M31.2 4.9c-2.8 1.9-3.6 3.4-4.3 5.2l-2.2-2.3c1.9-1.4 4-2.3 6.5-2.9z" '
        'fill="url(#tip)"/>'
        '<path d="M4.6 19.6c1.2-2.4 3.4-3.4 6-3c4 .6 8.5.4 12.6 3.4l4 3.6l-4.6-.3'
        'c-3 1.6-8 1.8-11.6 .2c-1.8-.8-3-2-4.2-2.7z" fill="#FFFFFF"/>'
        '<path d="M5 18.9l-3.6 1.7l3.7.7z" fill="#F2A33A"/>'
        '<circle cx="7.3" cy="18.6" r="0.6" fill="#2B2936"/>'
    ),
)
FISHBOWL = OwnPicture(
    name="fishbowl",
    title="goldfish bowl",
    group="household",
    tags="aquarium,goldfish,bowl,glass,fish",
    body=(
        f"<defs>{fade('water', '#9FE0F5', '#3FA5D8')}</defs>"
        '<path d="M8 6.5C2.5 10 1 15 2 20c1 5.5 6 9.5 14 9.5s13-4 14-9.5c1-5-.5-10-6-13.5z" '
        'fill="#E4F6FD" fill-opacity="0.75"/>'
        '<path d="M2.4 13.5c5-1.5 22-1.5 27.2 0c1 8-4 15-13.6 15S1.4 21.5 2.4 13.5z" '
        'fill="url(#water)"/>'
        '<path d="M6 27c3-2.5 17-2.5 20 0c-5 2-15 2-20 0z" fill="#E9CF96"/>'
        '<path d="M22 26c-1-3 1.5-4 .5-7M24 26c0-2 1.5-3 1-5" fill="none" stroke="#3F9A5A" '
        'stroke-width="0.9" stroke-linecap="round"/>'
        '<path d="M8 19.5c2.5-3 7-3 9.5-.2l3.5-2.3v5l-3.5-2c-2.5 2.7-7 2.5-9.5-.5z" '
        'fill="#FF8A2B"/><circle cx="10.8" cy="19" r="0.7" fill="#2B2936"/>'
        '<ellipse cx="16" cy="6.3" rx="8.2" ry="1.5" fill="#F4FCFF" stroke="#A9D8EA" '
        'stroke-width="0.6"/>'
        '<path d="M5 13c-1 3-1 6 .3 9" fill="none" stroke="#FFFFFF" stroke-width="1" '
        'stroke-linecap="round" stroke-opacity="0.8"/>'
    ),
)
EIFFEL_TOWER = OwnPicture(
    name="eiffel-tower",
    title="Eiffel Tower",
    group="place-building",
    tags="paris,france,tower,landmark",
    body=(
        f"<defs>{fade('iron', '#A88A6A', '#6B5340')}</defs>"
        '<path d="M15.6.5h.8l.5 7.5h-1.8zM14.3 8h3.4l.9 9h-5.2zM12.4 17h7.2l.6 1.6h-8.4z'
        "M12.2 18.6h7.6c1 4.4 3.2 9 6.2 12.4h-5.5c-.8-3-2-5-4.5-5s-3.7 2-4.5 5H6"
        'c3-3.4 5.2-8 6.2-12.4z" fill="url(#iron)"/>'
        '<path d="M15 8.5l2.2 2.5l-2.6 2.5l3 2.8M17 8.5l-2.2 2.5l2.6 2.5l-3 2.8M12.6 19'
        'l3.4 5.5l3.4-5.5M10.5 24l5.5-3.5l5.5 3.5" fill="none" stroke="#E9DCC4" '
        'stroke-width="0.4" stroke-opacity="0.8"/>'
        '<path d="M9.8 24.3h12.4l.5 1.3H9.3z" fill="#8A6E54"/>'
    ),
)
DRAWBRIDGE_CASTLE = OwnPicture(
    name="drawbridge-castle",
    title="medieval castle",
    group="place-building",
    tags="castle,fortress,medieval,towers,drawbridge,knight",
    body=(
        f"<defs>{fade('stone', '#D6D0C6', '#A39A8E')}{fade('far', '#B9B2A8', '#8F877C')}"
        f"{fade('roof', '#C2504A', '#8A2F34')}{_wood('bridge')}</defs>"
        '<path d="M9 8h5v19H9zM18 8h5v19h-5z" fill="url(#far)"/>'
        '<path d="M8.3 8.5l3.2-6.5l3.2 6.5zM17.3 8.5l3.2-6.5l3.2 6.5z" fill="url(#roof)"/>'
        '<path d="M5 16h1.7v1.5h1.7V16h1.7v1.5h1.7V16h1.7v1.5h1.7V16h1.7v1.5h1.7V16'
        'h1.7v1.5h1.7V16h1.7v1.5h1.7V16H27v13H5z" fill="url(#stone)"/>'
        '<path d="M1.5 12h6.5v17H1.5zM24 12h6.5v17H24z" fill="url(#stone)"/>'
        '<path d="M.8 12.5l4-8l4 8zM23.2 12.5l4-8l4 8z" fill="url(#roof)"/>'
        '<path d="M4 15.5h1.6v3H4zM26.4 15.5H28v3h-1.6zM10.8 10.5h1.4v2.5h-1.4z'
        'M19.8 10.5h1.4v2.5h-1.4z" fill="#4A3F4A"/>'
        '<path d="M12 29v-5.5c0-2.5 1.6-4 4-4s4 1.5 4 4V29z" fill="#3A2A30"/>'
        '<path d="M13.2 20.5v7M16 19.8v7.5M18.8 20.5v7" stroke="#7A6A5A" stroke-width="0.4"/>'
        '<path d="M12 27.3h8l2.2 4.2H9.8z" fill="url(#bridge)"/>'
        '<path d="M11.4 28.4h9.2M10.8 29.5h10.4M10.3 30.5h11.4" stroke="#6B4426" '
        'stroke-width="0.3"/>'
        '<path d="M10.2 31L12.6 23M21.8 31L19.4 23" stroke="#4A4450" stroke-width="0.4"/>'
    ),
)
WARDROBE = OwnPicture(
    name="wardrobe",
    title="wardrobe",
    group="household",
    tags="closet,cupboard,furniture,clothes",
    body=(
        f"<defs>{_wood('wood')}</defs>"
        '<rect x="5" y="2" width="22" height="27" rx="1" fill="url(#wood)"/>'
        '<path d="M4 2.8C4 1.6 5 1 6 1h20c1 0 2 .6 2 1.8V4H4z" fill="#7A4A28"/>'
        '<path d="M7 6h8v21H7zM17 6h8v21h-8z" fill="#C98F58"/>'
        '<path d="M8.3 7.5h5.4v8H8.3zM18.3 7.5h5.4v8h-5.4zM8.3 17.5h5.4v8H8.3z'
        'M18.3 17.5h5.4v8h-5.4z" fill="#A86F3E"/>'
        '<circle cx="14.3" cy="16.5" r="0.7" fill="#F0D08A"/>'
        '<circle cx="17.7" cy="16.5" r="0.7" fill="#F0D08A"/>'
        '<path d="M6 29h3v2H6zM23 29h3v2h-3z" fill="#6B4022"/>'
    ),
)
OVEN = OwnPicture(
    name="oven",
    title="oven",
    group="household",
    tags="stove,cooker,kitchen",
    body=(
        f"<defs>{fade('steel', '#EEF2F6', '#B9C3CE')}{fade('glass', '#4A4038', '#2A221E')}</defs>"
        '<rect x="4" y="4" width="24" height="26" rx="1.5" fill="url(#steel)"/>'
        '<rect x="3.5" y="3" width="25" height="2.5" rx="0.8" fill="#5C6472"/>'
        '<g fill="#5C6472"><circle cx="8" cy="8.5" r="1.3"/><circle cx="12" cy="8.5" r="1.3"/>'
        '<circle cx="20" cy="8.5" r="1.3"/><circle cx="24" cy="8.5" r="1.3"/></g>'
        '<rect x="6.5" y="14" width="19" height="12" rx="1" fill="url(#glass)"/>'
        '<rect x="8" y="19" width="16" height="5" rx="1" fill="#F08A3A" fill-opacity="0.55"/>'
        '<rect x="7.5" y="11.6" width="17" height="1.2" rx="0.6" fill="#8A93A0"/>'
    ),
)
SURFBOARD = OwnPicture(
    name="surfboard",
    title="surfboard",
    group="sport",
    tags="surf,wave,beach,board",
    body=(
        f"<defs>{fade('board', '#FF8AB8', '#E84A8A')}</defs>"
        '<path d="M16 .5c4 4.5 6 10 6 16.5c0 6-2 11.5-4 14.5h-4c-2-3-4-8.5-4-14.5'
        'c0-6.5 2-12 6-16.5z" fill="url(#board)"/>'
        '<path d="M16 1v30" stroke="#FFFFFF" stroke-width="0.8" stroke-opacity="0.9"/>'
        '<path d="M10.3 14c3.5 2.5 8 2.5 11.4 0M10.3 18c3.5 2.5 8 2.5 11.4 0" fill="none" '
        'stroke="#FFE58A" stroke-width="1.2"/>'
    ),
)
CARDBOARD_BOX = OwnPicture(
    name="cardboard-box",
    title="cardboard box",
    group="household",
    tags="box,carton,package,open",
    body=(
        f"<defs>{fade('front', '#D9A868', '#B9864A')}{fade('flap', '#E8BE84', '#C99858')}</defs>"
        '<path d="M5 13h22l-2-4H7z" fill="#7A5630"/>'
        '<path d="M5 13L1 8.500h5.500L7 9zM27 13l4-4.500h-5.500L25 9z" fill="url(#flap)"/>'
        '<path d="M5 13h22v17H5z" fill="url(#front)"/>'
        '<path d="M5 13h22l2.5 4.500h-27z" fill="url(#flap)"/>'
        '<path d="M14 17.500h4V30h-4z" fill="#E8D3A8" fill-opacity="0.55"/>'
    ),
)
BOWL = OwnPicture(
    name="bowl",
    title="bowl",
    group="dishware",
    tags="dish,kitchen,empty",
    body=(
        f"<defs>{fade('china', '#F4F8FC', '#A9C3E0')}</defs>"
        '<ellipse cx="16" cy="15" rx="14.5" ry="3.2" fill="#8FA9C6"/>'
        '<path d="M1.5 15h29c0 8-5.5 13-11 14h-7c-5.5-1-11-6-11-14z" fill="url(#china)"/>'
        '<path d="M2 17.500c8 2.5 20 2.5 28 0" fill="none" stroke="#4A7FC0" stroke-width="1"/>'
        '<path d="M11.5 29h9v1.500h-9z" fill="#8FA9C6"/>'
    ),
)

WIRE = OwnPicture(
    name="wire",
    title="wire",
    group="other-object",
    tags="power line,cable,telephone line,clothesline,rope",
    body=(
        f"<defs>{_wood('pole')}</defs>"
        '<rect x="1.2" y="3" width="1.3" height="28.5" rx="0.4" fill="url(#pole)"/>'
        '<rect x="29.5" y="3" width="1.3" height="28.5" rx="0.4" fill="url(#pole)"/>'
        '<path d="M0 5h4M28 5h4" stroke="#8A5630" stroke-width="1"/>'
        '<path d="M1.8 5Q16 9.5 30.2 5M1.8 9Q16 13.5 30.2 9" fill="none" stroke="#3A3844" '
        'stroke-width="0.35"/>'
    ),
)
ARMCHAIR = OwnPicture(
    name="armchair",
    title="armchair",
    group="household",
    tags="chair,seat,furniture,sofa",
    body=(
        f"<defs>{fade('cloth', '#D9705F', '#A8443F')}{fade('seat', '#EE8E79', '#C75B50')}</defs>"
        '<path d="M6 29h3v2.5H6zM23 29h3v2.5h-3z" fill="#6B4226"/>'
        '<rect x="6" y="3" width="20" height="20" rx="5" fill="url(#cloth)"/>'
        '<rect x="7" y="17.5" width="18" height="8" rx="2.5" fill="url(#seat)"/>'
        '<rect x="7" y="22" width="18" height="7.5" rx="1.5" fill="url(#cloth)"/>'
        '<rect x="2.5" y="13" width="6" height="17" rx="3" fill="url(#seat)"/>'
        '<rect x="23.5" y="13" width="6" height="17" rx="3" fill="url(#seat)"/>'
    ),
)
SKATEBOARD_SIDE = OwnPicture(
    name="skateboard-side",
    title="skateboard from the side",
    group="sport",
    tags="skateboard,board,skate",
    body=(
        f"<defs>{fade('deck', '#4A4358', '#2F2A3A')}{fade('wheel', '#FF5C77', '#C2284C')}</defs>"
        '<path d="M1 23.2Q2.5 26 6 26h20q3.5 0 5-2.8" fill="none" stroke="url(#deck)" '
        'stroke-width="1.7" stroke-linecap="round"/>'
        '<path d="M5 26.2h22v1H5z" fill="#C79A5C"/>'
        '<circle cx="8" cy="29" r="2.3" fill="url(#wheel)"/>'
        '<circle cx="24" cy="29" r="2.3" fill="url(#wheel)"/>'
        '<circle cx="8" cy="29" r="0.8" fill="#F4EAF0"/><circle cx="24" cy="29" r="0.8" '
        'fill="#F4EAF0"/>'
    ),
)
SAILING_SHIP = OwnPicture(
    name="sailing-ship",
    title="sailing ship",
    group="transport-water",
    tags="ship,sail,mast,boat,tall ship,pirate",
    body=(
        f"<defs>{fade('sail', '#FDF6E6', '#DCCBAA')}{fade('hull', '#9A6238', '#6B3F22')}"
        f"{fade('flag', '#E8505B', '#C22F45')}</defs>"
        '<path d="M10.5 4v20M20.5 2v22M27.5 15.5L31.5 12" stroke="#6B4226" stroke-width="0.9"/>'
        '<path d="M5.5 6.5q5 1.4 10 0q1.6 3.6 0 7q-5 1.6-10 0q1.6-3.6 0-7z" fill="url(#sail)"/>'
        '<path d="M4.5 14.5q6 1.6 12 0q1.8 3.6 0 7.2q-6 1.6-12 0q1.8-3.6 0-7.2z" '
        'fill="url(#sail)"/>'
        '<path d="M16 4.5q4.5 1.3 9 0q1.6 3.5 0 7q-4.5 1.5-9 0q1.6-3.5 0-7z" fill="url(#sail)"/>'
        '<path d="M16.8 12.6q5 1.5 9.6 0q1.8 4 0 8.2q-4.6 1.6-9.6 0q1.8-4 0-8.2z" '
        'fill="url(#sail)"/>'
        '<path d="M20.5 1h4.6l-1.2 1.3l1.2 1.3h-4.6z" fill="url(#flag)"/>'
        '<path d="M1.5 21.5h4l1 2h19l2.5-4h3.5q-.6 8-5 11H6.5q-4.4-3-5-9z" fill="url(#hull)"/>'
        '<path d="M3 25.6h26.6" stroke="#C79A5C" stroke-width="0.7"/>'
        '<path d="M8 27.4h1.6M13 27.4h1.6M18 27.4h1.6M23 27.4h1.6" stroke="#3F2413" '
        'stroke-width="1.4"/>'
    ),
)
SCARF_WORN = OwnPicture(
    name="scarf-worn",
    title="scarf around a neck",
    group="clothing",
    tags="scarf,neck,winter",
    body=(
        f"<defs>{fade('wool', '#F0434F', '#C41F36')}{fade('end', '#DB2E41', '#A8152C')}</defs>"
        '<path d="M19.5 9l6.5 14.5l-6 1.8L15.5 11z" fill="url(#end)"/>'
        '<path d="M20.3 24.9l.7 2.2M22.3 24.3l.7 2.2M24.3 23.7l.7 2.2" stroke="#A8152C" '
        'stroke-width="0.8" stroke-linecap="round"/>'
        '<path d="M2 6.5Q1.5 3.5 4.5 4.5Q16 8.5 27.5 4.5Q30.5 3.5 30 6.5Q29.8 9.5 27.5 10.6'
        'Q16 15 4.5 10.6Q2.2 9.5 2 6.5z" fill="url(#wool)"/>'
    ),
)
PITCHFORK = OwnPicture(
    name="pitchfork",
    title="pitchfork",
    group="tool",
    tags="fork,hay,farm,farmer,tool",
    body=(
        f"<defs>{_wood('shaft')}</defs>"
        '<rect x="15.3" y="11" width="1.4" height="20.5" rx="0.6" fill="url(#shaft)"/>'
        '<path d="M11.5 1v6.5q0 4 4.5 4t4.5-4V1M16 1v10.5" fill="none" stroke="#7A8294" '
        'stroke-width="1.1" stroke-linecap="round"/>'
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
    RIVER,
    SAND_ISLAND,
    BOOK_STACK,
    FLYING_BIRD,
    FISHBOWL,
    EIFFEL_TOWER,
    DRAWBRIDGE_CASTLE,
    WARDROBE,
    OVEN,
    SURFBOARD,
    CARDBOARD_BOX,
    BOWL,
    WIRE,
    ARMCHAIR,
    SKATEBOARD_SIDE,
    SAILING_SHIP,
    SCARF_WORN,
    PITCHFORK,
    _sleeping("cat", coat="#FFB25E", dark="#E08A34", pointed=True),
    _sleeping("black-cat", coat="#3A3844", dark="#26242E", pointed=True),
    _sleeping("dog", coat="#D9A066", dark="#A86D3B", pointed=False),
)
