"""A real Chromium in front of a real studio."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.acceptance.conftest import picture
from tests.servers.components import IS_ALL_REQUIRED, MISSING
from tests.servers.scripted import scripted

from limner.testing.servers.anthropic_server import AnthropicServer
from limner.testing.servers.openai_server import OpenAIServer

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page
    from tests.browser.studio_process import StudioProcess

SHOTS = os.environ.get("LIMNER_SHOTS")
# What a script of a stranger would do, and what the policy of the page reports.
WATCH = """
window.attacked = [];
window.violations = [];
addEventListener("securitypolicyviolation", (event) =>
  window.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
"""


def installed_chromium() -> str | None:
    """The Chromium of the system; None leaves the choice to Playwright."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave these tests out if a component is missing, unless all are required."""
    modules = ("playwright", "starlette", "uvicorn", "websockets")
    missing = [name for name in modules if find_spec(name) is None]
    if missing and not IS_ALL_REQUIRED:
        skip = pytest.mark.skip(reason=MISSING + ", ".join(missing))
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(skip)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for a module: the synchronous API must end before another test runs a loop."""
    from playwright.sync_api import expect, sync_playwright

    # A busy machine is slow.
    expect.set_options(timeout=30_000)
    words = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=installed_chromium(), args=words)
        yield browser
        browser.close()


@pytest.fixture
def drawer() -> Iterator[OpenAIServer]:
    with OpenAIServer(picture(512, 512)) as server:
        yield server


@pytest.fixture
def talker() -> Iterator[Any]:
    with scripted(AnthropicServer)() as server:
        yield server


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[StudioProcess]:
    """A studio that is not started yet."""
    from tests.browser.studio_process import StudioProcess

    made = StudioProcess(tmp_path)
    yield made
    made.stop()


@pytest.fixture
def context(chromium: Browser) -> Iterator[BrowserContext]:
    """A new browser window; nothing of its pages may fail, or break the policy."""
    context = chromium.new_context(viewport={"width": 1280, "height": 800}, locale="en-GB")
    context.set_default_timeout(30_000)
    context.add_init_script(WATCH)
    failures: list[str] = []
    context.on("weberror", lambda failure: failures.append(str(failure.error)))
    yield context
    for page in context.pages:
        if page.url.startswith("http://127.0.0.1"):
            assert page.evaluate("[window.attacked, window.violations]") == [[], []]
    context.close()
    assert failures == []


@pytest.fixture
def page(context: BrowserContext) -> Page:
    return context.new_page()


@pytest.fixture
def shot(request: pytest.FixtureRequest) -> Callable[[Page, str], None]:
    """Keeps a screenshot to look at, if a folder is named."""

    def keep(page: Page, name: str) -> None:
        if SHOTS:
            Path(SHOTS).mkdir(parents=True, exist_ok=True)
            page.screenshot(path=Path(SHOTS, f"{name}.png"))

    return keep
