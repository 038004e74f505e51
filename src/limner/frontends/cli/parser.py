"""Words of the command line -> the options of a command; help and mistakes -> text."""

from __future__ import annotations

import os
from argparse import SUPPRESS, ArgumentParser, RawDescriptionHelpFormatter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Action, Namespace
    from typing import Any, NoReturn

__all__ = ["SUPPRESS", "HelpFormatter", "Parser", "without_separator"]


class HelpFormatter(RawDescriptionHelpFormatter):
    """Fills paragraphs to the width of the terminal; indented lines stay lines."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_help_columns() - 2)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        from textwrap import dedent, fill, wrap  # noqa: PLC0415 - only help needs it

        blocks: list[str] = []
        for block in dedent(text).strip("\n").split("\n\n"):
            lines = block.split("\n")
            if not any(line.startswith(" ") for line in lines):
                blocks.append(fill(" ".join(lines), width, break_on_hyphens=False))
                continue
            kept = [
                # A command must stay one line, so that it can be copied.
                [line]
                if line.startswith("  limner ")
                else wrap(line, width, subsequent_indent=" " * 14, break_on_hyphens=False) or [""]
                for line in lines
            ]
            blocks.append("\n".join(line for part in kept for line in part))
        return "\n\n".join(blocks)


def _help_columns() -> int:
    """The width for help, as argparse finds it, but without loading shutil and its compressors.

    argparse asks for it whenever a command declares an option.
    """
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given) > 0:
        return int(given)
    try:
        return os.get_terminal_size(1).columns or 80
    except OSError:
        return 80


class _NoOption(str):
    """A word after ``--``: no option, whatever it starts with."""

    __slots__ = ()


def without_separator(words: list[str]) -> list[str]:
    """The words without ``--``. argparse would forget it between options and other words."""
    at = words.index("--") if "--" in words else len(words)
    return [*words[:at], *map(_NoOption, words[at + 1 :])]


class Parser(ArgumentParser):
    """Reports bad usage as every other failure: in JSON if the command line asks for it."""

    def __init__(self, words: list[str], **about: Any) -> None:
        # No abbreviations: one that works today is ambiguous after the next option.
        super().__init__(allow_abbrev=False, formatter_class=HelpFormatter, **about)
        self._words = words
        self._as_json = "--json" in words

    def _parse_optional(self, arg_string: str) -> Any:
        return None if isinstance(arg_string, _NoOption) else super()._parse_optional(arg_string)

    def _get_value(self, action: Action, arg_string: str) -> Any:
        return super()._get_value(action, str(arg_string))

    def parse_words(self, words: list[str]) -> Namespace:
        """As `parse_intermixed_args`, which prepares the usage for errors: ours do not show it."""
        if not any(word[:1] == "-" and "h" in word for word in words):
            self.usage = SUPPRESS  # no word asks for help, which shows it too
        return self.parse_intermixed_args(words)

    def error(self, message: str) -> NoReturn:
        """Exit with status 2, and print what is wrong; if something is missing, an example too."""
        see = f"See: {self.prog} --help"
        if files := [one for one in self._words if one[:1] == "-" and os.path.lexists(one)]:
            name = (
                f"Write ./{files[0]} for the file: a word that starts with a hyphen is an option."
            )
            self.fail(message, f"{name}\n  {see}")
        extra = message.removeprefix("unrecognized arguments: ")
        if extra != message and not any(word[:1] == "-" for word in extra.split()):
            self.fail(message, f"Put words that belong together in quotes.\n  {see}")
        lines = (self.epilog or "").splitlines()
        example = next((line.strip() for line in lines if line.startswith(f"  {self.prog}")), None)
        if example is None or not message.startswith("the following arguments are required"):
            self.fail(message, see)
        choices = [str(one) for action in self._actions for one in action.choices or ()]
        what = f"say what to do: {', '.join(choices)}" if " action" in message else message
        self.fail(what, f"For example: {example.split('   ')[0]}\n  {see}")

    def fail(self, message: str, hint: str) -> NoReturn:
        """Exit with status 2, and print what is wrong and what to do."""
        # Loaded here because only a mistake needs them.
        from limner.errors import UserError  # noqa: PLC0415
        from limner.frontends.cli.output import deliver, failure  # noqa: PLC0415

        mistake = UserError(message, hint=hint)
        self.exit(deliver(failure(mistake), as_json=self._as_json))
