"""Ask a vision model about picture files; without a key limner measures them itself."""

from __future__ import annotations

import json
import shlex
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

import msgspec

from limner.client import Limner
from limner.dollars import format_usd
from limner.errors import UserError
from limner.eyes.evidence import Evidence
from limner.frontends.cli.arguments import add_budget_flag, add_flags, read_flags
from limner.frontends.cli.output import CommandResult
from limner.frontends.cli.terminal import Waiting, ask, wait_for
from limner.imaging.formats import PICTURE_SUFFIXES
from limner.tools.built_in.inspect_image import as_value
from limner.tools.inspection import Inspection, InspectRequest

ASK = "What does the error say?"
EXAMPLE = f"""\
examples:
  limner inspect screenshot.png "{ASK}"
  limner inspect before.png after.png "What has changed?"
  limner inspect plan.png --region 2400,100,800,600 "Which rooms are these?"
  limner inspect screenshot.png --evidence
  limner inspect screenshot.png --csv

with a key:
  limner inspect receipt.jpg --schema receipt.json "Read the receipt." --json
  limner inspect photo.jpg --model anthropic/claude-sonnet-5-5 "Where was this taken?"
"""


def configure(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("images", nargs="+", metavar="IMAGE", help="a picture file")
    # All words before it are pictures, so it is the last of these in `run`.
    parser.add_argument(
        "question", nargs="?", metavar="QUESTION", help="what to find out, in quotes"
    )
    parser.add_argument(
        "--evidence",
        action="store_true",
        help="no question: print all that limner measures and reads, as JSON",
    )
    parser.add_argument(
        "--csv", action="store_true", help="no question: print the tables in the picture as CSV"
    )
    add_flags(parser, InspectRequest, without=("path", "paths", "question"))
    add_budget_flag(parser)
    parser.add_argument("--debug", action="store_true", help="show requests and answers, redacted")


def run(args: Namespace) -> CommandResult:
    """Ask, and show the answer."""
    if args.evidence or args.csv:
        return _measure(args)
    *images, question = args.images
    if not images or _is_picture(question):
        words = " ".join(map(shlex.quote, args.images))
        raise UserError("give a question", hint=f'For example: limner inspect {words} "{ASK}"')
    first, *others = images
    schema = None if args.schema is None else _schema(args.schema)
    request = read_flags(
        InspectRequest, args, path=first, paths=others, question=question, schema=schema
    )

    async def work() -> CommandResult:
        waiting = Waiting()
        observe = waiting.say if args.debug else None
        async with Limner(budget_usd=args.budget_usd, observe=observe) as lim, waiting.shown():
            person = lim.person(progress=waiting.progress, ask=ask)
            return _result(await lim.inspector.inspect(request, person))

    return wait_for(work)


def _is_picture(word: str) -> bool:
    """Whether the last word is a picture: a model would be paid to answer a file name."""
    return len(word.split()) == 1 and Path(word).suffix.lower() in PICTURE_SUFFIXES


def _measure(args: Namespace) -> CommandResult:
    """The evidence of one picture, or its tables, without a question."""
    image, *others = args.images
    if others:
        raise UserError("--evidence and --csv take one picture and no question")

    async def work() -> Evidence:
        waiting = Waiting()
        async with Limner() as lim, waiting.shown():
            return await lim.evidence(image)

    found = wait_for(work)
    if args.evidence:
        value = msgspec.to_builtins(found)
        return CommandResult(value=value, text=json.dumps(value, ensure_ascii=False, indent=2))
    texts = [table.csv for table in found.page.tables]
    if found.no_text_reason is not None:
        raise UserError(f"the tables cannot be read: {found.no_text_reason}")
    return CommandResult(
        value={"tables": texts},
        text="\n".join(texts).rstrip("\n"),
        notes=() if texts else ("limner: no table was found",),
    )


def _result(inspection: Inspection) -> CommandResult:
    details = inspection.details
    footer = f"{details['model']} · {details['mimeType']}"
    notes = [str(details[name]) for name in ("note", "notice", "stopped") if name in details]
    if inspection.cost_nano:
        notes.append(format_usd(inspection.cost_nano))
    return CommandResult(value=as_value(inspection), text=inspection.text, notes=(footer, *notes))


def _schema(file: str) -> dict[str, Any]:
    try:
        schema = json.loads(Path(file).read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{file!r} cannot be read as JSON: {error}") from error
    if not isinstance(schema, dict):
        raise UserError(f"{file!r} is not a JSON schema: it has to be an object")
    return schema  # pyright: ignore[reportUnknownVariableType] - the keys of JSON are strings
