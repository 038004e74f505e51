"""A prompt for a screen of an app -> its title, fields, switches, cards and buttons on a page."""

from __future__ import annotations

import re

from msgspec.structs import replace

from limner.illustrator.grammar import COLOURS
from limner.illustrator.prompt_texts import PagePrompt, pictures
from limner.rendering.elements import (
    AnyElement,
    AssetPicture,
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
    RowBox,
    Spacer,
    TextBlock,
    Toggle,
)

_FIELD_WORDS = (
    "email|e-mail|password|username|name|phone|search|address|card number|expiry|cvc|code"
)
_LIST = r"([\w$€£%°][\w$€£%°.,:/+\- ]*?)"
_END = (
    r"(?=\s+and\s+(?:a|an|the|three|two|four)\b|\s+with\b|[.;()]|\s+(?:field|input|button)s?\b|$)"
)
_BUTTON_QUOTED = re.compile(
    r"(?:(\w+)\s+)?[\"“]([^\"”]+)[\"”]\s+button|(?:(\w+)\s+)?button\s+(?:that\s+says|saying|labelled|labeled|named)?"
    r"\s*[\"“]([^\"”]+)[\"”]",
    re.IGNORECASE,
)
_BUTTON_PLAIN = re.compile(
    r"\b(?:a|an|the|and|with|one)\s+((?:(?!(?:a|an|the|and|with)\b)[\w-]+\s+){1,4})button\b",
    re.IGNORECASE,
)
_LABELLED = re.compile(r"^(.*?)[\s:]+([$€£]?[\d][\d,.]*\s?[%°kKMB]?[CF]?)$")
_TITLES = (
    (r"sign-?\s?up|regist", "Sign up"),
    (r"log-?\s?in|sign-?\s?in", "Log in"),
    (r"check-?out|payment", "Checkout"),
    (r"settings", "Settings"),
    (r"profile", "Profile"),
    (r"chat|messag", "Messages"),
    (r"weather", "Weather"),
    (r"dashboard", "Dashboard"),
)


def screen(prompt: PagePrompt) -> Document | None:
    """The page of a screen; None if the prompt says nothing of what is on it."""
    reader = _Screen(prompt)
    content = reader.content()
    if not content:
        return None
    head: list[AnyElement] = [*reader.head()]
    body = ColumnBox(children=[*head, *content], gap=prompt.edge * 0.03, grow=1)
    if prompt.has("sidebar|side bar|navigation|side menu"):
        return _with_sidebar(prompt, reader, body)
    if prompt.is_wide:
        return _wide_page(prompt, head, content)
    # A phone: the content on a white sheet with round corners.
    sheet = Card(
        children=[*head, *content, Spacer(grow=1)],
        background="#ffffff",
        radius=prompt.edge * 0.07,
        padding=prompt.edge * 0.075,
        gap=prompt.edge * 0.035,
        grow=1,
    )
    return Page(children=[sheet], background=["#dfe6f5", "#c9d4ec"], padding=prompt.edge * 0.05)


def _wide_page(prompt: PagePrompt, head: list[AnyElement], content: list[AnyElement]) -> Document:
    """A page of a website: the title in the middle, and buttons as wide as their words."""
    titles = [replace(one, align="center") for one in head if isinstance(one, TextBlock)]
    buttons = [one for one in content if isinstance(one, Button)]
    rest = [one for one in content if not isinstance(one, Button)]
    row = RowBox(children=[replace(one, grow=0) for one in buttons], align="center")
    mark: list[AnyElement] = [Spacer(grow=1)]
    children = [*mark, *titles, *([row] if buttons else []), *rest, *mark]
    return Page(
        children=children,
        background=["#ffffff", "#e8eefb"],
        padding=prompt.edge * 0.08,
        gap=prompt.edge * 0.04,
    )


def _with_sidebar(prompt: PagePrompt, reader: _Screen, body: ColumnBox) -> Document:
    items = reader.listed(r"(?:sidebar|menu|navigation)\s*(?:of|with|:|\()\s*") or [
        "Overview",
        "Orders",
        "Customers",
        "Reports",
    ]
    menu = ItemList(items=items, bullets=False, active=0)
    mark = TextBlock(text="\N{BLACK CIRCLE}", size="title", color="#7aa2ff")
    side = ColumnBox(
        children=[mark, menu],
        width=prompt.width * 0.18,
        background="#16203a",
        color="#e6ebf7",
        padding=prompt.edge * 0.035,
        radius=0,
    )
    main = ColumnBox(children=body.children, gap=body.gap, padding=prompt.edge * 0.04)
    return Page(
        children=[RowBox(children=[side, main], gap=0, grow=1)], padding=0, background="#f6f8fc"
    )


