"""A turn with two parallel calls whose outputs have pictures, in each API's own JSON."""

from __future__ import annotations

import base64
import json
from hashlib import sha256
from typing import Any

import pytest
from tests.wires.wire_prompts import (
    ALL_WIRES,
    DRAW,
    FOX,
    OWL,
    call,
    image,
    output,
    prompt,
    said,
    text,
    user,
)

from limner.wires.base import HANDLE_URL
from limner.wires.turns import left_out

FOX64 = base64.b64encode(b"\x89PNG fox").decode()
OWL64 = base64.b64encode(b"\xff\xd8 owl").decode()
FOX_NAME, OWL_NAME = f"picture limner://image/{FOX}", f"picture limner://image/{OWL}"

DRAWN = prompt(
    user(text("Draw both.")),
    said("At once."),
    call("c1"),
    call("c2", "not JSON"),
    output("c1", text("A fox:"), image(FOX)),
    output("c2", image(OWL), text("too dark"), success=False),
    user(text("Thanks.")),
    tools=[DRAW],
)


def body(api: str, model: str = "m") -> dict[str, Any]:
    return json.loads(ALL_WIRES[api].request(model, DRAWN).body)


def test_responses() -> None:
    sent = body("openai-responses")
    assert sent["tools"] == [
        {
            "type": "function",
            "name": "image_generate",
            "description": "Draw a picture.",
            "parameters": DRAW.schema,
            "strict": False,
        }
    ]
    assert sent["input"][1:6] == [
        {"type": "message", "role": "assistant", "content": "At once."},
        {
            "type": "function_call",
            "call_id": "c1",
            "name": "image_generate",
            "arguments": '{"prompt": "a fox"}',
        },
        {
            "type": "function_call",
            "call_id": "c2",
            "name": "image_generate",
            "arguments": "not JSON",
        },
        {
            "type": "function_call_output",
            "call_id": "c1",
            "output": [
                {"type": "input_text", "text": "A fox:"},
                {
                    "type": "input_image",
                    "image_url": f"data:image/png;base64,{FOX64}",
                    "detail": "auto",
                },
            ],
        },
        {
            "type": "function_call_output",
            "call_id": "c2",
            "output": [
                {
                    "type": "input_image",
                    "image_url": f"data:image/jpeg;base64,{OWL64}",
                    "detail": "high",
                },
                {"type": "input_text", "text": "too dark"},
            ],
        },
    ]


def test_chat_shows_the_pictures_in_one_message_after_all_tools() -> None:
    sent = body("openai-chat")
    assert sent["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "image_generate",
                "description": "Draw a picture.",
                "parameters": DRAW.schema,
            },
        }
    ]
    assert sent["messages"][1:] == [
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "At once."}],
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "image_generate", "arguments": '{"prompt":"a fox"}'},
                },
                {
                    "id": "c2",
                    "type": "function",
                    "function": {"name": "image_generate", "arguments": '{"input":"not JSON"}'},
                },
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": f"A fox:\n[{FOX_NAME}]"},
        {"role": "tool", "tool_call_id": "c2", "content": f"[{OWL_NAME}]\ntoo dark"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": f"{FOX_NAME}, returned by image_generate (c1):"},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{FOX64}"}},
                {"type": "text", "text": f"{OWL_NAME}, returned by image_generate (c2):"},
                {
                    "type": "image_url",
                    "image_url": {"url": f"data:image/jpeg;base64,{OWL64}", "detail": "high"},
                },
            ],
        },
        {"role": "user", "content": [{"type": "text", "text": "Thanks."}]},
    ]


