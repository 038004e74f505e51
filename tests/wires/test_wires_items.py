"""Items of every kind of the schema are parsed, stored unchanged, and sent as the wire wants."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.wires.seed_schema import KINDS, assert_of_schema, items_of, restored, things_of
from tests.wires.wire_prompts import FOX, OWL

from limner.content import Picture, Text
from limner.errors import InputInvalid
from limner.wires import item_views, items

VIEWS = {
    "message": item_views.Message,
    "reasoning": item_views.Reasoning,
    "local_shell_call": item_views.LocalShellCall,
    "function_call": item_views.FunctionCall,
    "function_call_output": item_views.FunctionCallOutput,
    "custom_tool_call": item_views.CustomToolCall,
    "custom_tool_call_output": item_views.CustomToolCallOutput,
    "web_search_call": item_views.WebSearchCall,
    "ghost_snapshot": item_views.GhostSnapshot,
    "compaction": item_views.Compaction,
    "other": item_views.OtherItem,
}
PICTURE = Picture(handle=FOX, mime="image/png", width=2, height=1, size_bytes=70)

few = settings(max_examples=40)


def test_every_kind_of_the_schema_has_a_view() -> None:
    assert set(VIEWS) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
@few
@given(data=st.data())
def test_property_every_kind_is_read_and_written_back_equal(kind: str, data: st.DataObject) -> None:
    item = data.draw(items_of(kind))
    before = copy.deepcopy(item)
    seen = item_views.view(item)
    assert type(seen) is VIEWS[kind]
    # What the view knows is what the item says.
    for field in seen.__struct_fields__:
        value = getattr(seen, field)
        if field in item and isinstance(value, str | bool | None):
            assert value == item[field]
    written = items.flatten_output(item)
    assert item == before
    assert restored(written) == item
    assert_of_schema(written)


@few
@given(data=st.data())
def test_property_the_parts_of_content_are_all_seen(data: st.DataObject) -> None:
    parts = data.draw(st.lists(things_of("ContentItem"), max_size=4))
    seen = item_views.parts(parts)
    kinds = {
        item_views.InputText: "input_text",
        item_views.OutputText: "output_text",
        item_views.InputImage: "input_image",
    }
    assert [kinds[type(part)] for part in seen] == [part["type"] for part in parts]
    urls = [part["image_url"] for part in parts if part["type"] == "input_image"]
    assert [part.image_url for part in seen if isinstance(part, item_views.InputImage)] == urls
    message = {"type": "message", "role": "user", "content": parts}
    assert items.image_urls(message) == urls


BODY = [{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": "data:x"}]


@pytest.mark.parametrize(
    ("output", "extra", "succeeded", "kept"),
    [
        ("done", {}, None, {"output": "done"}),
        (BODY, {"success": False}, False, {"output": BODY, "success": False}),
        ({"body": "done"}, {}, None, {"output": "done"}),
        ({"body": BODY, "success": True}, {}, True, {"output": BODY, "success": True}),
        ({"body": "x", "success": None}, {}, None, {"output": "x", "success": None}),
    ],
)
def test_an_output_is_read_in_three_shapes_and_kept_in_one_of_two(
    output: Any, extra: dict[str, Any], succeeded: bool | None, kept: dict[str, Any]
) -> None:
    item = {"type": "function_call_output", "call_id": "c", "output": output, **extra}
    seen = item_views.view(item)
    assert isinstance(seen, item_views.FunctionCallOutput)
    assert seen.succeeded is succeeded
    assert items.flatten_output(item) == {"type": "function_call_output", "call_id": "c", **kept}


def test_an_unknown_kind_has_a_view_and_stays() -> None:
    item = {"type": "from_the_future", "x": [1, {"y": None}]}
    assert item_views.view(item) == item_views.Unknown(kind="from_the_future")
    assert items.flatten_output(item) == item
    (part,) = item_views.parts([{"type": "input_file", "file_id": "f"}])
    assert part == item_views.Unknown(kind="input_file")
    assert item_views.view({"type": 7}) == item_views.Unknown(kind="7")


@pytest.mark.parametrize(
    "item",
    [
        {"type": "message", "role": "user"},
        {"type": "message", "role": "user", "content": 5},
        {"type": "function_call", "call_id": "c", "name": "x"},
        {"type": "function_call_output", "call_id": "c", "output": 5},
        {"type": "function_call_output", "call_id": "c", "output": {"success": True}},
        {"type": "reasoning", "id": "r"},
        {"type": "ghost_snapshot", "ghost_commit": {}},
    ],
)
def test_a_known_kind_of_another_shape_is_an_error(item: dict[str, Any]) -> None:
    with pytest.raises(InputInvalid, match=item["type"]):
        item_views.view(item)


def test_the_items_that_we_make_are_of_the_schema() -> None:
    parts = items.to_parts([Text("drawn"), PICTURE])
    picture = {"type": "input_image", "image_url": f"limner://image/{FOX}"}
    assert parts == [{"type": "input_text", "text": "drawn"}, picture]
    made = [
        items.message("user", *parts),
        items.message("assistant", items.text_part("Here."), phase="final_answer"),
        items.function_call(call_id="c", name="image_generate", arguments="{}"),
        items.function_call_output(call_id="c", parts=parts, success=True),
        items.function_call_output(call_id="c", parts=[items.text_part("failed")], success=False),
    ]
    assert made[1:] == [
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Here."}],
            "phase": "final_answer",
        },
        {"type": "function_call", "call_id": "c", "name": "image_generate", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": parts, "success": True},
        {"type": "function_call_output", "call_id": "c", "output": "failed", "success": False},
    ]
    for item in made:
        assert_of_schema(item)
    assert items.image_part(OWL, detail="low")["detail"] == "low"


def test_pictures_are_swapped_for_handles_and_everything_else_stays() -> None:
    data, web = "data:image/png;base64,AAAA", "https://x/y.png"
    image = {"type": "input_image", "image_url": data, "detail": "low", "x": 1}
    item = {
        "type": "function_call_output",
        "call_id": "c",
        "output": {"body": [image, {"type": "input_image", "image_url": web}, "odd", 7]},
        "future": True,
    }
    assert items.image_urls(item) == [data, web]
    swaps = {data: items.image_part(FOX), web: items.text_part("[not fetched]")}
    assert items.replace_images(item, swaps) == {
        "type": "function_call_output",
        "call_id": "c",
        "output": [
            {**image, "image_url": f"limner://image/{FOX}"},
            {"type": "input_text", "text": "[not fetched]"},
            "odd",
            7,
        ],
        "future": True,
    }
    assert items.replace_images(item, {})["output"] == item["output"]["body"]  # type: ignore[index]
    assert items.image_urls({"type": "message", "role": "user", "content": "words"}) == []
