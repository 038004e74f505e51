"""Talk with a model that draws, looks at pictures and remembers what was said.

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
from limner.frontends.cli.chat.chat_agent import LATEST, ChatOptions
from limner.frontends.cli.chat.interactive import converse
from limner.frontends.cli.chat.script import OutputForm, take_turn
from limner.frontends.cli.output import CommandResult
from limner.settings import Policy, Sandbox

EXAMPLE = """\
examples:
  limner chat
  limner chat "Draw a fox in the snow, then make it dusk." --budget 0.50
  limner chat --resume                                  the conversation used last
  limner chat -p "What does the error say?" --image screenshot.png
  limner chat -p - --json < request.txt                 one JSON object
  limner chat -p "Draw a fox" --json --stream           a line of JSON for each event
"""


def configure(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("words", nargs="*", metavar="WORDS", help="the first message; -p -: stdin")
    parser.add_argument("-p", "--print", action="store_true", help="one turn, for scripts")
    parser.add_argument("--stream", action="store_true", help="-p --json: a line for each event")
    parser.add_argument("--image", action="append", default=[], metavar="FILE", help="show this")
    parser.add_argument("--model", metavar="NAME", help="who answers, as provider/id")
    parser.add_argument("--personality", metavar="NAME", help="who they are; default limner")
    parser.add_argument(
        "--resume",
        nargs="?",
        const=LATEST,
        metavar="ID",
        help="go on with a session; without ID the one used last",
    )
    parser.add_argument("--budget", metavar="USD", help="the most the session may cost")
    parser.add_argument("--sandbox", choices=_words_of(Sandbox), help="what may be written")
    parser.add_argument("--approval", choices=_words_of(Policy), help="when you are asked")
    parser.add_argument("--cwd", metavar="DIR", help="the folder to work in")


def run(args: Namespace) -> CommandResult:
    """Talk, or take one turn."""
    wishes = _wishes(args)
    words = " ".join(args.words)
    if not args.print:
        if args.json or args.stream:
            raise UserError("--json and --stream are for one turn", hint='Add -p "…".')
        return converse(wishes, words=words, images=args.image)
    if args.stream and not args.json:
        raise UserError("--stream prints JSON", hint="Add --json.")
    if words == "-":
        words = sys.stdin.buffer.read().decode(errors="replace")
    if not words.strip():
        raise UserError("say something: -p takes a message", hint='limner chat -p "Draw a fox"')
    form = OutputForm(as_json=args.json, is_streamed=args.stream)
    return take_turn(wishes, words=words.strip(), images=args.image, form=form)


def _wishes(args: Namespace) -> ChatOptions:
    """What the options ask for.

    Raises:
        UserError: the budget is no amount, or there is no such folder.
    """
    if args.budget is not None:
        usd_to_nano(args.budget, field="--budget")
    if args.cwd is not None and not Path(args.cwd).is_dir():
        raise UserError(f"--cwd: {args.cwd!r} is not a folder")
    terms = SessionOptions(
        model=args.model,
        personality=args.personality,
        sandbox=args.sandbox,
        approval=args.approval,
        budget_usd=None if args.budget is None else Decimal(args.budget),
    )
    cwd = None if args.cwd is None else Path(args.cwd).resolve()
    return ChatOptions(terms=terms, session=args.resume, cwd=cwd)


def _words_of(choice: object) -> tuple[str, ...]:
    """The words of a literal type that has a description."""
    return get_args(get_args(choice)[0])
