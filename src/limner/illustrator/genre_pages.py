"""A prompt that names a genre, as a chart, a poster or a screen -> a document to render.

Such a prompt becomes a document of ``rendering``, so that every text and number of it is in the
picture exactly as written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from limner.illustrator import prompt_data
from limner.illustrator.grammar import COLOURS, named_genres
from limner.illustrator.prompt_parser import parse_prompt
from limner.illustrator.words import split
from limner.rendering.canvas import mix
from limner.rendering.colours import readable_on
from limner.rendering.elements import (
    AnyElement,
    AssetPicture,
    Badge,
    Button,
    Card,
    Checkbox,
    ColumnBox,
    Document,
    InputField,
    ItemList,
    LineChart,
    Metric,
    Page,
    QrCode,
    RowBox,
    Spacer,
    TextBlock,
    Toggle,
)

_FORMULAS: Mapping[str, str] = {
    "quadratic": "x = (\N{MINUS SIGN}b ± √(b² \N{MINUS SIGN} 4ac)) / 2a",
    "pythagor": "a² + b² = c²",
    "einstein": "E = mc²",
    "mass-energy": "E = mc²",
    "euler": "e^(iπ) + 1 = 0",
    "area of a circle": "A = πr²",
    "newton": "F = ma",
    "ohm": "V = IR",
}
# What a shop is known by, if its prompt names no picture.
_TRADES: Mapping[str, str] = {
    "coffee": "hot-beverage",
    "bakery": "bread",
    "book": "books",
    "pizzeria": "pizza",
    "florist": "bouquet",
    "gym": "flexed-biceps",
}
_NAMED_AFTER = re.compile(r"\b(?:called|named)\s+([A-Z][\w&' ]{1,40})")
_FIELDS = (
    "email",
    "password",
    "username",
    "name",
    "phone",
    "search",
    "address",
)
_BEFORE_BUTTON = re.compile(
    r"\b(?:a|an|the|and|with|one)\s+((?:(?!(?:a|an|the|and|with)\b)\w+\s+){1,4})button\b"
)
_IN_BRACKETS = re.compile(r"\(([^()]+)\)")
_LABELLED = re.compile(r"^(.*?)\s+([$€£]?\d[\d,.]*%?)$")


class Genre(NamedTuple):
    """The document for a prompt, and the name of its genre."""

    name: str
    document: Document


class _Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt in the parts that templates use."""

    text: str
    body: str
    title: str
    quoted: tuple[str, ...]
    assets: tuple[str, ...]
    colour: str | None
    is_wide: bool


def find_genre(prompt: str, *, width: int, height: int) -> Genre | None:
    """The document for a prompt that names a genre; None if it names none, or has too little."""
    for name, found in named_genres(prompt):
        document = _build(name, _parts(found.string, found), is_wide=width > height * 1.3)
        if document is not None:
            return Genre(name, document)
    return None


def _parts(prompt: str, found: re.Match[str]) -> _Prompt:
    quoted = split(prompt).quoted
    things = parse_prompt(prompt).things
    names = [thing.asset for thing in things for _ in range(min(thing.count or 1, 5))]
    head, colon, body = prompt.partition(":")
    if not colon:
        head, body = prompt, prompt[found.end() :]
    return _Prompt(
        text=prompt,
        body=_without_title(body),
        title=_title(head[found.start() :], prompt),
        quoted=quoted,
        assets=tuple(names[:6]),
        colour=next((COLOURS[w] for w in split(prompt).words if w in COLOURS), None),
        is_wide=False,
    )


def _without_title(body: str) -> str:
    return re.sub(r"[;,]?\s*(?:with )?(?:the )?title[:d]?\s*[\"“][^\"”]*[\"”]", "", body).strip()


def _title(head: str, prompt: str) -> str:
    titled = re.search(r"title[:d]?\s*[\"“]([^\"”]*)[\"”]", prompt)
    if titled:
        return titled[1]
    found = re.search(r"\b(?:of|showing|about|for)\s+(?:the |a |my |our )?([^:\"“]+)$", head)
    words = found[1].strip(" ,.") if found else ""
    return words[:1].upper() + words[1:60]


def _build(name: str, prompt: _Prompt, *, is_wide: bool) -> Document | None:
    if name not in _BUILDERS:
        return prompt_data.read_chart(name, prompt.body, prompt.title)
    prompt = msgspec.structs.replace(prompt, is_wide=is_wide)
    return _BUILDERS[name](prompt)


def _qr(prompt: _Prompt) -> Document | None:
    found = re.search(r"https?://[^\s\"”]+|www\.[^\s\"”]+", prompt.text)
    data = found[0].rstrip(".,") if found else next(iter(prompt.quoted), "")
    caption = next((text for text in prompt.quoted if text != data), "")
    return Page(children=[QrCode(data=data, caption=caption)]) if data else None


