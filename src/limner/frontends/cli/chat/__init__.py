"""Chat with a model that draws, looks at pictures and remembers the conversation.

Without -p this is a conversation at the terminal; /help lists its commands. With -p it is one turn:
the answer goes to standard output, everything else to standard error.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from decimal import Decimal
from pathlib import Path
from typing import get_args

from limner.agent.session_options import SessionOptions
from limner.dollars import usd_to_nano
from limner.errors import UserError
from limner.frontends.cli.arguments import add_budget_flag
from limner.frontends.cli.chat.chat_agent import LATEST, ChatOptions
from limner.frontends.cli.chat.interactive import converse
from limner.frontends.cli.chat.script import OutputForm, run_turn
from limner.frontends.cli.output import CommandResult
from limner.settings import Policy, Sandbox

EXAMPLE = """\
examples:
  limner chat
  limner chat "Draw a fox in the snow, then make it dusk." --budget 0.50
  limner chat --resume                                  the session used last
  limner chat -p "What does the error say?" --image screenshot.png
  limner chat -p - --json < request.txt                 one JSON object
  limner chat -p "Draw a fox" --json --stream           a line of JSON for each event
"""


def configure(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "words", nargs="*", metavar="WORDS", help="the first message; with -p, - is standard input"
    )
    parser.add_argument("-p", "--print", action="store_true", help="run one turn, for scripts")
    parser.add_argument(
        "--stream", action="store_true", help="with -p --json: a line for each event"
    )
    parser.add_argument(
        *("--image", "--images"),
        dest="images",
        action="append",
        default=[],
        metavar="FILE",
        help="attach this picture",
    )
    parser.add_argument("--model", metavar="NAME", help="the model, as provider/id")
    parser.add_argument("--personality", metavar="NAME", help="the personality; default limner")
    parser.add_argument(
        *("--resume", "--session"),
        dest="session",
        nargs="?",
        const=LATEST,
        metavar="ID",
        help="continue a session; without ID, the one used last",
    )
    add_budget_flag(parser, "the most the session may cost")
    parser.add_argument("--sandbox", choices=_choices(Sandbox), help="where the model may write")
    parser.add_argument("--approval", choices=_choices(Policy), help="when limner asks you")
    parser.add_argument("--cwd", metavar="DIR", help="the folder to work in")


def run(args: Namespace) -> CommandResult:
    """Chat, or run one turn."""
    options = _read_options(args)
    message = " ".join(args.words)
    if not args.print:
        if args.json or args.stream:
            raise UserError("--json and --stream are for one turn", hint='Add -p "…".')
        return converse(options, message=message, images=args.images)
    if args.stream and not args.json:
        raise UserError("--stream prints JSON", hint="Add --json.")
    if message == "-":
        message = sys.stdin.buffer.read().decode(errors="replace")
    if not message.strip():
        raise UserError("-p needs a message", hint='limner chat -p "Draw a fox"')
    form = OutputForm(as_json=args.json, is_streamed=args.stream)
    return run_turn(options, message=message.strip(), images=args.images, form=form)


def _read_options(args: Namespace) -> ChatOptions:
    """Read the options of the command line.

    Raises:
        UserError: the budget is not an amount, or there is no such folder.
    """
    if args.budget_usd is not None:
        usd_to_nano(args.budget_usd, field="--budget")
    if args.cwd is not None and not Path(args.cwd).is_dir():
        raise UserError(f"--cwd: {args.cwd!r} is not a folder")
    session_options = SessionOptions(
        model=args.model,
        personality=args.personality,
        sandbox=args.sandbox,
        approval=args.approval,
        budget_usd=None if args.budget_usd is None else Decimal(args.budget_usd),
    )
    cwd = None if args.cwd is None else Path(args.cwd).resolve()
    return ChatOptions(session_options=session_options, session=args.session, cwd=cwd)


def _choices(annotated: object) -> tuple[str, ...]:
    """The values of an annotated literal type."""
    return get_args(get_args(annotated)[0])
