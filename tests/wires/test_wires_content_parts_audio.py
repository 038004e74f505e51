"""Audio in each API's own JSON; and the notes if an API has no format for it."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.wires.vendor_types import assert_legal
from tests.wires.wire_prompts import (
    ALL_WIRES,
    FOX,
    call,
    every_wire,
    image,
    output,
    prompt,
    text,
    user,
)

from limner.errors import InputInvalid
from limner.wires.content_parts import AudioClip, parse_audio_url

WAV = "data:audio/wav;base64,UklGRg=="
MP3 = "data:Audio/MPEG;base64,SUQz"
FILM = "data:video/mp4;base64,AAAA"
NOTE = "an audio clip, returned by image_generate (c1):"


def sound(url: str = WAV) -> dict[str, Any]:
    return {"type": "input_audio", "audio_url": url}


SAID = prompt(user(text("Listen:"), sound(), sound(MP3)), takes_audio=True)
RETURNED = prompt(
    user(text("Record.")),
    call("c1"),
    output("c1", text("Done:"), image(FOX, detail="high"), sound()),
    takes_audio=True,
)


def body(api: str, asked: Any, model: str = "m") -> dict[str, Any]:
    return json.loads(ALL_WIRES[api].request(model, asked).body)


# The vendor's types have no sounds in this API; it is sent what Codex sends.
def test_responses_gets_audio_unchanged_in_messages_and_outputs() -> None:
    (message,) = body("openai-responses", SAID)["input"]
    assert message["content"] == [text("Listen:"), sound(), sound(MP3)]
    returned = body("openai-responses", RETURNED)["input"][2]["output"]
    assert [part["type"] for part in returned] == ["input_text", "input_image", "input_audio"]
    assert (returned[1]["detail"], returned[2]) == ("high", sound())


def test_chat_gets_the_formats_it_has_names_for_and_those_of_tools_after_them() -> None:
    sent = body("openai-chat", SAID)
    assert_legal("openai-chat", sent)
    wav = {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}
    mp3 = {"type": "input_audio", "input_audio": {"data": "SUQz", "format": "mp3"}}
    assert sent["messages"][0]["content"] == [{"type": "text", "text": "Listen:"}, wav, mp3]
    sent = body("openai-chat", RETURNED)
    assert_legal("openai-chat", sent)
    told, shown = sent["messages"][-2:]
    assert told["content"] == f"Done:\n[picture limner://image/{FOX}]\n[an audio clip]"
    assert shown["content"][2:] == [{"type": "text", "text": NOTE}, wav]


@pytest.mark.parametrize("model", ["gemini-2.5-pro", "gemini-4-argon"])
def test_gemini_gets_them_inline_and_those_of_tools_beside_the_output(model: str) -> None:
    wav = {"inlineData": {"mimeType": "audio/wav", "data": "UklGRg=="}}
    mp3 = {"inlineData": {"mimeType": "audio/mp3", "data": "SUQz"}}
    sent = body("gemini-generate-content", SAID, model)
    assert_legal("gemini-generate-content", sent)
    assert sent["contents"][0]["parts"] == [{"text": "Listen:"}, wav, mp3]
    sent = body("gemini-generate-content", RETURNED, model)
    assert_legal("gemini-generate-content", sent)
    assert sent["contents"][-1]["parts"][-2:] == [{"text": NOTE}, wav]


@pytest.mark.parametrize("api", ["anthropic-messages", "bedrock-converse"])
def test_an_api_without_a_format_for_audio_gets_a_note(api: str) -> None:
    words = "[audio is not sent: the service has no format for it]"
    for asked, count in ((SAID, 2), (RETURNED, 1)):
        sent = body(api, asked)
        if api == "anthropic-messages":
            assert_legal(api, sent)
        assert json.dumps(sent).count(words) == count


@every_wire
def test_a_model_that_takes_no_audio_gets_a_note(api: str) -> None:
    sent = json.dumps(body(api, prompt(user(sound(), text("?")))))
    assert "[audio is not sent: this model takes none]" in sent
    assert "UklGRg==" not in sent


@pytest.mark.parametrize("api", ["openai-chat", "gemini-generate-content", "openai-responses"])
def test_a_note_and_no_error_replaces_invalid_audio(api: str) -> None:
    sent = json.dumps(body(api, prompt(user(sound(FILM), sound("https://x")), takes_audio=True)))
    assert sent.count("[audio is not sent: its URL is not a data URL of audio]") == 2


def test_a_note_replaces_audio_of_a_type_that_the_service_does_not_list() -> None:
    asked = prompt(user(sound("data:audio/ogg;base64,T2dnUw==")), takes_audio=True)
    (message,) = body("openai-chat", asked)["messages"]
    assert message["content"][0]["text"] == (
        "[audio is not sent: it is audio/ogg, and the service takes audio/mp3, audio/wav]"
    )


@every_wire
def test_a_note_replaces_audio_in_a_models_own_message(api: str) -> None:
    own = {"role": "assistant", "content": [sound()]}
    sent = json.dumps(body(api, prompt(user(text("Hi")), own, user(text("?")), takes_audio=True)))
    assert "[audio is not sent: a model's own text cannot contain one]" in sent


def test_audio_of_instructions_follows_in_a_users_message() -> None:
    rules = {"type": "message", "role": "developer", "content": [text("Rule."), sound()]}
    sent = body("openai-chat", prompt(rules, user(text("Hi")), takes_audio=True))
    assert sent["messages"][0] == {"role": "system", "content": "Rule.\n[an audio clip]"}
    assert sent["messages"][1]["content"][1]["type"] == "input_audio"


def test_the_output_of_a_command_keeps_its_audio() -> None:
    shell = {
        "type": "local_shell_call",
        "call_id": "s1",
        "status": "completed",
        "action": {"type": "exec", "command": ["rec"]},
    }
    sent = body("openai-responses", prompt(shell, output("s1", sound()), takes_audio=True))
    assert sent["input"][1]["output"] == [sound()]


def test_parameters_of_the_type_stay_and_its_data_is_not_shown() -> None:
    url = "DATA:audio/webm; codecs=opus ;BASE64,AAAA"
    heard = parse_audio_url(url)
    assert (heard.url, heard.mime, heard.base64, heard.size_bytes) == (url, "audio/webm", "AAAA", 3)
    assert repr(heard) == "AudioClip(mime='audio/webm')"


@given(st.text() | st.from_regex(r"data:audio/[a-z]{1,5}(;base64)?,[A-Za-z0-9]{0,9}"))
def test_property_a_url_is_parsed_unchanged_or_refused(url: str) -> None:
    with suppress(InputInvalid):
        heard = parse_audio_url(url)
        assert heard == AudioClip(url=url, mime=heard.mime)
        assert url.endswith(f",{heard.base64}")
