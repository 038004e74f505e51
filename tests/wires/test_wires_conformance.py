"""One suite for every wire: whole conversations, legal for the vendor, with no picture missing."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.wires.seed_schema import KINDS, items_of
from tests.wires.vendor_types import assert_legal
from tests.wires.wire_prompts import (
    ALL_WIRES,
    DRAW,
    FOX,
    OWL,
    PICTURES,
    call,
    every_wire,
    image,
    output,
    prompt,
    said,
    text,
    user,
)

from limner.errors import InputInvalid
from limner.wires.base import HANDLE_URL, ModelPicture, Prompt
from limner.wires.items import image_part, image_urls, replace_images

# Models whose outputs of tools carry pictures, and models whose do not.
MODELS = {
    "gemini-generate-content": ("gemini-3.8-flash", "gemini-2.5-flash"),
    "bedrock-converse": ("us.anthropic.claude-sonnet-5-5", "meta.llama4-maverick-17b"),
}
ASK = user(text("Draw a fox."))

CONVERSATIONS: dict[str, tuple[list[Any], list[str]]] = {
    "text only": ([ASK, said("No."), user(text("Please."))], []),
    "one picture": ([user(image(FOX), text("What is it?"))], [FOX]),
    "several": ([user(image(FOX)), said("A fox."), user(image(OWL), image(FOX))], [FOX, OWL, FOX]),
    "a tool gives a picture": ([ASK, call("c1"), output("c1", text("Done."), image(FOX))], [FOX]),
    "a picture and no word": ([ASK, call("c1"), output("c1", image(FOX))], [FOX]),
    "no content": ([ASK, call("c1"), output("c1")], []),
    "parallel calls": (
        [
            ASK,
            said("Two."),
            call("c1"),
            call("c2"),
            output("c2", image(OWL), text("2")),
            output("c1", text("1"), image(FOX)),
            user(text("Thanks.")),
        ],
        [FOX, OWL],
    ),
    "a failure": ([ASK, call("c1"), output("c1", text("No money."), success=False)], []),
    "a failure with a picture": (
        [ASK, call("c1"), output("c1", text("Blurred."), image(FOX), success=False)],
        [FOX],
    ),
    "a failure as the schema shows it": (
        [
            ASK,
            call("c1"),
            {
                "type": "function_call_output",
                "call_id": "c1",
                "output": {"body": "x", "success": False},
            },
        ],
        [],
    ),
    "one after the other": (
        [ASK, call("c1"), output("c1", image(FOX)), call("c2"), output("c2", image(OWL))],
        [FOX, OWL],
    ),
    "calls while others are under way": (
        [
            ASK,
            call("c1"),
            call("c2"),
            output("c1", image(FOX)),
            said("One more."),
            call("c3"),
            output("c3", text("3")),
            output("c2", image(OWL)),
        ],
        [FOX, OWL],
    ),
    "a custom tool": (
        [
            ASK,
            {"type": "custom_tool_call", "call_id": "c1", "name": "patch", "input": "*** Begin"},
            {"type": "custom_tool_call_output", "call_id": "c1", "output": "ok"},
        ],
        [],
    ),
    "instructions": (
        [
            {"type": "message", "role": "developer", "content": [text("Be brief.")]},
            ASK,
            {"type": "message", "role": "system", "content": [text("Like this:"), image(FOX)]},
        ],
        [FOX],
    ),
    "broken arguments": ([ASK, call("c1", '{"prompt": "a f'), output("c1", text("bad JSON"))], []),
    "odd ids": ([ASK, call("c|1" * 50), output("c|1" * 50, image(FOX))], [FOX]),
    "kinds without words": (
        [
            {"type": "ghost_snapshot", "ghost_commit": {}},
            ASK,
            {"type": "web_search_call", "action": {"type": "search"}},
            {"type": "compaction", "encrypted_content": "zzz"},
            {"type": "other"},
            {"type": "from_the_future"},
            call("c1"),
            {
                "type": "local_shell_call",
                "call_id": "s1",
                "status": "completed",
                "action": {"type": "exec", "command": ["ls"]},
            },
            output("s1", text("secret.txt")),
            output("c1", image(FOX)),
        ],
        [FOX],
    ),
    "a picture of a command": (
        [
            ASK,
            call("c1"),
            {
                "type": "local_shell_call",
                "call_id": "s1",
                "status": "completed",
                "action": {"type": "exec", "command": ["ls"]},
            },
            output("s1", image(OWL)),
            output("c1", image(FOX)),
        ],
        [FOX, OWL],
    ),
    "a beginning in the middle": ([call("c1"), output("c1", image(FOX)), said("There.")], [FOX]),
    "half characters": (
        [
            user(text("Look at \udcff.png")),
            call("\udcff", '{"prompt": "\udcff"}'),
            output("\udcff", text("Saved as \udcff.png"), image(FOX)),
        ],
        [FOX],
    ),
    "blank words": ([user(text(" "), text("Hello."), text("")), said(""), user(text("x"))], []),
}
CONVERSATIONS["kinds without words"][0][0]["ghost_commit"] = {
    "id": "g",
    "preexisting_untracked_dirs": [],
    "preexisting_untracked_files": [],
}

every_conversation = pytest.mark.parametrize("name", CONVERSATIONS)


def bodies(api: str, asked: Prompt) -> list[dict[str, Any]]:
    """The request, for each kind of model that the API has."""
    models = MODELS.get(api, ("the-model",))
    return [json.loads(ALL_WIRES[api].request(model, asked).body) for model in models]


def carried(body: dict[str, Any]) -> list[str]:
    """The handles of the pictures whose bytes are in a request, in their order."""
    packed = {base64.b64encode(one.data).decode(): handle for handle, one in PICTURES.items()}
    found: list[str] = []

    def look(value: Any) -> None:
        if isinstance(value, dict):
            for one in value.values():
                look(one)
        elif isinstance(value, list):
            for one in value:
                look(one)
        elif isinstance(value, str) and value.rpartition(",")[2] in packed:
            found.append(packed[value.rpartition(",")[2]])

    look(body)
    return found


@every_wire
@every_conversation
@pytest.mark.parametrize("tools", [(), (DRAW,)], ids=["no tools", "tools"])
def test_a_conversation_is_legal_and_carries_every_picture_in_its_order(
    api: str, name: str, tools: Any
) -> None:
    items, pictures = CONVERSATIONS[name]
    for body in bodies(api, prompt(*items, tools=tools, instructions="You draw in \udcff.")):
        assert_legal(api, body)
        assert carried(body) == pictures


@every_wire
@every_conversation
def test_a_model_that_takes_no_pictures_gets_a_note_for_each(api: str, name: str) -> None:
    items, pictures = CONVERSATIONS[name]
    for body in bodies(api, prompt(*items, takes_images=False, pictures={})):
        assert_legal(api, body)
        assert carried(body) == []
        written = json.dumps(body)
        for handle in pictures:
            named = f"[picture {HANDLE_URL}{handle} is not shown: this model takes no pictures]"
            assert written.count(named) == pictures.count(handle)


@every_wire
@every_conversation
def test_a_picture_that_is_left_out_is_named_and_the_others_are_there(api: str, name: str) -> None:
    items, pictures = CONVERSATIONS[name]
    rest = {OWL: PICTURES[OWL]}
    for body in bodies(api, prompt(*items, pictures=rest, omitted={FOX: "20 newer are shown"})):
        assert_legal(api, body)
        assert carried(body) == [handle for handle in pictures if handle == OWL]
        named = f"[picture {HANDLE_URL}{FOX} is not shown: 20 newer are shown]"
        assert json.dumps(body).count(named) == pictures.count(FOX)


@every_wire
@every_conversation
def test_fields_of_our_own_are_not_sent(api: str, name: str) -> None:
    items, _ = CONVERSATIONS[name]
    marked = [{**item, "id": "an-id-of-ours", "end_turn": True} for item in items]
    for body in bodies(api, prompt(*marked)):
        written = json.dumps(body)
        assert "an-id-of-ours" not in written
        assert "end_turn" not in written
        assert '"success":' not in written
        # A command and its output are said; a summary goes to the service that can read it.
        assert ("secret.txt" in written) == (name == "kinds without words")
        is_native = api == "openai-responses"
        assert ("zzz" in written) == (is_native and name == "kinds without words")


@every_wire
@pytest.mark.parametrize("handle", [FOX, OWL])
def test_a_note_replaces_a_picture_in_a_models_own_message(api: str, handle: str) -> None:
    answer = {"type": "message", "role": "assistant", "content": [image(handle)]}
    for body in bodies(api, prompt(ASK, answer, user(text("Where?")))):
        assert_legal(api, body)
        why = "a model's own text cannot contain one"
        assert f"[picture {HANDLE_URL}{handle} is not shown: {why}]" in json.dumps(body)


@every_wire
@pytest.mark.parametrize(
    ("items", "words"),
    [
        ([ASK, call("c1")], "The call 'c1' has no output"),
        ([ASK, call("c1"), user(text("x"))], "The call 'c1' has no output"),
        ([ASK, call("c1"), call("c2"), output("c1"), said("x")], "The call 'c2' has no output"),
        ([ASK, call("c1"), call("c2"), output("c2"), call("c3")], "The call 'c1' has no output"),
        ([ASK, output("c1")], "The output 'c1' has no call"),
        ([ASK, call("c1"), output("c1"), output("c1")], "The output 'c1' has no call"),
        ([ASK, call("c1"), output("c2")], "The output 'c2' has no call"),
        ([ASK, call("c1"), call("c1")], "The call 'c1' occurs twice"),
        ([], "There is nothing to send"),
        ([{"type": "other"}], "There is nothing to send"),
        ([user(text(" "))], "There is nothing to send"),
    ],
)
def test_a_sequence_that_no_service_takes_is_an_error(
    api: str, items: list[Any], words: str
) -> None:
    with pytest.raises(InputInvalid, match=words):
        bodies(api, prompt(*items))


PNG = b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize(
    ("api", "most"),
    [
        ("openai-responses", 1500),
        ("anthropic-messages", 600),
        ("gemini-generate-content", 3600),
        ("bedrock-converse", 20),
    ],
)
def test_one_picture_more_than_a_service_takes_is_an_error(api: str, most: int) -> None:
    wire, asked = ALL_WIRES[api], prompt(user(*[image(FOX)] * most))
    assert wire.request("m", asked).body.count(b"image/png" if most > 20 else b'"png"') == most
    with pytest.raises(InputInvalid, match=f"one too many: the service takes {most:,}"):
        wire.request("m", replace(asked, items=[*asked.items, user(image(OWL))]))


@pytest.mark.parametrize(
    ("api", "most"), [("anthropic-messages", 7_864_320), ("bedrock-converse", 3_750_000)]
)
def test_a_picture_larger_than_a_service_takes_is_an_error(api: str, most: int) -> None:
    fits = ModelPicture(mime="image/png", data=PNG.ljust(most, b"x"))
    ask = ALL_WIRES[api].request
    assert ask("m", prompt(user(image(FOX)), pictures={FOX: fits}))
    over = ModelPicture(mime=fits.mime, data=fits.data + b"x")
    with pytest.raises(InputInvalid, match=f"has {most + 1:,} bytes; the service takes {most:,}"):
        ask("m", prompt(user(image(FOX)), pictures={FOX: over}))


@pytest.mark.parametrize(
    ("api", "mime"),
    [
        ("anthropic-messages", "image/heic"),
        ("gemini-generate-content", "image/gif"),
        ("bedrock-converse", "image/bmp"),
    ],
)
def test_a_picture_of_a_type_that_a_service_does_not_take_is_an_error(api: str, mime: str) -> None:
    strange = prompt(user(image(FOX)), pictures={FOX: ModelPicture(mime=mime, data=b"strange")})
    with pytest.raises(InputInvalid, match=f"is {mime}, and the service takes"):
        ALL_WIRES[api].request("m", strange)


@every_wire
@pytest.mark.parametrize(
    ("data", "mime"),
    [
        (PNG + b"1", "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
    ],
)
def test_the_bytes_of_a_picture_decide_its_type(api: str, data: bytes, mime: str) -> None:
    claimed = prompt(user(image(FOX)), pictures={FOX: ModelPicture(mime="image/gif", data=data)})
    (body, *_) = bodies(api, claimed)
    assert_legal(api, body)
    written = json.dumps(body)
    assert "gif" not in written
    assert mime.removeprefix("image/") in written


# --- any history that the schema allows ---

few = settings(
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example],
)
histories = st.lists(
    st.one_of([items_of(kind) for kind in KINDS if kind != "local_shell_call"]), max_size=6
)


def _answered(item: dict[str, Any]) -> list[dict[str, Any]]:
    """The item as a session keeps it: with handles, and no call or output alone."""
    item = replace_images(item, {url: image_part(FOX) for url in image_urls(item)})
    if item["type"] == "message":
        roles = ("user", "assistant", "developer", "system")
        return [{**item, "role": roles[len(item["role"]) % 4]}]
    kind = item["type"].removesuffix("_output")
    if kind not in ("function_call", "custom_tool_call"):
        return [item]
    one = {"type": kind, "call_id": item["call_id"], "name": "t", "arguments": "{}", "input": ""}
    two = {"type": f"{kind}_output", "call_id": item["call_id"], "output": "x"}
    return [one | item | {"name": "t"}, two] if kind == item["type"] else [one, item]


@pytest.mark.slow
@every_wire
@few
@given(drawn=histories)
def test_property_any_history_of_the_schema_is_a_legal_request(
    api: str, drawn: list[dict[str, Any]]
) -> None:
    items = [one for item in drawn for one in _answered(item)]
    for body in bodies(api, prompt(*items, ASK)):
        assert_legal(api, body)
        shown = [
            url for item in items if item.get("role") != "assistant" for url in image_urls(item)
        ]
        assert carried(body) == [FOX] * len(shown)
