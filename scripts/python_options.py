"""The Structs of arguments -> the module that types the keywords of the Python functions."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import msgspec

from limner.tools.built_in.image_edit import EditArguments
from limner.tools.built_in.image_generate import GenerateArguments
from limner.tools.contact_sheet import SheetArguments
from limner.tools.declaration import Argument, arguments_of
from limner.tools.drawing_arguments import CallerOptions
from limner.tools.inspection import InspectRequest
from limner.tools.picture_check import CheckArguments
from limner.tools.regions import RegionArgument
from limner.tools.rendering import RenderArguments
from limner.tools.transformation import TransformArguments

FILE = Path(__file__).parent.parent / "src" / "limner" / "tools" / "options.py"
WIDTH = 100

HEAD = '''\
"""The keywords of `generate`, `edit`, `render` and other functions, for type checkers.

Made by scripts/reference.py from the Structs of arguments: run `make format` after a change.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypedDict

from limner.imaging.fit import Region
from limner.imaging.transform import Mark
from limner.pictures.request import Progress
from limner.tools.base import Question
from limner.tools.image_input import ImageInput


class CallHooks(TypedDict, total=False):
    """Functions that follow a call.

    Attributes:
        progress: gets a `Progress` for each step of the call; it must not block.
        ask: decides a `Question` that only the user can decide; without it the answer is no.
    """

    progress: Callable[[Progress], None]
    ask: Callable[[Question], Awaitable[bool]]
'''

# The positional parameters are left out, and `n`, which decides the type of the result.
CLASSES: Mapping[str, tuple[str, tuple[type[msgspec.Struct], ...], set[str]]] = {
    "GenerateOptions": ("generate", (GenerateArguments, CallerOptions), {"prompt", "n"}),
    "EditOptions": ("edit", (EditArguments, CallerOptions), {"image", "prompt", "n"}),
    "RenderOptions": ("render", (RenderArguments,), {"source", "help"}),
    "TransformOptions": ("transform", (TransformArguments,), {"image"}),
    "CheckOptions": ("check", (CheckArguments,), {"image"}),
    "SheetOptions": ("sheet", (SheetArguments,), {"images"}),
    "InspectOptions": ("inspect", (InspectRequest,), {"path", "question"}),
}


def module() -> Iterator[str]:
    """The text of the module."""
    yield HEAD
    for name, (function, kinds, left_out) in CLASSES.items():
        arguments = [
            argument
            for kind in kinds
            for argument in arguments_of(kind).values()
            if argument.name not in left_out
        ]
        yield f'\n\nclass {name}(CallHooks, total=False):\n    """The keywords of `{function}`.\n'
        yield "\n    Attributes:\n"
        for argument in arguments:
            yield f"{_wrapped(argument)}\n"
        yield '    """\n\n'
        for argument in arguments:
            yield f"    {argument.name}: {_type(argument.kind)} | None\n"


def _wrapped(argument: Argument) -> str:
    text = f"{argument.name}: {argument.description}"
    return textwrap.fill(text, WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 12)


def _type(kind: Any) -> str:
    """The type as it is written in Python."""
    if get_origin(kind) is Annotated:
        plain, *metas = get_args(kind)
        extra = {key for meta in metas for key in meta.extra or {}}
        if "image" in extra:
            return "ImageInput"
        if "path" in extra:
            return "str | Path"
        return _type(plain)
    if get_origin(kind) is tuple:
        return f"Sequence[{_type(get_args(kind)[0])}]"
    if kind is RegionArgument:
        return "Region"
    if isinstance(kind, type) and not get_args(kind):
        return kind.__name__
    words = str(kind).replace("collections.abc.", "").replace("typing.Any", "object")
    return words.replace("typing.", "").replace("'", '"')
