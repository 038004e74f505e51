"""What a command loads before it answers. A start takes as long as the modules that it loads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# The modules of limner that were needed when this was written: 42 for the answer to `initialize`,
# 108 for a quote.
MAX_MODULES, MAX_QUOTE_MODULES = 43, 109


def test_initialize_is_answered_with_few_modules(tmp_path: Path) -> None:
    loaded = _modules(
        "import limner.frontends.cli.app_server, limner.frontends.appserver.handshake", tmp_path
    )
    needless = {"hashlib", "httpx2", "json", "shutil", "sqlite3"}
    assert needless & loaded == set()
    own = {name for name in loaded if name.startswith("limner.")}
    assert "limner.frontends.appserver.protocol.threads" not in own
    assert len(own) <= MAX_MODULES, sorted(own)


def test_a_command_declares_its_options_without_the_compressors(tmp_path: Path) -> None:
    code = (
        "from limner.frontends.cli.main import Parser; "
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
