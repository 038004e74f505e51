"""The calls of Python, tools, MCP and the command line -> one table, and an error if two differ.

A name that one of them lacks, or that differs, needs a reason in its declaration: ``only`` or
``positional`` in the ``Meta`` of an argument, `NOT_IN_PYTHON` for a flag, or a `Call` below.
"""

from __future__ import annotations

import inspect
from argparse import Action, ArgumentParser
from collections.abc import Callable, Collection, Iterator, Mapping
from importlib import import_module
from typing import Any, get_type_hints

import msgspec

from limner import Agent, FittedImage, GeneratedImage, Inspection, Limner, Spend
from limner.frontends.cli.arguments import NOT_IN_PYTHON
from limner.frontends.mcp.spend import SpendAnswer
from limner.frontends.mcp.tool_list import LISTED_AS, offered
from limner.tools import options
from limner.tools.built_in import declarations
from limner.tools.built_in.image_check import CheckAnswer
from limner.tools.built_in.image_edit import EditArguments
from limner.tools.built_in.image_generate import GenerateArguments
from limner.tools.built_in.image_render import RenderAnswer
from limner.tools.built_in.image_transform import TransformAnswer
from limner.tools.built_in.inspect_image import InspectionAnswer
from limner.tools.contact_sheet import SheetArguments
from limner.tools.declaration import arguments_of
from limner.tools.drawing_arguments import CallerOptions
from limner.tools.generation_tool import DrawingAnswer
from limner.tools.image_fit import FitAnswer, FitArguments
from limner.tools.inspection import InspectRequest
from limner.tools.picture_check import CheckArguments, PictureCheck
from limner.tools.rendering import RenderArguments
from limner.tools.transformation import TransformArguments, TransformedImage

