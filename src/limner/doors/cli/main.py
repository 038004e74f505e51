"""argv -> one command. Only the chosen command's module is loaded, so that help is instant."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

# Each command is a module of this package with `configure(parser)` and `run(args) -> exit status`.
COMMANDS = {
    "generate": "draw a picture from words",
    "models": "image models: prices, lifecycles, what is usable now",
    "spend": "what was spent, and on what",
    "jobs": "requests that were sent but not received, and how to bring them in",
    "assets": "the ready-made pictures of the embedded illustrator",
    "keys": "store, list and remove API keys",
    "doctor": "check that everything works here",
    "demo": "draw a picture offline and say where it is",
}
EXAMPLE = """\
examples:
  limner generate "two penguins and a snowman beside a christmas tree"
  limner generate "a lighthouse at dusk" --size 1792x1024 --out lighthouse.png --json
  limner generate "a robot" --dry-run     what it would cost
  limner COMMAND --help                   what a command takes
"""


class Parser(ArgumentParser):
    """Tells about bad usage in JSON where JSON was asked for."""

    def error(self, message: str) -> NoReturn:
        """End with status 2 and what was wrong."""
        if "--json" in sys.argv:
            # Loaded here because only this path needs it.
            from limner.doors.cli.terminal import print_json  # noqa: PLC0415
            from limner.errors import UserError  # noqa: PLC0415

            error = UserError(message, hint=f"See: {self.prog} --help")
            print_json({"error": error.as_json()})
            self.exit(error.exit_status)
        super().error(message)


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    words = sys.argv[1:] if argv is None else argv
    if words and words[0] in COMMANDS:
        return _run(words[0], words[1:])
    parser = _overview()
    parser.parse_args(words)
    parser.print_help()
    return 2


def _overview() -> ArgumentParser:
    from limner import __version__  # noqa: PLC0415 - with the rest of what only help needs

    listing = "\n".join(f"  {name:10}{summary}" for name, summary in COMMANDS.items())
    parser = Parser(
        prog="limner",
        description="Pictures for AI agents: make them, look at them, carry them.",
        epilog=f"commands:\n{listing}\n\n{EXAMPLE}",
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"limner {__version__}")
    parser.add_argument("command", choices=[*COMMANDS], metavar="COMMAND", nargs="?")
    return parser


def _run(name: str, words: list[str]) -> int:
    module = import_module(f"limner.doors.cli.{name}")
    parser = Parser(
        prog=f"limner {name}",
        description=module.__doc__,
        epilog=module.EXAMPLE,
        formatter_class=RawDescriptionHelpFormatter,
    )
    module.configure(parser)
    parser.add_argument(
        "--json", action="store_true", help="print exactly one JSON object on standard output"
    )
    args = parser.parse_args(words)
    terminal = import_module("limner.doors.cli.terminal")
    return terminal.guarded(module.run, args)


if __name__ == "__main__":
    sys.exit(main())
