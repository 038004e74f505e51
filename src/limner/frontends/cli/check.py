"""Check a picture against a reference and criteria in words; exit status 0, 1 or 6."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from limner.client import Limner
from limner.display_text import clean_text
from limner.dollars import format_usd
from limner.errors import UserError
from limner.frontends.cli.arguments import add_budget_flag, add_flags, read_flags
from limner.frontends.cli.output import CommandResult
from limner.frontends.cli.stderr import say
from limner.frontends.cli.terminal import Waiting, ask, wait_for
from limner.tools.built_in.image_check import as_value
from limner.tools.picture_check import CheckArguments, CheckVerdict, PictureCheck

EXAMPLE = """\
examples:
  limner check after.png --against before.png --sheet sheet.png
  limner check after.png --against before.png --ignore 0,0,200,40
  limner check screenshot.png --expect "shows 'Save'" --expect "text is readable"
  limner check screenshot.png --expect "has 3 buttons" --junit report.xml

exit status: 0 all pass, 1 one fails, 6 none fails and one cannot be determined
"""
STATUS = {True: 0, False: 1, None: 6}


def configure(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("image", metavar="PICTURE", help="a picture file, or a handle")
    helps = {
        "expect": 'a criterion, as "shows \'Save\'" or "has 3 buttons"; may be given again',
        "ignore": "a part that may differ from the reference; may be given again",
        "sheet": "write a PNG with both pictures and the differences marked; it is replaced",
    }
    add_flags(parser, CheckArguments, without=("image",), helps=helps)
    parser.add_argument("--junit", metavar="FILE", help="write the verdicts as JUnit XML")
    add_budget_flag(parser)


def run(args: Namespace) -> CommandResult:
    """Check a picture."""
    arguments = read_flags(CheckArguments, args)
    if args.junit is not None:
        _check_writable(args.junit)

    async def work() -> PictureCheck:
        waiting = Waiting()
        async with Limner(budget_usd=args.budget_usd) as lim, waiting.shown():
            return await lim.checker.check(arguments, lim.person(ask=ask))

    found = wait_for(work)
    status = STATUS[found.passed]
    if args.junit is not None and not _write(args.junit, junit(found, arguments)):
        status = UserError.exit_status
    notes = (f"{format_usd(found.cost_nano)}",) if found.cost_nano else ()
    return CommandResult(value=as_value(found), text=found.report, notes=notes, status=status)


def junit(check: PictureCheck, arguments: CheckArguments) -> str:
    """The verdicts as a test suite of JUnit; what cannot be determined is skipped."""
    cases: list[tuple[str, CheckVerdict, str]] = [
        (one.criterion, one.verdict, one.evidence) for one in check.criteria
    ]
    if check.difference is not None:
        said = "; ".join(one.sentence for one in check.difference.boxes)
        verdict = "fail" if check.difference.changed else "pass"
        cases.append((f"matches {arguments.against}", verdict, said))
    verdicts = [verdict for _, verdict, _ in cases]
    suite = _attribute(f"limner check {arguments.image}")
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        f'<testsuites><testsuite name={suite} tests="{len(cases)}" '
        f'failures="{verdicts.count("fail")}" errors="0" '
        f'skipped="{verdicts.count("cannot tell")}">'
        + "".join(_case(suite, *case) for case in cases)
        + "</testsuite></testsuites>\n"
    )


def _case(suite: str, name: str, verdict: CheckVerdict, evidence: str) -> str:
    said = _attribute(evidence)
    inside = {
        "pass": f"<system-out>{escape(clean_text(evidence))}</system-out>",
        "fail": f"<failure message={said}/>",
        "cannot tell": f"<skipped message={said}/>",
    }[verdict]
    return f"<testcase classname={suite} name={_attribute(name)}>{inside}</testcase>"


def _attribute(text: str) -> str:
    return quoteattr(clean_text(text))


def _check_writable(file: str) -> None:
    """Refuse a file that cannot be written, before a model is paid."""
    path = Path(file)
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UserError(f"{file!r} cannot be written")


def _write(file: str, text: str) -> bool:
    """Write the report. If that fails, say so: the verdicts may be paid for, so they are shown."""
    try:
        Path(file).write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        say(f"limner: {file!r} cannot be written: {error.strerror}")
        return False
    return True