Lines = Iterator[str]
NONE = ""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that limner does, under all of its names.

    Attributes:
        python: the function of `Limner`, or of `Agent`.
        functions: where its parameters come from.
        keywords: the type of its further keywords.
        tool: the tool that a model calls, and an MCP client.
        command: the command.
        kinds: the Structs that declare its arguments.
        words: the parameters that a command takes without a flag.
        reasons: why a parameter differs, if no Struct declares it.
        note: why the call is not everywhere.
    """

    python: str
    functions: tuple[Callable[..., Any], ...]
    keywords: type | None = None
    tool: str | None = None
    command: str | None = None
    kinds: tuple[type[msgspec.Struct], ...] = ()
    words: tuple[str, ...] = ()
    reasons: Mapping[str, str] = {}
    note: str = ""


FUNCTION = "a function of the program"
CALLS = (
    Call(
        python="generate",
        functions=(Limner.generate,),
        keywords=options.GenerateOptions,
        tool="image_generate",
        command="generate",
        kinds=(GenerateArguments, CallerOptions),
        words=("prompt",),
    ),
    Call(
        python="quote",
        functions=(Limner.quote,),
        keywords=options.GenerateOptions,
        command="generate",
        kinds=(GenerateArguments, CallerOptions),
        words=("prompt",),
        note="`limner generate --dry-run`. A model does not ask for prices: approval and budget "
        "decide before anything is paid.",
    ),
    Call(
        python="edit",
        functions=(Limner.edit,),
        keywords=options.EditOptions,
        tool="image_edit",
        command="edit",
        kinds=(EditArguments, CallerOptions),
        words=("image", "prompt"),
    ),
    Call(
        python="render",
        functions=(Limner.render,),
        keywords=options.RenderOptions,
        tool="image_render",
        command="render",
        kinds=(RenderArguments,),
        words=("source",),
        reasons={"help": "`--help-on` of the command; for a program there is the guide"},
    ),
    Call(
        python="transform",
        functions=(Limner.transform,),
        keywords=options.TransformOptions,
        tool="image_transform",
        command="transform",
        kinds=(TransformArguments,),
        words=("image",),
    ),
    Call(
        python="check",
        functions=(Limner.check,),
        keywords=options.CheckOptions,
        tool="image_check",
        command="check",
        kinds=(CheckArguments,),
        words=("image",),
    ),
    Call(
        python="sheet",
        functions=(Limner.sheet,),
        keywords=options.SheetOptions,
        command="sheet",
        kinds=(SheetArguments,),
        words=("images",),
        note="A model calls `image_generate` once for each picture, and sees them all.",
    ),
    Call(
        python="inspect",
        functions=(Limner.inspect,),
        keywords=options.InspectOptions,
        tool="inspect_image",
        command="inspect",
        kinds=(InspectRequest,),
        words=("path", "paths", "question"),
    ),
    Call(
        python="evidence",
        functions=(Limner.evidence,),
        words=("image",),
        note="`limner inspect --evidence`. A model gets the evidence of its question with the "
        "answer of `inspect_image`.",
    ),
    Call(
        python="fit",
        functions=(Limner.fit,),
        tool="image_fit",
        command="fit",
        kinds=(FitArguments,),
        words=("image",),
        note="limner fits the pictures of its own conversations itself, so only MCP clients have "
        "the tool.",
    ),
    Call(
        python="batch",
        functions=(Limner.batch,),
        tool="image_batch",
        command="batch",
        words=("rows",),
        reasons={
            "on_status": FUNCTION,
            "ask": FUNCTION,
            "rate": "the user or the program decides it, not the model",
            "lane": "the user or the program decides it, not the model",
            "out": "a model gets the results in the answer",
            "manifest": "in Python `rows` is a path too",
            "job": "a batch of Python ends before the call returns",
            "action": "`limner batch status`, `limner batch cancel`",
        },
    ),
    Call(
        python="picture",
        functions=(Limner.picture,),
        tool="image_recall",
        command="show",
        words=("handle",),
        note="The command also takes a file. In a conversation and over MCP the picture itself "
        "comes back.",
    ),
    Call(
        python="take",
        functions=(Limner.take,),
        words=("image",),
        note="Every call takes a picture in any form, so a tool or a command has no use for it.",
    ),
    Call(
        python="spend",
        functions=(Limner.spend,),
        tool="spend",
        command="spend",
        reasons=dict.fromkeys(("limit", "after"), "a tool answers with the sums alone"),
        note="Only MCP clients have the tool: the events of a conversation say what it costs.",
    ),
    Call(
        python="Agent, Agent.run",
        functions=(Agent, Agent.run),
        command="chat",
        words=("words",),
        reasons={
            "lim": "a command makes its own `Limner`",
            "tools": "functions of the program",
            "instructions": "a personality has them",
            "ask": FUNCTION,
            "schema": "a chat is for people to read",
        },
        note="Over the app-server: `thread/start` and `turn/start`, with the names of Codex.",
    ),
)
OTHERS = {
    "run_rows": "for engines that call it for each block of a table",
    "import_session": "`limner sessions import`",
    "export_session": "`limner sessions export`; `thread/read` and others of the app-server",
    "delete_session": "`limner sessions delete`",
    "recover": "`limner jobs recover`",
    "delivered_file": "`limner jobs list`",
    "job_state": "`limner jobs list`",
    "close_job": "`limner jobs settle`, `limner jobs forget`",
    "adopt_budget": "the page Settings of `limner studio`",
    "draw": "`generate` and `edit`, with the failures of a set beside its pictures",
    "plan": "`quote`, also for an edit; `limner edit --dry-run`",
    "scope": "Python only: a command is its own scope",
    "tools": "`limner.create_image_tools`",
    "context": "the context of calls that a model makes; every server makes its own",
    "registry": "the tools and your own, which run in parallel",
    "conversation_tools": "as `tools`, for a model whose conversation limner stores",
    "conversation_registry": "as `registry`, for a model whose conversation limner stores",
    "person": "the context of a call that a person makes",
    "take_with_path": "as `take`, with the file",
    "read_audio": "a sound file as a data URL",
    "warm": "reads the certificates before the first request",
    "aclose": "the end of `async with`",
}


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What a call returns in Python and in JSON, and why a member is only in one of them."""

    call: str
    python: type
    json: Collection[str]
    reasons: Mapping[str, str]


