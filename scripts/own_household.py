"""Things of the house and the street drawn for limner, which no open set of pictures has."""

from __future__ import annotations

from own_pictures import OwnPicture, fade


def _thing(name: str, tags: str, *shapes: str, group: str = "household") -> OwnPicture:
    return OwnPicture(
        name=name, title=name.replace("-", " "), group=group, tags=tags, body="".join(shapes)
    )


def _defs(*fades: str) -> str:
    return f"<defs>{''.join(fades)}</defs>"


_WOOD = fade("wood", "#E0AE72", "#B07A42")
_STEEL = fade("steel", "#F1F5FA", "#A9B6C8")
_BLUE = fade("blue", "#6FB4F2", "#2F74C4")
_RED = fade("red", "#F27A6B", "#C43A3A")

OWN_HOUSEHOLD: tuple[OwnPicture, ...] = (
    _thing(
        "towel",
        "bath,bathroom,dry,cloth,hand towel,beach",
        _defs(_BLUE, _STEEL),
        '<rect x="1.5" y="3" width="29" height="2.2" rx="1.1" fill="url(#steel)"/>',
        '<path d="M6 3.6h20v24H6z" fill="url(#blue)"/>',
        '<path d="M6 21h20v2H6zM6 24.2h20v1H6z" fill="#EAF4FF"/>',
        '<path d="M6.5 27.6v2.4M9 27.6v2.4M11.5 27.6v2.4M14 27.6v2.4M16.5 27.6v2.4'
        'M19 27.6v2.4M21.5 27.6v2.4M24 27.6v2.4M25.6 27.6v2.4" stroke="#2F74C4" '
        'stroke-width="0.8"/>',
        '<path d="M6 3.6h20v3.6H6z" fill="#FFFFFF" opacity="0.25"/>',
    ),
    _thing(
        "potion",
        "magic,flask,elixir,bottle,game,health,mana",
        _defs(fade("liquid", "#F07AD8", "#9B2FA8"), fade("glass", "#F4FAFF", "#C7DAEC")),
        '<path d="M13 5h6v7c6 2 9 6 9 10.5c0 5-5 8.5-12 8.5s-12-3.5-12-8.5C4 18 7 14 13 12z" '
        'fill="url(#glass)"/>',
        '<path d="M5.6 20c6 2.5 14-2 20.8.5c.3.8.3 1.4.3 2c0 4.2-4.4 7.2-10.7 7.2'
        'S5.3 26.7 5.3 22.5c0-.9.1-1.7.3-2.5z" fill="url(#liquid)"/>',
        '<rect x="11.8" y="3.8" width="8.4" height="2.6" rx="1.2" fill="#D7E6F4"/>',
        '<path d="M13 1h6l-.6 3.4h-4.8z" fill="#B07A42"/>',
        '<circle cx="11" cy="24.5" r="1.3" fill="#FFD3F6"/><circle cx="17" cy="26.5" r="1" '
        'fill="#FFD3F6"/><circle cx="20" cy="23" r="1.5" fill="#FFD3F6"/>',
        '<path d="M8.5 16.5c-1.6 1.4-2.3 3-2.4 4.8" stroke="#FFFFFF" stroke-width="1.3" '
        'fill="none" stroke-linecap="round"/>',
    ),
    _thing(
        "chest-of-drawers",
        "drawer,drawers,dresser,furniture,bedroom,cabinet",
        _defs(_WOOD),
        '<path d="M5 28h4v3H5zM23 28h4v3h-4z" fill="#7A4E28"/>',
        '<rect x="2.5" y="5" width="27" height="24" rx="1.2" fill="url(#wood)"/>',
        '<rect x="1.5" y="3" width="29" height="3" rx="1" fill="#C98F55"/>',
        '<g fill="#D39B5F" stroke="#8A5A30" stroke-width="0.6"><rect x="5" y="8" width="22" '
        'height="5.6" rx="0.6"/><rect x="5" y="15" width="22" height="5.6" rx="0.6"/>'
        '<rect x="5" y="22" width="22" height="5.6" rx="0.6"/></g>',
        '<g fill="#F5D58A"><circle cx="16" cy="10.8" r="1"/><circle cx="16" cy="17.8" r="1"/>'
        '<circle cx="16" cy="24.8" r="1"/></g>',
    ),
    _thing(
        "radiator",
        "heater,heating,warm,room",
        _defs(_STEEL),
        '<path d="M4 26h3v4H4zM25 26h3v4h-3zM28 22h3v2h-3z" fill="#8494AA"/>',
        '<g fill="url(#steel)">'
        + "".join(
            f'<rect x="{2.5 + 5.5 * at}" y="5" width="4.8" height="22" rx="2.4"/>'
            for at in range(5)
        )
        + "</g>",
        '<path d="M3 9h26M3 23h26" stroke="#94A4BA" stroke-width="1.2"/>',
    ),
    _thing(
        "microwave",
        "microwave oven,kitchen,appliance,heat,food",
        _defs(_STEEL),
        '<rect x="1" y="6" width="30" height="20" rx="2" fill="url(#steel)"/>',
        '<rect x="3" y="8.5" width="18.5" height="15" rx="1.2" fill="#27303F"/>',
        '<ellipse cx="12" cy="20.5" rx="6.5" ry="1.4" fill="#5A6A82"/>',
        '<path d="M5 11l5-1.5v11l-5 1z" fill="#FFFFFF" opacity="0.12"/>',
        '<rect x="23.5" y="8.5" width="5.5" height="3" rx="0.5" fill="#1D4B3A"/>',
        '<g fill="#7C8BA3"><circle cx="24.6" cy="14.5" r="0.9"/><circle cx="27.8" cy="14.5" '
        'r="0.9"/><circle cx="24.6" cy="17.5" r="0.9"/><circle cx="27.8" cy="17.5" '
        'r="0.9"/></g><rect x="23.5" y="20.5" width="5.5" height="2.6" rx="0.8" fill="#4F9A64"/>',
        '<path d="M4 26h3v1.6H4zM25 26h3v1.6h-3z" fill="#5A6A82"/>',
    ),
    _thing(
        "cutting-board",
        "chopping board,kitchen,wood,board",
        _defs(_WOOD),
        '<path d="M7 9h18c2 0 3 1 3 3v15c0 2-1 3-3 3H7c-2 0-3-1-3-3V12c0-2 1-3 3-3z" '
        'fill="url(#wood)"/><path d="M13 2h6c1.2 0 2 .8 2 2v6H11V4c0-1.2.8-2 2-2z" '
        'fill="url(#wood)"/><circle cx="16" cy="5.2" r="1.4" fill="#7A4E28"/>',
        '<path d="M8 14h16M8 19h14M8 24h16" stroke="#A06E3A" stroke-width="0.6" opacity="0.7"/>',
        group="dishware",
    ),
    _thing(
        "rolling-pin",
        "baking,dough,kitchen,bakery",
        _defs(_WOOD),
        '<g transform="rotate(-45 16 16)"><rect x="-2" y="14.2" width="36" height="3.6" rx="1.8" '
        'fill="#8A5A30"/><rect x="4" y="11.5" width="24" height="9" rx="2.2" fill="url(#wood)"/>'
        '<rect x="5" y="12.6" width="22" height="1.6" rx="0.8" fill="#FFFFFF" opacity="0.35"/></g>',
        group="dishware",
    ),
    _thing(
        "mop",
        "cleaning,floor,clean,household",
        '<path d="M24.5 1.5l1.8 1-10 18-1.8-1z" fill="#C98F55"/>',
        '<path d="M10 18.5l8 4.2-1.2 2.4-8.2-4.2z" fill="#3F7FC9"/>',
        '<path d="M8.5 20.5l8.5 4.4c.5 2 0 4.5-.8 6l-2-.8-1.6 1-2-1.6-2 .6-1.6-1.6-2.4 0'
        'c1.2-3 2.6-5.6 3.9-8z" fill="#EEF2F6"/>',
        '<path d="M10.5 22.5l-2.5 6M12.8 23.6l-1.6 6.2M15 24.8l-.8 5.6" stroke="#B9C6D4" '
        'stroke-width="0.7"/>',
    ),
    _thing(
        "dustpan",
        "brush,cleaning,sweep,broom",
        _defs(_BLUE),
        '<path d="M3 16h20l3 12H0.5z" fill="url(#blue)"/><path d="M5 18h16l1.6 7H3z" '
        'fill="#1F5596"/><path d="M11 6h4v11h-4z" fill="url(#blue)"/><circle cx="13" cy="5" '
        'r="2.6" '
        'fill="#6FB4F2"/><circle cx="13" cy="5" r="1" fill="#1F5596"/>',
        '<path d="M22 4l8 8-2 2-8-8z" fill="#C98F55"/><path d="M17 9l3-3 6 6-3 3z" '
        'fill="#F0C878"/>',
    ),
    _thing(
        "toothpaste",
        "tube,teeth,bathroom,dentist,brush",
        _defs(fade("tube", "#FFFFFF", "#D5E2EF")),
        '<path d="M3 6l6-4 17 15-7 7z" fill="url(#tube)"/><path d="M3 6l6-4 2 1.8-6.2 4.2z" '
        'fill="#9FB3C8"/><path d="M9.5 11.5l5.8-4 6 5.3-6.2 4.3z" fill="#3F8FE0"/>',
        '<path d="M15.1 17.1l6.2-4.3 2 1.7-6.5 4.3z" fill="#E8574A"/>',
        '<path d="M19.5 24.5l7-7 2.6 2.6-7 7z" fill="#3F8FE0"/>',
        '<path d="M24 26c1.6-.6 3 .2 3.2 1.8c.2 1.4-1 2.6-2.6 2.6c-1.8 0-2.6-1.4-1.8-2.6z" '
        'fill="#BFEBD9"/>',
    ),
    _thing(
        "hairbrush",
        "hair brush,brush,hair,bathroom",
        _defs(fade("pink", "#F49AC0", "#C94F88")),
        '<g transform="rotate(40 16 16)"><rect x="13.8" y="17" width="4.4" height="15" rx="2.2" '
        'fill="url(#pink)"/><ellipse cx="16" cy="9" rx="6.5" ry="9.5" fill="url(#pink)"/>'
        '<ellipse cx="16" cy="9" rx="4.6" ry="7.6" fill="#FBE3EE"/><g fill="#7A3A5A">'
        + "".join(
            f'<circle cx="{x}" cy="{y}" r="0.6"/>' for x in (13.6, 16, 18.4) for y in (4, 7, 10, 13)
        )
        + "</g></g>",
    ),
    _thing(
        "hair-dryer",
        "hairdryer,hair drier,blow dryer,hair,bathroom",
        _defs(_RED),
        '<path d="M12 16h7l-2 14h-6.5z" fill="#8F2A2E"/><path d="M13 21h2.6v3H13z" '
        'fill="#F5D58A"/>',
        '<path d="M14 4c6 0 9.5 2.5 9.5 7.5S20 19 14 19S5 16 5 11.5S8 4 14 4z" fill="url(#red)"/>',
        '<path d="M21 6.5l9-1v12l-9-1z" fill="#5A6578"/>'
        '<circle cx="12" cy="11.5" r="3.8" fill="#8F2A2E"/>'
        '<path d="M9 11.5h6M12 8.5v6" stroke="#F2A79E" stroke-width="0.8"/>',
    ),
    _thing(
        "clothes-iron",
        "iron,ironing,laundry,steam,clothes",
        _defs(_BLUE, _STEEL),
        '<path d="M2 25h28v3H2z" fill="url(#steel)"/>'
        '<path d="M2 24c1-8 7-11 15-11h9c3 0 4 1.5 4 4v7z" fill="url(#blue)"/>'
        '<path d="M10 13c0-5 3-7 8-7h9v3h-8c-3 0-5 1-5 4z" fill="#1F5596"/>'
        '<path d="M25 8h3v7h-3z" fill="#1F5596"/><circle cx="18" cy="19" r="2.6" fill="#EAF4FF"/>'
        '<path d="M18 19v-2" stroke="#C43A3A" stroke-width="0.9"/>',
    ),
    _thing(
        "ironing-board",
        "iron,laundry,clothes,household",
        _defs(fade("cloth", "#BFE3D2", "#6FB59A"), _STEEL),
        '<path d="M7 13l16 17M24 13L8 30M5 30h6M21 30h6" stroke="#8494AA" stroke-width="1.6" '
        'stroke-linecap="round" fill="none"/>'
        '<path d="M1 11.5c3-2.5 8-2.8 12-2.8h16.5c1 0 1.5.6 1.5 1.6v2.6H3c-1.6 0-2.4-.6-2-1.4z" '
        'fill="url(#cloth)"/>',
    ),
    _thing(
        "glue",
        "glue bottle,craft,school,stick,paste",
        _defs(fade("white", "#FFFFFF", "#D8E0EA")),
        '<path d="M14.5 1.5h3l1 6h-5z" fill="#F2A23A"/><path d="M11.5 7h9l1 4h-11z" '
        'fill="#E07F1F"/>'
        '<path d="M10.5 10.5h11c2.6 1.4 3.5 3.5 3.5 6V29c0 1.2-.8 2-2 2H9c-1.2 0-2-.8-2-2V16.5'
        'c0-2.5.9-4.6 3.5-6z" fill="url(#white)"/><rect x="7" y="17" width="18" height="9" '
        'fill="#3F8FE0"/>'
        '<path d="M11 21.5h10" stroke="#FFFFFF" stroke-width="2.2" stroke-linecap="round"/>',
        group="office",
    ),
    _thing(
        "eraser",
        "rubber,school,pencil,office",
        _defs(fade("pink", "#F7A8B8", "#E0708A")),
        '<g transform="rotate(-30 16 16)"><rect x="2" y="10" width="28" height="12" rx="2" '
        'fill="url(#pink)"/><rect x="12" y="9.5" width="18" height="13" rx="1" fill="#3F7FC9"/>'
        '<path d="M12 13h18v1.6H12zM12 17.5h18v1.6H12z" fill="#FFFFFF"/></g>',
        group="office",
    ),
    _thing(
        "bracelet",
        "bangle,jewelry,jewellery,gold,wrist",
        _defs(fade("gold", "#FFE38A", "#D99A1E")),
        '<path d="M16 5c7.5 0 13 5 13 11.5S23.5 28 16 28S3 23 3 16.5S8.5 5 16 5zm0 4'
        'c-5.5 0-9.5 3.3-9.5 7.5s4 7.5 9.5 7.5s9.5-3.3 9.5-7.5S21.5 9 16 9z" fill="url(#gold)"/>'
        '<circle cx="16" cy="26" r="2.6" fill="#E0466A"/><circle cx="9" cy="24" r="1.7" '
        'fill="#4FA5E0"/>'
        '<circle cx="23" cy="24" r="1.7" fill="#4FA5E0"/>',
        group="clothing",
    ),
    _thing(
        "garden-hose",
        "hose,hosepipe,water,garden",
        '<g fill="none" stroke="#3F9A4F" stroke-width="2.4"><circle cx="14" cy="18" r="10"/>'
        '<circle cx="14" cy="18" r="6.8"/><circle cx="14" cy="18" r="3.6"/>'
        '<path d="M14 8c6-3 9-4 11-4"/></g><path d="M24 2l6 1-1 3.5-5.5-.5z" fill="#E0A82B"/>'
        '<path d="M30 4l1.5 3M30 5.5l-.5 3" stroke="#6FB4F2" stroke-width="1" '
        'stroke-linecap="round"/>',
        group="tool",
    ),
    _thing(
        "lawn-mower",
        "lawnmower,mower,grass,garden",
        _defs(_RED),
        '<path d="M20 20L29 4h2" fill="none" stroke="#5A6578" stroke-width="1.8" '
        'stroke-linecap="round"/>'
        '<path d="M3 18h18l4 7H2z" fill="url(#red)"/><rect x="7" y="13" width="9" height="6" '
        'rx="1.5" '
        'fill="#3A4454"/><circle cx="7" cy="26" r="4" fill="#3A4454"/><circle cx="7" cy="26" '
        'r="1.7" '
        'fill="#D5DEE8"/><circle cx="21.5" cy="26" r="4" fill="#3A4454"/><circle cx="21.5" cy="26" '
        'r="1.7" fill="#D5DEE8"/>',
        group="tool",
    ),
    _thing(
        "drill",
        "power drill,tool,hole,workshop",
        _defs(fade("yellow", "#FFD85A", "#E0A01E"), _STEEL),
        '<path d="M23 11h8.5l.5 1-.5 1H23z" fill="url(#steel)"/>'
        '<path d="M19 8h4l2 2v4l-2 2h-4z" fill="#5A6578"/>'
        '<path d="M3 6h15c1.5 0 2 .5 2 2v8c0 1.5-.5 2-2 2H3c-1.5 0-2-.5-2-2V8c0-1.5.5-2 2-2z" '
        'fill="url(#yellow)"/><path d="M4 18h8l-2 9H3z" fill="#3A4454"/>'
        '<path d="M1 26h11v4H1z" fill="url(#yellow)"/>'
        '<path d="M12 18h2.5c0 2-1 3-3 3z" fill="#C43A3A"/>'
        '<path d="M4 9h6M4 11.5h6M4 14h6" stroke="#B97F14" stroke-width="0.9"/>',
        group="tool",
    ),
    _thing(
        "tunnel",
        "road,train,underground,mountain",
        _defs(fade("rock", "#A9A294", "#6F685C")),
        '<path d="M0 31C0 14 6 4 16 4s16 10 16 27z" fill="url(#rock)"/>'
        '<path d="M5 31c0-12 4-19 11-19s11 7 11 19z" fill="#D8CFBF"/>'
        '<path d="M8 31c0-10 3-16 8-16s8 6 8 16z" fill="#1D2430"/>'
        '<path d="M12 31l2.6-9h2.8L20 31z" fill="#4A5260"/>'
        '<path d="M16 29.5v-2.2M16 25.8v-1.6" stroke="#F5D58A" stroke-width="0.8"/>',
        group="place-building",
    ),
    _thing(
        "skyscraper",
        "tower,building,high-rise,city,office",
        _defs(fade("front", "#9CC4EA", "#4F7FB5")),
        '<path d="M15.5 0h1v4h-1z" fill="#5A6578"/><path d="M11 4h10v4h3v23H8V8h3z" '
        'fill="url(#front)"/>'
        '<g fill="#EAF6FF">'
        + "".join(
            f'<rect x="{x}" y="{y}" width="2.4" height="2" rx="0.2"/>'
            for x in (10, 14.8, 19.6)
            for y in (10, 13.4, 16.8, 20.2, 23.6)
        )
        + '</g><path d="M14 27h4v4h-4z" fill="#27405E"/>',
        group="place-building",
    ),
    _thing(
        "sandbox",
        "sandpit,playground,sand,children",
        _defs(_WOOD),
        '<path d="M1 18l6-7h18l6 7-5 11H6z" fill="url(#wood)"/>'
        '<path d="M4 18l4.5-5h15l4.5 5-3 4.5H7z" fill="#F4DB9A"/>'
        '<path d="M12 18c0-3 1.6-5.5 3.5-5.5s3.5 2.5 3.5 5.5z" fill="#E3BE6E"/>'
        '<path d="M21 14h5l-.8 5h-3.4z" fill="#E8574A"/><path d="M21.5 14c0-2.4 4-2.4 4 0" '
        'fill="none" stroke="#B93A30" stroke-width="0.7"/>',
        group="place-other",
    ),
    _thing(
        "golf-club",
        "golf,sport,iron",
        _defs(_STEEL),
        '<path d="M24 1l2 .8L15 26l-2-.8z" fill="#8494AA"/><path d="M22.5 1l3.6 1.5-3 7-3.6-1.5z" '
        'fill="#2B3340"/><path d="M15.5 24l-1 3.5c-3 2-7 2.5-10 1.5c-1.5-.5-1.5-2 0-2.5'
        'c3-.6 6-1.5 8.5-3.5z" fill="url(#steel)"/><circle cx="25" cy="27.5" r="2.6" '
        'fill="#FFFFFF" '
        'stroke="#C7D2DE" stroke-width="0.5"/>',
        group="sport",
    ),
    _thing(
        "sweater",
        "pullover,jumper,knitwear,wool,clothes",
        _defs(_RED),
        '<path d="M11 4h10c4 0 7 2 8 6l2 14-5 1-2-9v14H8V16l-2 9-5-1L3 10c1-4 4-6 8-6z" '
        'fill="url(#red)"/>'
        '<path d="M11.5 4c0 5 9 5 9 0l-1.5-1h-6z" fill="#8F2A2E"/>'
        '<path d="M8 27h16v3H8z" fill="#A8323A"/><path d="M8 17l2.7-3 2.7 3 2.6-3 2.6 3 2.7-3 '
        '2.7 3" '
        'fill="none" stroke="#FFE9D6" stroke-width="1.2"/>',
        group="clothing",
    ),
    _thing(
        "plate",
        "dinner plate,dish,kitchen,empty plate",
        _defs(fade("china", "#FFFFFF", "#D3DDE9")),
        '<circle cx="16" cy="16" r="14.5" fill="url(#china)"/><circle cx="16" cy="16" r="12.8" '
        'fill="none" stroke="#7FA6D6" stroke-width="0.7"/><circle cx="16" cy="16" r="9" '
        'fill="#E9EFF6"/>'
        '<circle cx="16" cy="16" r="8.4" fill="#F7FAFD"/>',
        group="dishware",
    ),
    _thing(
        "electric-fan",
        "table fan,ventilator,cooling,summer,air",
        _defs(_STEEL),
        '<path d="M14.8 20h2.4v8h-2.4z" fill="#8494AA"/><ellipse cx="16" cy="29" rx="7" ry="2" '
        'fill="url(#steel)"/><circle cx="16" cy="12" r="11" fill="#EAF1F8" stroke="#8494AA" '
        'stroke-width="1.2"/><g fill="#6FA8E0"><ellipse cx="16" cy="6.5" rx="2.8" ry="4.6"/>'
        '<ellipse cx="16" cy="6.5" rx="2.8" ry="4.6" transform="rotate(120 16 12)"/>'
        '<ellipse cx="16" cy="6.5" rx="2.8" ry="4.6" transform="rotate(240 16 12)"/></g>'
        '<circle cx="16" cy="12" r="2" fill="#3F6FA8"/><circle cx="16" cy="12" r="7" fill="none" '
        'stroke="#8494AA" stroke-width="0.4"/>',
    ),
    _thing(
        "kettle",
        "water kettle,tea kettle,boil,kitchen,tea",
        _defs(_STEEL),
        '<path d="M8 12C8 6 24 6 24 12" fill="none" stroke="#2B3340" stroke-width="2"/>'
        '<path d="M23 17l6-4 1.5 1.5L25 23z" fill="#8494AA"/>'
        '<path d="M10 12h12c3 3 4 9 4 14c0 2-1 3-3 3H9c-2 0-3-1-3-3c0-5 1-11 4-14z" '
        'fill="url(#steel)"/>'
        '<ellipse cx="16" cy="12" rx="6" ry="1.5" fill="#8494AA"/><circle cx="16" cy="10.3" '
        'r="1.4" '
        'fill="#2B3340"/>',
        group="dishware",
    ),
    _thing(
        "adhesive-tape",
        "sticky tape,tape,scotch tape,office",
        _defs(fade("roll", "#FFE7A8", "#E0B24A")),
        '<path d="M15 4c7.2 0 12.5 5 12.5 12H31v3.5H15C7.8 19.5 2.5 23 2.5 16.5S7.8 4 15 4z" '
        'fill="#F5D58A" opacity="0.6"/><circle cx="15" cy="16.5" r="12.5" fill="url(#roll)"/>'
        '<circle cx="15" cy="16.5" r="6.5" fill="#B07A42"/><circle cx="15" cy="16.5" r="5" '
        'fill="#FFF6E0"/>',
        group="office",
    ),
    _thing(
        "cable",
        "wire,cord,power cord,electric",
        '<path d="M4 28c10 2 4-12 12-12s0 12 8 10" fill="none" stroke="#3A4454" '
        'stroke-width="2.2"/>'
        '<path d="M22 24l5-1 1 5-5 1z" fill="#5A6578"/><path d="M28 24l3-.6M28.5 26.5l3-.6" '
        'stroke="#C9A84A" stroke-width="1.2"/><path d="M2 23l5 1-1 7H1z" fill="#5A6578"/>',
        group="computer",
    ),
)
