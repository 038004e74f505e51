"""Every form of a picture is taken by every call that takes one."""

from __future__ import annotations

import base64
import inspect
import io
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import limner
from limner import Limner, Picture, Settings, StoredPicture, blocking
from limner.blocking import BlockingPicture
from limner.errors import ImageError, InputInvalid, NotFound, UserError
from limner.tools.image_input import resolve_image
from limner.wires.base import HANDLE_URL


def _png() -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (6, 4), "red").save(file, "PNG")
    return file.getvalue()


PNG = _png()
EYES = "limner/eyes"


@pytest.fixture
async def lim(tmp_path: Path) -> AsyncIterator[Limner]:
    settings = Settings(home=tmp_path / "home")
    async with Limner(settings, env={"HOME": str(tmp_path)}, cwd=tmp_path) as limner_object:
        yield limner_object


Form = Callable[[Path, Picture], Any]

FORMS: dict[str, Form] = {
    "path text": lambda file, _: str(file),
    "relative path": lambda file, _: file.name,
    "Path": lambda file, _: file,
    "bytes": lambda *_: PNG,
    "bytearray": lambda *_: bytearray(PNG),
    "memoryview": lambda *_: memoryview(PNG),
    "file in memory": lambda *_: io.BytesIO(PNG),
    "handle": lambda _, picture: picture.handle,
    "handle URL": lambda _, picture: f"{HANDLE_URL}{picture.handle}",
    "Picture": lambda _, picture: picture,
    "data URL": lambda *_: f"data:image/png;base64,{base64.b64encode(PNG).decode()}",
    "Pillow image": lambda *_: Image.open(io.BytesIO(PNG)),
}


@pytest.mark.parametrize("form", FORMS)
async def test_inspect_edit_fit_and_take_accept_each_form(
    lim: Limner, tmp_path: Path, form: str
) -> None:
    file = tmp_path / "red.png"
    file.write_bytes(PNG)
    picture = await lim.take(PNG)
    seen = await lim.inspect(FORMS[form](file, picture), "Which colour is it?", model=EYES)
    assert "red" in seen.text
    fitted = await lim.fit(FORMS[form](file, picture), model=EYES)
    assert (fitted.width, fitted.height, fitted.model) == (6, 4, EYES)
    taken = await lim.take(FORMS[form](file, picture))
    assert (taken.width, taken.height, taken.mime) == (6, 4, "image/png")
    # Without a key no model edits: the picture is read before that is known.
    with pytest.raises(UserError) as refused:
        await lim.edit(
            FORMS[form](file, picture), "make it blue", references=[FORMS[form](file, picture)]
        )
    assert refused.value.code == "PROVIDER_CANNOT"


async def test_the_result_of_a_call_is_a_picture_for_the_next(lim: Limner) -> None:
    drawn = await lim.generate("a red square", size="512x512")
    seen = await lim.inspect(drawn, "How large is it?", paths=[drawn.image], model=EYES)
    assert seen.details["image"] == drawn.image.handle
    assert (await lim.fit(drawn)).width == 512
    assert await lim.picture(drawn).bytes() == await lim.picture(drawn.image.handle).bytes()


@pytest.mark.parametrize(
    ("bad", "kind", "words"),
    [
        (b"x" * 140_000, ImageError, "the given bytes (136.7KB): the first bytes match no known"),
        (io.BytesIO(b""), ImageError, "a BytesIO: the file is empty"),
        ("data:image/png;base64,%%%", ImageError, "a data URL of 25B: the file is empty"),
        ("A" * 140_000, InputInvalid, "the path is too long"),
        ("gone.png", NotFound, "it does not exist"),
        ("0" * 64, NotFound, "is stored here"),
        (io.StringIO("words"), InputInvalid, "the picture's file is open as text"),
        (7, TypeError, "int is not a picture: give a path"),
    ],
)
async def test_an_error_describes_the_picture_and_never_contains_it(
    lim: Limner, bad: Any, kind: type[Exception], words: str
) -> None:
    for call in (lim.fit(bad), lim.inspect(bad, "What is it?", model=EYES), lim.edit(bad, "blue")):
        if isinstance(bad, io.IOBase):
            bad.seek(0)
        with pytest.raises(kind) as caught:
            await call
        assert words in str(caught.value)
        assert len(str(caught.value)) < 500


