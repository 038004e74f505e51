"""A page about a framework -> the packages that it needs and the programs that it shows."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "guides" / "frameworks"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """What a page shows.

    Attributes:
        name: the name of its file, and of the module in `limner.integrations`.
        title: the name of the framework.
        packages: the packages of its ``pip install`` lines, without limner.
        programs: its programs. A block that sets ``model`` and uses no tools stands for the first
            program with that model.
        drops: the APIs over which the page says that the framework drops pictures.
    """

    name: str
    title: str
    packages: tuple[str, ...]
    programs: tuple[str, ...]
    drops: tuple[str, ...] = ()


def read_page(path: Path) -> Page:
    """Read one page."""
    text = path.read_text(encoding="utf-8")
    blocks = BLOCK.findall(text)
    shell = "\n".join(code for kind, code in blocks if kind == "sh")
    packages = " ".join(re.findall(r"^pip install (.*)$", shell, re.MULTILINE)).split()
    code = [code for kind, code in blocks if kind == "python"]
    first, *others = [one for one in code if "limner.integrations" in one]
    models = [one for one in code if one not in (first, *others) and "model = " in one]
    return Page(
        name=path.stem,
        title=text.partition("\n")[0].removeprefix("# "),
        packages=tuple(sorted({one.strip('"') for one in packages} - {"limner"})),
        programs=(first, *(_with_model(first, one) for one in models), *others),
        drops=tuple(re.findall(r"The framework drops pictures over ([\w ]+)\b", text)),
    )


def _with_model(program: str, model: str) -> str:
    """A program with other lines in place of the one that sets ``model``."""
    changed, count = re.subn(r"^model = .*\n", lambda _: model, program, flags=re.MULTILINE)
    assert count == 1, program
    return changed


def all_pages() -> list[Page]:
    """The pages of all frameworks; the index is none."""
    return [read_page(path) for path in sorted(PAGES.glob("*.md")) if path.stem != "index"]
