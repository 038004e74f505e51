"""A page about a framework -> the packages that it needs and the programs that it shows."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "guides" / "frameworks"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
APPROVAL = "\n## Approval\n"


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """A Python program, or a command line for a shell."""

    code: str
    is_shell: bool = False


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """What a page shows.

    Attributes:
        name: the name of its file, and of the module in `limner.integrations`.
        title: the name of the framework.
        packages: the packages of its ``pip install`` lines, without limner.
        programs: its programs. A block that sets ``model`` and uses no tools stands for the first
            program with that model. A block ``console`` is a command line.
        approvals: the programs of its section about approval, which ask the user once. A block
            with a call alone stands for the first program with that call.
        drops: the APIs over which the page says that the framework drops pictures.
    """

    name: str
    title: str
    packages: tuple[str, ...] = ()
    programs: tuple[Program, ...] = ()
    approvals: tuple[Program, ...] = ()
    drops: tuple[str, ...] = ()


def read_page(path: Path) -> Page:
    """Read one page."""
    text = path.read_text(encoding="utf-8")
    before, _, after = text.partition(APPROVAL)
    blocks = BLOCK.findall(before)
    shell = "\n".join(code for kind, code in blocks if kind == "sh")
    packages = " ".join(re.findall(r"^pip install (.*)$", shell, re.MULTILINE)).split()
    models = [code for kind, code in blocks if kind == "python" and _sets_only_model(code)]
    first, *others = _programs(before)
    calls = [code for kind, code in BLOCK.findall(after) if kind == "python"]
    return Page(
        name=path.stem,
        title=text.partition("\n")[0].removeprefix("# "),
        packages=tuple(sorted({one.strip('"') for one in packages} - {"limner"})),
        programs=(first, *(_with_model(first, one) for one in models), *others),
        approvals=tuple(_programs(after)) or tuple(_with_call(first, one) for one in calls),
        drops=tuple(re.findall(r"The framework drops pictures over ([\w ]+)\b", text)),
    )


def _programs(text: str) -> list[Program]:
    found: list[Program] = []
    for kind, code in BLOCK.findall(text):
        if kind == "python" and not _sets_only_model(code):
            found.append(Program(code=code))
        elif kind == "console":
            found.append(Program(code=code.removeprefix("$ "), is_shell=True))
    return found


def _sets_only_model(code: str) -> bool:
    return "limner.integrations" not in code


def _with_model(program: Program, model: str) -> Program:
    """A program with other lines in place of the one that sets ``model``."""
    changed, count = re.subn(r"^model = .*\n", lambda _: model, program.code, flags=re.MULTILINE)
    assert count == 1, program
    return Program(code=changed)


def _with_call(program: Program, call: str) -> Program:
    """A program with another call in place of the one that makes the tools."""
    making = re.compile(r"\blimner_\w+\([^()]*\)")
    changed, count = making.subn(lambda _: call.strip(), program.code)
    assert count == 1, program
    return Program(code=changed)


def all_pages() -> list[Page]:
    """The pages of all frameworks; the index is none."""
    return [read_page(path) for path in sorted(PAGES.glob("*.md")) if path.stem != "index"]
