"""No error shows the bytes of a picture, whatever a caller passes and wherever."""

from __future__ import annotations

import asyncio
import base64
import io
import random
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limner.client import Limner
from limner.errors import LimnerError
from limner.testing import FakeServices
from limner.testing.sample_pictures import make_png

Call = Callable[[Limner, Any], Awaitable[object]]

HEAD = make_png(8, 8, pixel=b"\x01\x02\x03\xff")[:-20]
# No error needs to show more of a value than this.
MAX_CHARS = 1_500
PIECE = 24

CALLS: dict[str, Call] = {
    "inspect": lambda lim, it: lim.inspect(it, "What is it?"),
    "inspect paths": lambda lim, it: lim.inspect("none.png", "What is it?", paths=[it]),
    "question": lambda lim, it: lim.inspect("none.png", it),
    "edit": lambda lim, it: lim.edit(it, "bluer"),
    "edit prompt": lambda lim, it: lim.edit("none.png", it),
    "mask": lambda lim, it: lim.edit("none.png", "bluer", mask=it),
    "references": lambda lim, it: lim.edit("none.png", "bluer", references=[it]),
    "fit": lambda lim, it: lim.fit(it),
    "fit model": lambda lim, it: lim.fit("none.png", model=it),
    "generate": lambda lim, it: lim.generate(it, output_path="/proc/no.png"),
    "output": lambda lim, it: lim.generate("a fox", output_path=it),
    "size": lambda lim, it: lim.generate("a fox", size=it),
    "provider": lambda lim, it: lim.generate("a fox", provider=it),
    "model": lambda lim, it: lim.generate("a fox", model=it),
    "svg": lambda lim, it: lim.generate("a fox", svg=it),
    "quote": lambda lim, it: lim.quote("a fox", size=it),
    "import": lambda lim, it: lim.import_session(it),
    "delete": lambda lim, it: lim.delete_session(it),
    "sound": lambda lim, it: lim.read_audio(it),
}
FORMS: dict[str, Callable[[bytes], Any]] = {
    "bytes": bytes,
    "bytearray": bytearray,
    "memoryview": memoryview,
    "file": io.BytesIO,
    "text": lambda data: data.decode("latin-1"),
    "base64": lambda data: base64.b64encode(data).decode(),
    "data URL": lambda data: f"data:image/png;base64,{base64.b64encode(data).decode()}",
}


def shown(error: BaseException) -> str:
    """Everything that a program may print or log of an error, with its causes."""
    words = [str(error), repr(error)]
    if isinstance(error, LimnerError):
        words += [repr(error.as_json()), str(error.hint), repr(error.extras)]
    cause = error.__cause__
    if cause is not None and cause is not error:
        words.append(shown(cause))
    return "\n".join(words)


def leaks(text: str, data: bytes) -> list[str]:
    """The pieces of bytes that a text contains, in any form in which it could show them."""
    middle = data[len(data) // 2 :][:600]
    forms = (
        repr(middle)[2:-1],
        repr(middle.decode("latin-1"))[1:-1],
        base64.b64encode(data)[len(data) // 2 :][:400].decode(),
        middle.hex(),
    )
    return [
        form[at : at + PIECE]
        for form in forms
        for at in range(0, len(form) - PIECE, PIECE)
        if form[at : at + PIECE] in text
    ]


async def problem(call: Call, lim: Limner, given_value: Any) -> BaseException | None:
    try:
        await call(lim, given_value)
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize("call", CALLS)
async def test_no_error_of_a_call_shows_the_bytes_it_was_given(
    call: str, limner_fake: FakeServices
) -> None:
    data = HEAD + random.Random(7).randbytes(3_000)
    async with limner_fake.limner() as lim:
        for form, make in FORMS.items():
            error = await problem(CALLS[call], lim, make(data))
            if error is not None:
                text = shown(error)
                assert leaks(text, data) == [], (form, text[:500])
                assert len(str(error)) <= MAX_CHARS, (form, str(error)[:500])


@pytest.mark.slow
@given(
    # A shorter text could be a path, which errors show up to 400 characters.
    size=st.integers(min_value=1_000, max_value=2_000),
    seed=st.integers(min_value=0),
    form=st.sampled_from(sorted(FORMS)),
    call=st.sampled_from(sorted(CALLS)),
)
def test_property_no_error_shows_any_bytes(size: int, seed: int, form: str, call: str) -> None:
    data = HEAD + random.Random(seed).randbytes(size)
    with tempfile.TemporaryDirectory() as folder:
        env = {"LIMNER_HOME": folder, "LIMNER_IMAGES_EMBEDDED": "false"}
        error = asyncio.run(_problem_of_new(call, FORMS[form](data), env, Path(folder)))
    assert error is not None
    assert leaks(shown(error), data) == []
    assert len(str(error)) <= MAX_CHARS


async def _problem_of_new(
    call: str, given_value: Any, env: dict[str, str], cwd: Path
) -> BaseException | None:
    async with Limner(env=env, cwd=cwd) as lim:
        return await problem(CALLS[call], lim, given_value)