def _formula(prompt: _Prompt) -> Document | None:
    plain = prompt.text.lower()
    text = next((formula for word, formula in _FORMULAS.items() if word in plain), None)
    text = text or next((quoted for quoted in prompt.quoted if "=" in quoted), None)
    if text is None:
        return None
    children: list[AnyElement] = [
        TextBlock(text=text, size="huge", align="center", font="sans", italic=False)
    ]
    return Page(children=children, padding=None)


def _quote(prompt: _Prompt) -> Document | None:
    if not prompt.quoted:
        return None
    text = max(prompt.quoted, key=len)
    after = prompt.text.rpartition(text)[2].strip(" \"”'.,-—")
    author = re.sub(r"^(?:by|from|said)\s+", "", after)[:80]
    ground = _grounds(prompt, "#26324b")
    children: list[AnyElement] = [
        TextBlock(text=f"“{text}”", size="title", align="center", font="serif"),
        *([TextBlock(text=f"— {author}", align="center", size="heading")] if author else []),
    ]
    return Page(children=children, background=ground, font="serif", padding=96)


def _logo(prompt: _Prompt) -> Document | None:
    name = _own_name(prompt)
    if not name and not prompt.assets:
        return None
    fonts = "serif" if re.search(r"\b(?:vintage|classic|elegant)\b", prompt.text) else "sans"
    mark: list[AnyElement] = [AssetPicture(name=one) for one in _symbols(prompt)[:1]]
    children = [*mark, TextBlock(text=name, size="huge", align="center", font=fonts)]
    ground = _grounds(prompt, "#ffffff")
    return Page(children=children, background=ground, padding=150, align="center")


def _icon(prompt: _Prompt) -> Document | None:
    symbols = _symbols(prompt)
    if not symbols:
        return None
    color = prompt.colour or "#3b6fd4"
    tile = ColumnBox(
        children=[AssetPicture(name=symbols[0])],
        background=[mix(color, "#ffffff", 0.35), color],
        radius=200,
        grow=1,
        padding=120,
    )
    return Page(children=[tile], padding=60)


def _badge(prompt: _Prompt) -> Document | None:
    texts = prompt.quoted or ((_own_name(prompt),) if _own_name(prompt) else ())
    if not texts:
        return None
    color = prompt.colour or "#b3242f"
    symbols: list[AnyElement] = [AssetPicture(name=one) for one in _symbols(prompt)[:1]]
    children: list[AnyElement] = [
        *symbols,
        TextBlock(text=texts[0], size="title", align="center"),
        *(Badge(text=text, color=color) for text in texts[1:]),
    ]
    return Page(children=children, align="center", border=color, padding=140)


def _pattern(prompt: _Prompt) -> Document | None:
    symbols = _symbols(prompt)
    if not symbols:
        return None
    rows: list[AnyElement] = []
    for line in range(6):
        names = [symbols[(line + place) % len(symbols)] for place in range(6)]
        shifted: list[AnyElement] = [AssetPicture(name=one, size=110) for one in names]
        ends: list[AnyElement] = [Spacer(width=40)] if line % 2 else []
        rows.append(RowBox(children=[*ends, *shifted], gap=50, align="center", grow=1))
    ground = _grounds(prompt, "#fbf1e3")
    return Page(children=rows, background=ground, padding=30, gap=10)


def _card(prompt: _Prompt) -> Document | None:
    return _sheet(prompt, border=True)


def _poster(prompt: _Prompt) -> Document | None:
    return _sheet(prompt, border=False)


def _sheet(prompt: _Prompt, *, border: bool) -> Document | None:
    """Title, pictures and further texts: a poster, a banner, a card."""
    texts = list(prompt.quoted) or [name for name in [_own_name(prompt)] if name]
    if not texts:
        return None
    symbols: list[AnyElement] = [AssetPicture(name=one) for one in _symbols(prompt)[:5]]
    ground = _grounds(prompt, "#fff6e8" if border else "#17414f")
    words: list[AnyElement] = [
        TextBlock(text=text, size="heading", align="center") for text in texts[1:]
    ]
    title = TextBlock(text=texts[0], size="huge", align="center")
    pictures: list[AnyElement] = [RowBox(children=symbols, grow=2)] if symbols else []
    if prompt.is_wide and symbols:
        column = ColumnBox(children=[title, *words])
        children: list[AnyElement] = [RowBox(children=[*symbols[:1], column], grow=1)]
    else:
        children = [title, *pictures, *words]
    edge = mix(ground if isinstance(ground, str) else ground[-1], "#8a6d3b", 0.5)
    return Page(
        children=children,
        background=ground,
        font="serif",
        border=edge if border else None,
        padding=90,
    )


