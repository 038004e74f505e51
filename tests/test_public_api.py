"""What `limner` promises to its importers."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import limner
from limner import errors, plugins, settings, testing

PROMISED = [
    "Agent",
    "AnySize",
    "ApprovalPolicy",
    "ApprovalRequest",
    "Batch",
    "BatchCounts",
    "BatchStatus",
    "BlockingPicture",
    "Box",
    "CheckOptions",
    "Choice",
    "Client",
    "Code",
    "Colour",
    "Compacted",
    "Compacting",
    "Connection",
    "ContactSheet",
    "Control",
    "CriterionVerdict",
    "DetectedObject",
    "DrawingRecord",
    "EditOptions",
    "Event",
    "Evidence",
    "ExportedSession",
    "Fitted",
    "FittedImage",
    "FlatPrice",
    "FreedSpace",
    "FunctionTool",
    "GenerateOptions",
    "GeneratedImage",
    "GpsPosition",
    "ImageInput",
    "ImageModel",
    "ImageRequest",
    "ImportedSession",
    "Ingredient",
    "InputAdded",
    "InspectOptions",
    "Inspection",
    "ItemAdded",
    "LabelledValue",
    "LedgerRow",
    "Limner",
    "LimnerError",
    "Lineage",
    "Manifest",
    "Mark",
    "Measurements",
    "Origin",
    "PageReading",
    "Panel",
    "Picture",
    "PictureCheck",
    "PictureDifference",
    "PictureInfo",
    "PictureRecord",
    "Plan",
    "PngText",
    "Progress",
    "Provenance",
    "ProviderSpec",
    "Question",
    "Quote",
    "RawNotification",
    "Reach",
    "Receipt",
    "Reconnected",
    "RecordedThing",
    "Region",
    "RemoteBatch",
    "RemoteEvent",
    "RenderOptions",
    "Retrying",
    "ScreenChange",
    "Settings",
    "Shape",
    "SheetOptions",
    "SheetPicture",
    "Size",
    "Spend",
    "SpendLine",
    "SpendSums",
    "StoredPicture",
    "Table",
    "Text",
    "TextDelta",
    "TextLine",
    "Texture",
    "Thread",
    "ThreadInfo",
    "ThreadOptions",
    "Tool",
    "ToolCall",
    "ToolContext",
    "ToolFinished",
    "ToolOptions",
    "ToolProgress",
    "ToolRegistry",
    "ToolResult",
    "ToolStarted",
    "TransformOptions",
    "TransformedImage",
    "TurnEnded",
    "TurnOptions",
    "TurnResult",
    "TurnStarted",
    "Usage",
    "UsageUpdated",
    "batch",
    "check",
    "codex_thread",
    "connect",
    "create_image_tools",
    "edit",
    "evidence",
    "fit",
    "generate",
    "inspect",
    "picture",
    "quote",
    "render",
    "run_rows",
    "sheet",
    "spend",
    "take",
    "tool",
    "transform",
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
    internal: frozenset[str] = getattr(thing, "_internal", frozenset())
    fields = inspect.get_annotations(thing).items()
    yield from ((name, text) for name, text in fields if name[0] != "_" and name not in internal)
    for name, member in vars(thing).items():
        function = member.fget if isinstance(member, property) else member
        function = member.func if isinstance(member, cached_property) else function
        is_public = (name[0] != "_" or name == "__init__") and name not in internal
        if inspect.isfunction(function) and is_public:
            for one, written in inspect.get_annotations(function).items():
                yield f"{name}({one})", written


def _things() -> dict[str, object]:
    modules = (limner, plugins, testing)
    return {f"{one.__name__}.{name}": getattr(one, name) for one in modules for name in one.__all__}


def test_no_public_name_gives_a_program_a_value_of_any_type() -> None:
    found = [
        f"{name}.{place}"
        for name in limner.__all__
        for place, written in _annotations(getattr(limner, name))
        if re.search(r"\bAny\b", str(written))
    ]
    assert found == []


def test_every_type_of_a_public_signature_can_be_imported() -> None:
    public = {
        name
        for module in (limner, errors, plugins, settings, testing)
        for name in getattr(module, "__all__", dir(module))
    }
    source = Path(limner.__file__).parent
    classes = {
        name
        for file in source.rglob("*.py")
        for name in re.findall(r"^class ([A-Z]\w+)", file.read_text("utf-8"), re.MULTILINE)
    }
    missing = {
        (named, f"{name}.{place}")
        for name, thing in _things().items()
        for place, written in _annotations(thing)
        for named in re.findall(r"\b[A-Z]\w+", re.sub(r"Literal\[[^]]*\]", "", str(written)))
        if named in classes - public
    }
    # The author of a plug-in passes an `HttpService`, which is one.
    assert missing == {("Service", "limner.plugins.JobProvider.__init__(service)")}