async def test_a_path_object_is_never_a_handle(lim: Limner, tmp_path: Path) -> None:
    (tmp_path / "deadbeef").write_bytes(PNG)
    found = await resolve_image(Path("deadbeef"), pictures=lim.pictures, source="test")
    assert found == "./deadbeef"
    assert (await lim.take(Path("deadbeef"))).width == 6


async def test_a_stored_picture_has_its_bytes_its_file_its_fit_and_its_facts(lim: Limner) -> None:
    taken = await lim.take(PNG)
    picture = lim.picture(taken.handle)
    assert (await picture.bytes(), picture.path.read_bytes()) == (PNG, PNG)
    assert (await picture.fit(model=EYES)).mime == "image/png"
    info = await picture.info()
    assert (info.mime, info.width, info.height, info.kept_at) == ("image/png", 6, 4, picture.path)
    assert repr(picture) == f"StoredPicture({taken.handle!r})"
    with pytest.raises(InputInvalid, match="is not a picture handle"):
        lim.picture("red.png")
    with pytest.raises(NotFound):
        await lim.picture("0" * 64).bytes()


def _public(kind: type) -> dict[str, Any]:
    return {
        name: one for name, one in vars(kind).items() if not name.startswith("_") and callable(one)
    }


def test_calls_without_async_have_the_names_parameters_and_results_of_the_async_ones() -> None:
    calls = ["edit", "fit", "generate", "inspect", "quote", "spend", "take"]
    for name in calls:
        sync, original = getattr(blocking, name), getattr(Limner, name)
        whole = inspect.signature(original)
        without_self = [one for one in whole.parameters.values() if one.name != "self"]
        assert inspect.signature(sync) == whole.replace(parameters=without_self), name
        assert getattr(limner, name) is sync
    twins = {name: inspect.signature(one) for name, one in _public(BlockingPicture).items()}
    assert twins == {name: inspect.signature(one) for name, one in _public(StoredPicture).items()}


@pytest.mark.parametrize("name", ["edit", "fit", "generate", "inspect", "quote"])
def test_a_keyword_that_does_not_exist_is_a_type_error_on_every_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("LIMNER_HOME", str(tmp_path / "home"))
    given = ["a", "b"][: 2 if name in ("edit", "inspect") else 1]
    with pytest.raises(TypeError, match=r"\(\) got an unexpected keyword argument 'sise'"):
        getattr(limner, name)(*given, sise=1)
    assert list(tmp_path.iterdir()) == []


async def test_a_quote_of_two_is_the_price_of_two(lim: Limner, tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "OPENAI_API_KEY": "sk-none"}
    async with Limner(Settings(home=tmp_path / "home"), env=env, cwd=tmp_path) as paying:
        one = await paying.quote("a fox", provider="openai-image")
        two = await paying.quote("a fox", provider="openai-image", n=2)
    assert (one.n, two.n) == (1, 2)
    assert two.cost_usd == pytest.approx(2 * one.cost_usd) != 0


async def test_spend_says_what_this_object_and_everything_has_cost(
    lim: Limner, tmp_path: Path
) -> None:
    await lim.money.record_cost(2_000_000, "table", session_id="a", tool="t")
    async with Limner(Settings(home=tmp_path / "home"), env={}, cwd=tmp_path) as other:
        await other.money.record_cost(3_000_000, "table", session_id="b", tool="t")
    spend = await lim.spend()
    assert (spend.own_usd, spend.total_usd) == (0.002, 0.005)
    sessions = {line.name: line.cost_usd for line in spend.by_session}
    assert sessions == {"a": 0.002, "b": 0.003}


async def test_an_unknown_fallback_is_refused_before_anything_is_drawn(lim: Limner) -> None:
    with pytest.raises(InputInvalid) as refused:
        await lim.generate("a fox", size="64x64", fallback=("fal", "replicat"))
    assert refused.value.message.startswith("there is no provider 'replicat'; there are auto, ")
    assert (refused.value.field, refused.value.hint) == ("fallback", "Did you mean 'replicate'?")
    assert (await lim.spend()).total_usd == 0
    assert not [*lim.cwd.rglob("*.png")]


async def test_one_name_is_a_list_of_one(lim: Limner) -> None:
    (lim.cwd / "red.png").write_bytes(PNG)
    drawn = await lim.generate("a fox", size="64x64", fallback="fal")
    found = await lim.inspect(drawn, "What is it?", paths="red.png", model=EYES)
    assert isinstance(images := found.details["images"], list)
    assert len(images) == 2  # pyright: ignore[reportUnknownArgumentType] - JSON