EXACT = "the exact amount, as a whole number of nano-dollars"
TRUST = "a `ToolResult` has it"
RESULTS = (
    Result(
        call="generate, edit",
        python=GeneratedImage,
        json=DrawingAnswer.__struct_fields__,
        reasons={
            "cost_nano": EXACT,
            "extras": "in JSON its members follow the others",
            "untrusted": TRUST,
            "pictures": "Python returns a list if `n` is given",
            "failed": "in Python in `extras` of the first picture",
        },
    ),
    Result(
        call="render",
        python=GeneratedImage,
        json=RenderAnswer.__struct_fields__,
        reasons={
            **dict.fromkeys(("source_format", "notes"), "in Python in `extras`"),
            **dict.fromkeys(("cost_nano", "cost_usd", "cost_source"), "always 0, from the table"),
            **dict.fromkeys(("provider", "model"), "always the illustrator, which draws SVG"),
            "extras": "in JSON its members follow the others",
            "help": "a text instead of a picture",
            "prompt_used": "how the source starts",
            "untrusted": TRUST,
        },
    ),
    Result(
        call="transform",
        python=TransformedImage,
        json=TransformAnswer.__struct_fields__,
        reasons={
            **dict.fromkeys(("dimensions", "bytes"), "in Python in `image`"),
            "untrusted": TRUST,
        },
    ),
    Result(
        call="check",
        python=PictureCheck,
        json=CheckAnswer.__struct_encode_fields__,
        reasons={
            "pass": "`passed` in Python, of which `pass` is a keyword",
            "passed": "`pass` in JSON",
            "report": "what the command prints without `--json`",
            "sheet_image": "the tool returns the picture itself",
            "cost_nano": EXACT,
            "untrusted": TRUST,
        },
    ),
    Result(
        call="inspect",
        python=Inspection,
        json=InspectionAnswer.__struct_fields__,
        reasons={
            "cost_usd": "in JSON in `details`",
            "cost_source": "in JSON in `details`",
            "value": "with a schema; in JSON `text` is its JSON text",
            "cost_nano": EXACT,
            "untrusted": TRUST,
        },
    ),
    Result(
        call="fit",
        python=FittedImage,
        json=FitAnswer.__struct_fields__,
        reasons={
            **dict.fromkeys(("width", "height"), "`dimensions` in JSON"),
            **dict.fromkeys(("fit", "tiles", "to_original"), "an object of Python"),
            **dict.fromkeys(("original", "part", "scale"), "in Python in `fit`"),
            "data": "`bytes` in JSON is their number",
            "bytes": "`len(data)`",
            "image": "the handle; Python has the bytes",
            "dimensions": "`width` and `height` in Python",
            "cost_nano": EXACT,
        },
    ),
    Result(
        call="spend",
        python=Spend,
        json=SpendAnswer.__struct_fields__,
        reasons={
            **dict.fromkeys(("settled_nano", "unknown_nano", "in_flight_nano"), EXACT),
            **dict.fromkeys(("total_nano", "own"), EXACT),
            **dict.fromkeys(("by_day", "by_session", "recent"), "`limner spend --json` has it"),
            **dict.fromkeys(("unknown_usd", "in_flight_usd"), "`as_json()` has it"),
            "as_json": "what `limner spend --json` prints",
            "next_session": "where the next page of sessions starts",
            "own_usd": "`session_usd` over MCP",
            **dict.fromkeys(("own_unknown_usd", "own_in_flight_usd"), "part of one `Limner`"),
            "session_usd": "`own_usd` in Python",
            "today_usd": "the first of `by_day`",
            "budget": "`Limner.settings` has it",
        },
    ),
)


def calls() -> Lines:
    """The page.

    Raises:
        ValueError: two names differ, and no declaration says why.
    """
    yield "# Calls side by side\n\n"
    yield "One row for each parameter. A tool's column is also the name in JSON: in a model's "
    yield "tool call, over MCP and in an app-server's items. A flag is the parameter's name with "
    yield "dashes; some have a short name before it. `limner.generate` and the others without "
    yield "async have the parameters of their `Limner` twins. The table of results is at the end.\n"
    for call in CALLS:
        yield from _section(call)
    yield "\n## Results\n\nJSON is what a tool answers, over MCP too, and what `--json` prints. "
    yield "Amounts are dollars: `cost_usd`.\n\n"
    yield "| call | Python | JSON | why they differ |\n|---|---|---|---|\n"
    for result in RESULTS:
        yield from _result(result)
    yield "\n## The other calls of a `Limner`\n\n| Python | what it is elsewhere |\n|---|---|\n"
    named = {call.python for call in CALLS}
    public = [name for name, one in vars(Limner).items() if _is_call(name, one)]
    if unknown := {*public} - {*OTHERS} - named:
        raise ValueError(f"calls without a row in scripts/calls_page.py: {sorted(unknown)}")
    for name in public:
        if name in OTHERS:
            yield f"| `{name}` | {OTHERS[name]} |\n"


