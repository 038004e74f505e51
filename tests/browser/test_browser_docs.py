"""Every page of the documentation site in a real browser, on a desk and on a phone."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag

import pytest
from tests.test_docs_site import built

SIZES = {"desk": (1280, 800), "phone": (390, 844)}
# What a reader would dislike: text beyond the edge, missing pictures, Markdown as text.
LOOK = """() => {
  const width = document.documentElement.clientWidth;
  const scrolls = (one) => one && (getComputedStyle(one).overflowX !== "visible"
    || scrolls(one.parentElement));
  const inside = [...document.querySelectorAll("article *")];
  const text = document.querySelector("article").innerText;
  return {
    wide: inside.filter((one) => one.getBoundingClientRect().right > width + 1
      && !scrolls(one.parentElement)).map((one) => one.outerHTML.slice(0, 80)),
    scroll: document.documentElement.scrollWidth - width > 0,
    squeezed: inside.filter((one) => one.matches("td.sentence")
      && one.closest("table").offsetWidth > one.closest("article").clientWidth)
      .map((one) => one.textContent.slice(0, 80)),
    missing: inside.filter((one) => one.matches("img") && !(one.complete && one.naturalWidth))
      .map((one) => one.src),
    headings: document.querySelectorAll("h1").length,
    fences: text.includes("```"),
  };
}"""
GOOD = {
    "wide": [],
    "scroll": False,
    "squeezed": [],
    "missing": [],
    "headings": 1,
    "fences": False,
}
LINKS = """() => [
  [...document.querySelectorAll("a[href]")].map((one) => one.href),
  [...document.querySelectorAll("[id]")].map((one) => one.id),
]"""


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves files and logs nothing."""

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a server of the files of a folder."""
    handler = functools.partial(QuietHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.mark.browser
@pytest.mark.timeout(1800)
def test_every_page_of_the_site_fits_a_desk_and_a_phone_and_every_link_leads_somewhere(
    context: Any, tmp_path: Path, shot: Callable[[Any, str], None]
) -> None:
    site = built(tmp_path)
    names = sorted(str(page.relative_to(site)) for page in site.rglob("*.html"))
    problems: list[str] = []
    links: dict[str, set[str]] = {}
    anchors: dict[str, set[str]] = {}
    with served(site) as address:
        page = context.new_page()
        page.on("request", lambda sent: _own(sent.url, address) or problems.append(sent.url))
        page.on("console", lambda said: said.type == "error" and problems.append(said.text))
        for size, (width, height) in SIZES.items():
            page.set_viewport_size({"width": width, "height": height})
            for name in names:
                page.goto(f"{address}{name}")
                seen = page.evaluate(LOOK)
                if seen != GOOD:
                    problems.append(f"{name} ({size}): {seen}")
                shot(page, f"docs-{size}-{name.replace('/', '-')}")
                hrefs, ids = page.evaluate(LINKS)
                links[name] = {href for href in hrefs if href.startswith(address)}
                anchors[f"{address}{name}"] = {*ids, ""}
    anchors[address] = anchors[f"{address}index.html"]
    for name, hrefs in links.items():
        for href in hrefs:
            target, anchor = urldefrag(href)
            if unquote(anchor) not in anchors.get(target, ()):
                problems.append(f"{name} links to {href}")
    assert problems == []


def _own(url: str, address: str) -> bool:
    return url.startswith((address, "data:", "blob:"))
