"""Prompts that name a genre: the document they become has every text and number of the prompt."""

from __future__ import annotations

import html
import re

import pytest

from limner.illustrator.draw import draw
from limner.illustrator.genre_pages import find_genre
from limner.illustrator.prompt_data import read_chart
from limner.rendering.elements import ChartSeries, LineChart

SIZE = (1024, 768)

# The prompt, its genre, and the words that must be in the picture.
PROMPTS: dict[str, tuple[str, list[str]]] = {
    "a column chart of rainfall: May 31, June 12.5, July 0": (
        "bar",
        ["Rainfall", "May", "June", "July", "31", "12.5", "0"],
    ),
    "pie chart of votes: Ada 40%, Grace 35% and Alan 25%": (
        "pie",
        ["Votes", "Ada", "40%", "Grace", "35%", "Alan", "25%"],
    ),
    'stacked bar chart: Mon web 4 app 9; Tue web 6 app 7; title "Calls"': (
        "stacked",
        ["Calls", "Mon", "Tue", "Web", "App", "4", "9", "6", "7"],
    ),
    "line graph of prices: 2021 $3, 2022 $4.5, 2023 $4": (
        "line",
        ["Prices", "2021", "$3", "$4.5", "$4"],
    ),
    "scatter plot of age against income: 20 18, 40 52": (
        "scatter",
        ["Age against income", "20, 18", "40, 52", "Age", "Income"],
    ),
    "a table with the columns Name, Score and the rows Ada Lovelace 9; Alan 7": (
        "table",
        ["Name", "Score", "Ada Lovelace", "9", "Alan", "7"],
    ),
    "a table of prices: apple $1.20, banana $0.50": (
        "table",
        ["Prices", "apple", "$1.20", "banana", "$0.50"],
    ),
    "a flowchart: Open -> Read -> if ready send it, else wait": (
        "flow",
        ["Open", "Read", "Ready?", "yes", "Send it", "no", "Wait"],
    ),
    "state machine: idle -> busy, busy -> idle": ("flow", ["idle", "busy"]),
    "org chart: Eve leads Bob and Ann": ("organisation", ["Eve", "Bob", "Ann"]),
    "sequence diagram: App asks Cache for a page, Cache answers": (
        "sequence",
        ["App", "Cache", "asks for a page", "answers"],
    ),
    "timeline: 1903 first flight, 1969 Moon landing": (
        "timeline",
        ["1903", "first flight", "1969", "Moon landing"],
    ),
    "an infographic: Wash, Cut, Cook": ("infographic", ["Wash", "Cut", "Cook"]),
    "the quadratic formula": ("formula", ["x = (\N{MINUS SIGN}b ± √(b² \N{MINUS SIGN} 4ac)) / 2a"]),
    'a quote card: "Less is more." Mies': ("quote", ["Less is more.", "— Mies"]),
    'a logo for a bakery called "Crumb & Co"': ("logo", ["Crumb & Co"]),
    'a badge "Top 10" with a star': ("badge", ["Top 10"]),
    'a poster "Jazz Night", "Friday 8 PM"': ("poster", ["Jazz Night", "Friday 8 PM"]),
    'a birthday card with a cake and the words "Happy 7th"': ("card", ["Happy 7th"]),
    "a birthday card for Anna with balloons": ("card", ["Happy birthday", "Anna"]),
    "a thank-you card with flowers": ("card", ["Thank you"]),
    "a login screen with email and password fields and a green log in button": (
        "screen",
        ["Email", "Password", "Log in"],
    ),
    "a dashboard mock-up with a sidebar and cards (Users 1,204, Errors 3)": (
        "screen",
        ["Users", "1,204", "Errors", "3"],
    ),
    'a QR code for https://example.org with the caption "Menu"': ("qr", ["Menu"]),
}


@pytest.mark.parametrize("prompt", PROMPTS)
def test_every_text_and_number_of_the_prompt_is_in_the_picture(prompt: str) -> None:
    genre, words = PROMPTS[prompt]
    made = draw(prompt=prompt, svg=None, width=SIZE[0], height=SIZE[1], seed=None)
    shown = [html.unescape(text) for text in re.findall(r"<text[^>]*>([^<]*)</text>", made.svg)]
    assert made.facts["genre"] == genre
    assert [word for word in words if not any(word in text for text in shown)] == []


@pytest.mark.parametrize(
    "prompt",
    [
        "a cat on the steps of a temple",
        "a bar chart on a whiteboard",
        "a credit card on a table",
        "a table with two guests: Ann and Bob",
        "a banner of hills",
        "a cover of snow on the mountains",
        "two penguins and a snowman",
    ],
)
def test_a_prompt_without_data_or_words_for_its_genre_stays_a_scene(prompt: str) -> None:
    assert find_genre(prompt, width=1024, height=1024) is None


@pytest.mark.parametrize(
    ("words", "values"),
    [
        ("Mon 2, Tue -3, Wed: -4.5, Thu=-1", [2, -3, -4.5, -1]),
        ("Mon - 2, Tue - -3, Wed (-4)", [2, -3, -4]),
        ("Q1-12, Q2-18", [12, 18]),
        ("profit -$5, loss -8%", [-5, -8]),
    ],
)
def test_a_hyphen_before_a_number_is_a_sign_unless_it_joins_the_label(
    words: str, values: list[float]
) -> None:
    made = read_chart("line", words, "", words)
    assert isinstance(made, LineChart)
    assert made.series == [ChartSeries(values=[*values])]
