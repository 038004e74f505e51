"""Questions about pictures on the page: what the model sees, the price, the answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from io import BytesIO

import pytest
from PIL import Image
from tests.acceptance.conftest import Studio, picture
from tests.frontends.studio.test_studio_drawings import until_ended
from tests.frontends.studio.test_studio_pictures import see
from tests.servers.studio_server import RunningStudio, running

from limner.testing.servers.openai_server import OpenAIServer


@pytest.fixture
async def page(studio: Studio) -> AsyncGenerator[RunningStudio]:
    async with studio.open() as lim, running(lim) as server:
        yield server


@pytest.fixture
async def handle(page: RunningStudio) -> str:
    """A picture that is red on the left and blue on the right."""
    taken = await page.http.post("/api/pictures?name=a.png", content=picture(400, 200))
    return taken.json()["handle"]


async def test_the_view_is_what_a_model_gets(page: RunningStudio, handle: str) -> None:
    part = {"x": 300, "y": 50, "width": 60, "height": 40}
    shown = await page.http.get(f"/api/pictures/{handle}/view", params=part)
    with Image.open(BytesIO(shown.content)) as image:
        assert (image.size, image.convert("RGB").getpixel((30, 20))) == ((60, 40), (0, 0, 255))
    model = {"model": "openai/gpt-5.5"}
    facts = (await page.http.get(f"/api/pictures/{handle}/view/facts", params=model)).json()
    assert (facts["model"], facts["width"], facts["height"]) == ("openai/gpt-5.5", 400, 200)
    assert facts["tokens"] > 0
    assert facts["cost_usd"] > 0
    outside = {"x": 500, "y": 0, "width": 60, "height": 40}
    wrong = await page.http.get(f"/api/pictures/{handle}/view", params=outside)
    assert 400 <= wrong.status_code < 500


@pytest.mark.slow
async def test_a_question_to_the_embedded_model_is_free(page: RunningStudio, handle: str) -> None:
    asked = {"handle": handle, "question": "How large is it?", "model": "limner/eyes"}
    quote = (await page.http.post("/api/questions/quote", json=asked)).json()
    assert quote == {"cost_usd": 0.0, "model": "limner/eyes"}
    run = (await page.http.post("/api/questions", json={**asked, "agreed_usd": 0})).json()
    done = await until_ended(page, run["id"])
    assert (done["state"], "400" in done["text"], done["cost_usd"]) == ("done", True, 0)


async def test_a_paid_question_is_quoted_and_never_costs_more_than_agreed(
    studio: Studio, openai: OpenAIServer
) -> None:
    studio.connect(openai)
    async with studio.open() as lim, running(lim) as page:
        asked = {"handle": await see(lim, "a"), "question": "What?", "model": "openai/gpt-5.5"}
        quote = (await page.http.post("/api/questions/quote", json=asked)).json()
        assert quote["cost_usd"] > 0
        run = (await page.http.post("/api/questions", json={**asked, "agreed_usd": 0})).json()
        ended = await until_ended(page, run["id"])
        assert (ended["state"], ended["error"]["code"]) == ("failed", "PRICE_CHANGED")
        assert openai.requests == []
        assert (await lim.spend()).total_nano == 0


async def test_a_path_in_place_of_a_handle_asks_nothing(page: RunningStudio) -> None:
    for name in ("a.png", "/etc/passwd", "0" * 63):
        asked = {"handle": name, "question": "What?", "agreed_usd": 1}
        assert (await page.http.post("/api/questions", json=asked)).status_code == 400
        for end in ("view", "view/facts", "evidence", "differences?other=" + "0" * 64):
            answer = await page.http.get(f"/api/pictures/{name.replace('/', '%2F')}/{end}")
            assert answer.status_code in (400, 404)


async def test_the_differences_of_two_pictures_have_boxes(page: RunningStudio, handle: str) -> None:
    image = Image.open(BytesIO(picture(400, 200)))
    image.paste("white", (100, 60, 140, 100))
    changed = BytesIO()
    image.save(changed, "PNG")
    other = await page.http.post("/api/pictures?name=b.png", content=changed.getvalue())
    query = {"other": other.json()["handle"]}
    found = (await page.http.get(f"/api/pictures/{handle}/differences", params=query)).json()
    (area,) = found["areas"]
    box = area["box"]
    assert (box["x"], box["y"], box["width"], box["height"]) == (100, 60, 40, 40)
    same = (await page.http.get(f"/api/pictures/{handle}/differences?other={handle}")).json()
    assert same["areas"] == []
