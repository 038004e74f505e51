"""Stored pictures as the studio shows them."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator
from io import BytesIO
from itertools import count, product
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from PIL import Image, PngImagePlugin
from tests.acceptance.conftest import PRICE_NANO, Studio, picture
from tests.frontends.studio.test_studio_drawings import events, until_ended
from tests.servers.studio_server import RunningStudio, running

from limner import Limner, Region
from limner.pictures.gallery import GalleryFilter
from limner.pictures.thumbnails import Thumbnails
from limner.testing.servers.openai_server import OpenAIServer

SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(2)>"


@pytest.fixture
def studio(tmp_path: Path, database: str | None) -> Studio:
    """A home with its records in either kind of database."""
    return Studio(tmp_path, store=database)


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


async def test_a_search_finds_every_word_with_a_long_beginning(page: RunningStudio) -> None:
    names = ["lantern.png", "Lanterns on a lake.png", "lantern_house.png", "lantérns.png"]
    handles = [await see(page.lim, name) for name in names]
    assert await titles(page, q="LANTERN") == names[::-1]
    assert await titles(page, q="lanterns") == [names[3], names[1]]
    assert await titles(page, q="lantérns") == [names[3], names[1]]
    assert await titles(page, q="lantern_hou") == [names[2]]
    assert await titles(page, q="lantern house lant") == [names[2]]
    assert await titles(page, q="lanternsx") == []
    # So many words begin so that they are no longer asked for one by one.
    await page.lim.gallery.keep_text(handles[0], [f"lantern{number}" for number in range(60)])
    assert await titles(page, q="lantern") == names[::-1]
    assert await titles(page, q="lantern5 png") == [names[0]]


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
    handles = [await see(page.lim, f"apple{number}") for number in range(4)]
    gone = json.dumps(handles[1:2])
    await page.lim.store.write(lambda tx: tx.run("garbage_drop_pictures", handles=gone))
    listed = (await page.http.get("/api/pictures", params={"skip": 1})).json()
    assert (listed["total"], [one["title"] for one in listed["pictures"]]) == (
        3,
        ["apple2", "apple0"],
    )
    await page.lim.store.write(lambda tx: tx.run("gallery_clear"))
    assert (await page.http.get("/api/pictures")).json()["total"] == 0
    await page.lim.store.write(lambda tx: tx.run("gallery_rebuild"))
    assert await titles(page, q="apple2") == ["apple2"]
    assert (await page.http.get("/api/pictures")).json()["total"] == 3


@pytest.mark.slow
async def test_selected_pictures_become_one_sheet_or_one_archive(page: RunningStudio) -> None:
    first = await draw(page.lim, "a red circle / <b>", size="64x64")
    second = await see(page.lim, "b.png")
    chosen = {"handles": [second, first]}
    answer = await page.http.post("/api/exports", json=chosen)
    assert answer.headers["content-disposition"] == 'attachment; filename="limner-pictures.zip"'
    with ZipFile(BytesIO(answer.content)) as archive:
        names = ["001 b png.png", "002 a red circle b.png", "pictures.json"]
        assert archive.namelist() == names
        assert archive.read(names[0]) == await page.lim.picture(second).bytes()
        listed = json.loads(archive.read("pictures.json"))
    assert [(one["file"], one["handle"]) for one in listed] == [
        (names[0], second),
        (names[1], first),
    ]
    run = (await page.http.post("/api/sheets", json=chosen)).json()
    sheet = await until_ended(page, run["id"])
    assert (sheet["state"], sheet["cost_usd"]) == ("done", 0)
    facts = (await page.http.get(f"/api/pictures/{sheet['pictures'][0]}")).json()
    assert facts["lineage"]["parents"] == [second, first]
    assert await titles(page) == ["Contact sheet", "b.png", "a red circle / <b>"]
    for wrong in ([], ["/etc/passwd"], [first] * 101):
        for path in ("exports", "sheets", "deletions"):
            answer = await page.http.post(f"/api/{path}", json={"handles": wrong})
            assert answer.status_code == 400


async def test_a_deleted_picture_is_gone_and_what_it_cost_stays(
    studio: Studio, openai: OpenAIServer
) -> None:
    studio.connect(openai)
    async with studio.open() as lim, running(lim) as page:
        paid = await lim.generate("a fox", provider="openai-image")
        cut = await lim.transform(paid.image.handle, crop=Region(x=0, y=0, width=8, height=8))
        handle = (await page.http.get("/api/pictures?q=fox")).json()["pictures"][0]["handle"]
        await page.http.get(f"/api/pictures/{handle}/thumbnail")
        await lim.fit(handle)
        answer = await page.http.post("/api/deletions", json={"handles": [handle, "0" * 64]})
        assert answer.json()["bytes"] > 0
        assert not paid.path.exists()
        assert [file.stem for file in lim.home.thumbnails.rglob("*.webp")] == []
        assert await titles(page) == [""]
        for path in ("", "/file", "/thumbnail", "/view"):
            gone = await page.http.get(f"/api/pictures/{handle}{path}")
            assert (gone.status_code, gone.json()["error"]["code"]) == (404, "NO_SUCH_PICTURE")
        # What was made from it stays, and knows where it comes from; the bill stays too.
        facts = (await page.http.get(f"/api/pictures/{cut.image.handle}")).json()
        assert facts["ancestors"][-1]["lineage"]["prompt"] == "a fox"
        assert (await lim.spend()).total_nano == PRICE_NANO
        assert (await lim.repairer.scrub(sample=None, tell=lambda *_: None)).missing == ()
        # The same bytes are the same picture, and it is there again.
        await page.http.post("/api/pictures?name=fox.png", content=openai.picture)
        assert await titles(page, q="fox") == ["a fox"]
        assert (await page.http.get(f"/api/pictures/{handle}/file")).content == openai.picture


@pytest.mark.slow
async def test_a_file_that_the_user_changed_or_chose_is_not_deleted(page: RunningStudio) -> None:
    mine = await page.lim.generate("a red ball", provider="illustrator", output_path="mine.png")
    other = await page.lim.generate("a blue ball", provider="illustrator")
    other.path.write_bytes(picture(8, 8))
    for one in (mine, other):
        await page.http.post("/api/deletions", json={"handles": [one.image.handle]})
        assert one.path.exists()
    assert await titles(page) == []


async def test_a_search_finds_text_that_was_drawn_or_read(page: RunningStudio) -> None:
    await page.lim.render('{"type": "bar", "labels": ["Quokka"], "values": [1]}')
    await page.lim.render("flowchart LR\n  A[Wombat] --> B")
    drawn, handle = await titles(page), await see(page.lim, "shot.png")
    fitted = await page.lim.fit(handle, region=Region(x=0, y=0, width=4, height=4))
    assert (await titles(page, q="quokka"), await titles(page, q="wombat")) == (
        [drawn[1]],
        [drawn[0]],
    )
    assert await titles(page, q="invoice") == []
    # A model gets another form of the picture; what is read there is text of the picture.
    form = hashlib.sha256(fitted.data).hexdigest()
    await page.lim.gallery.keep_text(form, ["Invoice 4711"])
    await page.lim.gallery.keep_text(handle, ["Invoice 4711", "total 12.50"])
    await page.lim.gallery.keep_text(form, ["Inv"])
    assert await titles(page, q="invoice total") == ["shot.png"]
    await page.http.post("/api/deletions", json={"handles": [handle]})
    assert await titles(page, q="invoice") == []


@pytest.mark.slow
async def test_the_page_is_told_when_another_process_stores_pictures(studio: Studio) -> None:
    async with studio.open() as lim, running(lim) as page, studio.open() as other:
        await see(lim, "first")
        listening = asyncio.Event()

        async def hear() -> Any:
            async for event in events(page):
                listening.set()
                if event["event"] == "gallery":
                    return event["data"]
            raise AssertionError("the stream ended")

        async with asyncio.TaskGroup() as group:
            told = group.create_task(hear())
            await listening.wait()
            for number in count():
                await see(other, f"{number}")
                # The server looks every two seconds; each look finds more pictures.
                await asyncio.wait({told}, timeout=0.5)
                if told.done():
                    break
        assert told.result() == {}


async def test_a_jump_into_the_list_counts_what_was_deleted(page: RunningStudio) -> None:
    handles = [await see(page.lim, f"{number}") for number in range(12)]
    for number in (1, 5, 6, 8, 11):
        await page.lim.deleter.delete([handles[number]])
    left = ["10", "9", "7", "4", "3", "2", "0"]
    for skip in range(9):
        assert await titles(page, limit=2, skip=skip) == left[skip : skip + 2]
    await see(page.lim, "12")  # it takes the id of the newest one, which was deleted
    assert await titles(page, skip=1) == left
