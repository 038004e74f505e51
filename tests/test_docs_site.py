"""The documentation site: every page is in a section, and every link leads somewhere."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GUARD_S = 300.0


def built(folder: Path) -> Path:
    """The site, built in a copy of the pages."""
    words = ["--cached", "--others", "--exclude-standard"]
    pages = ["*.md", "*.toml", "docs", "examples", "clients", "scripts", "src/**.py"]
    listed = subprocess.run(
        ["git", "ls-files", *words, "--", *pages],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in listed.stdout.splitlines():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, folder / name)
    for command in (["scripts/docs_site.py"], ["-m", "zensical", "build", "--strict"]):
        done = subprocess.run(
            [sys.executable, *command],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=GUARD_S,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    return folder / "build" / "site"


@pytest.mark.slow
def test_the_site_is_built_without_a_warning_and_asks_no_other_host(tmp_path: Path) -> None:
    pages = list(built(tmp_path).rglob("*.html"))
    assert len(pages) > 90
    for page in pages:
        text = page.read_text(encoding="utf-8")
        fetched = re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=\"?(https?:[^\"> ]+)", text)
        assert fetched == [], page
