"""The process of the studio, and the files of its page."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest
from tests.acceptance.conftest import Studio
from tests.frontends.cli_process import CommandLine
from tests.servers.mcp_process import environment

from limner.frontends.studio.app import STATIC, STATIC_FILES

GUARD_S = 60.0
MAX_PAGE_BYTES = 150_000


def test_the_whole_page_is_small() -> None:
    sizes = [len(gzip.compress((STATIC / name).read_bytes())) for name in STATIC_FILES]
    assert sum(sizes) < MAX_PAGE_BYTES


def test_vendored_files_are_those_that_were_published() -> None:
    vendor = Path(str(STATIC / "vendor"))
    listed = json.loads((vendor / "versions.json").read_text())
    found = {file.name: file for file in vendor.iterdir() if file.suffix in (".js", ".css")}
    assert set(found) == set(listed)
    for name, file in found.items():
        assert hashlib.sha256(file.read_bytes()).hexdigest() == listed[name]["sha256"]


def test_the_page_has_no_inline_script_and_asks_no_other_server() -> None:
    for name in STATIC_FILES:
        if name.startswith("vendor/"):
            continue
        text = (STATIC / name).read_text("utf-8")
        assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=[\"']|javascript:", text), name
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text)
        addresses = re.findall(r"https?://[^\s\"'<>]+", text)
        assert [one for one in addresses if one != "http://www.w3.org/2000/svg"] == [], name


@pytest.mark.slow
def test_the_command_prints_an_address_and_ends_with_its_token(studio: Studio) -> None:
    words = [sys.executable, "-m", "limner", "studio", "--no-open", "--port", "0"]
    place = {"cwd": studio.cwd, "env": environment(studio)}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, **place) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{43}", url)
        assert len([*(studio.home / "tokens").glob("studio-127*")]) == 1
        with pytest.raises(Exception, match="401"):
            urlopen(url.partition("?")[0], timeout=GUARD_S)
        process.send_signal(signal.SIGTERM)
        assert process.wait(GUARD_S) == 0
    assert [file.name for file in (studio.home / "tokens").iterdir()] == ["studio-cookies"]


@pytest.mark.slow
def test_a_port_that_is_taken_or_impossible_is_an_error(cli: CommandLine) -> None:
    for port in ("99999", "-1", "x"):
        done = cli.run("studio", "--no-open", "--port", port, "--json")
        assert (done.status, done.error["code"]) == (2, "USAGE")
