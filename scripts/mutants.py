"""Core files -> random small changes -> which of them the tests notice.

`make mutants` runs it. Cosmic Ray makes the changes (its operators only), coverage says which
tests run the changed line, and these tests run on a copy of the project until one fails. A change
that no test notices survives. The seed decides which changes are drawn, so a run can be repeated.
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
import sys
import sysconfig
import tempfile
import venv
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

import pytest
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names
from coverage import CoverageData

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
GUARD_S = 3600.0
# A line that most tests run is tried with so many of them.
MAX_TESTS = 400


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
    """What the tests said to a change."""

    path: str
    line: int
    shown: str
    is_killed: bool
    note: str


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


def covering_tests(folder: Path, paths: Sequence[str]) -> dict[tuple[str, int], list[str]]:
    """Run the fast tests once with coverage, if that was not done: the tests of each line."""
    data, settings = folder / "coverage", folder / "coveragerc"
    if not data.exists():
        files = "".join(f"\n    {ROOT / path}" for path in paths)
        settings.write_text(f"[run]\ndata_file = {data}\ninclude ={files}\n")
        subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-q", "-m", "not slow", "-n", "2", "--cov"),
                # With a space pytest takes the file for a test, and its folder for the project.
                *(f"--cov-config={settings}", "--cov-context=test", "--cov-report="),
            ],
            cwd=ROOT,
            check=False,
            stdout=sys.stderr,
        )
    coverage = CoverageData(str(data))
    coverage.read()
    return {
        (str(Path(name).relative_to(ROOT)), line): _in_order(contexts, Path(name))
        for name in coverage.measured_files()
        for line, contexts in coverage.contexts_by_lineno(name).items()
    }


def _in_order(contexts: Iterable[str], path: Path) -> list[str]:
    """The tests of a line; those of its own module first."""
    tests = {context.partition("|")[0] for context in contexts if context}
    return sorted(tests, key=lambda test: (path.stem not in test.partition("::")[0], test))


def _folder_of_tests(path: str) -> str:
    """The tests of a package, for a line that runs on import or in another process."""
    return f"tests/{Path(path).relative_to('src/limner').parts[0]}"


class Workshop:
    """A copy of the project with an environment of its own, for one mutant at a time."""

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
        # What fails here without any change says nothing about a mutant.
        self.unusable: set[str] = set()
        self.usable: set[str] = set()

    def try_mutant(self, mutant: Mutant, tests: Sequence[str]) -> Result:
        """Run the tests of a changed line."""
        path = self.folder / mutant.path
        original = path.read_text()
        about = mutant.path, mutant.line, mutant.shown
        while True:
            _write(path, mutant.code)
            try:
                failed = self._first_failure(tests)
            except subprocess.TimeoutExpired:
                return Result(*about, is_killed=True, note="it hangs")
            finally:
                _write(path, original)
            if failed is None or self._passes(failed):
                return Result(*about, is_killed=failed is not None, note=failed or "")

    def _first_failure(self, tests: Sequence[str]) -> str | None:
        """The first of the tests that fails; None if all pass."""
        left_out = [f"--deselect={test}" for test in sorted(self.unusable)]
        ran = subprocess.run(
            [
                *(self.python, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"),
                *("-m", "not slow", f"--timeout={TEST_S}", *left_out, *tests),
            ],
            cwd=self.folder,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": ""},
            capture_output=True,
            text=True,
            timeout=GUARD_S,
            check=False,
        )
        if ran.returncode in (0, pytest.ExitCode.NO_TESTS_COLLECTED):
            return None
        failed = _FAILED.search(ran.stdout)
        return failed[1] if failed else "pytest cannot start"

    def _passes(self, test: str) -> bool:
        """Whether a test passes without a change."""
        if "::" not in test or test in self.usable:
            return True  # a file that cannot be imported fails for the change alone
        if self._first_failure([test]) is None:
            self.usable.add(test)
            return True
        self.unusable.add(test)
        return False


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
        folder = args.folder or Path(scratch)
        results = try_all(drawn, covering_tests(folder, paths), folder, jobs=args.jobs)
    killed = Counter(result.path for result in results if result.is_killed)
    for path, count in sorted(Counter(result.path for result in results).items()):
        print(f"{path:50} {killed[path]:4} of {count}")
    print(f"killed {killed.total()} of {len(results)} (seed {args.seed}, {len(places)} places)")
    return 0


def try_all(
    drawn: Sequence[Mutant], tests: Mapping[tuple[str, int], list[str]], folder: Path, *, jobs: int
) -> list[Result]:
    """Try the mutants that a run in the same folder has not tried."""
    record = folder / "results.jsonl"
    lines = record.read_text().splitlines() if record.exists() else []
    results = [Result(*json.loads(line)) for line in lines]
    tried = {(result.path, result.line, result.shown) for result in results}
    workshops: SimpleQueue[Workshop] = SimpleQueue()
    for number in range(jobs):
        workshops.put(Workshop(folder / f"copy-{number}"))

    def work(mutant: Mutant) -> None:
        workshop = workshops.get()
        try:
            chosen = tests.get((mutant.path, mutant.line)) or [_folder_of_tests(mutant.path)]
            result = workshop.try_mutant(mutant, chosen[:MAX_TESTS])
        finally:
            workshops.put(workshop)
        results.append(result)
        with record.open("a") as file:
            file.write(json.dumps(result) + "\n")
        if not result.is_killed:
            print(f"survived  {mutant.path}:{mutant.line}  {mutant.shown}", flush=True)

    waiting = [one for one in drawn if (one.path, one.line, one.shown) not in tried]
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(work, waiting))
    return results


if __name__ == "__main__":
    raise SystemExit(main())
