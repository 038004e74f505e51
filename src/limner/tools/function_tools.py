"""A Python function -> a tool that a model can call; installed packages -> their tools."""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, ClassVar, Generic, ParamSpec, TypedDict, TypeVar, Unpack, cast

from msgspec.structs import replace

from limner.pictures.take import Pictures
from limner.plugin_loader import LoadedPlugins, load_plugins
from limner.tools.base import Outcome, Tool, ToolContext
from limner.tools.function_results import FunctionResults
from limner.tools.signatures import Signature, read_signature

ENTRY_POINT_GROUP = "limner.tools"
TOOLSET = "functions"
MAX_RESULT_CHARS = 20_000

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")

logger = logging.getLogger("limner.tools")

P = ParamSpec("P")
R = TypeVar("R")


class FunctionTool(Tool, Generic[P, R], frozen=True, kw_only=True):
    """A tool made from a function; calling it calls the function."""

    # Not for programs.
    _internal: ClassVar = frozenset({"signature"})

    function: Callable[P, R]
    signature: Signature
    trusted: bool = False

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself."""
        return self.function(*args, **kwargs)


class ToolOptions(TypedDict, total=False):
    """What differs from the function, or from the defaults.

    Attributes:
        name: how a model calls it, by default the function's name.
        description: what a model reads, by default the docstring.
        toolset: the group of tools that it belongs to.
        max_result_chars: the most that a result may have.
        timeout_s: how long it may run.
        trusted: its answers are the program's own words; it reads nothing from outside.
    """

    name: str
    description: str
    toolset: str
    max_result_chars: int
    timeout_s: float
    trusted: bool


def function_tool(
    function: Callable[P, R],
    *,
    pictures: Callable[[], Pictures],
    **options: Unpack[ToolOptions],
) -> FunctionTool[P, R]:
    """Make a tool that calls a function.

    Args:
        function: plain or async, each parameter with a type. A plain one runs in a thread. A
            parameter of the type `ToolContext` is filled in; a model does not see it.
        pictures: returns the store for the pictures that the function returns.
        options: what is different from the defaults.

    Raises:
        TypeError: a parameter has no type, or the function has no docstring.
        ValueError: model services do not accept the name.
    """
    signature = read_signature(function)
    called = options.get("name", function.__name__)
    if not _NAME.fullmatch(called):
        raise ValueError(f"{called[:80]!r} is not a name for a tool: use letters, digits, _ and -")
    description = options.get("description", signature.description)
    if not description.strip():
        raise TypeError(f"{called} needs a docstring: a model reads there what the tool is for")
    trusted = options.get("trusted", False)
    return FunctionTool(
        name=called,
        description=description,
        schema=signature.schema,
        run=_runner(called, function, signature, pictures, trusted=trusted),
        toolset=options.get("toolset", TOOLSET),
        max_result_chars=options.get("max_result_chars", MAX_RESULT_CHARS),
        timeout_s=options.get("timeout_s"),
        function=function,
        signature=signature,
        trusted=trusted,
    )


def plugin_tools(*, taken: Collection[str], pictures: Callable[[], Pictures]) -> list[Tool]:
    """The tools of installed packages, which keep their pictures in ``pictures``.

    A tool that cannot be used is logged. The answers are untrusted, except those of a function
    that was made a ``trusted`` tool.
    """
    plugins = load_plugin_tools(taken=taken)
    for broken in plugins.broken:
        logger.warning("The tool %r cannot be loaded: %s", broken.name, broken.reason)
    return [_untrusted(kept_in(pictures, tool)) for tool in plugins.usable]


def load_plugin_tools(*, taken: Collection[str]) -> LoadedPlugins[Tool]:
    """The tools of installed packages as they come.

    A package names a `Tool`, or a function that `limner.tool` made one of, under the entry-point
    group ``limner.tools``. It cannot replace a tool whose name is ``taken``.
    """
    names = set(taken)

    def check(tool: object) -> Tool:
        if not isinstance(tool, Tool):
            raise TypeError(f"it is a {type(tool).__name__}, not a Tool")
        if tool.name in names:
            raise ValueError(f"there is another tool {tool.name}")
        names.add(tool.name)
        return tool

    return load_plugins(ENTRY_POINT_GROUP, check)


def kept_in(pictures: Callable[[], Pictures], tool: Tool) -> Tool:
    """The tool; if it is made from a function, its pictures are stored there."""
    if not isinstance(tool, FunctionTool):
        return tool
    made = cast("FunctionTool[..., Any]", tool)
    run = _runner(made.name, made.function, made.signature, pictures, trusted=made.trusted)
    return replace(made, run=run)


def _untrusted(tool: Tool) -> Tool:
    """The tool, its answers marked as untrusted; those of a function already are."""
    if isinstance(tool, FunctionTool):
        return cast("Tool", tool)

    async def run(arguments: Mapping[str, Any], context: ToolContext) -> Outcome:
        return replace(await tool.run(arguments, context), untrusted=True)

    return replace(tool, run=run)


def _runner(
    name: str,
    function: Callable[..., Any],
    signature: Signature,
    pictures: Callable[[], Pictures],
    *,
    trusted: bool,
) -> Callable[[Mapping[str, Any], ToolContext], Awaitable[Outcome]]:
    async def run(arguments: Mapping[str, Any], context: ToolContext) -> Outcome:
        given = signature.read(arguments)
        if signature.context is not None:
            given[signature.context] = context
        if inspect.iscoroutinefunction(function):
            answer = await function(**given)
        else:
            answer = await asyncio.to_thread(function, **given)
            # A plain function may return an awaitable.
            if inspect.isawaitable(answer):
                answer = await answer
        answers = FunctionResults(tool=name, pictures=pictures, context=context, trusted=trusted)
        return await answers.outcome(answer)

    return run
