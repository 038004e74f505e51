"""Pictures from pictures: `image_edit` with masks and references, over real sockets."""

from __future__ import annotations

import hashlib
import io
import json
import sqlite3
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from tests.acceptance.conftest import Studio, picture
from tests.servers.openai_compatible_servers import AzureServer, LocalAIServer

from limner import ToolCall, ToolResult
from limner.testing.servers.openai_server import OpenAIServer, read_form

pytestmark = pytest.mark.slow

# What each service wants of those who speak OpenAI's language to it.
OTHER_SERVICES: dict[str, dict[str, str]] = {
    "localai": {},
    "azure": {"OPENAI_COMPATIBLE_API_KEY": "test-key-0123456789abcdef"},
}
QUERIES = {"azure": "?api-version=2025-04-01-preview"}
REGION = {"x": 100, "y": 50, "width": 200, "height": 150}


def drawn(width: int = 600, height: int = 400, colour: str = "teal", **how: Any) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (width, height), colour).save(out, "PNG", **how)
    return out.getvalue()


def mask(width: int = 600, height: int = 400, *, way: str = "alpha") -> bytes:
    """What marks a rectangle in the middle, the way one draws it."""
    box = (200, 100, 400, 300)
    if way == "alpha":
        image = Image.new("RGBA", (width, height), "black")
        image.paste((0, 0, 0, 0), box)
    else:
        image = Image.new("L", (width, height), 0)
        image.paste(255, box)
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


@pytest.fixture
def desk(studio: Studio, openai: OpenAIServer) -> Studio:
    put(studio.connect(openai), "photo.png", drawn())
    put(studio, "logo.png", drawn(300, 300, "gold"))
    put(studio, "style.png", drawn(200, 100, "plum"))
    return studio


def put(studio: Studio, name: str, data: bytes) -> Path:
    path = studio.cwd / name
    path.write_bytes(data)
    return path


async def edit(studio: Studio, **arguments: Any) -> ToolResult:
    asked = {"image": "photo.png", "prompt": "a red sofa", **arguments}
    async with studio.open() as lim:
        calls = [ToolCall(name="image_edit", arguments=asked)]
        (result,) = await lim.registry().execute_parallel(calls, studio.context())
        return result


def value(result: ToolResult) -> dict[str, Any]:
    assert result.ok, result
    return json.loads(result.value)


def uploads(server: OpenAIServer) -> list[tuple[str, bytes]]:
    """The files of the one edit that was asked for, by their fields."""
    (seen,) = server.sent("edit")
    return [(part.field, part.data) for part in read_form(seen).files]


def marked(data: bytes) -> tuple[int, int, int, int] | None:
    """The box of what a mask of OpenAI's marks: what is transparent in it."""
    with Image.open(io.BytesIO(data)) as image:
        return image.getchannel("A").point([255] * 128 + [0] * 128).getbbox()


async def test_a_picture_is_changed_and_stays_as_it_is(desk: Studio, openai: OpenAIServer) -> None:
    before = (desk.cwd / "photo.png").read_bytes()
    answer = value(await edit(desk))
    assert Path(answer["path"]).is_file()
    assert (answer["provider"], answer["cost_usd"] > 0) == ("openai-image", True)
    assert uploads(openai) == [("image", before)]
    assert (desk.cwd / "photo.png").read_bytes() == before


async def test_by_default_the_new_picture_has_the_shape_of_the_old(
    desk: Studio, openai: OpenAIServer
) -> None:
    await edit(desk)
    form = read_form(openai.sent("edit")[0])
    width, height = map(int, form.fields["size"].split("x"))
    assert width / height == pytest.approx(600 / 400, rel=0.03)


@pytest.mark.parametrize("service", ["openai", "localai", "azure"])
async def test_a_mask_and_two_references_go_with_the_picture(
    desk: Studio, openai: OpenAIServer, service: str
) -> None:
    put(desk, "mask.png", mask())
    with ExitStack() as open_servers:
        server = openai
        if service != "openai":
            kind = LocalAIServer if service == "localai" else AzureServer
            server = open_servers.enter_context(kind(picture(600, 400)))
            desk.env |= OTHER_SERVICES[service]
            desk.env["OPENAI_COMPATIBLE_BASE_URL"] = server.base_url + QUERIES.get(service, "")
        provider = "openai-image" if service == "openai" else "openai-compatible"
        result = await edit(
            desk, mask="mask.png", references=["logo.png", "style.png"], provider=provider
        )
        assert value(result)["provider"] == provider
        sent = uploads(server)
    assert [field for field, _ in sent] == ["image[]", "image[]", "image[]", "mask"]
    assert [data for _, data in sent[:3]] == [
        (desk.cwd / name).read_bytes() for name in ("photo.png", "logo.png", "style.png")
    ]
    assert marked(sent[3][1]) == (200, 100, 400, 300)