def _screen(prompt: _Prompt) -> Document | None:
    plain = prompt.text.lower()
    if "dashboard" in plain:
        return _dashboard(prompt)
    children: list[AnyElement] = []
    title = "Sign up" if re.search(r"sign-?up|register", plain) else ""
    title = title or ("Log in" if re.search(r"log-?in|sign-?in", plain) else "")
    title = next(iter(prompt.quoted), "") or title or prompt.title
    if title:
        children.append(TextBlock(text=title, size="title", align="center"))
    for word in _FIELDS:
        if re.search(rf"\b{word}\b", plain):
            label = word.capitalize()
            children.append(InputField(label=label, placeholder=label, password=False))
    for words in re.findall(r"toggles? (?:for|of) ([\w ,]+?)(?: and a|\.|$)", plain):
        names = re.split(r",\s*|\s+and\s+", words)
        children += [
            Toggle(label=one.strip().capitalize(), on=not place) for place, one in enumerate(names)
        ]
    for words in re.findall(r"checkbox(?:es)? (?:for|of|saying) ([\w ,]+?)(?: and a|\.|$)", plain):
        children.append(Checkbox(label=words.strip().capitalize()))
    children += _buttons(prompt)
    if len(children) < 2:
        return None
    return Page(children=children, padding=110)


def _buttons(prompt: _Prompt) -> list[AnyElement]:
    """The buttons of a screen: the words before "button", the first of which may be a colour."""
    buttons: list[AnyElement] = []
    for words in _BEFORE_BUTTON.findall(prompt.text.lower()):
        first, _, rest = words.strip().partition(" ")
        color = COLOURS.get(first)
        label = rest if color and rest else words.strip()
        buttons.append(Button(text=label.capitalize(), color=color))
    return buttons


def _dashboard(prompt: _Prompt) -> Document:
    listed = _IN_BRACKETS.search(prompt.text)
    pairs = [_LABELLED.match(one.strip()) for one in re.split(r",\s+", listed[1])] if listed else []
    metrics: list[AnyElement] = [
        Card(children=[Metric(label=found[1], value=found[2])]) for found in pairs if found
    ]
    main: list[AnyElement] = [RowBox(children=metrics)] if metrics else []
    # The numbers of the mock-up's chart are not known, so it shows none.
    line = LineChart(values=[3, 5, 4, 7, 6, 9], show_values=False, labels=["", "", "", "", "", ""])
    main.append(Card(children=[line], grow=1))
    column = ColumnBox(children=main)
    if "sidebar" not in prompt.text.lower():
        return Page(children=[ColumnBox(children=main, grow=1)])
    menu = ItemList(items=["Overview", "Orders", "Customers", "Reports"], bullets=False, active=0)
    side = Card(children=[menu], width=320)
    return Page(children=[RowBox(children=[side, column], grow=1)])


def _own_name(prompt: _Prompt) -> str:
    if prompt.quoted:
        return prompt.quoted[0]
    found = _NAMED_AFTER.search(prompt.text)
    return found[1].strip() if found else ""


def _symbols(prompt: _Prompt) -> list[str]:
    """The pictures that the words of the prompt name, and what a trade is known by."""
    trades = {
        "coffee shop": "hot-beverage",
        "bakery": "bread",
        "book": "books",
        "pizzeria": "pizza",
    }
    named = list(prompt.assets)
    if not named:
        named = [asset for words, asset in trades.items() if words in prompt.text.lower()]
    return named


def _grounds(prompt: _Prompt, default: str) -> str | list[str]:
    color = prompt.colour or default
    if "gradient" in prompt.text.lower():
        return [mix(color, "#ffffff", 0.4), color]
    return color if readable_on(color) else default


_BUILDERS: Mapping[str, Callable[[_Prompt], Document | None]] = {
    "qr": _qr,
    "table": lambda prompt: prompt_data.read_table(prompt.text, prompt.title),
    "sequence": lambda prompt: prompt_data.read_sequence(prompt.body, prompt.title),
    "organisation": lambda prompt: prompt_data.read_organisation(prompt.body, prompt.title),
    "timeline": lambda prompt: prompt_data.read_timeline(prompt.body, prompt.title),
    "flow": lambda prompt: prompt_data.read_flow(prompt.body, prompt.title),
    "steps": lambda prompt: prompt_data.read_steps(prompt.body, prompt.title),
    "formula": _formula,
    "quote": _quote,
    "screen": _screen,
    "logo": _logo,
    "icon": _icon,
    "badge": _badge,
    "pattern": _pattern,
    "card": _card,
    "poster": _poster,
}
