"""Audio in conversations: what is taken in, what is sent, and what it may cost."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.agent.agent_pictures import model, program, text, user

from limner.agent.audio import (
    EMPTY,
    MAX_CLIP_BYTES,
    MAX_SENT_BYTES,
    TOO_LARGE,
    count_unsent,
    find_problem,
    parse_clip,
    read_file,
)
from limner.agent.model_call import PromptCount, PromptSize, measure_history
from limner.client import Limner
from limner.errors import InputInvalid, StorageError
from limner.wires import codex_content
from limner.wires.base import Prompt, Usage
from limner.wires.content_parts import AUDIO_NOT_BASE64, NOT_AUDIO
from limner.wires.items import audio_part

HEARING, DEAF = "google/gemini-4-argon", "openai/gpt-5.5"
WAV = b"RIFF\x04\0\0\0WAVE"
NO_AUDIO = text("[audio is not sent: this model takes none]")
LEFT = text("[audio is not sent: newer clips use up the room]")


def data_url(data: bytes = WAV, mime: str = "audio/wav") -> str:
    return f"data:{mime};base64,{base64.b64encode(data).decode()}"


@pytest.fixture(scope="module")
def lim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Limner]:
    made = program(tmp_path_factory.mktemp("sounds"))
    yield made
    asyncio.run(made.aclose())


# --- in ---

PROBLEMS = {
    "remote": ("https://x/y.wav", NOT_AUDIO),
    "a picture": ("data:image/png;base64,AAAA", NOT_AUDIO),
    "no text": (5, NOT_AUDIO),
    "plain": ("data:audio/wav,AAAA", AUDIO_NOT_BASE64),
    "broken": ("data:audio/wav;base64,A*AA", AUDIO_NOT_BASE64),
    "empty": ("data:audio/wav;base64,", EMPTY),
    "one byte too large": (data_url(bytes(MAX_CLIP_BYTES + 1)), TOO_LARGE),
    "far too large": ("data:audio/wav;base64," + "*" * 2 * MAX_CLIP_BYTES, TOO_LARGE),
}


@pytest.mark.parametrize(("url", "problem"), PROBLEMS.values(), ids=PROBLEMS)
async def test_a_note_and_a_warning_replace_invalid_audio(
    lim: Limner, url: Any, problem: str
) -> None:
    entered = await lim.ingress.items(
        [user(text("a"), audio_part(url), audio_part(data_url()))], source="me"
    )
    omitted = text(f"[audio omitted: {problem}]")
    assert entered.items == (user(text("a"), omitted, audio_part(data_url())),)
    assert entered.warnings == (f"An audio clip from me was left out: {problem}.",)


async def test_audio_of_other_protocols_is_checked_too(lim: Limner) -> None:
    sent = [{"type": "inputAudio", "audioUrl": url} for url in (data_url(), "https://x")]
    entered = await lim.ingress.contents(codex_content.read(sent), source="me")
    assert entered.items == (audio_part(data_url()), text(f"[audio omitted: {NOT_AUDIO}]"))
    assert entered.warnings == (f"An audio clip from me was left out: {NOT_AUDIO}.",)


def test_the_largest_clip_is_taken() -> None:
    assert find_problem(data_url(bytes(MAX_CLIP_BYTES))) is None


@given(st.binary(min_size=1, max_size=99))
def test_property_the_size_of_a_clip_is_that_of_its_data(data: bytes) -> None:
    assert find_problem(data_url(data)) is None
    clip = parse_clip(audio_part(data_url(data)))
    assert clip is not None
    assert 0 <= clip.size_bytes - len(data) <= 2


FILES = {
    "wav": (WAV, "audio/wav"),
    "aiff": (b"FORM\0\0\0\x04AIFF", "audio/aiff"),
    "tagged mp3": (b"ID3\x04", "audio/mpeg"),
    "mp3": (b"\xff\xfb\x90", "audio/mpeg"),
    "aac": (b"\xff\xf1\x50", "audio/aac"),
    "ogg": (b"OggS\0", "audio/ogg"),
    "flac": (b"fLaC\0", "audio/flac"),
}


@pytest.mark.parametrize(("data", "mime"), FILES.values(), ids=FILES)
def test_the_first_bytes_of_a_file_decide_its_type(data: bytes, mime: str, tmp_path: Path) -> None:
    path = tmp_path.resolve() / "sound.txt"
    path.write_bytes(data)
    assert read_file(path) == data_url(data, mime)


@pytest.mark.parametrize("data", [b"", b"root:x:0:0", b"RIFF\0\0\0\0WEBP"])
def test_a_file_that_is_not_audio_is_refused(data: bytes, tmp_path: Path) -> None:
    path = tmp_path.resolve() / "secret.wav"
    path.write_bytes(data)
    with pytest.raises(InputInvalid, match="match no known audio format"):
        read_file(path)


async def test_a_file_that_is_too_large_or_not_there_is_refused(
    lim: Limner, tmp_path: Path
) -> None:
    path = tmp_path.resolve() / "long.wav"
    path.write_bytes(WAV + bytes(MAX_CLIP_BYTES))
    with pytest.raises(InputInvalid, match="it is larger than 4,000,000 bytes"):
        await lim.read_audio(path)
    with pytest.raises(StorageError, match="Could not read"):
        await lim.read_audio(tmp_path / "missing.wav")


# --- out ---


async def test_a_model_that_takes_audio_gets_it_and_another_a_note(lim: Limner) -> None:
    items = [user(text("a"), audio_part(data_url()))]
    heard = await lim.prompts.build(Prompt(items=items), model(lim, HEARING))
    assert (heard.prompt.items, heard.prompt.takes_audio) == (items, True)
    deaf = await lim.prompts.build(Prompt(items=items), model(lim, DEAF))
    assert deaf.prompt.items == [user(text("a"), NO_AUDIO)]
    assert deaf.prompt.takes_audio is False


async def test_the_newest_clips_are_sent_if_there_is_no_room_for_all(lim: Limner) -> None:
    large = audio_part(data_url(bytes(MAX_CLIP_BYTES)))
    small = audio_part(data_url())
    items = [user(small, large), user(large), user(text("x")), user(large, large), user(small)]
    built = await lim.prompts.build(Prompt(items=items), model(lim, HEARING))
    sent = built.prompt.items
    assert sent[:2] == [user(LEFT, LEFT), user(large)]
    assert sent[2:] == items[2:]
    assert sum(clip.size_bytes for clip in built.clips) <= MAX_SENT_BYTES
    again = await lim.prompts.build(Prompt(items=sent), model(lim, HEARING))
    assert (again.prompt.items, again.clips) == (sent, built.clips)


@pytest.mark.parametrize("takes_audio", [True, False])
def test_a_conversation_without_audio_leaves_none_out(takes_audio: bool) -> None:
    assert count_unsent([], takes_audio=takes_audio) == 0


# --- what it counts ---


def test_a_clip_counts_by_its_length_and_not_as_text() -> None:
    words = Prompt(items=[user(audio_part("")), user(text("a"))])
    heard = Prompt(items=[user(audio_part(data_url(bytes(48_000)))), user(text("a"))])
    without, size = measure_history(words), measure_history(heard)
    assert size == PromptSize(size_bytes=without.size_bytes, picture_tokens=0, audio_bytes=48_000)
    assert size.max_tokens - without.max_tokens == 3_000
    assert size.expected_tokens - without.expected_tokens == 96


@given(*(st.integers(0, 10**7) for _ in range(6)))
def test_property_a_longer_prompt_counts_what_was_added_and_a_shorter_one_anew(
    size: int, pictures: int, sounds: int, more: int, shown: int, played: int
) -> None:
    usage = Usage(input_tokens=7, output_tokens=1)
    before = PromptSize(size_bytes=size, picture_tokens=pictures, audio_bytes=sounds)
    prompt_count = PromptCount(model="m", size=before, usage=usage)
    longer = PromptSize(
        size_bytes=size + more, picture_tokens=pictures + shown, audio_bytes=sounds + played
    )
    assert prompt_count.max_tokens(longer) == 7 + more + shown + -(-played // 16)
    assert prompt_count.expected_tokens(longer) == 7 + more // 3 + shown + played // 500
    shorter = replace(before, audio_bytes=sounds - 1)
    assert prompt_count.max_tokens(shorter) == shorter.max_tokens