def test_anthropic_has_them_in_the_results_and_takes_turns() -> None:
    sent = body("anthropic-messages")
    assert sent["tools"] == [
        {
            "name": "image_generate",
            "description": "Draw a picture.",
            "input_schema": DRAW.schema,
        }
    ]
    name = {"type": "tool_use", "name": "image_generate"}
    fox = {"type": "base64", "media_type": "image/png", "data": FOX64}
    owl = {"type": "base64", "media_type": "image/jpeg", "data": OWL64}
    assert sent["messages"][1:] == [
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "At once."},
                {**name, "id": "c1", "input": {"prompt": "a fox"}},
                {**name, "id": "c2", "input": {"input": "not JSON"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "c1",
                    "content": [
                        {"type": "text", "text": "A fox:"},
                        {"type": "image", "source": fox},
                    ],
                },
                {
                    "type": "tool_result",
                    "tool_use_id": "c2",
                    "content": [
                        {"type": "image", "source": owl},
                        {"type": "text", "text": "too dark"},
                    ],
                    "is_error": True,
                },
                {"type": "text", "text": "Thanks."},
            ],
        },
    ]


FOX_BLOB = {"inlineData": {"mimeType": "image/png", "data": FOX64}}
OWL_BLOB = {"inlineData": {"mimeType": "image/jpeg", "data": OWL64}}


