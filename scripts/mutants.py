"""Core files -> random small changes -> which of them the tests notice.

`make mutants` runs it. Cosmic Ray makes the changes (its operators only). The fast tests of the
changed module and of its package run on a copy of the project until one fails. Then all fast tests
run once on all changes that are left, and the tests that fail run on each of them. A change that no
test notices survives. The seed decides which changes are drawn, so a run can be repeated.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import shutil
import subprocess
import sysconfig
import tempfile
import venv
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from difflib import SequenceMatcher
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from typing import Any, ClassVar, NamedTuple

import pytest
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

ROOT = Path(__file__).parents[1]
FILES = {
    "money": ("caps", "ledger", "paid_call", "records"),
    "storage": ("store", "reach", "blobs", "files", "temp_file", "owners", "incoming_files"),
    "pictures": ("take", "gc"),
    "imaging/fit": ("ladder",),
    "agent": ("loop", "ingress", "leases"),
    "tools": ("generation", "output_file", "recovery", "registry"),
    "wires": ("openai_responses",),
    "frontends/appserver": ("dispatch",),
    "frontends/mcp": ("running_calls", "resume", "spend"),
    "catalogue": ("prices", "tokens"),
}
SEED = 20261116
COUNT = 200
# No fast test needs so long; a change that makes one hang is noticed.
TEST_S = 120


class Place(NamedTuple):
    """Where Cosmic Ray can make a change: the n-th place of one operator in one file."""

    path: str
    operator: str
    occurrence: int


class Mutant(NamedTuple):
    """One change of one file."""

    path: str
    line: int
    code: str
    shown: str


class Result(NamedTuple):
    """A change, and the test that noticed it; empty if none did."""

    mutant: Mutant
    killer: str


def find_places(path: str) -> Iterator[Place]:
    """Every place in a file where an operator without arguments applies."""
    nodes = list(ast_nodes(get_ast((ROOT / path).read_text())))
    for name in sorted(operator_names()):
        if get_operator(name).arguments():
            continue
        operator = get_operator(name)()
        count = sum(len(list(operator.mutation_positions(node))) for node in nodes)
        yield from (Place(path, name, number) for number in range(count))


def make_mutant(place: Place) -> Mutant | None:
    """Make the change; None if the file then does the same, or is no Python."""
    code = (ROOT / place.path).read_text()
    changed = mutate_code(code, get_operator(place.operator)(), place.occurrence)
    if changed is None or _meaning(changed) in (None, _meaning(code)):
        return None
    line, shown = _difference(code, changed)
    return Mutant(place.path, line, changed, shown)


class _WithoutTypes(ast.NodeTransformer):
    """Drops what does not run: annotations are strings in every file of ours."""

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        node.annotation = ast.Constant(None)
        return node

    def visit_FunctionDef(self, node: Any) -> ast.AST:
        self.generic_visit(node)
        node.returns = None
        return node

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 - ast's name


def _meaning(code: str) -> str | None:
    try:
        return ast.dump(_WithoutTypes().visit(ast.parse(code)))
    except SyntaxError:
        return None


def _difference(before: str, after: str) -> tuple[int, str]:
    pairs = zip(before.splitlines(), after.splitlines(), strict=False)
    for number, (old, new) in enumerate(pairs, start=1):
        if old != new:
            return number, f"{old.strip()}  ->  {new.strip()}"
    return 1, "a line less"


def near_tests(path: str) -> list[list[str]]:
    """The tests that probably notice a change: those of the module, then those of its package."""
    module = Path(path).relative_to("src/limner")
    folder = ROOT / "tests" / module.parent
    while not folder.is_dir():  # tests/imaging has the tests of imaging/fit
        folder = folder.parent
    own = sorted(file for file in folder.glob("test_*.py") if module.stem in file.stem)
    tests = [[str(file.relative_to(ROOT)) for file in own], [str(folder.relative_to(ROOT))]]
    return [chosen for chosen in tests if chosen]


class Workshop:
    """A copy of the project with an environment of its own, for one mutant at a time."""

    # The files that ran on an unchanged copy. What failed there says nothing about a mutant.
    checked: ClassVar[set[str]] = set()
    unusable: ClassVar[set[str]] = set()

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        ignored = shutil.ignore_patterns(".venv*", ".git", ".bench")
        shutil.copytree(ROOT, folder, ignore=ignored, dirs_exist_ok=True)
        # The processes that the tests start must run the copy too, so it is not only on PYTHONPATH.
        venv.create(folder / ".venv", symlinks=True)
        self.python = folder / ".venv" / "bin" / "python"
        packages = next((folder / ".venv" / "lib").glob("*/site-packages"))
        (packages / "a.pth").write_text(f"{folder / 'src'}\n{sysconfig.get_path('purelib')}\n")
        script = self.python.with_name("limner")
        script.write_text(f"#!{self.python}\n{_SCRIPT}")
        script.chmod(0o755)
        if self._failures(["tests/test_shape.py"]):
            raise SystemExit("The tests cannot run on a copy.")

    def first_failure(self, mutant: Mutant, tests: Sequence[str]) -> str | None:
        """The first of the tests that notices a change; None if all pass."""
        if not tests:
            return None
        while True:
            with self._changed({mutant.path: mutant.code}):
                failed = self._failures(tests, "-x")
            usable = [test for test in failed if self._passes(test)]
            if usable or not failed:
                return usable[0] if usable else None

    def all_failures(self, mutants: Sequence[Mutant]) -> list[str]:
        """Every fast test that fails if all these changes are made at once."""
        with self._changed(_together(mutants)):
            failed = self._failures(["tests"], "-n", "2")
        return [test for test in failed if self._passes(test)]

    @contextmanager
    def _changed(self, codes: Mapping[str, str]) -> Iterator[None]:
        for path, code in codes.items():
            _write(self.folder / path, code)
        try:
            yield
        finally:
            for path in codes:
                _write(self.folder / path, (ROOT / path).read_text())

    def _failures(self, tests: Sequence[str], *options: str) -> list[str]:
        """Run tests; the ones that fail."""
        left_out = [f"--deselect={test}" for test in sorted(self.unusable)]
        ran = subprocess.run(
            [
                *(self.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options),
                *("-m", "not slow", f"--timeout={TEST_S}", *left_out, *tests),
            ],
            cwd=self.folder,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": ""},
            capture_output=True,
            text=True,
            check=False,
        )
        if ran.returncode in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            return []
        if ran.returncode < 0:
            raise SystemExit("The tests were stopped.")
        return _FAILED.findall(ran.stdout) or ["pytest cannot start"]

    def _passes(self, test: str) -> bool:
        """Whether a test passes without a change; its whole file runs once."""
        file = test.partition("::")[0]
        if not (ROOT / file).is_file():
            return True  # pytest could not start, which it can without a change
        if file not in self.checked:
            self.unusable.update(self._failures([file]))
            self.checked.add(file)
        return test not in self.unusable


def _together(mutants: Sequence[Mutant]) -> dict[str, str]:
    """All changes in one text of each file; of two in one line, the first."""
    texts: dict[str, str] = {}
    for path in {mutant.path for mutant in mutants}:
        lines = (ROOT / path).read_text().splitlines(keepends=True)
        edits: dict[int, tuple[int, list[str]]] = {}
        for mutant in mutants:
            if mutant.path == path:
                changed = mutant.code.splitlines(keepends=True)
                for tag, start, end, new, new_end in SequenceMatcher(
                    None, lines, changed, autojunk=False
                ).get_opcodes():
                    if tag != "equal":
                        edits.setdefault(start, (end, changed[new:new_end]))
        for start, (end, new_lines) in sorted(edits.items(), reverse=True):
            lines[start:end] = new_lines
        texts[path] = "".join(lines)
    return texts


_FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)
_SCRIPT = "from limner.frontends.cli.main import main\nraise SystemExit(main())\n"


def _write(path: Path, code: str) -> None:
    """Change a module. Python would keep its bytecode if the size and the second are the same."""
    path.write_text(code)
    for bytecode in path.parent.glob(f"__pycache__/{path.stem}.*"):
        bytecode.unlink()


def main() -> int:
    """Draw the mutants, try them, and print what survived."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--file", help="only this file, as money/ledger.py")
    parser.add_argument("--folder", type=Path, help="keep the results, and continue with them")
    args = parser.parse_args()
    names = [f"{package}/{name}.py" for package, names in FILES.items() for name in names]
    paths = [f"src/limner/{name}" for name in names if args.file in (None, name)]
    places = [place for path in paths for place in find_places(path)]
    random.Random(args.seed).shuffle(places)
    mutants = (mutant for place in places if (mutant := make_mutant(place)) is not None)
    drawn = list(islice(mutants, args.count))
    with tempfile.TemporaryDirectory() as scratch:
        run = Run(drawn, args.folder or Path(scratch), jobs=args.jobs)
        run.try_near_tests()
        run.try_all_tests()
    results = run.results
    killed = Counter(result.mutant.path for result in results if result.killer)
    for path, count in sorted(Counter(mutant.path for mutant in drawn).items()):
        print(f"{path:50} {killed[path]:4} of {count}")
    print(f"killed {killed.total()} of {len(results)} (seed {args.seed}, {len(places)} places)")
    return 0