class _Screen:
    """Reads the parts of a screen from its prompt, and which of its texts they use."""

    def __init__(self, prompt: PagePrompt) -> None:
        self._prompt = prompt
        self._plain = prompt.text
        self._used: list[str] = []

    def head(self) -> list[AnyElement]:
        """The title of the screen."""
        prompt = self._prompt
        free = [text for text in prompt.quoted if text not in self._used]
        named = [title for words, title in _TITLES if re.search(words, prompt.text, re.IGNORECASE)]
        texts = free[:1] or ([prompt.name] if prompt.name else []) or named[:1]
        texts += free[1:]
        return [
            TextBlock(text=text, size="heading" if place else "title", bold=True)
            for place, text in enumerate(texts)
        ]

    def content(self) -> list[AnyElement]:
        """What is on the screen, from top to bottom."""
        buttons = self._buttons()
        parts = [
            *self._messages(),
            *self._cards(),
            *self._fields(),
            *self._switches(),
            *self._charts(),
        ]
        parts = [*self._rest([*parts, *buttons]), *parts]
        if not parts and self._prompt.things:
            parts += [AssetPicture(name=name) for name in pictures(self._prompt.things)[:1]]
        return [*parts, *buttons]

    def listed(self, before: str) -> list[str]:
        """The items of the list after some words."""
        found = re.search(
            before + _LIST + r"(?=[();.]|\s+and\s+(?:a|an|the)\b|$)", self._plain, re.IGNORECASE
        )
        return _items(found[1]) if found else []

    def _buttons(self) -> list[AnyElement]:
        buttons: dict[str, Button] = {}
        for first, text, second, other in _BUTTON_QUOTED.findall(self._plain):
            label = text or other
            self._used.append(label)
            buttons[label] = Button(text=label, color=COLOURS.get((first or second).lower()))
        unquoted = re.sub(r"[\"“][^\"”]*[\"”]", "", self._plain)
        for words in _BUTTON_PLAIN.findall(unquoted):
            first, _, rest = words.strip().partition(" ")
            color = COLOURS.get(first.lower())
            label = (rest if color else words).strip()
            if label and label.lower() not in COLOURS:
                buttons[label] = Button(text=label[:1].upper() + label[1:], color=color)
        return [*buttons.values()]

    def _fields(self) -> list[AnyElement]:
        names = self.listed(r"\b(?:fields?|inputs?)\s*(?:for|:|named|labelled)?\s+(?!and\b|with\b)")
        names += [
            name
            for found in re.findall(
                rf"\b(?:with|and|a|an)\s+{_LIST}\s+(?:fields?|inputs?|box)\b", self._plain
            )
            for name in _items(re.sub(r"^.*\b(?:with|an?)\s+", "", found))
        ]
        if not names:
            names = (
                re.findall(rf"\b(?:{_FIELD_WORDS})\b", self._plain.lower())
                if "field" in self._plain
                else []
            )
        if not names and self._prompt.has(r"log-?in|sign-?in"):
            names = ["Email", "Password"]
        return [
            InputField(label=_capital(name), placeholder=_capital(name))
            for name in dict.fromkeys(_capital(name) for name in names)
        ]

    def _switches(self) -> list[AnyElement]:
        toggles = self.listed(r"\b(?:toggles?|switch(?:es)?)\s*(?:for|of|:|named)?\s+")
        boxes = self.listed(r"\bcheck-?box(?:es)?\s*(?:for|of|saying|:|named)?\s+")
        return [
            *(Toggle(label=_capital(one), on=not place) for place, one in enumerate(toggles)),
            *(Checkbox(label=_capital(one), checked=not place) for place, one in enumerate(boxes)),
        ]

    def _cards(self) -> list[AnyElement]:
        items = self.listed(r"\b(?:cards?|tiles?|metrics?|stats?|numbers?|kpis?|features?)\s*\(")
        items = items or self.listed(
            r"\b(?:cards|tiles|metrics|stats|kpis|features|forecast)\s*(?:for|of|:|named)?\s+(?=[A-Z\d])"
        )
        cards: list[AnyElement] = []
        for item in items:
            found = _LABELLED.match(item)
            inside: list[AnyElement] = (
                [Metric(label=found[1], value=found[2])]
                if found
                else [TextBlock(text=_capital(item), size="heading", bold=True)]
            )
            cards.append(Card(children=inside))
        return [RowBox(children=cards)] if cards else []

    def _messages(self) -> list[AnyElement]:
        found = re.search(r"\bmessages?:?\s*(.+)$", self._plain)
        if found is None or ":" not in found[1]:
            return []
        bubbles: list[AnyElement] = []
        spoken = re.split(r"\b([A-Z][a-z]{0,12}|[Mm]e|[Yy]ou|I):\s*", found[1])[1:]
        for who, words in zip(spoken[::2], spoken[1::2], strict=False):
            mine = who.lower() in ("me", "i", "you")
            text = words.strip(' ,;"“”')
            self._used.append(text)
            lines: list[AnyElement] = [
                TextBlock(text=who, size="small", bold=True),
                TextBlock(text=text),
            ]
            bubble = ColumnBox(
                children=lines,
                background="#2a72d8" if mine else "#e9edf5",
                radius=self._prompt.edge * 0.03,
                gap=4,
                grow=3,
            )
            row: list[AnyElement] = [Spacer(grow=1), bubble] if mine else [bubble, Spacer(grow=1)]
            bubbles.append(RowBox(children=row))
        return bubbles

    def _charts(self) -> list[AnyElement]:
        if not self._prompt.has(r"(?:line |bar |area )?(?:chart|graph)"):
            return []
        # The numbers of the mock-up's chart are not known, so it shows none.
        line = LineChart(
            values=[3, 5, 4, 7, 6, 9], labels=["", "", "", "", "", ""], show_values=False
        )
        return [Card(children=[line], grow=1)]

    def _rest(self, made: list[AnyElement]) -> list[AnyElement]:
        """The texts and numbers of the prompt that no other part shows."""
        shown = " ".join(_shown(made)).lower()
        lines: list[AnyElement] = []
        texts = [
            part
            for text in self._prompt.texts
            if text not in self._prompt.quoted
            for part in re.split(
                r"\s+and\s+(?:an?\s+|the\s+)?|\b[Ff]ields?\s+|\b[Tt]oggles?\s+", text
            )
        ]
        for text in filter(None, texts):
            if any(text in used for used in self._used):
                continue
            text = _before_labels(text, made)  # noqa: PLW2901
            numbers = re.findall(r"[$€£]?\d[\d,.:]*[%°]?[CF]?", text)
            if numbers and not all(number.rstrip(".,").lower() in shown for number in numbers):
                value = re.fullmatch(
                    r"(?:showing\s+)?([$€£]?\d[\d,.:]*\s?[%°]?[CF]?)", text, re.IGNORECASE
                )
                lines.append(
                    TextBlock(text=value[1], size="huge", bold=True)
                    if value
                    else TextBlock(text=text)
                )
            elif not numbers and text.lower() not in shown and _is_name(text):
                lines.append(TextBlock(text=text, size="heading"))
        return lines


def _before_labels(text: str, made: list[AnyElement]) -> str:
    """A text up to the first label of a card: "3 day forecast Mon 24" names a card."""
    labels = [one.label for one in _metrics(made)]
    places = [place for label in labels if (place := text.find(label)) > 0]
    return text[: min(places)].strip() if places else text


def _metrics(made: list[AnyElement]) -> list[Metric]:
    below = [_metrics(getattr(one, "children", [])) for one in made]
    return [one for one in made if isinstance(one, Metric)] + [
        one for some in below for one in some
    ]


def _is_name(text: str) -> bool:
    return bool(re.fullmatch(r"(?:[A-Z][\w'\u2019&.-]*\s*){1,5}", text))


def _shown(parts: list[AnyElement]) -> list[str]:
    words: list[str] = []
    for part in parts:
        for field in ("text", "label", "value", "title", "name"):
            words += [str(value)] if (value := getattr(part, field, None)) else []
        words += _shown(getattr(part, "children", []))
    return words


def _items(text: str) -> list[str]:
    parts = re.split(r",\s+(?:and\s+)?|\s+and\s+|;\s*", text)
    return [part.strip(" .") for part in parts if part.strip(" .")]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
