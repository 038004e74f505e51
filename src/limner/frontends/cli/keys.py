"""Store, list and remove API keys, for programs that are started without your shell's variables.

A variable in the environment always wins over a stored key.
"""

from __future__ import annotations

import getpass
import os
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from limner.errors import UserError
from limner.frontends.cli.output import CommandResult
from limner.providers.specs import all_specs
from limner.settings import load
from limner.storage.home import Home
from limner.storage.keys import Keys

EXAMPLE = """\
examples:
  limner keys set OPENAI_API_KEY              asks for the value, or reads it from a pipe
  limner keys list
  limner keys remove OPENAI_API_KEY
"""
SEE_LIST = "limner keys list shows them"


def configure(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("action", choices=["set", "list", "remove"])
    parser.add_argument("name", nargs="?", help="the variable's name, such as OPENAI_API_KEY")


def run(args: Namespace) -> CommandResult:
    """Run the action."""
    settings = load(env=os.environ, cwd=Path.cwd())
    keys = Keys(Home(settings.home).keys, env=os.environ)
    if args.action == "list":
        if args.name is not None:
            raise UserError("keys list takes no name: it lists every key")
        return _list(keys)
    if args.name is None:
        raise UserError(f"say which key to {args.action}", hint=SEE_LIST)
    if args.action == "set":
        keys.set(args.name, _value(args.name))
        done = f"{args.name} is stored for this user."
    elif keys.remove(args.name):
        done = f"{args.name} is removed."
    else:
        raise UserError(f"no key {args.name!r} is stored", hint=SEE_LIST)
    return CommandResult(value={"name": args.name, "action": args.action}, notes=(done,))


def _value(name: str) -> str:
    # Never an argument: those end up in shell histories and process lists.
    if not sys.stdin.isatty():
        return sys.stdin.buffer.readline().decode("utf-8", "surrogateescape")
    try:
        return getpass.getpass(f"{name}: ")
    except EOFError:
        return ""


def _list(keys: Keys) -> CommandResult:
    known = {spec.key_env for spec in all_specs(embedded=False).values() if spec.key_env}
    listing = keys.listing(known)
    width = max((len(key.name) for key in listing), default=0)
    return CommandResult(
        value={"keys": listing},
        text="\n".join(f"{key.name:{width}}  {key.masked:8}  {key.source}" for key in listing),
        notes=() if listing else ("No key is set. limner keys set OPENAI_API_KEY stores one.",),
    )
