"""The Markdown pages of the repository -> the folder from which `zensical` builds the site.

usage: python scripts/docs_site.py

Pages outside of docs/ and source files that pages link to become pages of the site. A link that
leads nowhere, or a page that no section of `zensical.toml` has, ends the build.
"""

from __future__ import annotations

import re
import shutil
import sys
import tomllib
from collections.abc import Iterator
from os.path import relpath
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STAGE = ROOT / "build" / "docs"
# Pages outside of docs/, and their names on the site.
OTHER_PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "clients/node/README.md": "guides/node-client.md",
    "tests/faults/RESULTS.md": "numbers/faults.md",
    "benchmarks/RESULTS.md": "numbers/benchmarks.md",
    "benchmarks/RESULTS-differences.md": "numbers/differences.md",
}
LANGUAGES = {
    ".py": "python",
    ".mjs": "js",
    ".toml": "toml",
    ".json": "json",
    ".yml": "yaml",
    ".yaml": "yaml",
    ".sh": "sh",
}
# A link or a picture in Markdown, or the source of a picture in HTML; not in a block of code.
_LINK = re.compile(r"(\]\(|<img src=\")(?![a-z]+:|#)([^)\"#\s]+)")
_CODE = re.compile(r"(^```.*?^```|`[^`\n]*`)", re.DOTALL | re.MULTILINE)
# A block of code that names its file after the language.
_NAMED_BLOCK = re.compile(r"\A(```\w+) (\S+)$", re.MULTILINE)


class Site:
    """The pages of the site, by their files in the repository."""

    def __init__(self) -> None:
        self.names: dict[Path, str] = {
            page: str(page.relative_to(ROOT / "docs"))
            for page in sorted((ROOT / "docs").rglob("*"))
            if page.is_file()
        }
        self.names |= {ROOT / file: name for file, name in OTHER_PAGES.items()}
        self.problems: list[str] = []

    def write(self) -> None:
        """Write every page, and those that are found on the way."""
        done: set[Path] = set()
        while left := self.names.keys() - done:
            for file in sorted(left):
                self._write_page(file)
            done |= left
        self.problems += [f"{name} is in no section of zensical.toml" for name in self._unlisted()]

    def _write_page(self, file: Path) -> None:
        target = STAGE / self.names[file]
        target.parent.mkdir(parents=True, exist_ok=True)
        if file.is_dir():
            text = f"# {file.relative_to(ROOT)}\n\n" + "".join(self._listed(file))
        elif file.suffix == ".md":
            text = file.read_text(encoding="utf-8")
        elif target.suffix == ".md":
            source = file.read_text(encoding="utf-8")
            language = LANGUAGES.get(file.suffix, "")
            text = f"# {file.relative_to(ROOT)}\n\n````{language}\n{source}````\n"
        else:
            shutil.copyfile(file, target)
            return
        parts = _CODE.split(text)
        parts[::2] = [self._with_links(part, file) for part in parts[::2]]
        parts[1::2] = [_NAMED_BLOCK.sub(r'\1 title="\2"', part) for part in parts[1::2]]
        target.write_text("".join(parts), encoding="utf-8")

    def _listed(self, folder: Path) -> Iterator[str]:
        for file in sorted(folder.iterdir()):
            if file.suffix in LANGUAGES or (file.is_dir() and not file.name.startswith("__")):
                yield f"- [{file.name}]({file.name})\n"

    def _with_links(self, text: str, file: Path) -> str:
        base = file if file.is_dir() else file.parent

        def replace(link: re.Match[str]) -> str:
            linked = (base / link[2]).resolve()
            if not linked.exists() or not linked.is_relative_to(ROOT):
                where = file.relative_to(ROOT)
                self.problems.append(f"{where} links to {link[2]}: nothing is there")
                return link[0]
            if linked not in self.names:
                self.names[linked] = f"source/{linked.relative_to(ROOT)}.md"
            return link[1] + relpath(self.names[linked], Path(self.names[file]).parent)

        return _LINK.sub(replace, text)

    def _unlisted(self) -> list[str]:
        listed = (ROOT / "zensical.toml").read_text(encoding="utf-8")
        in_sections = set(_paths(tomllib.loads(listed)["project"]["nav"]))
        pages = {
            name
            for name in self.names.values()
            if name.endswith(".md") and not name.startswith("source/")
        }
        self.problems += [f"zensical.toml lists {name}" for name in in_sections - pages]
        return sorted(pages - in_sections)


def _paths(nav: object) -> Iterator[str]:
    match nav:
        case str():
            yield nav
        case list():
            for one in nav:
                yield from _paths(one)
        case dict():
            for one in nav.values():
                yield from _paths(one)
        case _:
            raise ValueError(f"not a part of a navigation: {nav!r}")


def main() -> int:
    """Write the folder, or say what is wrong."""
    shutil.rmtree(STAGE, ignore_errors=True)
    site = Site()
    site.write()
    for problem in site.problems:
        print(problem, file=sys.stderr)
    return 1 if site.problems else 0


if __name__ == "__main__":
    sys.exit(main())