def _section(call: Call) -> Lines:
    yield f"\n## {call.python}\n\n"
    in_chat = call.tool in declarations()
    names = [f"tool `{call.tool}`" if in_chat else "no tool"]
    names.append(f"MCP tool `{call.tool}`" if call.tool in offered() else "no MCP tool")
    names.append("no command" if call.command is None else f"`limner {call.command}`")
    yield f"{', '.join(names)}. {call.note}".rstrip() + "\n"
    rows = [*_rows(call)]
    if rows:
        yield "\n| Python | tool, JSON | MCP | command | why they differ |\n|---|---|---|---|---|\n"
        for cells in rows:
            yield f"| {' | '.join(cells)} |\n"


def _rows(call: Call) -> Iterator[tuple[str, ...]]:
    schemas = {name: one.schema for name, one in declarations().items()}
    in_tool = schemas[call.tool]["properties"] if call.tool in schemas else {}
    mcp = offered().get(call.tool or "")
    listed = {} if mcp is None else mcp["inputSchema"].get("properties", {})
    declared = {other: name for name, other in LISTED_AS.get(call.tool or "", {}).items()}
    in_mcp = {declared.get(name, name): name for name in listed}
    flags = {} if call.command is None else _flags(call.command)
    used: set[str] = set()
    for name in _parameters(call):
        flag = flags.get(f"--{name.replace('_', '-')}")
        if flag is not None:
            used |= {*flag.option_strings}
        shown_flag = NONE if flag is None else ", ".join(f"`{one}`" for one in flag.option_strings)
        if name in call.words and call.command is not None:
            shown_flag = "a word"
        in_each = (
            call.tool not in schemas or name in in_tool,
            mcp is None or name in in_mcp,
            call.command is None or shown_flag != NONE,
        )
        why = _why(call, name)
        if not all(in_each) and not why:
            raise ValueError(f"{call.python}: {name!r} is not everywhere, and nothing says why")
        yield (
            f"`{name}`",
            f"`{name}`" if name in in_tool else NONE,
            f"`{in_mcp[name]}`" if name in in_mcp else NONE,
            shown_flag,
            NONE if all(in_each) else why,
        )
    for name in sorted(str(one) for one in {*in_tool, *in_mcp} - {*_parameters(call)}):
        if name not in call.reasons:
            raise ValueError(f"{call.python}: Python has no {name!r}")
        yield NONE, f"`{name}`", f"`{name}`" if name in in_mcp else NONE, NONE, call.reasons[name]
    for flag in dict.fromkeys(one for name, one in flags.items() if name not in used):
        if flag.dest not in NOT_IN_PYTHON:
            raise ValueError(f"{call.python}: Python has no {flag.option_strings}")
        shown = ", ".join(f"`{one}`" for one in flag.option_strings)
        yield NONE, NONE, NONE, shown, NOT_IN_PYTHON[flag.dest]


def _result(result: Result) -> Lines:
    own = [name for name in dir(result.python) if name[0] != "_" and name != "unshown"]
    for name in dict.fromkeys([*result.json, *own]):
        is_same = name in own and name in result.json
        if not is_same and name not in result.reasons:
            raise ValueError(f"{result.call}: {name!r} is not in Python and JSON alike")
        why = NONE if is_same else result.reasons[name]
        python = f"`{name}`" if name in own else NONE
        json = f"`{name}`" if name in result.json else NONE
        yield f"| {result.call} | {python} | {json} | {why} |\n"


def _why(call: Call, name: str) -> str:
    if name in options.CallHooks.__annotations__:
        return FUNCTION
    for kind in call.kinds:
        argument = arguments_of(kind).get(name)
        if argument is not None:
            return argument.extra.get("only", NONE)
    return call.reasons.get(name, NONE)


def _parameters(call: Call) -> list[str]:
    names: list[str] = []
    for function in call.functions:
        for name, one in inspect.signature(function).parameters.items():
            if name != "self" and one.kind is not one.VAR_KEYWORD:
                names.append(name)
    return [*names, *(get_type_hints(call.keywords) if call.keywords else ())]


def _flags(command: str) -> dict[str, Action]:
    parser = ArgumentParser(add_help=False)
    import_module(f"limner.frontends.cli.{command}").configure(parser)
    return {word: one for one in parser._actions for word in one.option_strings}


def _is_call(name: str, one: Any) -> bool:
    return name[0] != "_" and inspect.isfunction(one)
