"""What strangers put into prompts, names, files and answers: nothing of it runs in the browser."""

from __future__ import annotations

import http.server
import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from PIL import Image, PngImagePlugin
from tests.acceptance.conftest import picture
from tests.servers.scripted import says

from limner.testing.servers.openai_server import OpenAIServer

ATTACK = (
    '"><img src=x onerror="attacked.push(1)"><script>attacked.push(2)</script>'
    "<svg onload=attacked.push(3)></svg>[a](javascript:attacked.push(4))![b](http://evil.example/)"
)
SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="60" height="60">'
    '<rect width="60" height="60" fill="red"/></svg>'
)


def attacking_file() -> bytes:
    """A picture with scripts in its text and its EXIF fields."""
    image = Image.new("RGB", (60, 60), "green")
    exif = image.getexif()
    exif[0x010E], exif[0x013B] = ATTACK, ATTACK
    words = PngImagePlugin.PngInfo()
    words.add_text("Comment", ATTACK)
    file = io.BytesIO()
    image.save(file, "PNG", exif=exif, pnginfo=words)
    return file.getvalue()


@pytest.mark.slow
def test_scripts_in_prompts_names_fields_and_answers_are_shown_as_text(
    studio: Any, page: Any, drawer: OpenAIServer, talker: Any
) -> None:
    from playwright.sync_api import expect

    talker.script = [says(ATTACK + "\n\n```html\n" + ATTACK + "\n```\n- " + ATTACK)]
    studio.connect(drawer, talker)
    studio.start()
    handle = studio.add(ATTACK.replace("/", "|") + ".png", attacking_file())
    with studio.api() as api:
        order = {"prompt": ATTACK, "model": "openai-image/gpt-image-2.5-flare", "agreed_usd": 1}
        assert api.post("/api/drawings", json=order).status_code == 200
    page.goto(studio.url)
    expect(page.locator(".cell a")).to_have_count(2)
    drawn = page.locator(".cell a").first.get_attribute("href")
    for path in (f"#/picture/{handle}", drawn):
        page.goto(f"{studio.origin}/{path}")
        expect(page.locator(".picture h1")).to_contain_text("attacked.push(1)")
    page.goto(f"{studio.origin}/#/draw/again/{drawn.rpartition('/')[2]}")
    expect(page.get_by_label("What to draw")).to_have_value(ATTACK)
    page.goto(studio.origin + "/#/money")
    expect(page.locator(".chart")).to_be_visible()
    page.goto(studio.origin + "/#/talk")
    page.get_by_label("Message").fill(ATTACK)
    page.get_by_role("button", name="Send").click()
    log = page.get_by_role("log")
    expect(log.locator("pre code")).to_have_text(ATTACK)
    expect(log.locator(".talk-words")).to_have_text(ATTACK)
    assert log.locator("a, img, script, svg").count() == 0
    # The addresses of the page are no way in either.
    for path in ("talk", "session", "picture", "draw/again", "inspect", "compare"):
        for name in (ATTACK, "%zz", "../../etc/passwd"):
            page.goto(f"{studio.origin}/#/{path}/{name}")
        page.wait_for_load_state("networkidle")
    assert page.evaluate("attacked") == []


@pytest.mark.browser
def test_a_hostile_svg_is_refused_and_a_plain_one_is_sent_as_pixels(studio: Any, page: Any) -> None:
    studio.start()
    page.goto(studio.url)
    with studio.api() as api:
        for inside in ("<script>alert(1)</script>", '<image href="/etc/passwd"/>'):
            bad = SVG.replace("<rect", inside + "<rect").encode()
            assert api.post("/api/pictures?name=a.svg", content=bad).status_code in (400, 422)
        found = api.post("/api/pictures?name=a.svg", content=SVG.encode())
        if found.status_code == 200:
            answer = api.get(f"/api/pictures/{found.json()['handle']}/file")
            assert answer.headers["content-type"] == "image/png"
            assert answer.headers["x-content-type-options"] == "nosniff"
    handle = studio.add("a.png", picture(60, 60))
    opened = page.goto(f"{studio.origin}/api/pictures/{handle}/file")
    assert opened.headers["content-security-policy"] == "default-src 'none'; sandbox"


@contextmanager
def other_origin(body: str) -> Iterator[str]:
    """A page of a stranger on another port of this machine."""

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://localhost:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


TRIES = """async (origin) => {
  const order = { method: "POST", credentials: "include", body: JSON.stringify({prompt: "a fox", agreed_usd: 100}) };
  const tries = {
    read: () => fetch(origin + "/api/pictures", { credentials: "include" }).then((r) => r.status),
    order: () => fetch(origin + "/api/drawings", { ...order, headers: { "content-type": "application/json" } }).then((r) => r.status),
    simple: () => fetch(origin + "/api/drawings", { ...order, mode: "no-cors", headers: { "content-type": "text/plain" } }).then((r) => r.type),
    socket: () => new Promise((resolve) => {
      const socket = new WebSocket(origin.replace("http", "ws") + "/api/conversations/socket");
      socket.onopen = () => resolve("open");
      socket.onerror = () => resolve("refused");
    }),
    picture: () => new Promise((resolve) => {
      const image = new Image();
      image.onload = () => resolve("loaded");
      image.onerror = () => resolve("refused");
      image.src = origin + "/static/icon.svg";
    }),
    frame: () => new Promise((resolve) => {
      const frame = document.createElement("iframe");
      frame.src = origin + "/";
      frame.onload = () => { try { resolve(frame.contentDocument ? "read" : "closed"); } catch { resolve("closed"); } };
      document.body.append(frame);
    }),
  };
  const found = {};
  for (const [name, attempt] of Object.entries(tries)) found[name] = await attempt().catch(() => "refused");
  return found;
}"""  # noqa: E501 - a script


@pytest.mark.slow
def test_a_page_of_another_origin_gets_nothing_though_the_browser_has_the_cookie(
    studio: Any, page: Any, context: Any, drawer: OpenAIServer
) -> None:
    studio.connect(drawer)
    studio.start()
    page.goto(studio.url)
    stranger = context.new_page()
    # `localhost` is another site than 127.0.0.1; another port of 127.0.0.1 is the same site.
    with other_origin("<body>Hello</body>") as address:
        for place in (address, address.replace("localhost", "127.0.0.1")):
            stranger.goto(place)
            assert stranger.evaluate(TRIES, studio.origin) == {
                "read": "refused",
                "order": "refused",
                "simple": "refused",
                "socket": "refused",
                "picture": "refused",
                "frame": "closed",
            }
        stranger.close()
    with studio.api() as api:
        assert api.get("/api/money").json()["recent"] == []
        assert api.get("/api/conversations").json()["conversations"] == []
    assert drawer.requests == []
