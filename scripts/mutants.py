"""Core files -> random small changes -> which of them the tests notice.

`make mutants` runs it. Cosmic Ray makes the changes (its operators only), coverage says which
tests run the changed line, and these tests run on a copy of the project until one fails. A change
that no test notices survives. The seed decides which changes are drawn, so a run can be repeated.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

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
GUARD_S = 600.0
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

    mutant: Mutant
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


def covering_tests(folder: Path, *, jobs: int) -> dict[tuple[str, int], list[str]]:
    """Run the fast tests once with coverage: the tests that run each line."""
    data, settings = folder / "coverage", folder / "coveragerc"
    settings.write_text(f"[run]\ndata_file = {data}\nsource = {ROOT / 'src' / 'limner'}\n")
    subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-m", "not slow", "-n", str(jobs)),
            *("--cov", "--cov-config", str(settings), "--cov-context=test", "--cov-report="),
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
    if not tests:  # it runs when the module is imported
        package = path.relative_to(ROOT / "src" / "limner").parts[0]
        return [f"tests/{package}"]
    return sorted(tests, key=lambda test: (path.stem not in test.partition("::")[0], test))


def try_mutant(mutant: Mutant, tests: Sequence[str], copy: Path) -> Result:
    """Run the tests of a changed line on a copy of the project."""
    if not tests:
        return Result(mutant, is_killed=False, note="no test runs this line")
    path = copy / mutant.path
    original = path.read_text()
    _write(path, mutant.code)
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests],
            cwd=copy,
            env={**os.environ, "PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": ""},
            capture_output=True,
            text=True,
            timeout=GUARD_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Result(mutant, is_killed=True, note="it hangs")
    finally:
        _write(path, original)
    failed = [line for line in ran.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return Result(mutant, is_killed=ran.returncode != 0, note=failed[0] if failed else "")


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
    args = parser.parse_args()
    names = [f"{package}/{name}.py" for package, names in FILES.items() for name in names]
    paths = [f"src/limner/{name}" for name in names if args.file in (None, name)]
    places = [place for path in paths for place in find_places(path)]
    random.Random(args.seed).shuffle(places)
    mutants = (mutant for place in places if (mutant := make_mutant(place)) is not None)
    drawn = list(islice(mutants, args.count))
    with tempfile.TemporaryDirectory() as folder:
        tests = covering_tests(Path(folder), jobs=args.jobs)
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(args.jobs):
            copy = Path(folder) / f"copy-{number}"
            shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".venv*", ".git", ".bench"))
            copies.put(copy)

        def work(mutant: Mutant) -> Result:
            copy = copies.get()
            try:
                chosen = tests.get((mutant.path, mutant.line), [])[:MAX_TESTS]
                result = try_mutant(mutant, chosen, copy)
            finally:
                copies.put(copy)
            if not result.is_killed:
                print(f"survived  {mutant.path}:{mutant.line}  {mutant.shown}  {result.note}")
            return result

        with ThreadPoolExecutor(args.jobs) as pool:
            results = list(pool.map(work, drawn))
    killed = Counter(result.mutant.path for result in results if result.is_killed)
    for path, count in sorted(Counter(result.mutant.path for result in results).items()):
        print(f"{path:50} {killed[path]:4} of {count}")
    print(f"killed {killed.total()} of {len(results)} (seed {args.seed}, {len(places)} places)")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