async def test_a_white_mask_is_understood_as_well(desk: Studio, openai: OpenAIServer) -> None:
    put(desk, "mask.png", mask(way="white"))
    await edit(desk, mask="mask.png")
    assert marked(uploads(openai)[-1][1]) == (200, 100, 400, 300)


async def test_a_region_is_a_mask(desk: Studio, openai: OpenAIServer) -> None:
    await edit(desk, region=REGION)
    field, data = uploads(openai)[-1]
    assert (field, marked(data)) == ("mask", (100, 50, 300, 200))


async def test_a_large_source_is_fitted_and_its_mask_with_it(
    desk: Studio, openai: OpenAIServer
) -> None:
    put(desk, "photo.png", drawn(9000, 6000))
    await edit(desk, region={"x": 900, "y": 600, "width": 4500, "height": 3000})
    (_, source), (_, drawn_mask) = uploads(openai)
    with Image.open(io.BytesIO(source)) as image:
        width, height = image.size
    assert max(width, height) < 9000
    with Image.open(io.BytesIO(drawn_mask)) as image:
        assert image.size == (width, height)
    assert marked(drawn_mask) == pytest.approx(
        (width * 0.1, height * 0.1, width * 0.6, height * 0.6), abs=1
    )


async def test_a_handle_is_as_good_as_a_path(desk: Studio, openai: OpenAIServer) -> None:
    first = value(await edit(desk))
    openai.requests.clear()
    await edit(desk, image=first["image"])
    (_, data), *_ = uploads(openai)
    assert hashlib.sha256(data).hexdigest() == first["image"]


async def test_the_lineage_names_the_parents(desk: Studio) -> None:
    answer = value(await edit(desk, references=["logo.png"]))
    parents = [
        hashlib.sha256((desk.cwd / name).read_bytes()).hexdigest()
        for name in ("photo.png", "logo.png")
    ]
    with closing(sqlite3.connect(desk.home / "limner.db")) as connection:
        rows = connection.execute("SELECT lineage FROM pictures").fetchall()
    lineages = [json.loads(row[0]) for row in rows]
    (lineage,) = [one for one in lineages if one.get("prompt") == "a red sofa"]
    assert lineage["parents"] == parents
    assert answer["image"]


async def test_one_that_cannot_is_refused_before_paying_and_names_one_that_can(
    desk: Studio, openai: OpenAIServer
) -> None:
    desk.env["GEMINI_API_KEY"] = "test-key-0123456789"
    result = await edit(desk, region=REGION, references=["logo.png"], provider="gemini-image")
    assert result.domain_code == "PROVIDER_CANNOT"
    assert result.error == "gemini-image/gemini-nano-banana-2.1 takes no mask."
    assert result.hint == "openai-image/gpt-image-2.5-flare can, with OPENAI_API_KEY set."
    assert openai.requests == []


async def test_without_a_key_nobody_can_and_the_error_says_which_to_set(studio: Studio) -> None:
    put(studio, "photo.png", drawn())
    result = await edit(studio)
    assert result.domain_code == "PROVIDER_CANNOT"
    assert result.hint == (
        "Without a key the illustrator crops, rotates, flips, resizes, greys, blurs or cuts out "
        "any picture: say that, or set OPENAI_API_KEY for a model that changes any picture."
    )


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"mask": "logo.png"}, "mask"),
        ({"mask": "photo.png", "region": REGION}, "mask"),
        ({"region": {"x": 500, "y": 0, "width": 200, "height": 10}}, "region"),
        ({"prompt": " "}, "prompt"),
        ({"references": "logo.png"}, "references"),
    ],
)
async def test_what_does_not_fit_together_is_told_before_anything_is_sent(
    desk: Studio, openai: OpenAIServer, arguments: dict[str, Any], field: str
) -> None:
    result = await edit(desk, **arguments)
    assert (result.code, result.field) == ("input_invalid", field)
    assert openai.requests == []


async def test_a_source_out_of_reach_is_denied(desk: Studio, openai: OpenAIServer) -> None:
    result = await edit(desk, references=["/etc/passwd"])
    assert result.domain_code == "PATH_DENIED"
    assert openai.requests == []


async def test_a_source_that_is_no_picture_is_told(desk: Studio, openai: OpenAIServer) -> None:
    put(desk, "notes.png", b"not a picture")
    result = await edit(desk, image="notes.png")
    assert result.domain_code == "IMAGE_UNRECOGNIZED"
    assert openai.requests == []


async def test_variations_are_a_set(desk: Studio, openai: OpenAIServer) -> None:
    answer = value(await edit(desk, n=3))
    assert len(answer["pictures"]) == len(openai.sent("edit")) == 3
