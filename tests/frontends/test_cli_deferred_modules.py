"""A module that is executed on first use is the same module, for every user and every thread."""

from __future__ import annotations

import json
import subprocess
import sys
import typing
from pathlib import Path

import pytest

from limner.frontends.cli.main import DEFERRED

PEM = Path(__file__).parents[1] / "servers" / "delivery.pem"
DEFER = "from limner.frontends.cli.deferred_modules import DeferredModule, defer\n"


class Fields:
    """A class with annotations to be resolved."""

    one: typing.Annotated[int, "words"]
    two: list[Fields] | None = None


def run(script: str, *, folder: Path | None = None) -> str:
    """What a script prints; it finds the modules of a folder."""
    found = f"import sys; sys.path.insert(0, {str(folder)!r})\n" if folder else ""
    command = [sys.executable, "-W", "error", "-c", found + DEFER + script]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def test_a_deferred_module_runs_at_its_first_use_and_once(tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text("print('runs')\nvalue = 1\n")
    script = """
defer("loud")
import loud
import loud
print(type(loud) is DeferredModule)
print(loud.value, loud.value, type(loud).__name__, type(loud.__loader__).__name__)
print(loud.__spec__.loader is loud.__loader__)
from loud import value
"""
    assert run(script, folder=tmp_path).splitlines() == [
        "True",
        "runs",
        "1 1 module SourceFileLoader",
        "True",
    ]


@pytest.mark.parametrize("use", ["dir(quiet)", "vars(quiet)", "from quiet import *"])
def test_to_list_a_module_is_a_use_of_it(tmp_path: Path, use: str) -> None:
    (tmp_path / "quiet.py").write_text("value = 1\n")
    script = f"defer('quiet')\nimport quiet\n{use}\nprint('value' in quiet.__dict__, type(quiet))"
    assert run(script, folder=tmp_path) == "True <class 'module'>\n"


def test_a_value_that_is_set_or_deleted_before_the_first_use_stays_so(tmp_path: Path) -> None:
    (tmp_path / "quiet.py").write_text("one = 1\ntwo = 2\nthree = 3\n")
    script = """
defer("quiet")
import quiet
quiet.one = 10
del quiet.two
print(quiet.one, hasattr(quiet, "two"), quiet.three)
"""
    assert run(script, folder=tmp_path) == "10 False 3\n"


def test_a_module_that_fails_fails_at_each_use_until_it_can_run(tmp_path: Path) -> None:
    (tmp_path / "hasty.py").write_text("import builtins\nvalue = builtins.later\n")
    script = """
defer("hasty")
import builtins, hasty
for _ in range(2):
    try:
        hasty.value
    except AttributeError as error:
        print(error)
builtins.later = 7
print(hasty.value)
"""
    missing = "module 'builtins' has no attribute 'later'"
    assert run(script, folder=tmp_path).splitlines() == [missing, missing, "7"]


def test_a_module_that_is_missing_is_missing_at_its_import() -> None:
    script = """
defer("no_such_module")
try:
    import no_such_module
except ModuleNotFoundError as error:
    print(error)
"""
    assert run(script) == "No module named 'no_such_module'\n"


def test_a_module_may_look_itself_up_and_a_part_of_a_package_is_bound_in_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "whole").mkdir()
    (tmp_path / "whole" / "__init__.py").write_text("from . import part\n")
    (tmp_path / "whole" / "part.py").write_text(
        "import sys\none = 1\ntwo = sys.modules[__name__].one + 1\n"
    )
    script = "defer('whole.part')\nimport whole\nprint(whole.part.two, whole.part.__package__)"
    assert run(script, folder=tmp_path) == "2 whole\n"


def test_threads_wait_until_the_whole_module_has_run(tmp_path: Path) -> None:
    (tmp_path / "gate.py").write_text(
        "from threading import Event\nentered, opened = Event(), Event()\n"
    )
    (tmp_path / "slow.py").write_text(
        "import gate\nfirst = 1\ngate.entered.set()\ngate.opened.wait(60)\nlast = 2\n"
    )
    script = """
import threading
defer("slow")
import gate, slow
seen = []
def use():
    slow.first
    seen.append("last" in object.__getattribute__(slow, "__dict__"))
threads = [threading.Thread(target=use) for _ in range(8)]
threads[0].start()
gate.entered.wait(60)
for thread in threads[1:]:
    thread.start()
gate.opened.set()
for thread in threads:
    thread.join()
print(seen)
"""
    assert run(script, folder=tmp_path) == f"{[True] * 8}\n"


def test_a_deferred_module_has_the_contents_that_it_has_without() -> None:
    listing = """
import asyncio, importlib, json
def about(name):
    module = importlib.import_module(name)
    names = sorted(vars(module))
    return [names, type(module.__loader__).__name__, type(module).__name__, module.__file__]
"""
    show = f"print(json.dumps({{name: about(name) for name in {DEFERRED!r}}}))"
    deferred = json.loads(run(f"defer(*{DEFERRED!r})\n{listing}{show}"))
    assert deferred == json.loads(run(f"{listing}{show}"))


def test_asyncio_loads_without_tls_and_speaks_it_later() -> None:
    script = f"""
import asyncio, sys
asyncio.run  # executes it
waiting = [name for name in {DEFERRED!r} if type(sys.modules.get(name)) is DeferredModule]
print({{"asyncio.sslproto", "inspect", "ssl"}} <= {{*waiting}})

async def greet(_, writer):
    writer.write(b"hello")
    writer.close()

async def main():
    import ssl
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    theirs.load_cert_chain({str(PEM)!r})
    ours = ssl.create_default_context(cafile={str(PEM)!r})
    ours.check_hostname = False
    server = await asyncio.start_server(greet, "127.0.0.1", 0, ssl=theirs)
    port = server.sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=ours)
    print(await reader.read())
    writer.close()
    server.close()
    try:
        ours.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO()).read()
    except ssl.SSLWantReadError as error:
        print(isinstance(error, asyncio.sslproto.SSLAgainErrors))
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", "print(1)", stdout=-1)
    print((await child.communicate())[0])
    print(asyncio.iscoroutinefunction(main), asyncio.sslproto is sys.modules["asyncio.sslproto"])

asyncio.run(main())
"""
    assert run(f"defer(*{DEFERRED!r})\n{script}").splitlines() == [
        "True",
        "b'hello'",
        "True",
        r"b'1\n'",
        "True True",
    ]


def test_a_program_that_imports_limner_has_no_deferred_modules() -> None:
    script = """
import sys
before = list(sys.meta_path)
import limner
limner.Limner
print(sys.meta_path == before)
"""
    assert run(script) == "True\n"


def test_typing_has_the_names_that_msgspec_takes_from_typing_extensions() -> None:
    more = pytest.importorskip("typing_extensions")
    assert (more.Required, more.NotRequired) == (typing.Required, typing.NotRequired)
    expected = {"one": typing.Annotated[int, "words"], "two": list[Fields] | None}
    assert more.get_type_hints(Fields, include_extras=True) == expected
    assert typing.get_type_hints(Fields, include_extras=True) == expected
