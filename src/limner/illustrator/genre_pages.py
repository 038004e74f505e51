"""A prompt that names a genre, as a chart, a poster or a screen -> a document to render.

Such a prompt becomes a document of ``rendering``, so that every text and number of it is in the
picture exactly as written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from limner.illustrator import prompt_data
from limner.illustrator.genre_screens import screen
from limner.illustrator.grammar import named_genres
from limner.illustrator.prompt_texts import PagePrompt, pictures, read_prompt
from limner.illustrator.stickers import sticker
from limner.rendering.canvas import mix
from limner.rendering.colours import contrast, readable_on
from limner.rendering.elements import (
    AnyElement,
    AssetPicture,
    Badge,
    Card,
    ColumnBox,
    Divider,
    Document,
    Page,
    QrCode,
    RowBox,
    Spacer,
    TextBlock,
)

_MINUS = "\N{MINUS SIGN}"
_FORMULAS: Mapping[str, str] = {
    "quadratic": f"x = ({_MINUS}b ± √(b² {_MINUS} 4ac)) / 2a",
    "pythagor": "a² + b² = c²",
    "einstein|mass.energy": "E = mc²",
    "euler": "e^(iπ) + 1 = 0",
    "area of a circle|circle area": "A = πr²",
    "circumference": "C = 2πr",
    "newton": "F = ma",
    "ohm": "V = IR",
    "kinetic": "E = ½mv²",
    "gravit": "F = G · m₁m₂ / r²",
    "compound interest": "A = P(1 + r/n)^(nt)",
    "slope": f"m = (y₂ {_MINUS} y₁) / (x₂ {_MINUS} x₁)",
    "bayes": "P(A|B) = P(B|A) · P(A) / P(B)",
    "ideal gas": "PV = nRT",
    "area of a triangle": "A = ½bh",
    "volume of a sphere": "V = 4/3 πr³",
    "water": "H₂O",
}
_MATHS = r"\w^()+*/·√πθλ²³½±|., \u2212-"
_EQUATION = re.compile(rf"[A-Za-z0-9(√∫∑][{_MATHS}]{{0,60}}=[{_MATHS}]{{1,80}}")
_RAISED = str.maketrans("0123456789n+-", "⁰¹²³⁴⁵⁶⁷⁸⁹ⁿ⁺⁻")
# What an occasion or a trade is known by, if its prompt names no picture.
_KNOWN_BY: Mapping[str, str] = {
    "coffee|cafe|café": "hot-beverage",
    "bakery": "bread",
    "book|library|reading": "books",
    "pizzeria|pizza": "pizza",
    "florist|flower|thank": "bouquet",
    "gym|fitness": "flexed-biceps",
    "birthday": "birthday-cake",
    "christmas": "christmas-tree",
    "halloween": "jack-o-lantern",
    "wedding": "ring",
    "movie|film|cinema": "clapper-board",
    "music|concert|jazz|band": "musical-notes",
    "bike|bicycle|cycling": "bicycle",
    "brewery|brewing|beer": "beer-mug",
    "restaurant|food": "fork-and-knife-with-plate",
    "school|graduation": "graduation-cap",
    "garden|plant|eco|green energy": "seedling",
    "tech|software|startup|computer": "laptop",
    "travel|airline": "airplane",
    "shop|sale|store": "shopping-bags",
    "doctor|clinic|health|cardiolog|medical": "stethoscope",
    "dentist|dental": "tooth",
    "pet|vet": "paw-prints",
    "bank|finance|money": "money-bag",
    "party|celebration": "party-popper",
    "award|winner|achievement": "trophy",
}
# What a card says if its prompt quotes no text.
_GREETINGS: Mapping[str, str] = {
    "birthday card": "Happy birthday",
    "thank[- ]you card": "Thank you",
    "christmas card": "Merry Christmas",
    "get[- ]well(?:[- ]soon)? card": "Get well soon",
    "wedding card": "Congratulations",
    "congratulations? card": "Congratulations",
}
_CUSTOMERS = frozenset(
    {"shop", "store", "office", "factory", "bank", "hotel", "school", "hospital"}
)
# Word of an occasion -> the colours of its page, from top to bottom.
_MOODS: Mapping[str, tuple[str, ...]] = {
    "night|stars|space|moon": ("#101a3c", "#2c3f7c"),
    "sunset|dusk": ("#f2994a", "#c2456b"),
    "beach|summer|sea|ocean": ("#1fa2c4", "#0d6e9c"),
    "christmas|winter": ("#1d5b3a", "#0f3a26"),
    "halloween": ("#5a2a82", "#22113a"),
    "movie|film|cinema": ("#1a1c26", "#3a2330"),
    "jazz|music|concert": ("#3b1347", "#8a2f5c"),
    "birthday|party|kids": ("#fde3ec", "#fbd0de"),
    "wedding|anniversary": ("#fbf4ea", "#f3e4d3"),
    "sale|discount|off": ("#e2323f", "#b81434"),
    "forest|nature|garden|eco": ("#2f6b46", "#1d4a33"),
    "lost|missing|wanted": ("#fff3c9", "#ffe49a"),
}


class Genre(NamedTuple):
    """The document or SVG for a prompt, its genre, and how large its text may become."""

    name: str
    document: Document | str
    largest_text: float = 1.0


def find_genre(prompt: str, *, width: int, height: int) -> Genre | None:
    """The document for a prompt that names a genre; None if it names none, or has too little."""
    for name, found in named_genres(prompt):
        parts = read_prompt(found.string, found, width=width, height=height)
        document = _BUILDERS[name](parts) if name in _BUILDERS else _chart(name, parts)
        if document is not None:
            return Genre(name, document, _LARGEST_TEXT.get(name, 1.25))
    return None


def _chart(name: str, prompt: PagePrompt) -> Document | None:
    kind = name
    if name == "chart":
        # Values over time are a line, others are bars.
        over_time = re.search(r"\b(?:19|20)\d\d\b|\b(?:Jan|Mon)\w*\b", prompt.body)
        kind = "line" if over_time and "bar" not in prompt.text else "bar"
    title = prompt.title
    if not title or re.search(r"\d", title):
        title = next(iter(prompt.quoted), title)
    made = prompt_data.read_chart(kind, prompt.body, title, prompt.text)
    if made is None or not made.labels:
        return made
    # "the populations of Tokyo 37, Delhi 32": Tokyo is a label, no part of the title.
    first = re.escape(str(made.labels[0]))
    return replace(made, title=re.sub(rf"\s*(?:\b(?:of|in|for)\s+)?{first}$", "", title))


def _flow(prompt: PagePrompt) -> Document | None:
    made = prompt_data.read_flow(prompt.body, prompt.title, is_state=prompt.has("state|states"))
    return replace(made, direction="right") if made and prompt.is_wide else made


def _qr(prompt: PagePrompt) -> Document | None:
    found = re.search(r"(?:https?://|mailto:|tel:|www\.)[^\s\"”]+", prompt.text)
    data = found[0].rstrip(".,") if found else ""
    wifi = re.search(r"wi-?fi", prompt.text, re.IGNORECASE)
    if not data and wifi and len(prompt.quoted) > 1:
        name, password = prompt.quoted[:2]
        data = f"WIFI:T:WPA;S:{name};P:{password};;"
    data = data or next(iter(prompt.quoted), "")
    if not data:
        return None
    captions = [text for text in prompt.quoted if text != data]
    words: list[AnyElement] = [
        TextBlock(text=text, size="title", align="center", bold=True) for text in captions
    ]
    address = data if found else ""
    if address and len(address) <= 60:
        words.append(TextBlock(text=address, align="center", font="mono", color="#5b6577"))
    code = QrCode(data=data, size=prompt.edge * (0.62 if words else 0.8))
    return Page(children=[code, *words], align="center", padding=prompt.edge * 0.06)


def _formula(prompt: PagePrompt) -> Document | None:
    equations = [text for text in prompt.quoted if "=" in text]
    equations += [found[0].strip(" .,") for found in _EQUATION.finditer(prompt.body or prompt.text)]
    if not equations:
        named = [made for words, made in _FORMULAS.items() if prompt.has(rf"\w*?(?:{words})\w*")]
        equations = named[:1]
    if not equations:
        return None
    text = re.sub(
        r"\^\(?([0-9n+\-]{1,3})\)?", lambda found: found[1].translate(_RAISED), equations[0]
    )
    text = re.sub(r"(?<=\s)-(?=\s)", _MINUS, text)
    size = min(prompt.width * 1.5 / max(len(text), 6), prompt.height * 0.3)
    children: list[AnyElement] = [TextBlock(text=text, size=size, align="center", font="serif")]
    return Page(children=children, background=["#ffffff", "#f1f4fa"], font="serif")


def _quote(prompt: PagePrompt) -> Document | None:
    if not prompt.quoted:
        return None
    text = max(prompt.quoted, key=len)
    author = _author(prompt, text)
    ground = _grounds(prompt, ("#2b3a5c", "#1d2740"))
    accent = _accent(ground)
    children: list[AnyElement] = [
        TextBlock(
            text="“",
            size=prompt.edge * 0.2,
            align="center",
            color=accent,
            height=prompt.edge * 0.13,
        ),
        TextBlock(text=text, size="title", align="center", font="serif"),
    ]
    if author:
        line: list[AnyElement] = [Divider(width=prompt.edge * 0.18)]
        children += [ColumnBox(children=line, align="center")]
        children.append(TextBlock(text=f"— {author}", align="center", size="heading", color=accent))
    return Page(
        children=children,
        background=ground,
        font="serif",
        padding=prompt.edge * 0.1,
        align="center",
    )


def _author(prompt: PagePrompt, text: str) -> str:
    after = prompt.text.rpartition(text)[2].strip(" \"”'.,-\u2013\u2014")
    author = re.sub(r"^(?:by|from|said|says)\s+", "", after.split(",")[0])
    if not re.match(r"[A-Z]", author):
        found = re.search(r"\b(?:by|from|of)\s+((?:[A-Z][\w.'-]*\s?)+)", prompt.text)
        author = found[1].strip() if found else ""
    return author[:80]


def _logo(prompt: PagePrompt) -> Document | None:
    texts = [prompt.name] if prompt.name else list(prompt.quoted or prompt.texts[:1])
    texts = [line for text in texts for line in re.split(r",?\s+(?=(?:est|since)\b)", text)]
    if not texts:
        return None
    serif = prompt.has("vintage|classic|elegant|luxury|traditional")
    mark = _symbols(prompt)[:1]
    tint = mix(prompt.colour or "#3b6fd4", "#ffffff", 0.82)
    ground = "#ffffff"
    if prompt.colour and re.search(r"background", prompt.text):
        ground, tint = prompt.colour, mix(prompt.colour, "#ffffff", 0.25)
    side = prompt.edge * 0.5
    children: list[AnyElement] = []
    if mark:
        children.append(_medallion(mark[0], side, [tint]))
    ink = None if ground != "#ffffff" else mix(prompt.colour or "#1f2a44", "#10141f", 0.35)
    children += [
        TextBlock(
            text=text,
            size="title" if place else "huge",
            bold=True,
            align="center",
            font="serif" if serif else "sans",
            color=ink,
        )
        for place, text in enumerate(texts)
    ]
    if not mark:
        bar: list[AnyElement] = [Divider(width=side)]
        children.insert(1, ColumnBox(children=bar, align="center"))
    return Page(children=children, background=ground, padding=prompt.edge * 0.1, align="center")


def _medallion(name: str, side: float, ground: list[str]) -> AnyElement:
    """A picture on a round ground."""
    return ColumnBox(
        children=[AssetPicture(name=name)],
        background=ground,
        radius=side / 2,
        width=side,
        height=side,
        padding=side * 0.17,
    )


def _icon(prompt: PagePrompt) -> Document | None:
    symbols = _symbols(prompt)
    if not symbols:
        return None
    color = prompt.colour or "#3b6fd4"
    tile = ColumnBox(
        children=[AssetPicture(name=symbols[0])],
        background=[mix(color, "#ffffff", 0.35), color],
        radius=prompt.edge * 0.2,
        grow=1,
        padding=prompt.edge * 0.14,
    )
    texts: list[AnyElement] = [
        TextBlock(text=text, size="title", bold=True, align="center") for text in prompt.quoted
    ]
    return Page(children=[tile, *texts], padding=prompt.edge * 0.06)


def _badge(prompt: PagePrompt) -> Document | None:
    texts = list(prompt.quoted or ([prompt.name] if prompt.name else prompt.texts))
    if not texts:
        return None
    color = prompt.colour or "#b3242f"
    pale = mix(color, "#ffffff", 0.88)
    ink = mix(color, "#14161f", 0.55)
    side = prompt.edge * 0.88
    inside: list[AnyElement] = [AssetPicture(name=one, grow=1) for one in _symbols(prompt)[:1]]
    inside.append(TextBlock(text=texts[0], size="title", bold=True, align="center", color=ink))
    inside += [Badge(text=text, color=color) for text in texts[1:]]
    if len(inside) == 1:
        inside = [Spacer(grow=1), *inside, Spacer(grow=1)]
    disc = ColumnBox(
        children=inside,
        background=[pale, mix(color, "#ffffff", 0.75)],
        radius=side / 2,
        grow=1,
        padding=side * 0.16,
        align="center",
    )
    ring = ColumnBox(
        children=[disc],
        background=[color, mix(color, "#000000", 0.25)],
        radius=side / 2,
        width=side,
        height=side,
        padding=side * 0.045,
    )
    return Page(children=[ring], align="center", padding=prompt.edge * 0.06)


def _pattern(prompt: PagePrompt) -> Document | None:
    symbols = list(dict.fromkeys(_symbols(prompt)))
    if not symbols:
        return None
    count = 6
    side = prompt.edge / count
    lines = max(round(prompt.height / side), 1)
    across = max(round(prompt.width / side), 1)
    rows: list[AnyElement] = []
    for line in range(lines):
        names = [symbols[(line + place) % len(symbols)] for place in range(across + 1)]
        cells: list[AnyElement] = [
            AssetPicture(name=one, size=side * (0.66 if (line + place) % 2 else 0.5))
            if place or not line % 2
            else Spacer(width=side * 0.1)
            for place, one in enumerate(names)
        ]
        rows.append(RowBox(children=cells, gap=side * 0.34, align="center", grow=1))
    ground = _grounds(prompt, ("#fbf1e3",))
    return Page(children=rows, background=ground, padding=0, gap=0)


def _card(prompt: PagePrompt) -> Document | None:
    if prompt.has("business card|visiting card|name card"):
        return _business_card(prompt)
    return _sheet(prompt, is_card=True)


def _poster(prompt: PagePrompt) -> Document | None:
    return _sheet(prompt, is_card=False)


def _business_card(prompt: PagePrompt) -> Document | None:
    if not prompt.texts:
        return None
    accent = prompt.colour or "#1f5fa8"
    name, *rest = prompt.texts
    lines: list[AnyElement] = [TextBlock(text=name, size="title", bold=True)]
    lines += [
        TextBlock(
            text=text,
            size="heading" if place == 0 else "body",
            color=accent if place == 0 else None,
        )
        for place, text in enumerate(rest)
    ]
    side: list[AnyElement] = [AssetPicture(name=one) for one in _symbols(prompt)[:1]]
    left = ColumnBox(
        children=[Spacer(grow=1), *lines, Spacer(grow=1)], padding=prompt.edge * 0.08, grow=2
    )
    right = ColumnBox(
        children=side or [Spacer()],
        background=[accent, mix(accent, "#0a0f1c", 0.35)],
        padding=prompt.edge * 0.09,
        radius=0,
        grow=1,
    )
    row = RowBox(children=[left, right], gap=0, grow=1)
    return Page(children=[row], padding=0, background="#ffffff")


def _sheet(prompt: PagePrompt, *, is_card: bool) -> Document | None:
    """Title, pictures and further texts: a poster, a banner, a card."""
    texts = [*_greeting(prompt), *prompt.texts]
    if not texts:
        return None
    ground = _grounds(prompt, ("#fff9ef", "#fdeed6") if is_card else ("#17414f", "#0e2a35"))
    accent = _accent(ground)
    font = "hand" if prompt.has("birthday|kids|handwritten|fun") else "serif"
    title = TextBlock(text=texts[0], size="huge", bold=True, align="center", font=font)
    symbols = _symbols(prompt)
    if prompt.is_wide:
        children = _wide_sheet(title, texts[1:], symbols, accent)
    else:
        children = [title, *_picture_row(symbols, prompt), *_facts(texts[1:], accent)]
    edge = mix(ground[-1], accent, 0.5)
    return Page(
        children=children,
        background=ground,
        font="sans" if not is_card else "serif",
        border=edge if is_card else None,
        padding=prompt.edge * 0.085,
        gap=prompt.edge * 0.03,
        align="center",
    )


def _greeting(prompt: PagePrompt) -> list[str]:
    said = " ".join(prompt.texts).lower()
    known = [words for kind, words in _GREETINGS.items() if prompt.has(kind)]
    return [] if prompt.quoted else [words for words in known if words.lower() not in said]


def _wide_sheet(
    title: TextBlock, texts: list[str], symbols: list[str], accent: str
) -> list[AnyElement]:
    words: list[AnyElement] = [
        TextBlock(
            text=text,
            size="heading",
            align="center",
            color=None if place else accent,
            bold=not place,
        )
        for place, text in enumerate(texts)
    ]
    column = ColumnBox(children=[Spacer(grow=1), title, *words, Spacer(grow=1)], grow=2)
    kinds = list(dict.fromkeys(symbols))
    beside: list[AnyElement] = [AssetPicture(name=one, grow=1) for one in kinds[:2]]
    if not beside:
        return [column]
    around: list[AnyElement] = (
        [column, beside[-1]] if len(beside) == 1 else [beside[0], column, *beside[1:2]]
    )
    return [RowBox(children=around, grow=1)]


def _picture_row(symbols: list[str], prompt: PagePrompt) -> list[AnyElement]:
    if not symbols:
        return []
    if len(set(symbols)) == 1 and len(symbols) == 1:
        return [AssetPicture(name=symbols[0], grow=3)]
    if len(symbols) > 3 and prompt.height >= prompt.width:
        half = (len(symbols) + 1) // 2
        rows = (symbols[:half], symbols[half:])
        return [RowBox(children=[AssetPicture(name=one) for one in row], grow=2) for row in rows]
    return [RowBox(children=[AssetPicture(name=one) for one in symbols], grow=3)]


def _facts(texts: list[str], accent: str) -> list[AnyElement]:
    if not texts:
        return []
    lines: list[AnyElement] = [
        TextBlock(
            text=text,
            size="title" if place == 0 and len(text) < 28 else "heading",
            bold=place == 0,
            align="center",
            color=accent if place == 0 else None,
        )
        for place, text in enumerate(texts)
    ]
    return [ColumnBox(children=lines, gap=12.0, align="center")]


def _centred(element: AnyElement, width: float | None = None) -> ColumnBox:
    """An element in the middle of its height."""
    return ColumnBox(children=[Spacer(grow=1), element, Spacer(grow=1)], width=width)


def _infographic(prompt: PagePrompt) -> Document | None:
    steps = prompt_data.read_steps(prompt.body, "")
    title = prompt.title or next(iter(prompt.quoted), "")
    if steps is None:
        return None
    words = [step if isinstance(step, str) else step[0] for step in steps.steps]
    facts = [
        re.match(
            r"^(?:only\s+|about\s+)?([$€£]?\d[\d,.]*\s?(?:%|[kKMB]\b|million|billion)?)\s+(.+)$",
            word,
        )
        for word in words
    ]
    accents = ("#2a72d8", "#f0822e", "#2fa57a", "#8145b8", "#d9435e", "#148f8f")
    cards: list[AnyElement] = []
    for place, (word, fact) in enumerate(zip(words, facts, strict=True)):
        accent = accents[place % len(accents)]
        mark = fact[1] if fact else str(place + 1)
        rest = fact[2] if fact else word
        number = TextBlock(text=mark, size="huge", bold=True, color=accent)
        text = TextBlock(text=rest[:1].upper() + rest[1:], size="heading")
        parts: AnyElement
        if prompt.is_wide:
            parts = ColumnBox(children=[number, text], grow=1)
        else:
            mark_width = prompt.edge * (0.3 if fact else 0.12)
            parts = RowBox(children=[_centred(number, mark_width), _centred(text)], grow=1)
        cards.append(Card(children=[parts], background=mix(accent, "#ffffff", 0.9), grow=1))
    head: list[AnyElement] = (
        [TextBlock(text=title, size="title", bold=True, align="center")] if title else []
    )
    if prompt.is_wide:
        return Page(children=[*head, RowBox(children=cards, grow=1)])
    return Page(children=[*head, *cards])


def _symbols(prompt: PagePrompt) -> list[str]:
    """The pictures that the words of the prompt name, or what its occasion is known by."""
    # The shop of "a logo for a bike shop" is whom the picture is for.
    things = tuple(thing for thing in prompt.things if thing.words not in _CUSTOMERS)
    known = [asset for words, asset in _KNOWN_BY.items() if prompt.has(rf"(?:{words})\w*")]
    return pictures(things) or known[:1]


def _accent(ground: list[str]) -> str:
    """A colour that stands out on a ground, and that can be read on all of it."""
    for colour in ("#ffd166", "#9b2f3f", "#fff4d6", "#3a1020"):
        if min(contrast(colour, one) for one in ground) >= 3.5:
            return colour
    return readable_on(ground[-1])


def _grounds(prompt: PagePrompt, default: tuple[str, ...]) -> list[str]:
    if prompt.colour:
        lighter = mix(prompt.colour, "#ffffff", 0.35)
        return [lighter, prompt.colour] if "gradient" in prompt.text.lower() else [prompt.colour]
    moods = [colours for words, colours in _MOODS.items() if prompt.has(words)]
    return list(moods[0] if moods else default)


_BUILDERS: Mapping[str, Callable[[PagePrompt], Document | str | None]] = {
    "qr": _qr,
    "table": lambda prompt: prompt_data.read_table(prompt.text, prompt.title),
    "schedule": lambda prompt: prompt_data.read_schedule(prompt.body, prompt.title),
    "sequence": lambda prompt: prompt_data.read_sequence(prompt.body, prompt.title),
    "organisation": lambda prompt: prompt_data.read_organisation(prompt.body, prompt.title),
    "mind map": lambda prompt: prompt_data.read_mind_map(prompt.body, prompt.title),
    "sticker": sticker,
    "timeline": lambda prompt: prompt_data.read_timeline(prompt.body, prompt.title),
    "flow": _flow,
    "infographic": _infographic,
    "formula": _formula,
    "quote": _quote,
    "screen": screen,
    "logo": _logo,
    "icon": _icon,
    "badge": _badge,
    "pattern": _pattern,
    "card": _card,
    "poster": _poster,
}
_LARGEST_TEXT: Mapping[str, float] = {
    "screen": 1.6,
    "formula": 1.5,
    "quote": 1.5,
    "logo": 1.5,
    "table": 1.5,
    "schedule": 1.5,
    "infographic": 1.3,
}
