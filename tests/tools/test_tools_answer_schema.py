"""The answer to a question with a schema: parsed if it follows the schema, else refused."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

import limner
from limner.errors import ModelBadAnswer
from limner.testing import FakeServices
from limner.testing.sample_pictures import make_png
from limner.tools.answer_schema import AnswerMismatch, parse_answer

FOX = make_png(64, 64, pixel=b"\xe6\x5c\x00\xff")
RECEIPT = {
    "type": "object",
    "properties": {
        "shop": {"type": ["string", "null"], "maxLength": 20},
        "total": {"type": "number", "minimum": 0},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}, "maxItems": 3},
    },
    "required": ["shop", "total"],
    "additionalProperties": False,
    "$defs": {"line": {"anyOf": [{"type": "string"}, {"enum": [1, 2]}]}},
}
BRANCHES: dict[str, Any] = {"anyOf": [{"$ref": "#"}, {"$ref": "#"}], "type": "string"}


@pytest.mark.parametrize("fence", ["{}", "```json\n{}\n```", "```\n{}\n```\n"])
async def test_the_value_of_an_inspection_is_the_parsed_answer(
    fence: str, limner_fake: FakeServices
) -> None:
    answer = {"shop": "Fox & Sons", "total": 12.5}
    limner_fake.responses.reply(fence.replace("{}", json.dumps(answer)))
    async with limner_fake.limner() as lim:
        found = await lim.inspect(FOX, "Read it.", schema=RECEIPT, model="openai/gpt-5.4")
    assert found.value == answer


async def test_without_a_schema_an_inspection_has_no_value(limner_fake: FakeServices) -> None:
    async with limner_fake.limner() as lim:
        found = await lim.inspect(FOX, "Read it.", model="openai/gpt-5.4")
    assert (found.text, found.value) == ("OK.", None)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("I see a receipt.", "it is not JSON"),
        ('{"shop": null, "total": NaN}', "it is not JSON"),
        ('{"shop": null}', "total is missing"),
        ('{"shop": 1, "total": 1}', "shop is not of type string or null"),
        ('{"shop": null, "total": true}', "total is not of type number"),
        ('{"shop": null, "total": -1}', "total is less than 0"),
        ('{"shop": null, "total": 1, "tax": 0}', "tax is not in the schema"),
        (
            '{"shop": null, "total": 1, "lines": [3]}',
            "lines[0] has none of the forms that the schema allows",
        ),
    ],
)
async def test_an_answer_that_does_not_follow_the_schema_is_an_error_with_its_cost(
    answer: str, problem: str, limner_fake: FakeServices
) -> None:
    limner_fake.responses.reply(answer)
    async with limner_fake.limner() as lim:
        with pytest.raises(ModelBadAnswer) as caught:
            await lim.inspect(FOX, "Read it.", schema=RECEIPT, model="openai/gpt-5.4")
    error = caught.value
    assert error.message == f"The answer of openai/gpt-5.4 does not follow the schema: {problem}."
    assert (error.code, error.retryable, error.billed) == ("MODEL_BAD_ANSWER", False, True)
    assert error.extras["answer"] == answer
    assert error.cost_usd == limner_fake.bill().cost_usd > 0


async def test_an_answer_that_does_not_follow_the_schema_is_not_cached(
    limner_fake: FakeServices,
) -> None:
    limner_fake.responses.reply("I see a receipt.")
    limner_fake.responses.reply('{"shop": null, "total": 1}')
    keeps = {"images.cache_answers": True}
    async with limner_fake.limner(settings=keeps) as lim:
        with pytest.raises(limner.LimnerError):
            await lim.inspect(FOX, "Read it.", schema=RECEIPT, model="openai/gpt-5.4")
        found = [
            await lim.inspect(FOX, "Read it.", schema=RECEIPT, model="openai/gpt-5.4")
            for _ in range(2)
        ]
    assert [one.value for one in found] == [{"shop": None, "total": 1}] * 2
    assert found[1].details["remembered"] is True


def test_a_schema_that_would_take_forever_is_given_up() -> None:
    with pytest.raises(AnswerMismatch):
        parse_answer('"x"', BRANCHES)
    nested = "[" * 5_000 + "]" * 5_000
    with pytest.raises(AnswerMismatch):
        parse_answer(nested, {"type": "array", "items": {"$ref": "#"}})


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, "", "ab", "abcd"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=6,
)
NAMES = ["string", "integer", "number", "boolean", "object", "array", "null"]
PLAIN = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(NAMES) | st.lists(st.sampled_from(NAMES), min_size=1, unique=True),
        "enum": st.lists(VALUES, min_size=1, max_size=3),
        "const": VALUES,
        "minimum": st.integers(-2, 2),
        "exclusiveMaximum": st.integers(-2, 2),
        "minLength": st.integers(0, 3),
        "maxItems": st.integers(0, 2),
    },
)
SCHEMAS = st.recursive(
    PLAIN,
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(st.sampled_from("ab"), inner),
            "required": st.lists(st.sampled_from("ab"), unique=True),
            "additionalProperties": st.booleans() | inner,
            "items": inner,
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "oneOf": st.lists(inner, min_size=1, max_size=2),
            "allOf": st.lists(inner, min_size=1, max_size=2),
        },
    ),
    max_leaves=4,
)


@given(schema=SCHEMAS, value=VALUES)
def test_the_check_agrees_with_the_reference_implementation(
    schema: dict[str, Any], value: Any
) -> None:
    try:
        parse_answer(json.dumps(value), schema)
        is_valid = True
    except AnswerMismatch:
        is_valid = False
    assert is_valid == jsonschema.Draft202012Validator(schema).is_valid(value)
