"""Store, list and remove API keys, for programs that are started without your shell's variables.

A variable in the environment always wins over a stored key.
"""

from __future__ import annotations

import getpass
import os
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from limner.doors.cli.terminal import print_json, say
from limner.errors import UserError
from limner.settings import load
from limner.storage.home import Home
from limner.storage.keys import Keys

EXAMPLE = """\
examples:
  limner keys set OPENAI_API_KEY              asks for the value, or reads it from a pipe
  limner keys list
  limner keys remove OPENAI_API_KEY
"""


def configure(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("action", choices=["set", "list", "remove"])
    parser.add_argument("name", nargs="?", help="the variable's name, such as OPENAI_API_KEY")


def run(args: Namespace) -> int:
    """Do the one thing asked."""
    settings = load(env=os.environ, cwd=Path.cwd())
    keys = Keys(Home(settings.home).keys, env=os.environ)
    if args.action == "list":
        return _list(keys, as_json=args.json)
    if args.name is None:
        raise UserError(f"say which key to {args.action}", hint="limner keys list shows them")
    if args.action == "set":
        keys.set(args.name, _value(args.name))
        done = f"{args.name} is stored for this user."
    elif keys.remove(args.name):
        done = f"{args.name} is removed."
    else:
        raise UserError(f"no key {args.name!r} is stored", hint="limner keys list shows them")
    if args.json:
        print_json({"name": args.name, "action": args.action})
    else:
        say(done)
    return 0


def _value(name: str) -> str:
    # Never an argument: those end up in shell histories and process lists.
    if sys.stdin.isatty():
        return getpass.getpass(f"{name}: ").strip()
    return sys.stdin.readline().strip()


def _list(keys: Keys, *, as_json: bool) -> int:
    listing = keys.listing()
    if as_json:
        print_json({"keys": listing})
        return 0
    for key in listing:
        print(f"{key.name}  {key.masked}  ({key.source})")
    if not listing:
        say("No key is set. limner keys set OPENAI_API_KEY stores one.")
    return 0
