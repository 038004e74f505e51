"""Stored pictures as the studio shows them."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from io import BytesIO
from itertools import product
from typing import Any

import pytest
from PIL import Image, PngImagePlugin
from tests.acceptance.conftest import PRICE_NANO, Studio, picture
from tests.servers.studio_server import RunningStudio, running

from limner import Limner, Region
from limner.pictures.gallery import GalleryFilter
from limner.pictures.thumbnails import Thumbnails
from limner.testing.servers.openai_server import OpenAIServer

SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(2)>"


@pytest.fixture
async def page(studio: Studio) -> AsyncGenerator[RunningStudio]:
    async with studio.open() as lim, running(lim) as server:
        yield server


async def draw(lim: Limner, prompt: str, **options: Any) -> str:
    """The handle of a free picture."""
    return (await lim.generate(prompt, provider="illustrator", **options)).image.handle


async def see(lim: Limner, name: str) -> str:
    """The handle of a picture from a file; each name has bytes of its own."""
    file = lim.cwd / name
    file.write_bytes(picture(8, 8) + name.encode())
    return (await lim.take(file)).handle


async def titles(page: RunningStudio, **query: Any) -> list[str]:
    answer = await page.http.get("/api/pictures", params=query)
    assert answer.status_code == 200, answer.text
    return [one["title"] for one in answer.json()["pictures"]]


async def test_the_gallery_lists_what_was_drawn_and_seen_and_changed(page: RunningStudio) -> None:
    drawn = await draw(page.lim, "a red circle", size="64x64")
    file = page.lim.cwd / "seen photo.png"
    file.write_bytes(picture(30, 20))
    await page.lim.take(file)
    await page.lim.transform(drawn, crop=Region(x=0, y=0, width=8, height=8))
    await page.lim.fit(drawn)  # a fit for a model is no picture of its own
    answer = (await page.http.get("/api/pictures")).json()
    listed = [(one["title"], one["kind"], one["width"]) for one in answer["pictures"]]
    assert listed == [
        ("", "changed", 8),
        ("seen photo.png", "seen", 30),
        ("a red circle", "drawn", 64),
    ]
    assert (answer["next"], answer["total"]) == (None, 3)


async def test_the_cost_stands_beside_the_picture(studio: Studio, openai: OpenAIServer) -> None:
    studio.connect(openai)
    async with studio.open() as lim, running(lim) as page:
        paid = await lim.generate("a fox", provider="openai-image")
        await see(lim, "a free fox")
        listed = (await page.http.get("/api/pictures", params={"min_usd": 0.001})).json()
        (one,) = listed["pictures"]
        assert (one["cost_usd"], one["model"]) == (
            PRICE_NANO / 1e9,
            "openai-image/gpt-image-2.5-flare",
        )
        assert one["session"] == lim.session_id
        facts = (await page.http.get(f"/api/pictures/{one['handle']}")).json()
        assert (facts["cost_usd"], facts["lineage"]["prompt"]) == (PRICE_NANO / 1e9, "a fox")
        assert [call["path"] for call in facts["calls"]] == [str(paid.path)]
        assert await titles(page, session=lim.session_id, model=one["model"]) == ["a fox"]
        models = (await page.http.get("/api/gallery")).json()["models"]
        assert {"name": one["model"], "pictures": 1} in models


async def test_a_search_finds_words_of_prompts_and_names(page: RunningStudio) -> None:
    await draw(page.lim, "Ein blauer Drachen über Zürich", output_path="dragon-7.png")
    await see(page.lim, "a red kite")
    assert await titles(page, q="zurich drach") == ["Ein blauer Drachen über Zürich"]
    assert await titles(page, q="dragon") == ["Ein blauer Drachen über Zürich"]
    assert await titles(page, q="kite zurich") == []
    # None of these is a word for SQLite's own language of searches.
    for words in ('"', "* OR *", "NEAR(a b)", "words:x", "-", "(", "a AND", "'; DROP TABLE x"):
        assert await titles(page, q=words) in ([], await titles(page))


async def test_pages_continue_where_the_last_one_ended(page: RunningStudio) -> None:
    for number in range(5):
        await see(page.lim, f"circle {number}")
    first = (await page.http.get("/api/pictures", params={"limit": 2})).json()
    rest = {"limit": 2, "before": first["next"]}
    assert [one["title"] for one in first["pictures"]] == ["circle 4", "circle 3"]
    await see(page.lim, "circle 5")  # what comes later does not move the pages
    assert await titles(page, **rest) == ["circle 2", "circle 1"]
    assert await titles(page, **rest, skip=2) == ["circle 0"]
    assert await titles(page, q="circle", **rest) == ["circle 2", "circle 1"]


async def test_a_thumbnail_is_made_once_and_small(page: RunningStudio) -> None:
    file = page.lim.cwd / "large.png"
    file.write_bytes(picture(1024, 512))
    handle = (await page.lim.take(file)).handle
    answer = await page.http.get(f"/api/pictures/{handle}/thumbnail")
    assert answer.headers["content-type"] == "image/webp"
    assert answer.headers["content-security-policy"] == "default-src 'none'; sandbox"
    with Image.open(BytesIO(answer.content)) as image:
        assert (image.format, image.size) == ("WEBP", (384, 192))
    (kept,) = [file for file in page.lim.home.thumbnails.rglob("*") if file.is_file()]
    kept.write_bytes(b"kept")
    assert (await page.http.get(f"/api/pictures/{handle}/thumbnail")).content == b"kept"


async def test_the_folder_of_thumbnails_is_bounded(studio: Studio) -> None:
    async with studio.open() as lim:
        blobs, folder = lim.components.blobs, lim.home.thumbnails
        size = len(await lim.thumbnails.get(await lim.pictures.recall(await see(lim, "first"))))
        small = Thumbnails(folder, blobs=blobs, imaging=lim.imaging, max_bytes=size * 3)
        for number in range(8):
            await small.get(await lim.pictures.recall(await see(lim, f"{number}")))
        assert 2 <= len([*folder.rglob("*.webp")]) <= 3


async def test_a_file_is_shown_as_a_type_that_cannot_run(page: RunningStudio) -> None:
    handle = await see(page.lim, "<script>")
    shown = await page.http.get(f"/api/pictures/{handle}/file")
    assert shown.headers["content-type"] == "image/png"
    assert shown.headers["x-content-type-options"] == "nosniff"
    assert "content-disposition" not in shown.headers
    saved = await page.http.get(f"/api/pictures/{handle}/file?save=true")
    assert saved.headers["content-disposition"] == f'attachment; filename="{handle[:12]}.png"'
    assert saved.content == await page.lim.picture(handle).bytes()


async def test_an_svg_file_is_shown_as_pixels(studio: Studio) -> None:
    square = '<rect width="9" height="9"/>'
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9">{square}</svg>'
    accept = {"images.accept": ["png", "svg"]}
    async with studio.open(flags=accept) as lim, running(lim) as page:
        (lim.cwd / "a.svg").write_text(svg)
        taken = await lim.take(lim.cwd / "a.svg")
        assert taken.mime == "image/svg+xml"
        shown = await page.http.get(f"/api/pictures/{taken.handle}/file")
        assert shown.headers["content-type"] == "image/png"
        assert shown.content.startswith(b"\x89PNG")
        small = await page.http.get(f"/api/pictures/{taken.handle}/thumbnail")
        assert small.headers["content-type"] == "image/webp"
        saved = await page.http.get(f"/api/pictures/{taken.handle}/file?save=true")
        assert saved.headers["content-disposition"].startswith("attachment; ")


async def test_scripts_in_names_prompts_and_metadata_are_only_text(page: RunningStudio) -> None:
    words = PngImagePlugin.PngInfo()
    words.add_text("Comment", SCRIPT)
    file = page.lim.cwd / "<img src=x onerror=alert(3)>.png"
    image = Image.new("RGB", (8, 8))
    image.save(file, pnginfo=words)
    taken = await page.lim.take(file)
    facts = await page.http.get(f"/api/pictures/{taken.handle}")
    assert facts.headers["content-type"] == "application/json"
    assert facts.json()["metadata"] == [{"keyword": "Comment", "text": SCRIPT}]
    listed = await page.http.get("/api/pictures")
    assert listed.headers["content-type"] == "application/json"
    assert listed.json()["pictures"][0]["title"] == file.name


NO_HANDLES = ["..%2F..%2Fetc%2Fpasswd", "limner.db", "%00", "A" * 64, "0" * 63, "0" * 64, "..", "*"]


async def test_a_path_in_place_of_a_handle_gets_nothing(page: RunningStudio) -> None:
    for name, end in product(NO_HANDLES, ("", "/thumbnail", "/file")):
        answer = await page.http.get(f"/api/pictures/{name}{end}")
        assert answer.status_code in (400, 404)
        assert answer.headers["content-type"] == "application/json"


WRONG_FILTERS = [
    "limit=0",
    "limit=x",
    "limit=99999",
    "before=0",
    "skip=-1",
    "min_usd=nan",
    "day=" + "9" * 999,
]


async def test_a_wrong_filter_is_an_error_that_names_the_field(page: RunningStudio) -> None:
    for query in WRONG_FILTERS:
        answer = await page.http.get(f"/api/pictures?{query}")
        assert answer.status_code == 400
        assert query.partition("=")[0] in answer.json()["error"]["message"]


async def test_a_deleted_picture_leaves_the_gallery(studio: Studio) -> None:
    async with studio.open() as lim:
        file = lim.cwd / "a.png"
        file.write_bytes(picture(8, 8))
        taken = await lim.take(file)
        handles = json.dumps([taken.handle])
        await lim.store.write(lambda tx: tx.run("garbage_drop_pictures", handles=handles))
        found = await lim.gallery.page(GalleryFilter(words="png"), limit=5)
        assert (found.pictures, found.total) == ((), 0)


async def test_the_totals_follow_what_comes_and_goes(page: RunningStudio) -> None:
    handles = [await see(page.lim, f"{number}") for number in range(4)]
    gone = json.dumps(handles[1:2])
    await page.lim.store.write(lambda tx: tx.run("garbage_drop_pictures", handles=gone))
    listed = (await page.http.get("/api/pictures", params={"skip": 1})).json()
    assert (listed["total"], [one["title"] for one in listed["pictures"]]) == (3, ["2", "0"])
    await page.lim.store.write(lambda tx: tx.run("gallery_clear"))
    assert (await page.http.get("/api/pictures")).json()["total"] == 0
    await page.lim.store.write(lambda tx: tx.run("gallery_rebuild"))
    assert await titles(page, q="2") == ["2"]
    assert (await page.http.get("/api/pictures")).json()["total"] == 3
