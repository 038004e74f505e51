"""A provider's bytes are the master: kept as they came, whatever is written beside them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from tests.acceptance.conftest import Studio, picture, unlabelled
from tests.acceptance.hardship import limner
from tests.servers.c2pa_signer import GENERATOR, ISSUER, SIGNER, signed

from limner.imaging.formats import OutputFormat
from limner.testing.servers.openai_server import OpenAIServer
from limner.tools.built_in.image_generate import GenerateArguments
from limner.tools.drawing_arguments import CallerOptions

pytestmark = pytest.mark.slow

VALID = {
    "kind": "c2pa",
    "of_original": False,
    "state": "valid",
    "claim_generator": GENERATOR,
    "signer": SIGNER,
    "issuer": ISSUER,
    "signed_at": None,
    "problems": [],
    "ingredients": [],
}


async def drawn(studio: Studio, *words: str) -> dict[str, Any]:
    """What `limner generate --json` says."""
    call = ("generate", "a fox", "--provider", "openai-image", *words)
    status, said = await limner(*call, env=studio.env, cwd=studio.cwd)
    assert status == 0, said
    return said


async def shown(studio: Studio, name: str | Path) -> dict[str, Any]:
    """What `limner show --json` says."""
    status, said = await limner("show", str(name), env=studio.env, cwd=studio.cwd)
    assert status == 0, said
    return said


def forget_the_file(studio: Studio) -> None:
    """As if the process had died between writing the file and noting so."""
    with closing(sqlite3.connect(studio.home / "limner.db")) as database, database:
        database.execute("UPDATE ledger SET path = NULL, owner = 'ended'")


async def test_a_manifest_survives_generate_store_and_show(
    studio: Studio, openai: OpenAIServer
) -> None:
    openai.picture = signed(picture())
    studio.connect(openai)
    said = await drawn(studio)
    path = Path(said["path"])
    assert path.read_bytes() == openai.picture
    assert said["image"] == sha256(openai.picture).hexdigest()
    for name in (path, said["image"]):
        told = await shown(studio, name)
        assert told["provenance"] == VALID
        assert told["metadata"] == []
    kept = Path((await shown(studio, path))["kept_at"])
    assert kept.read_bytes() == openai.picture


async def test_what_is_made_of_a_signed_picture_points_to_the_original(
    studio: Studio, openai: OpenAIServer
) -> None:
    openai.picture = signed(picture())
    studio.connect(openai)
    said = await drawn(studio, "--format", "webp")
    told = await shown(studio, said["path"])
    assert told["provenance"] == {**VALID, "of_original": True}
    (original,) = told["ancestors"]
    assert original["handle"] == sha256(openai.picture).hexdigest()
    assert (await shown(studio, original["handle"]))["provenance"] == VALID


async def test_a_png_says_which_model_made_it_from_which_prompt(
    studio: Studio, openai: OpenAIServer
) -> None:
    studio.connect(openai)
    said = await drawn(studio)
    path = Path(said["path"])
    assert unlabelled(path) == openai.picture
    with Image.open(path) as image:
        assert {key: text for key, text in image.info.items() if "xmp" not in key} == {
            "Software": "limner",
            "Source": "openai-image/gpt-image-2.5-flare",
            "Description": "a fox",
            "limner:handle": sha256(openai.picture).hexdigest(),
        }


@pytest.mark.parametrize("kind", ["png", "jpeg", "webp"])
async def test_every_file_says_that_a_model_made_it_unless_the_settings_forbid_it(
    studio: Studio, openai: OpenAIServer, kind: str
) -> None:
    studio.connect(openai)
    for metadata, is_marked in (("true", True), ("false", False)):
        studio.env["LIMNER_IMAGES_METADATA"] = metadata
        said = await drawn(studio, "--format", kind)
        data = Path(said["path"]).read_bytes()
        assert (b"digitalsourcetype/trainedAlgorithmicMedia" in data) == is_marked


@pytest.mark.parametrize(("to", "suffix"), [("png", ".png"), ("jpeg", ".jpg"), ("webp", ".webp")])
async def test_a_picture_is_saved_in_another_format_and_kept_as_it_came(
    studio: Studio, openai: OpenAIServer, to: OutputFormat, suffix: str
) -> None:
    async with studio.connect(openai).open() as lim:
        arguments = GenerateArguments(prompt="a fox", provider="openai-image")
        (made,) = (await lim.draw(arguments, CallerOptions(output_format=to))).images
        assert (made.path.suffix, made.image.mime) == (suffix, f"image/{to}")
        with Image.open(made.path) as image:
            assert (image.format, image.size) == (to.upper(), (1024, 1024))
        master = await lim.pictures.recall(sha256(openai.picture).hexdigest())
        assert await lim.pictures.original(master) == openai.picture


@pytest.mark.parametrize("to", ["png", "webp"])
@pytest.mark.parametrize("then", ["true", "false"])
async def test_a_file_that_was_written_but_never_noted_is_found_whatever_the_settings_say_now(
    studio: Studio, openai: OpenAIServer, to: str, then: str
) -> None:
    studio.connect(openai)
    said = await drawn(studio, "--format", to)
    files = {path: path.read_bytes() for path in studio.files}
    forget_the_file(studio)
    studio.env["LIMNER_IMAGES_METADATA"] = then
    _, recovered = await limner("jobs", "recover", env=studio.env, cwd=studio.cwd)
    assert [(job["state"], job["path"]) for job in recovered["jobs"]] == [
        ("recovered", said["path"])
    ]
    assert {path: path.read_bytes() for path in studio.files} == files


async def test_a_picture_that_was_never_written_is_written_in_the_format_it_was_ordered_in(
    studio: Studio, openai: OpenAIServer
) -> None:
    studio.connect(openai)
    before = await drawn(studio, "--out", "fox.webp")
    written = (studio.cwd / "fox.webp").read_bytes()
    (studio.cwd / "fox.webp").unlink()
    forget_the_file(studio)
    _, recovered = await limner("jobs", "recover", env=studio.env, cwd=studio.cwd)
    assert [job["path"] for job in recovered["jobs"]] == [before["path"]]
    assert (studio.cwd / "fox.webp").read_bytes() == written


async def test_an_edit_of_a_saved_file_comes_from_the_picture_it_was_saved_from(
    studio: Studio, openai: OpenAIServer
) -> None:
    """The words in the file do not make it another picture."""
    studio.connect(openai)
    first = await drawn(studio)
    with OpenAIServer(picture(1024, 1024, kind="JPEG")) as another:
        studio.connect(another)
        edit = ("edit", first["path"], "make it blurry")
        status, second = await limner(*edit, env=studio.env, cwd=studio.cwd)
    assert status == 0, second
    told = await shown(studio, second["path"])
    master, root = told["ancestors"]
    assert (told["lineage"], master["lineage"]["parents"]) == ({"made": "png"}, [first["image"]])
    assert (root["handle"], root["lineage"]["prompt"]) == (first["image"], "a fox")
    assert (told["cost_usd"], told["calls"][0]["tool"]) == (second["cost_usd"], "image_edit")
    offspring = (await shown(studio, first["image"]))["offspring"]
    assert [one["handle"] for one in offspring] == [master["handle"]]