def test_gemini_has_them_in_the_responses() -> None:
    sent = body("gemini-generate-content", "gemini-3.8-flash")
    declared = {
        "name": "image_generate",
        "description": "Draw a picture.",
        "parametersJsonSchema": DRAW.schema,
    }
    assert sent["tools"] == [{"functionDeclarations": [declared]}]
    one = {"id": "c1", "name": "image_generate"}
    two = {"id": "c2", "name": "image_generate"}
    assert sent["contents"][1:3] == [
        {
            "role": "model",
            "parts": [
                {"text": "At once."},
                {
                    "functionCall": {**one, "args": {"prompt": "a fox"}},
                    "thoughtSignature": "skip_thought_signature_validator",
                },
                {"functionCall": {**two, "args": {"input": "not JSON"}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {
                    "functionResponse": {
                        **one,
                        "response": {"output": f"A fox:\n[{FOX_NAME}]"},
                        "parts": [FOX_BLOB],
                    }
                },
                {
                    "functionResponse": {
                        **two,
                        "response": {"error": f"[{OWL_NAME}]\ntoo dark"},
                        "parts": [OWL_BLOB],
                    }
                },
            ],
        },
    ]


@pytest.mark.parametrize("model", ["gemini-2.5-flash", "gemini-1.5-pro", "gemma-3-27b-it"])
def test_older_geminis_have_them_beside_the_responses(model: str) -> None:
    sent = body("gemini-generate-content", model)
    name = {"name": "image_generate"}
    assert sent["contents"][1:3] == [
        {
            "role": "model",
            "parts": [
                {"text": "At once."},
                {"functionCall": {**name, "args": {"prompt": "a fox"}}},
                {"functionCall": {**name, "args": {"input": "not JSON"}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {**name, "response": {"output": f"A fox:\n[{FOX_NAME}]"}}},
                {"functionResponse": {**name, "response": {"error": f"[{OWL_NAME}]\ntoo dark"}}},
                {"text": f"{FOX_NAME}, returned by image_generate (c1):"},
                FOX_BLOB,
                {"text": f"{OWL_NAME}, returned by image_generate (c2):"},
                OWL_BLOB | {"mediaResolution": {"level": "MEDIA_RESOLUTION_HIGH"}},
            ],
        },
    ]


FOX_IMAGE = {"image": {"format": "png", "source": {"bytes": FOX64}}}
OWL_IMAGE = {"image": {"format": "jpeg", "source": {"bytes": OWL64}}}


def test_converse_has_them_in_the_results_of_models_that_see_there() -> None:
    sent = body("bedrock-converse", "eu.anthropic.claude-sonnet-5-5-v1:0")
    schema = {"json": DRAW.schema}
    spec = {"name": "image_generate", "description": "Draw a picture.", "inputSchema": schema}
    assert sent["toolConfig"] == {"tools": [{"toolSpec": spec}]}
    use = {"name": "image_generate"}
    assert sent["messages"][1:] == [
        {
            "role": "assistant",
            "content": [
                {"text": "At once."},
                {"toolUse": {**use, "toolUseId": "c1", "input": {"prompt": "a fox"}}},
                {"toolUse": {**use, "toolUseId": "c2", "input": {"input": "not JSON"}}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "toolResult": {
                        "toolUseId": "c1",
                        "content": [{"text": "A fox:"}, FOX_IMAGE],
                        "status": "success",
                    }
                },
                {
                    "toolResult": {
                        "toolUseId": "c2",
                        "content": [OWL_IMAGE, {"text": "too dark"}],
                        "status": "error",
                    }
                },
                {"text": "Thanks."},
            ],
        },
    ]


def test_converse_has_them_beside_the_results_of_other_models() -> None:
    sent = body("bedrock-converse", "meta.llama4-maverick-17b")
    assert sent["messages"][2]["content"] == [
        {
            "toolResult": {
                "toolUseId": "c1",
                "content": [{"text": f"A fox:\n[{FOX_NAME}]"}],
                "status": "success",
            }
        },
        {
            "toolResult": {
                "toolUseId": "c2",
                "content": [{"text": f"[{OWL_NAME}]\ntoo dark"}],
                "status": "error",
            }
        },
        {"text": f"{FOX_NAME}, returned by image_generate (c1):"},
        FOX_IMAGE,
        {"text": f"{OWL_NAME}, returned by image_generate (c2):"},
        OWL_IMAGE,
        {"text": "Thanks."},
    ]


def test_a_conversation_with_calls_lists_the_called_tools() -> None:
    asked = prompt(user(text("x")), call("c1"), output("c1", text("y")))
    sent = json.loads(ALL_WIRES["anthropic-messages"].request("m", asked).body)
    assert sent["tools"] == [{"name": "image_generate", "input_schema": {"type": "object"}}]
    assert sent["tool_choice"] == {"type": "none"}
    sent = json.loads(ALL_WIRES["bedrock-converse"].request("m", asked).body)
    (tool,) = sent["toolConfig"]["tools"]
    assert tool["toolSpec"]["name"] == "image_generate"


@pytest.mark.parametrize(
    ("api", "place"),
    [
        ("anthropic-messages", lambda sent: sent["system"]),
        ("gemini-generate-content", lambda sent: sent["systemInstruction"]["parts"][0]["text"]),
        ("bedrock-converse", lambda sent: sent["system"][0]["text"]),
    ],
)
def test_opening_instructions_join_the_system_prompt_and_later_ones_stay(
    api: str, place: Any
) -> None:
    orders = [
        {"type": "message", "role": role, "content": [text(words)]}
        for role, words in [("developer", "Two."), ("system", "Three."), ("developer", "Four.")]
    ]
    asked = prompt(*orders[:2], user(text("x")), orders[2], instructions="One.")
    sent = json.loads(ALL_WIRES[api].request("m", asked).body)
    assert place(sent) == "One.\n\nTwo.\n\nThree."
    said_later = sent["messages" if "messages" in sent else "contents"]
    assert "Four." in json.dumps(said_later)
    assert {turn["role"] for turn in said_later} == {"user"}


def test_chat_has_a_picture_of_instructions_in_a_message_after_them() -> None:
    order = {"type": "message", "role": "developer", "content": [text("Like this:"), image(FOX)]}
    asked = prompt(order, user(text("x")))
    sent = json.loads(ALL_WIRES["openai-chat"].request("m", asked).body)
    assert sent["messages"][:2] == [
        {"role": "system", "content": f"Like this:\n[{FOX_NAME}]"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": f"{FOX_NAME}:"},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{FOX64}"}},
            ],
        },
    ]


