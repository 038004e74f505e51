"""Every picture is sent, in order, or there is an error: on every wire."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.wires.wire_prompts import ALL_WIRES, FOX, every_wire, image, prompt, text, user

from limner.errors import InputInvalid
from limner.wires.base import HANDLE_URL, ModelPicture, Prompt
from limner.wires.content_parts import PartSupport, PlacedPicture
from limner.wires.turns import UserTurn, build_turns, legal_id


@every_wire
@given(data=st.data())
def test_property_every_picture_and_word_is_there_once_and_in_order(
    api: str, data: st.DataObject
) -> None:
    pictures = {
        f"{number:064x}": ModelPicture(mime="image/png", data=content)
        for number, content in enumerate(
            data.draw(st.lists(st.binary(min_size=9), max_size=6, unique=True))
        )
    }
    parts = [image(handle) for handle in pictures]
    parts += [text(f"<{number}>") for number in range(data.draw(st.integers(1, 3)))]
    parts = data.draw(st.permutations(parts))
    asked = Prompt(items=[user(*parts)], pictures=pictures)
    sent = json.dumps(json.loads(ALL_WIRES[api].request("m", asked).body), ensure_ascii=False)
    marks = [
        part["text"]
        if part["type"] == "input_text"
        else base64.b64encode(pictures[part["image_url"].removeprefix(HANDLE_URL)].data).decode()
        for part in parts
    ]
    places = [sent.index(f'{mark}"') for mark in marks]
    assert places == sorted(places)
    assert sent.count('"png"' if api == "bedrock-converse" else "image/png") == len(pictures)


@every_wire
def test_an_unknown_role_is_sent_as_the_users(api: str) -> None:
    strange = {"type": "message", "role": "oracle", "content": "Beware."}
    assert ALL_WIRES[api].request("m", prompt(strange)) == ALL_WIRES[api].request(
        "m", prompt({**strange, "role": "user"})
    )


@every_wire
@pytest.mark.parametrize(
    ("item", "words"),
    [
        ({"type": "function_call", "name": "x"}, "function_call: Object missing"),
        ({"type": "message", "content": "x"}, "message: Object missing"),
        (user({"type": "input_file"}), "a part of the kind 'input_file'"),
        (user({"type": "input_text", "text": 5}), "input_text: Expected `str`"),
        (user(7), "a part of the kind 'int'"),
        ({"role": "user"}, "message: Object missing"),
        (user({"type": "input_image", "image_url": "https://x/y.png"}), "without a handle"),
        (user(image("99" * 32)), "was not loaded"),
        (
            {"role": "assistant", "content": [{"type": "input_image", "image_url": "data:x"}]},
            "without a handle",
        ),
    ],
)
def test_a_part_that_cannot_be_sent_is_an_error(api: str, item: dict[str, Any], words: str) -> None:
    with pytest.raises(InputInvalid, match=words):
        ALL_WIRES[api].request("m", prompt(user(text("hello")), item))


def test_the_detail_of_an_item_applies_if_the_picture_has_none() -> None:
    sharp = ModelPicture(mime="image/png", data=b"x", detail="high")
    plain = ModelPicture(mime="image/png", data=b"y")
    asked = Prompt(
        items=[user(image("a", detail="low"), image("b", detail="low"))],
        pictures={"a": sharp, "b": plain},
    )
    assert build_turns(asked, PartSupport()) == [
        UserTurn(
            role="user",
            parts=[
                PlacedPicture(handle="a", image=sharp),
                PlacedPicture(
                    handle="b", image=ModelPicture(mime="image/png", data=b"y", detail="low")
                ),
            ],
        )
    ]


@every_wire
def test_a_note_replaces_audio_and_the_other_parts_are_sent(api: str) -> None:
    sound = {"type": "input_audio", "audio_url": "data:audio/wav;base64,AAAA"}
    sent = ALL_WIRES[api].request("m", prompt(user(sound, image(FOX)))).body
    assert b"audio is not sent" in sent
    assert base64.b64encode(b"\x89PNG fox") in sent


@given(st.text(), st.text())
def test_property_an_id_is_legal_everywhere_and_stays_unique(one: str, two: str) -> None:
    made = legal_id(one)
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,40}", made)
    assert legal_id(one) == legal_id(made) == made
    assert (legal_id(two) == made) == (one == two)


def test_the_bytes_of_a_picture_are_not_shown() -> None:
    assert (
        repr(ModelPicture(mime="image/png", data=b"secret"))
        == "ModelPicture(mime='image/png', detail=None)"
    )
