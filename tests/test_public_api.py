"""What `limner` promises to its importers."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import limner
from limner.tools import options

PROMISED = [
    "Agent",
    "AnySize",
    "ApprovalRequest",
    "BlockingPicture",
    "Compacted",
    "Compacting",
    "Connection",
    "Event",
    "FittedImage",
    "FlatPrice",
    "GeneratedImage",
    "ImageInput",
    "ImageModel",
    "ImageRequest",
    "InputAdded",
    "Inspection",
    "ItemAdded",
    "Limner",
    "LimnerError",
    "Picture",
    "PictureInfo",
    "Plan",
    "Progress",
    "ProviderSpec",
    "Question",
    "RawNotification",
    "Receipt",
    "Reconnected",
    "Region",
    "RemoteEvent",
    "Retrying",
    "Settings",
    "Spend",
    "StoredPicture",
    "Text",
    "TextDelta",
    "Tool",
    "ToolCall",
    "ToolContext",
    "ToolFinished",
    "ToolProgress",
    "ToolRegistry",
    "ToolResult",
    "ToolStarted",
    "TurnEnded",
    "TurnResult",
    "TurnStarted",
    "UsageUpdated",
    "codex_thread",
    "connect",
    "create_image_tools",
    "edit",
    "fit",
    "generate",
    "inspect",
    "picture",
    "quote",
    "spend",
    "take",
    "tool",
]


def _modules_after(code: str) -> set[str]:
    script = f"{code}\nimport sys; print(' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_the_public_names_are_exactly_the_promised_ones() -> None:
    assert sorted(limner.__all__) == PROMISED


def test_every_public_name_can_be_loaded() -> None:
    assert [name for name in PROMISED if getattr(limner, name, None) is None] == []


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    assert not hasattr(limner, "no_such_name")


def test_importing_limner_loads_nothing_but_limner() -> None:
    added = _modules_after("import limner") - _modules_after("pass")
    assert {name for name in added if not name.startswith("__")} == {"limner"}


def test_the_overview_of_the_command_line_loads_no_heavy_module() -> None:
    code = (
        "import contextlib, io\n"
        "from limner.frontends.cli.main import main\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        "    main(['--help'])"
    )
    heavy = {"asyncio", "dataclasses", "httpx2", "msgspec", "PIL", "sqlite3", "typing"}
    assert _modules_after(code) & heavy == set()


def test_importing_limner_touches_no_file(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-c", "import limner; limner.Limner()"],
        check=True,
        env={"HOME": str(tmp_path), "LIMNER_HOME": str(tmp_path / "home"), "PATH": ""},
        cwd=tmp_path,
    )
    assert list(tmp_path.iterdir()) == []


def test_dir_of_a_limner_shows_its_calls_and_not_its_parts(tmp_path: Path) -> None:
    lim = limner.Limner(limner.Settings(home=tmp_path), cwd=tmp_path)
    shown = {name for name in dir(lim) if not name.startswith("_")}
    assert {"generate", "edit", "inspect", "fit", "picture", "spend", "settings"} <= shown
    assert shown & {"components", "garbage", "ingress", "money", "quarantine", "store"} == set()
    assert repr(lim) == f"<Limner home={str(tmp_path)!r} cwd={str(tmp_path)!r}>"


def _annotations(thing: object) -> Iterator[tuple[str, str]]:
    """What a user's type checker reads of a public name: fields, parameters and results."""
    if not inspect.isclass(thing):
        yield from inspect.get_annotations(thing).items() if inspect.isfunction(thing) else ()
        return
    yield from inspect.get_annotations(thing).items()
    for name, member in vars(thing).items():
        function = member.fget if isinstance(member, property) else member
        if inspect.isfunction(function) and (name[0] != "_" or name == "__init__"):
            for one, written in inspect.get_annotations(function).items():
                yield f"{name}({one})", written


def test_no_public_name_gives_a_program_a_value_of_any_type() -> None:
    things = {name: getattr(limner, name) for name in limner.__all__}
    things |= {name: getattr(options, name) for name in dir(options) if name.endswith("Options")}
    found = [
        f"{name}.{place}"
        for name, thing in things.items()
        for place, written in _annotations(thing)
        if re.search(r"\bAny\b", str(written))
    ]
    assert found == []
