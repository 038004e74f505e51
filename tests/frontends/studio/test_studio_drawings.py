"""Pictures that are ordered on the page: the price first, then the picture, then the events."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator
from io import BytesIO
from typing import Any

import pytest
from PIL import Image
from tests.acceptance.conftest import PRICE_NANO, Studio, picture
from tests.servers.studio_server import RunningStudio, running

from limner.testing.servers.openai_server import OpenAIServer, error_reply, read_form

ORDER = {"prompt": "a fox", "model": "openai-image/gpt-image-2.5-flare"}


@pytest.fixture
async def page(studio: Studio, openai: OpenAIServer) -> AsyncGenerator[RunningStudio]:
    studio.connect(openai)
    async with studio.open() as lim, running(lim) as server:
        yield server


async def events(page: RunningStudio, last_id: str | None = None) -> AsyncIterator[dict[str, Any]]:
    """What a page that listens gets; each event has its name, its id and its data."""
    headers = {} if last_id is None else {"last-event-id": last_id}
    async with page.http.stream("GET", "/api/events", headers=headers) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        found: dict[str, Any] = {}
        async for line in answer.aiter_lines():
            name, _, value = line.partition(": ")
            if name in ("event", "id", "data"):
                found[name] = json.loads(value) if name == "data" else value
            elif not line and found:
                yield found
                found = {}


async def until_ended(page: RunningStudio, run_id: str) -> dict[str, Any]:
    """How a run ended."""
    async for event in events(page):
        if event["event"] == "gallery":
            continue  # a picture came, and this stream was the first to look
        known = event["data"] if event["event"] == "runs" else [event["data"]]
        for run in known:
            if run["id"] == run_id and run["state"] != "running":
                return run
    raise AssertionError("the stream ended")


async def test_a_quote_costs_nothing_and_sends_nothing(
    page: RunningStudio, openai: OpenAIServer
) -> None:
    quote = (await page.http.post("/api/quotes", json=ORDER)).json()
    assert (quote["provider"], quote["model"]) == ("openai-image", "gpt-image-2.5-flare")
    assert (quote["width"], quote["height"], quote["exact"]) == (1024, 1024, False)
    assert quote["cost_usd"] >= PRICE_NANO / 1e9
    assert openai.requests == []
    assert (await page.lim.spend()).total_nano == 0


async def test_more_than_the_agreed_price_is_refused_with_the_new_quote(
    page: RunningStudio, openai: OpenAIServer
) -> None:
    answer = await page.http.post("/api/drawings", json={**ORDER, "agreed_usd": 0.001})
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (403, "PRICE_CHANGED")
    assert error["quote"]["cost_usd"] > 0.001
    assert (await page.http.post("/api/drawings", json=ORDER)).status_code == 400
    assert openai.requests == []


@pytest.mark.slow
async def test_an_order_becomes_a_picture_and_is_paid_once(
    page: RunningStudio, openai: OpenAIServer
) -> None:
    quote = (await page.http.post("/api/quotes", json=ORDER)).json()
    order = {**ORDER, "agreed_usd": quote["cost_usd"]}
    run = (await page.http.post("/api/drawings", json=order)).json()
    assert (run["state"], run["title"], run["tool"]) == ("running", "a fox", "image_generate")
    done = await until_ended(page, run["id"])
    assert (done["state"], done["cost_usd"]) == ("done", PRICE_NANO / 1e9)
    (handle,) = done["pictures"]
    listed = (await page.http.get("/api/pictures")).json()["pictures"]
    assert [(one["handle"], one["title"]) for one in listed] == [(handle, "a fox")]
    assert len(openai.requests) == 1
    # A page that lost the stream gets what came after the last event, and nothing twice.
    seen = [event async for event in _first(events(page, "unknown.7"), 1)]
    assert [event["event"] for event in seen] == ["runs"]
    assert [run["state"] for run in seen[0]["data"]] == ["done"]
    server, _, last = seen[0]["id"].partition(".")
    missed = [event async for event in _first(events(page, f"{server}.{int(last) - 1}"), 1)]
    assert [event["event"] for event in missed] == ["done"]


async def _first(found: AsyncIterator[Any], count: int) -> AsyncIterator[Any]:
    async for one in found:
        yield one
        count -= 1
        if not count:
            return


@pytest.mark.slow
async def test_a_failure_says_why_and_what_it_cost(
    page: RunningStudio, openai: OpenAIServer
) -> None:
    openai.script("generate", error_reply(401, "Who?"))
    run = (await page.http.post("/api/drawings", json={**ORDER, "agreed_usd": 1})).json()
    ended = await until_ended(page, run["id"])
    assert (ended["state"], ended["error"]["code"]) == ("failed", "IMAGE_GEN_AUTH")
    assert ended["cost_usd"] == 0


@pytest.mark.slow
async def test_a_picture_is_changed_by_its_handle(
    page: RunningStudio, openai: OpenAIServer
) -> None:
    taken = await page.http.post("/api/pictures?name=a/b/room.png", content=picture(64, 64))
    handle = taken.json()["handle"]
    (listed,) = (await page.http.get("/api/pictures")).json()["pictures"]
    assert (listed["handle"], listed["title"], listed["kind"]) == (handle, "room.png", "seen")
    order = {**ORDER, "prompt": "paint it blue", "image": handle, "agreed_usd": 1}
    run = (await page.http.post("/api/drawings", json=order)).json()
    done = await until_ended(page, run["id"])
    facts = (await page.http.get(f"/api/pictures/{done['pictures'][0]}")).json()
    assert (run["tool"], facts["lineage"]["parents"]) == ("image_edit", [handle])


@pytest.mark.slow
async def test_a_painted_mask_goes_with_the_picture_and_is_recalled(
    page: RunningStudio, openai: OpenAIServer
) -> None:
    taken = await page.http.post("/api/pictures?name=room.png", content=picture(64, 48))
    handle = taken.json()["handle"]
    painted = Image.new("L", (64, 48))
    painted.paste(255, (8, 12, 24, 36))
    data = BytesIO()
    painted.save(data, "PNG")
    answer = await page.http.post(f"/api/pictures/{handle}/masks", content=data.getvalue())
    mask = answer.json()["handle"]
    assert (await page.http.get("/api/pictures")).json()["total"] == 1  # no picture of its own
    order = {**ORDER, "prompt": "a sofa", "image": handle, "mask": mask, "quality": "hd"}
    quote = (await page.http.post("/api/quotes", json=order)).json()
    # Before the mask is sent, the page asks with the region that is painted.
    region = {"x": 8, "y": 12, "width": 16, "height": 24}
    asked = await page.http.post("/api/quotes", json={**order, "mask": None, "region": region})
    assert asked.json() == quote
    started = await page.http.post("/api/drawings", json={**order, "agreed_usd": quote["cost_usd"]})
    done = await until_ended(page, started.json()["id"])
    (sent,) = [part.data for part in read_form(openai.requests[0]).files if part.field == "mask"]
    with Image.open(BytesIO(sent)) as shown:
        scale = shown.width / 64
        marked = shown.convert("RGBA").getchannel("A").point(lambda alpha: 255 - alpha).getbbox()
    assert marked == tuple(round(edge * scale) for edge in (8, 12, 24, 36))
    lineage = (await page.http.get(f"/api/pictures/{done['pictures'][0]}")).json()["lineage"]
    recalled = (lineage["parents"], lineage["mask"], lineage["quality"], lineage["prompt"])
    assert recalled == ([handle], mask, "hd", "a sofa")


async def test_a_path_in_place_of_a_handle_draws_nothing(
    page: RunningStudio, openai: OpenAIServer
) -> None:
    (page.lim.cwd / "room.png").write_bytes(picture(8, 8))
    for field in ("image", "mask", "references"):
        for name in ("room.png", "/etc/passwd", "../room.png", "limner://image/" + "0" * 64):
            value = [name] if field == "references" else name
            wrong = {**ORDER, field: value, "agreed_usd": 1}
            assert (await page.http.post("/api/drawings", json=wrong)).status_code == 400
    for field in ("output_path", "overwrite", "svg"):
        named = {**ORDER, field: "/tmp/x.png"}
        assert (await page.http.post("/api/quotes", json=named)).status_code == 200
    assert openai.requests == []
    assert not [*page.lim.cwd.glob("x*")]


async def test_what_is_no_picture_is_not_taken_in(page: RunningStudio) -> None:
    for data in (b"", b"<script>alert(1)</script>", b"\x89PNG\r\n\x1a\n" + bytes(99)):
        answer = await page.http.post("/api/pictures?name=x.png", content=data)
        assert (answer.status_code, answer.json()["error"]["billed"]) == (422, False)
    assert (await page.http.get("/api/pictures")).json()["total"] == 0


async def test_a_body_that_is_no_json_is_an_error(page: RunningStudio) -> None:
    for body in (b"{", b"[]", b"\xff", b"[" * 5000, b'"a"', b"null"):
        answer = await page.http.post("/api/quotes", content=body)
        assert answer.status_code == 400


async def test_a_preview_is_drawn_and_not_stored(page: RunningStudio) -> None:
    chart = {"source": '{"type": "bar", "labels": ["a"], "values": [1]}', "size": "320x200"}
    shown = await page.http.post("/api/previews", json=chart)
    assert (shown.status_code, shown.headers["content-type"]) == (200, "image/png")
    wrong = await page.http.post("/api/previews", json={"source": '{"type": "nothing"}'})
    assert (wrong.status_code, "nothing" in wrong.json()["error"]["message"]) == (400, True)
    script = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
    refused = await page.http.post("/api/previews", json={"source": script})
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "SVG_REFUSED")
    assert (await page.http.get("/api/pictures")).json()["total"] == 0
    run = (await page.http.post("/api/renderings", json=chart)).json()
    done = await until_ended(page, run["id"])
    assert (done["state"], done["cost_usd"], len(done["pictures"])) == ("done", 0, 1)


async def test_the_models_that_can_be_used_come_first(page: RunningStudio) -> None:
    models = (await page.http.get("/api/models")).json()["models"]
    usable = [one["missing_key"] is None for one in models]
    assert usable == sorted(usable, reverse=True)
    by_name = {one["name"]: one for one in models}
    assert by_name["openai-image/gpt-image-2.5-flare"]["edits"]
    assert by_name["illustrator/limner-illustrator"]["missing_key"] is None


async def test_an_unknown_run_is_not_found(page: RunningStudio) -> None:
    for path in ("/api/runs/0000000000000000/partial", "/api/runs/../partial"):
        assert (await page.http.get(path)).status_code == 404
    assert (await page.http.post("/api/runs/0000000000000000/cancel")).status_code == 404
