"""Every picture is placed, in its order, or there is an error: on every wire."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.wires.wire_prompts import FOX, image, prompt, text, user

from limner.errors import InputInvalid
from limner.wires.base import HANDLE_URL, WIRES, Prompt, Sight, wire
from limner.wires.messages import messages
from limner.wires.schemas import closed, is_strict

every_api = pytest.mark.parametrize("api", WIRES)


@every_api
@given(data=st.data())
def test_property_every_picture_and_word_is_there_once_and_in_order(
    api: str, data: st.DataObject
) -> None:
    pictures = {
        f"{number:064x}": Sight(mime="image/png", data=content)
        for number, content in enumerate(
            data.draw(st.lists(st.binary(min_size=9), max_size=6, unique=True))
        )
    }
    parts = [image(handle) for handle in pictures]
    parts += [text(f"<{number}>") for number in range(data.draw(st.integers(1, 3)))]
    parts = data.draw(st.permutations(parts))
    asked = Prompt(items=[user(*parts)], pictures=pictures)
    sent = json.dumps(json.loads(wire(api).request("m", asked).body), ensure_ascii=False)
    marks = [
        part["text"]
        if part["type"] == "input_text"
        else base64.b64encode(pictures[part["image_url"].removeprefix(HANDLE_URL)].data).decode()
        for part in parts
    ]
    places = [sent.index(f'{mark}"') for mark in marks]
    assert places == sorted(places)
    assert sent.count("image/png") == len(pictures)


@every_api
@pytest.mark.parametrize(
    ("item", "words"),
    [
        ({"type": "function_call", "name": "x"}, "an item of the kind 'function_call'"),
        ({"type": "message", "role": "system", "content": "x"}, "the role 'system'"),
        ({"type": "message", "content": "x"}, "the role None"),
        (user({"type": "input_audio"}), "a part of the kind 'input_audio'"),
        (user({"type": "input_text", "text": 5}), "a part of the kind 'input_text'"),
        (user(7), "a part that is int"),
        ({"role": "user"}, "a part that is NoneType"),
        (user({"type": "input_image", "image_url": "https://x/y.png"}), "without a handle"),
        (user({"type": "input_image", "file_id": "f"}), "without a handle"),
        (user(image("99" * 32)), "was not loaded"),
        ({"role": "assistant", "content": [image(FOX)]}, "a picture in a message of the assist"),
    ],
)
def test_what_has_no_place_is_an_error_and_is_not_left_out(
    api: str, item: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputInvalid, match=words):
        wire(api).request("m", prompt(user(text("hello")), item))


def test_the_detail_of_an_item_holds_where_the_picture_has_none() -> None:
    sharp = Sight(mime="image/png", data=b"x", detail="high")
    plain = Sight(mime="image/png", data=b"y")
    asked = Prompt(
        items=[user(image("a", detail="low"), image("b", detail="low"))],
        pictures={"a": sharp, "b": plain},
    )
    (message,) = messages(asked)
    assert message.parts == [sharp, Sight(mime="image/png", data=b"y", detail="low")]


def test_the_bytes_of_a_picture_are_not_shown() -> None:
    assert repr(Sight(mime="image/png", data=b"secret")) == "Sight(mime='image/png', detail=None)"


# --- schemas ---


def test_a_schema_is_closed_at_every_depth_and_the_original_stays_as_it_is() -> None:
    inner = {"type": "object", "properties": {"a": {"type": "string"}}}
    schema = {
        "type": "object",
        "properties": {"one": inner, "many": {"type": "array", "items": inner}},
        "$defs": {"x": {"anyOf": [inner, {"type": "null"}]}},
        "additionalProperties": True,
    }
    shut = inner | {"additionalProperties": False}
    assert closed(schema) == {
        "type": "object",
        "properties": {"one": shut, "many": {"type": "array", "items": shut}},
        "$defs": {"x": {"anyOf": [shut, {"type": "null"}]}},
        "additionalProperties": True,
    }
    assert "additionalProperties" not in inner


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        ({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}, True),
        ({"type": "object", "properties": {"a": {"type": "string"}}}, False),
        ({"type": "object"}, True),
        ({"type": "array", "items": {"type": "string"}}, False),
        ({"anyOf": [{"type": "object"}]}, False),
        (
            {
                "type": "object",
                "properties": {"a": {"type": "array", "items": {"minLength": 3}}},
                "required": ["a"],
            },
            False,
        ),
        ({"type": "object", "additionalProperties": {"type": "string"}}, False),
    ],
)
def test_a_schema_is_strict_only_where_a_strict_service_would_take_it(
    schema: dict[str, Any], strict: bool
) -> None:
    assert is_strict(closed(schema)) is strict
    asked = prompt(user(text("x")), schema=schema)
    sent = json.loads(wire("openai-responses").request("m", asked).body)["text"]["format"]
    assert sent["strict"] is strict
    assert sent["schema"] == (closed(schema) if strict else schema)
