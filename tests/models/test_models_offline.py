"""What people say becomes the call they mean, and never anything worse than a plain answer."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.offline_talks import (
    CAT,
    OFFERS,
    ONE,
    PHOTO,
    ROBOT,
    TWO,
    answered,
    called,
    drawn,
    next_step,
    said,
    turn,
    user,
)

from limner.errors import InputInvalid, UserError
from limner.models.offline import OfflineModel
from limner.models.offline.message import split_steps
from limner.models.offline.replies import A_REAL_MODEL, IS_A_RULE
from limner.models.offline.table import (
    ASSETS,
    GO_ON,
    NEEDS_TWO,
    NO_WEB,
    NOTHING_YET,
    ONLY_PICTURES,
    READ_IT_YOURSELF,
    SAY_WHAT_TO_CHANGE,
    TO_LEAVE,
    WELCOME,
)
from limner.tools.arguments import conform
from limner.wires import items
from limner.wires.base import Answer, Prompt, ToolOffer, Usage

DRAW: list[tuple[str, dict[str, Any]]] = [
    ("draw a red robot with a hat", {"prompt": "a red robot with a hat"}),
    ("Please draw me a picture of a cat!", {"prompt": "a cat"}),
    ("could you paint two dogs, please?", {"prompt": "two dogs"}),
    ("I want you to draw a cat please", {"prompt": "a cat"}),
    ("hi, draw a sun", {"prompt": "a sun"}),
    ("Draw: a cat", {"prompt": "a cat"}),
    ("sketch a cat wearing a top hat", {"prompt": "a cat wearing a top hat"}),
    ("illustrate the water cycle", {"prompt": "the water cycle"}),
    ("imagine a city on the moon", {"prompt": "a city on the moon"}),
    ("generate an image of a house", {"prompt": "a house"}),
    ("create an oil painting of a cat", {"prompt": "an oil painting of a cat"}),
    ("I'd like a picture of a dragon", {"prompt": "a dragon"}),
    ("give me a castle", {"prompt": "a castle"}),
    ("show me a picture of a horse", {"prompt": "a horse"}),
    ("a picture of the sea", {"prompt": "the sea"}),
    ("paint the town red", {"prompt": "the town red"}),
    ("draw someone as a pirate", {"prompt": "someone as a pirate"}),
    ("draw a cat, then a dog", {"prompt": "a cat, then a dog"}),
    ("draw a clock showing 10:30", {"prompt": "a clock showing 10:30"}),
    # a thing alone is an idea for a picture
    ("a cat on a red bicycle", {"prompt": "a cat on a red bicycle"}),
    ("sunset over the sea", {"prompt": "sunset over the sea"}),
    ("logo for a bakery", {"prompt": "logo for a bakery"}),
    ("bar chart of sales: Q1 12, Q2 18", {"prompt": "bar chart of sales: Q1 12, Q2 18"}),
    ("a table of prices: tea 3, coffee 4", {"prompt": "a table of prices: tea 3, coffee 4"}),
    ("qr code for https://example.com", {"prompt": "qr code for https://example.com"}),
    ("surprise me", {"prompt": "a fox under the moon"}),
    ("zeichne eine Katze", {"prompt": "eine Katze"}),
    # shapes are said of pictures, not of what is in them
    ("Make a wide picture of a beach", {"prompt": "a beach", "size": "16:9"}),
    ("make a picture of a tall tree", {"prompt": "a tall tree"}),
    ("draw a landscape with mountains", {"prompt": "a landscape with mountains"}),
    ("draw a lighthouse in landscape format", {"prompt": "a lighthouse", "size": "16:9"}),
    ("draw a lighthouse, portrait", {"prompt": "a lighthouse", "size": "9:16"}),
    ("draw people dancing in a square", {"prompt": "people dancing in a square"}),
    ("draw a square picture of a pie", {"prompt": "a pie", "size": "1:1"}),
    ("draw a cat, 1024x1792, hd", {"prompt": "a cat", "size": "1024x1792", "quality": "hd"}),
    ("draw a boat at 800 by 600 pixels", {"prompt": "a boat", "size": "800x600"}),
    ("draw two pictures of a fox", {"prompt": "a fox", "n": 2}),
    ("3 variants of a logo for a bakery", {"prompt": "a logo for a bakery", "n": 3}),
    ("create 40 images of a boat in 16:9", {"prompt": "a boat", "n": 10, "size": "16:9"}),
    # files
    ("draw a house and save it as house.png", {"prompt": "a house", "output_path": "house.png"}),
    (
        'draw a sign that says "HD 512x512", save it to "my sign.png".',
        {"prompt": 'a sign that says "HD 512x512"', "output_path": "my sign.png"},
    ),
    ("draw a boat to ~/boat.png", {"prompt": "a boat", "output_path": "~/boat.png"}),
]

LOOK: list[tuple[str, dict[str, Any]]] = [
    ("what does shot.png say?", {"path": "shot.png"}),
    ("read './my shot.png'", {"path": "./my shot.png"}),
    ("read My\\ Shot.png", {"path": "My\\ Shot.png"}),
    ("describe /tmp/photo", {"path": "/tmp/photo"}),
    ("please look at ~/Pictures/a.jpg", {"path": "~/Pictures/a.jpg"}),
    ("Can you see a dog in shot.png?", {"path": "shot.png"}),
    ("is there a dog in limner://image/" + PHOTO + "?", {"path": PHOTO}),
    ("What is in cat.png and dog.jpg?", {"path": "cat.png", "paths": ["dog.jpg"]}),
    ("compare a.png and b.png", {"path": "a.png", "paths": ["b.png"]}),
    ("which of a.png and b.png is bigger?", {"path": "a.png", "paths": ["b.png"]}),
    ("how do a.png and b.png differ?", {"path": "a.png", "paths": ["b.png"]}),
]

LOOK_AT_THE_LAST: list[tuple[str, dict[str, Any]]] = [
    ("what does it say?", {"path": "/g/ab.png"}),
    ("is there a cat?", {"path": "/g/ab.png"}),
    ("how many eyes does it have?", {"path": "/g/ab.png"}),
    ("what can you tell me about it?", {"path": "/g/ab.png"}),
    ("Describe the picture.", {"path": "/g/ab.png"}),
    ("compare it with cat.png", {"path": "cat.png", "paths": ["/g/ab.png"]}),
]

CHANGE: list[tuple[str, dict[str, Any]]] = [
    ("make it wider", {"prompt": "a red robot", "size": "16:9"}),
    ("Could you make it wider?", {"prompt": "a red robot", "size": "16:9"}),
    ("Wider please", {"prompt": "a red robot", "size": "16:9"}),
    ("now in landscape", {"prompt": "a red robot", "size": "16:9"}),
    ("same but taller", {"prompt": "a red robot", "size": "9:16"}),
    ("make the picture square", {"prompt": "a red robot", "size": "1:1"}),
    ("make the picture bigger", {"prompt": "a red robot", "size": "2048x2048"}),
    ("resize it to 800 x 600 pixels", {"prompt": "a red robot", "size": "800x600"}),
    ("another one", {"prompt": "a red robot", "seed": 1}),
    ("three variations", {"prompt": "a red robot", "seed": 1, "n": 3}),
    ("save it as robot.png", {"prompt": "a red robot", "output_path": "robot.png"}),
    (
        "make it tall and save it as /tmp/tall.png",
        {"prompt": "a red robot", "size": "9:16", "output_path": "/tmp/tall.png"},
    ),
]


EDIT = [
    *("make it bigger", "bigger", "make it blue", "the robot should be green", "make it night"),
    *("make the sky green", "add a hat", "remove the robot", "at night", "let it snow"),
    *("replace the robot with a cat", "turn it into a cat", "two more robots", "another robot"),
    *("move the robot to the left", "give the robot a hat", "as pixel art", "black and white"),
    "put a dog next to it",
]


@pytest.mark.parametrize(("words", "arguments"), DRAW)
def test_a_request_to_draw_is_a_prompt_and_what_was_said_about_it(
    words: str, arguments: dict[str, Any]
) -> None:
    assert said(words) == ("image_generate", arguments)


@pytest.mark.parametrize(("words", "arguments"), LOOK)
def test_a_question_about_a_file_is_put_to_it(words: str, arguments: dict[str, Any]) -> None:
    assert said(words) == ("inspect_image", {**arguments, "question": words})


@pytest.mark.parametrize(("words", "arguments"), LOOK_AT_THE_LAST)
def test_any_question_is_about_the_last_picture(words: str, arguments: dict[str, Any]) -> None:
    assert said(words, after=ONE) == ("inspect_image", {**arguments, "question": words})


@pytest.mark.parametrize(("words", "arguments"), CHANGE)
def test_another_shape_or_seed_is_drawn_again(words: str, arguments: dict[str, Any]) -> None:
    assert said(words, after=ONE) == ("image_generate", arguments)


@pytest.mark.parametrize("words", EDIT)
def test_what_was_drawn_offline_is_edited(words: str) -> None:
    assert said(words, after=ONE) == ("image_edit", {"image": ROBOT, "prompt": words})


def test_a_shape_and_an_edit_are_one_call() -> None:
    edit = {"image": ROBOT, "prompt": "add a dog", "size": "16:9"}
    assert said("make it wider and add a dog", after=ONE) == ("image_edit", edit)


def test_an_edited_picture_is_edited_on_and_undone_to_what_it_was() -> None:
    edited = [
        user("add a hat"),
        called("image_edit", "c2", image=ROBOT, prompt="add a hat"),
        answered("c2", drawn("add a hat", CAT, changes=["hat added"]), CAT),
    ]
    assert next_step([*ONE, *edited]) == (
        "Here it is: /g/cd.png (1024 x 1024, free).\nChanged: hat added."
    )
    told = items.message("assistant", items.text_part("Here it is."))
    for words, prompt in (("remove the hat", "remove the hat"), ("undo that", "undo")):
        assert said(words, after=[*ONE, *edited, told]) == (
            "image_edit",
            {"image": CAT, "prompt": prompt},
        )


def test_the_last_two_pictures_are_compared() -> None:
    both = {"path": "/g/ab.png", "paths": ["/g/cd.png"]}
    for words in ("compare them", "which one is brighter?", "what is the difference?"):
        assert said(words, after=TWO) == ("inspect_image", {**both, "question": words})


def test_pictures_are_found_by_their_place() -> None:
    assert said("show the first one again", after=TWO) == ("image_recall", {"handle": ROBOT})
    assert said("show it again", after=TWO) == ("image_recall", {"handle": CAT})
    first = ("image_generate", {"prompt": "a red robot", "size": "16:9"})
    assert said("make the first one wider", after=TWO) == first
    asked = "what colour is the first picture?"
    look = ("inspect_image", {"path": "/g/ab.png", "question": asked})
    assert said(asked, after=TWO) == look


def test_wider_and_taller_go_on_from_the_shape_that_is_there() -> None:
    cat = {"prompt": "a blue cat with a hat"}
    assert said("make it wider", after=TWO) == ("image_generate", {**cat, "size": "21:9"})
    assert said("make it taller", after=TWO) == ("image_generate", {**cat, "size": "1:1"})


def test_drawing_again_keeps_the_seed_and_not_the_file() -> None:
    order = {"seed": 7, "output_path": "robot.png", "n": 1, "quality": "hd", "size": "512x512"}
    after = turn("a robot", ROBOT, arguments=order)
    kept = {"prompt": "a robot", "seed": 7, "quality": "hd"}
    assert said("wider", after=after) == ("image_generate", {**kept, "size": "16:9"})
    again = {**kept, "size": "512x512", "seed": 8}
    assert said("try again", after=after) == ("image_generate", again)


def test_what_a_service_drew_or_a_file_holds_is_edited() -> None:
    painted = turn("a red robot", ROBOT, provider="openai-image")
    edit = {"image": ROBOT, "prompt": "make it wider", "size": "16:9"}
    assert said("make it wider", after=painted) == ("image_edit", edit)
    words = "sharpen cat.png"
    assert said(words, after=ONE) == ("image_edit", {"image": "cat.png", "prompt": words})
    cropped = {"image": "cat.png", "prompt": "crop cat.png to a square", "output_path": "sq.png"}
    words = "crop cat.png to a square and save it as sq.png"
    assert said(words) == ("image_edit", cropped)
    attached = ("image_edit", {"image": PHOTO, "prompt": "make it blue"})
    assert said("make it blue", PHOTO) == attached


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ("rotate it", {"rotate": 90}),
        ("rotate it by 45 degrees to the left", {"rotate": -45}),
        ("turn it upside down", {"rotate": 180}),
        ("mirror it", {"flip": "horizontal"}),
        ("flip it vertically", {"flip": "vertical"}),
        ("crop it to a square", {"crop": {"x": 0, "y": 0, "width": 1024, "height": 1024}}),
        ("crop it to 300x200", {"crop": {"x": 362, "y": 412, "width": 300, "height": 200}}),
        ("crop it at 10, 20, 30, 40", {"crop": {"x": 10, "y": 20, "width": 30, "height": 40}}),
        ("compress it to 200 kB", {"max_bytes": "200kb"}),
        ("convert it to webp", {"output_format": "webp"}),
        ("save it as a jpg", {"output_format": "jpeg"}),
        ("remove the background", {"cut_out": True}),
    ],
)
def test_changes_of_pixels_need_no_model(words: str, arguments: dict[str, object]) -> None:
    assert said(words, after=ONE) == ("image_transform", {"image": ROBOT, **arguments})


def test_a_picture_in_the_message_is_what_the_message_is_about() -> None:
    look = {"path": PHOTO, "question": "What is in this picture?"}
    assert said("", PHOTO) == ("inspect_image", look)
    assert said("cat.png") == ("inspect_image", {**look, "path": "cat.png"})
    words = "alt text please"
    assert said(words, PHOTO, after=ONE) == ("inspect_image", {"path": PHOTO, "question": words})
    words = "compare this with the last one"
    both = {"path": PHOTO, "paths": ["/g/ab.png"], "question": words}
    assert said(words, PHOTO, after=ONE) == ("inspect_image", both)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("make it wider", NOTHING_YET),
        ("describe it", NOTHING_YET),
        ("make the sky green", NOTHING_YET),
        ("save it as x.png", NOTHING_YET),
        ("show it again", NOTHING_YET),
        ("compare them", NEEDS_TWO),
        ("what is on https://example.com/a.png?", NO_WEB),
        ("thanks!", WELCOME),
        ("ok", GO_ON),
        ("exit", TO_LEAVE),
        ("undo", NOTHING_YET),
        ("delete it", NOTHING_YET),
        ("list my pictures", NOTHING_YET),
        ("it's ugly", SAY_WHAT_TO_CHANGE),
        ("write a poem", ONLY_PICTURES),
        ("use gpt-5 please", A_REAL_MODEL),
        ("which icons do you have?", ASSETS),
        ("render sales.json", READ_IT_YOURSELF.format(file="sales.json")),
    ],
)
def test_what_cannot_be_done_is_said(words: str, told: str) -> None:
    assert said(words) == f"{told}\n\n{IS_A_RULE}"


@pytest.mark.parametrize(
    "words",
    ["make a list of fruits", "what is the capital of France?", "i like trains", "drwa a cat"],
)
def test_what_no_rule_knows_is_answered_with_what_to_type(words: str) -> None:
    told = said(words)
    assert isinstance(told, str)
    first, *abilities, last = told.splitlines()
    ideas = {
        "make a list of fruits": "To draw it, type: draw a list of fruits",
        "i like trains": "To draw it, type: draw i like trains",
        "drwa a cat": 'Did you mean "draw a cat"?',
    }
    if words in ideas:
        assert abilities.pop(0) == ideas[words]
    assert first == (
        "I am limner/offline, a set of rules and not a language model, and no rule of mine fits "
        "that."
    )
    assert [line.split(":")[0] for line in abilities] == [
        "I can",
        "- draw",
        "- draw it again",
        "- chart",
        "- render",
        "- look",
        "- compare",
        "- transform",
        "- change what I drew",
        "- edit a file, with a service that can",
        "- show again",
        "- find ready-made pictures",
    ]
    assert last == (
        "For a model that understands, set OPENAI_API_KEY, or store it: limner keys set "
        "OPENAI_API_KEY"
    )


@pytest.mark.parametrize("words", ["help", "Hello!", "who are you?", "what can you do", "?"])
def test_who_asks_what_this_is_is_told(words: str) -> None:
    told = said(words, after=ONE)
    assert isinstance(told, str)
    assert told.startswith("I am limner/offline, a set of rules and not a language model.\n")


def test_a_tool_of_another_program_is_called_if_the_user_names_it() -> None:
    text = {"type": "string"}
    shapes: dict[str, dict[str, Any]] = {
        "shot": {"properties": {"target": text}},
        "searchDocs": {"properties": {"query": text}, "required": ["query"]},
        "set_volume": {"properties": {"level": {"type": "integer"}}, "required": ["level"]},
    }
    offers = [
        *OFFERS,
        *(ToolOffer(name=name, description="", schema=shape) for name, shape in shapes.items()),
    ]
    for words, step in {
        "take a shot": ("shot", {}),
        "Please take a shot of my screen!": ("shot", {}),
        "search the docs for cats": ("searchDocs", {"query": "search the docs for cats"}),
        "draw a shot of the sea": ("image_generate", {"prompt": "a shot of the sea"}),
    }.items():
        assert next_step([user(words)], offers) == step
    assert "image_generate" not in next_step([user("set the volume")], offers)
    assert next_step([user("take a shot")]) == said("take a shot")
    taken = [user("take a shot"), called("shot", "c"), answered("c", "The window:", PHOTO)]
    assert next_step(taken, offers) == f"The window:\n\n{IS_A_RULE}"
    pictures = answered("c", {"images": [{"image": PHOTO}]}, PHOTO)
    told = next_step([user("take a shot"), called("shot", "c"), pictures], offers)
    assert told == f"shot is done and returned 1 picture.\n\n{IS_A_RULE}"
    look = [*taken, items.message("assistant", items.text_part("ok")), user("what is in it?")]
    assert next_step(look, offers)[0] == "inspect_image"


@pytest.mark.parametrize(
    ("kind", "words", "value"),
    [
        ({"type": ["string", "null"]}, "use set_level level=high", "high"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "use set_level level 3", 3),
        ({}, "use set_level level=x", "x"),
        (True, "use set_level level=x", "x"),
        ({"type": {"of": 1}, "enum": 3}, "use set_level level=x", None),
    ],
)
def test_an_argument_of_a_client_may_have_any_schema(
    kind: object, words: str, value: object
) -> None:
    shape = {"properties": {"level": kind}, "required": "level"}
    offers = [*OFFERS, ToolOffer(name="set_level", description="", schema=shape)]
    arguments = {} if value is None else {"level": value}
    assert next_step([user(words)], offers) == ("set_level", arguments)


def test_where_a_picture_is_and_what_it_cost_needs_no_tool() -> None:
    for words in ("where is it?", "where did you save it?"):
        assert said(words, after=ONE) == "The picture is /g/ab.png (1024 x 1024, free)."
    free = "What I draw and measure without a key is free. `limner spend` lists every call."
    for words in ("how much did that cost?", "what have I spent so far?", "was it free?", "cost?"):
        told = f"It was free. The pictures of this conversation cost $0.00. {free}"
        assert said(words, after=ONE) == told
    paid = turn("a cat", CAT, provider="openai-image", cost_usd=0.04)
    assert said("what did it cost?", after=[*ONE, *paid]) == (
        f"The last picture cost $0.04. The pictures of this conversation cost $0.04. {free}"
    )
    receipt = "how much does the burger cost?"
    assert said(receipt, PHOTO) == ("inspect_image", {"path": PHOTO, "question": receipt})


BAR = '{"type":"bar","labels":["a","b"],"values":[1,2]}'
SVG = '<svg viewBox="0 0 10 10"><circle r="3"/></svg>'
RENDER: list[tuple[str, dict[str, Any]]] = [
    (BAR, {"source": BAR}),
    (
        f"render {BAR} at 800x600 and save it as bar.png",
        {"source": BAR, "size": "800x600", "output_path": "bar.png"},
    ),
    (f"please draw this: {SVG}", {"source": SVG}),
    ("digraph { a -> b -> c }", {"source": "digraph { a -> b -> c }"}),
    ("sequenceDiagram\n  A->>B: hi", {"source": "sequenceDiagram\n  A->>B: hi"}),
    (
        "Here is a diagram:\n```mermaid\ngraph TD\nA-->B\n```",
        {"source": "graph TD\nA-->B\n", "source_format": "mermaid"},
    ),
    ('{"type": "bar", "values": [1, 2', {"source": '{"type": "bar", "values": [1, 2'}),
    ("how do I write a chart?", {"help": "charts"}),
]


@pytest.mark.parametrize(("words", "arguments"), RENDER)
def test_a_document_in_the_message_is_rendered(words: str, arguments: dict[str, Any]) -> None:
    assert said(words) == ("image_render", arguments)


def test_a_long_document_is_rendered_whole() -> None:
    long = f'<svg viewBox="0 0 9 9">{"<circle/>" * 5_000}</svg>'
    assert said(f"draw {long}") == ("image_render", {"source": long})


def test_ready_made_pictures_are_searched_for() -> None:
    words = "which icons do you have for coffee?"
    assert said(words) == ("asset_search", {"words": "coffee"})
    call = called("asset_search", "c2", words="coffee")
    history = [*ONE, user(words), call, answered("c2", {"names": ["coffee", "teapot"]})]
    assert next_step(history) == "Ready-made pictures: coffee, teapot."


def test_pictures_are_listed_undone_and_kept() -> None:
    assert said("list my pictures", after=TWO) == (
        "The pictures of this conversation:\n"
        "1. /g/ab.png (1024 x 1024, free).\n"
        "2. /g/cd.png (1360 x 768, free)."
    )
    assert said("undo", after=TWO) == ("image_recall", {"handle": ROBOT})
    assert said("delete it", after=ONE) == (
        "I delete no files. The picture is /g/ab.png (1024 x 1024, free). "
        "Delete it as any other file."
    )


def test_the_arguments_of_a_named_tool_come_from_the_message() -> None:
    number, text = {"type": "number"}, {"type": "string"}
    shapes: dict[str, dict[str, Any]] = {
        "chart": {"values": {"type": "array", "items": number}},
        "get_weather": {"city": text},
        "set_volume": {"level": {"type": "integer"}},
        "pick": {"colour": {"type": "string", "enum": ["red", "blue"]}},
    }
    offers = [
        *OFFERS,
        *(
            ToolOffer(
                name=name,
                description="",
                schema={"type": "object", "properties": shape, "required": [*shape]},
            )
            for name, shape in shapes.items()
        ),
    ]
    for words, step in {
        "Chart 3, 1, 4 and say which is tallest.": ("chart", {"values": [3, 1, 4]}),
        "use get_weather for Paris": ("get_weather", {"city": "Paris"}),
        'call get_weather with {"city": "Rome"}': ("get_weather", {"city": "Rome"}),
        "please call set_volume with level=7": ("set_volume", {"level": 7}),
        "set the volume to 7": ("set_volume", {"level": 7}),
        "use pick, the blue one": ("pick", {"colour": "blue"}),
        "draw a chart of tea 3, coffee 5": (
            "image_generate",
            {"prompt": "a chart of tea 3, coffee 5"},
        ),
    }.items():
        assert next_step([user(words)], offers) == step
    told = next_step([user("help")], offers)
    assert "- call a tool that you name: chart, get_weather, pick, set_volume\n" in told


# --- as a model ---


async def ask(words: str, after: list[dict[str, Any]] | None = None) -> tuple[Answer, list[str]]:
    pieces: list[str] = []
    prompt = Prompt(items=[*(after or []), user(words)], tools=OFFERS)
    return await OfflineModel().ask(prompt, on_text=pieces.append), pieces


async def test_a_call_is_an_item_of_the_conversation() -> None:
    answer, pieces = await ask("draw a café")
    (call,) = answer.items
    assert answer == Answer(
        text="",
        stop="end",
        model="limner/offline",
        usage=Usage(input_tokens=0, output_tokens=0),
        items=(
            items.function_call(
                call_id=call["call_id"], name="image_generate", arguments='{"prompt": "a café"}'
            ),
        ),
    )
    assert pieces == []
    assert (await ask("draw a café"))[0] == answer
    later = (await ask("draw a café", after=ONE))[0].items[0]["call_id"]
    assert later != call["call_id"]


async def test_words_come_in_pieces_and_as_an_item() -> None:
    answer, pieces = await ask("thanks", after=ONE)
    assert answer.text == "You are welcome."
    assert pieces == ["You ", "are ", "welcome."]
    assert answer.items == (items.message("assistant", items.text_part("You are welcome.")),)


async def test_an_answer_by_a_schema_takes_a_model_that_understands_it() -> None:
    prompt = Prompt(items=[user("draw a cat")], tools=OFFERS, schema={"type": "object"})
    with pytest.raises(UserError) as caught:
        await OfflineModel().ask(prompt)
    assert caught.value.code == "MODEL_CANNOT"


SCRAPS = (
    "draw make it the a picture of wider and then compare show again cat.png /x save as remove with"
    " blue \" ' ? , . 10x10 16:9 the first one https://a.b/c.png please no into cost undo three"
    ' variations render {"type":"bar"} { } <svg </svg> ``` digraph{a} graph thanks use shot'
)
WORDS = st.lists(st.sampled_from(SCRAPS.split())).map(" ".join)


@given(st.text() | WORDS, st.sampled_from([[], ONE, TWO]))
async def test_property_any_text_has_a_valid_answer(
    words: str, after: list[dict[str, Any]]
) -> None:
    answer, pieces = await ask(words, after)
    (item,) = answer.items
    assert answer.stop == "end"
    assert "".join(pieces) == answer.text
    if item["type"] == "message":
        assert answer.text
        assert item == items.message("assistant", items.text_part(answer.text))
        return
    arguments = msgspec.json.decode(item["arguments"])
    try:
        conform(next(one.schema for one in OFFERS if one.name == item["name"]), arguments)
    except InputInvalid as problem:
        pytest.fail(f"{item['name']} would refuse {arguments}: {problem}")
    assert all(value for value in arguments.values())


@given(st.lists(st.text() | WORDS, min_size=1, max_size=4), st.lists(st.booleans()))
async def test_property_no_messages_make_it_go_on_for_ever(
    messages: list[str], succeeds: list[bool]
) -> None:
    shape = {"type": "object", "properties": {}}
    offers = [*OFFERS, ToolOffer(name="shot", description="", schema=shape)]
    history: list[Any] = [user(words) for words in messages]
    most = sum(len(split_steps(words)) for words in messages)
    for number in range(most + 1):
        answer = await OfflineModel().ask(Prompt(items=history, tools=offers))
        history.extend(answer.items)
        last = answer.items[-1]
        if last["type"] == "message":
            assert answer.text
            return
        value = drawn("a robot", ROBOT) if not succeeds or succeeds[number % len(succeeds)] else {}
        history.append(answered(last["call_id"], value, success=bool(value)))
    pytest.fail(f"{most} steps were not enough for {messages}")
