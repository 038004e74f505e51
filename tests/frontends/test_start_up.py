"""What a command loads before it answers. A start takes as long as the modules that it loads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from limner.frontends.cli import app_server
from limner.frontends.cli.parser import Parser

# The modules of limner that were needed when this was written: 39 for the answer to `initialize`,
# 76 for a quote.
MAX_MODULES, MAX_QUOTE_MODULES = 39, 76
HELLO = '{"id":0,"method":"initialize","params":{"clientInfo":{"name":"test","version":"1"}}}\n'


def test_initialize_is_answered_with_few_modules(tmp_path: Path) -> None:
    loaded = _modules(
        "import limner.frontends.cli.app_server, limner.frontends.appserver.handshake", tmp_path
    )
    needless = {"hashlib", "httpx2", "json", "shutil", "sqlite3"}
    assert needless & loaded == set()
    own = {name for name in loaded if name.startswith("limner.")}
    assert "limner.frontends.appserver.protocol.threads" not in own
    assert len(own) <= MAX_MODULES, sorted(own)


def test_a_server_without_options_greets_with_no_parser_and_no_module_that_it_does_not_use(
    tmp_path: Path,
) -> None:
    loaded, answer = _imports(["app-server"], tmp_path, told=HELLO)
    assert answer.startswith('{"id":0,"result":')
    needless = {"_hashlib", "_json", "_locale", "_sqlite3", "_ssl", "argparse", "ast", "binascii"}
    needless |= {"limner.frontends.json_log", "limner.metrics", "nt"}
    assert needless & loaded == set()


def test_a_quote_uses_neither_an_event_loop_nor_tls_nor_a_database_nor_a_hash(
    tmp_path: Path,
) -> None:
    loaded, answer = _imports(["generate", "a robot", "--dry-run"], tmp_path)
    assert answer == "$0.00\n"
    needless = {"_hashlib", "_json", "_socket", "_sqlite3", "_ssl", "ast", "asyncio.events"}
    needless |= {"concurrent.futures._base", "dis", "linecache", "nt", "string", "weakref"}
    needless |= {"limner.imaging.pool", "limner.pictures.take", "limner.storage.store"}
    assert needless & loaded == set()


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ([], None),
        (["--out", "robot.webp"], "robot.webp"),
        (["--out", "new/folder/robot.png", "--count", "2"], "new/folder/robot.png"),
    ],
)
def test_a_quote_says_the_same_with_and_without_an_event_loop(
    tmp_path: Path, words: list[str], shown: str | None
) -> None:
    _, answer = _imports(["generate", "a robot", "--dry-run", "--json", *words], tmp_path)
    assert json.loads(answer) == {
        "cost_usd": 0.0,
        "exact": True,
        "cost_source": "table",
        "provider": "illustrator",
        "model": "limner-illustrator",
        "dimensions": {"width": 1024, "height": 1024},
        "quality": "standard",
        "output_path": None if shown is None else str(tmp_path / shown),
        "notice": None,
    }


def test_without_words_a_server_has_the_defaults_of_its_options() -> None:
    parser = Parser([], prog="limner app-server")
    app_server.configure(parser)
    assert vars(parser.parse_args([])) == {
        "action": None,
        "listen": "stdio://",
        "config": [],
        "ws_token_file": None,
        "no_token": False,
        "metrics": None,
        "log_json": None,
        "out": None,
    }


def test_a_command_declares_its_options_without_the_compressors(tmp_path: Path) -> None:
    code = (
        "from limner.frontends.cli.parser import Parser; "
        "Parser([], prog='limner').add_argument('--size', metavar='SIZE', help='its size')"
    )
    assert {"bz2", "lzma", "shutil", "zlib"} & _modules(code, tmp_path) == set()


def test_a_quote_loads_neither_the_http_library_nor_an_image_library(tmp_path: Path) -> None:
    code = (
        "from limner.frontends.cli.main import main; "
        "assert main(['generate', 'a robot', '--dry-run', '--json']) == 0"
    )
    loaded = _modules(code, tmp_path)
    assert {"httpx2", "httpcore2", "h11", "PIL", "limner.agent.loop"} & loaded == set()
    needless = {"difflib", "email", "fastjsonschema", "importlib.metadata", "shutil", "tempfile"}
    assert needless & loaded == set()
    own = {name for name in loaded if name.startswith("limner.")}
    assert len(own) <= MAX_QUOTE_MODULES, sorted(own)


@pytest.mark.slow
def test_a_drawing_of_the_illustrator_needs_no_http_library(tmp_path: Path) -> None:
    code = (
        "from limner.frontends.cli.main import main; "
        "assert main(['generate', 'a red circle', '--size', '256x256', '--json']) == 0"
    )
    assert {"httpx2", "httpcore2", "anyio"} & _modules(code, tmp_path) == set()


def test_a_client_without_a_proxy_does_not_load_the_event_loop_of_anyio(tmp_path: Path) -> None:
    code = """\
import asyncio
from limner.net.http import Http
async def open_client():
    http = Http()
    http.client()
    await http.aclose()
asyncio.run(open_client())
"""
    assert {"h11", "anyio._backends._asyncio"} & _modules(code, tmp_path) == {"h11"}


def test_the_first_search_for_garbage_comes_after_the_start_and_leaves_what_is_loaded(
    tmp_path: Path,
) -> None:
    code = """\
import contextlib, gc, sys
from limner.frontends.cli.main import FIRST_COLLECTION_OBJECTS, main
usual, sys.argv = gc.get_threshold(), ["limner", "--version"]
with contextlib.suppress(SystemExit):
    main()
assert gc.get_threshold() == (FIRST_COLLECTION_OBJECTS, *usual[1:])
before = gc.get_freeze_count()
gc.collect()
assert gc.get_threshold() == usual
assert gc.get_freeze_count() > before
assert gc.callbacks == []
"""
    _modules(code, tmp_path)


def test_a_command_ends_its_process_after_threads_and_exit_functions(tmp_path: Path) -> None:
    code = """\
import atexit, os, sys, threading
from limner.frontends.cli.main import main
goes_on, wrote = threading.Event(), []
def write():
    goes_on.wait()
    wrote.append("thread")
atexit.register(lambda: os.write(1, f"{wrote}".encode()))
threading.Thread(target=write).start()
threading._register_atexit(goes_on.set)
sys.argv = ["limner"]
main()
os.write(1, b"never")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=False, env={}, cwd=tmp_path
    )
    assert (done.returncode, done.stdout) == (2, b"['thread']")


def _imports(words: list[str], home: Path, *, told: str = "") -> tuple[set[str], str]:
    """The modules that a command executes in a process of its own, and what it prints."""
    start = "from limner.frontends.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", start, *words],
        input=told,
        capture_output=True,
        text=True,
        check=True,
        cwd=home,
        env={"PATH": os.environ["PATH"], "HOME": str(home), "LIMNER_HOME": str(home / "home")},
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip() for line in lines}, done.stdout


def _modules(code: str, home: Path) -> set[str]:
    """The modules that a new process has loaded after the code; the code must not fail."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules, file=sys.stderr)"],
        capture_output=True,
        text=True,
        check=False,
        cwd=home,
        env={"PATH": os.environ["PATH"], "HOME": str(home), "LIMNER_HOME": str(home / "home")},
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines()[-1].split())