class Run:
    """The mutants of one run and what is known about them; a folder keeps it for the next run."""

    def __init__(self, drawn: Sequence[Mutant], folder: Path, *, jobs: int) -> None:
        self._drawn, self._jobs = drawn, jobs
        self._record = folder / "results.jsonl"
        lines = self._record.read_text().splitlines() if self._record.exists() else []
        self._known = {
            (path, line, shown): note for path, line, shown, note in map(json.loads, lines)
        }
        self._workshops: SimpleQueue[Workshop] = SimpleQueue()
        for number in range(jobs):
            self._workshops.put(Workshop(folder / f"copy-{number}"))

    @property
    def results(self) -> list[Result]:
        """What is known about each mutant."""
        return [Result(mutant, self._known.get(_key(mutant), "")) for mutant in self._drawn]

    def try_near_tests(self) -> None:
        """Try every mutant that was not tried with the tests of its module and its package."""
        new = [mutant for mutant in self._drawn if _key(mutant) not in self._known]
        self._try({mutant: near_tests(mutant.path) for mutant in new})

    def try_all_tests(self) -> None:
        """Run all fast tests on all survivors at once, then the ones that fail on each of them."""
        survivors = [result.mutant for result in self.results if not result.killer]
        workshop = self._workshops.get()
        failed = workshop.all_failures(survivors)
        self._workshops.put(workshop)
        self._try({mutant: [failed] for mutant in survivors})
        for result in self.results:
            if not result.killer:
                where = f"{result.mutant.path}:{result.mutant.line}"
                print(f"survived  {where}  {result.mutant.shown}", flush=True)

    def _try(self, tests: Mapping[Mutant, Sequence[Sequence[str]]]) -> None:
        def work(mutant: Mutant) -> None:
            workshop = self._workshops.get()
            try:
                found = (workshop.first_failure(mutant, some) for some in tests[mutant])
                killer = next(filter(None, found), "")
            finally:
                self._workshops.put(workshop)
            self._known[_key(mutant)] = killer
            with self._record.open("a") as file:
                file.write(json.dumps([*_key(mutant), killer]) + "\n")

        with ThreadPoolExecutor(self._jobs) as pool:
            list(pool.map(work, tests))


def _key(mutant: Mutant) -> tuple[str, int, str]:
    return mutant.path, mutant.line, mutant.shown


if __name__ == "__main__":
    raise SystemExit(main())