COMMAND = {
    "type": "local_shell_call",
    "id": "ls_1",
    "call_id": "s1",
    "status": "completed",
    "action": {"type": "exec", "command": ["ls", "-l"], "working_directory": "/w"},
    "turn_id": "t",
}
SEARCHES = [
    {"type": "web_search_call", "status": "completed", "action": action}
    for action in (
        {"type": "search", "queries": ["cats", "dogs"]},
        {"type": "open_page", "url": "http://x"},
        {"type": "find_in_page", "url": "http://x", "pattern": "tail"},
        {"type": "other"},
    )
]
GENERATED = {
    "type": "image_generation_call",
    "id": "ig_1",
    "status": "completed",
    "revised_prompt": "a fox",
    "result": f"{HANDLE_URL}{FOX}",
}
FOUND = {"type": "tool_search_output", "call_id": "ts1", "tools": [{"name": "shot"}]}
SUMMARY = {"type": "compaction", "encrypted_content": "zzz"}
PLACE = {"type": "context_compaction", "encrypted_content": "zzzz"}
TOOLS_ADDED = {"type": "additional_tools", "role": "developer", "tools": [{"name": "shot"}]}
TO_AGENT = {
    "type": "agent_message",
    "author": "lead",
    "recipient": "reader",
    "content": [text("Read this.")],
}
EVERY_KIND = [
    user(text("go")),
    COMMAND,
    {"type": "function_call_output", "call_id": "s1", "output": "total 0"},
    *SEARCHES,
    GENERATED,
    {"type": "tool_search_call", "call_id": "ts1", "arguments": {"query": "q"}},
    FOUND,
    TOOLS_ADDED,
    TO_AGENT,
    SUMMARY,
    PLACE,
    {"type": "from_the_future"},
]


def _sent(api: str) -> dict[str, Any]:
    return json.loads(ALL_WIRES[api].request("m", prompt(*EVERY_KIND)).body)


def test_responses_gets_every_kind_that_it_knows_as_it_came() -> None:
    sent = _sent("openai-responses")["input"]
    known = [
        {name: value for name, value in item.items() if name not in ("turn_id",)}
        for item in EVERY_KIND[1:-1]
    ]
    known[0].pop("id")
    known[6] = {**GENERATED, "result": sent[7]["result"]}
    assert sent[1:] == known
    assert sent[7]["result"] == FOX64


def test_other_services_get_the_same_in_words() -> None:
    sent = _sent("openai-chat")["messages"]
    words = json.dumps(sent)
    for said_of in (
        "[command run: ls -l; output: total 0]",
        "[web search: cats, dogs]",
        "[web page opened: http://x]",
        "[searched in the web page http://x for: tail]",
        "[picture generated: a fox]",
        "[tools found: shot]",
        "[tools added: shot]",
        "[message from lead to reader: Read this.]",
    ):
        assert said_of in words
    assert "zzz" not in words
    summaries = ["compaction", "context_compaction"]
    assert left_out(EVERY_KIND, "openai-chat") == [*summaries, "from_the_future"]
    assert left_out(EVERY_KIND, "openai-responses") == ["from_the_future"]


FILE = {"type": "input_image", "file_id": "file-1"}
SEALED = {"type": "encrypted_content", "encrypted_content": "b64"}
NAMED = {"name": "shot", "namespace": "desk"}


def test_responses_gets_files_encrypted_parts_and_namespaces_as_they_came() -> None:
    history = [
        user(FILE),
        {"type": "function_call", "call_id": "c", "arguments": "{}", **NAMED},
        {"type": "function_call_output", "call_id": "c", "output": [text("x"), SEALED], **NAMED},
        {"type": "image_generation_call", "status": "completed", "result": f"{HANDLE_URL}{FOX}"},
        user(text("go")),
    ]
    asked = prompt(*history)
    sent = json.loads(ALL_WIRES["openai-responses"].request("m", asked).body)["input"]
    drawn = {
        "type": "image_generation_call",
        "status": "completed",
        "id": f"ig_{sha256(base64.b64decode(FOX64)).hexdigest()[:32]}",
        "result": FOX64,
    }
    assert sent == [
        {"type": "message", "role": "user", "content": [FILE]},
        *history[1:3],
        drawn,
        history[4],
    ]
    words = ALL_WIRES["openai-chat"].request("m", asked).body.decode()
    assert "[picture in the file file-1 is not shown: only OpenAI can read it]" in words
    assert "[encrypted content is not shown: only OpenAI can read it]" in words
