"""The shape of the code base: what reviews would otherwise have to say again and again."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

from limner import errors

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", SOURCES, ids=_name)
def test_a_module_is_short_enough_to_have_one_purpose(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


@pytest.mark.parametrize("path", TESTS, ids=_name)
def test_a_test_module_is_short_enough_to_be_read(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 600


def test_no_function_is_longer_than_a_screen() -> None:
    long = [
        f"{_name(path)}:{node.lineno} {node.name}"
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno + 1 > 60
    ]
    assert long == []


def test_no_module_is_a_drawer_for_everything() -> None:
    drawers = {"utils", "util", "helpers", "helper", "common", "misc"}
    assert [_name(path) for path in SOURCES if path.stem in drawers] == []


def test_every_module_says_in_one_line_what_crosses_it() -> None:
    silent = [
        _name(path)
        for path in SOURCES
        if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert silent == []


def test_the_error_tree_in_the_docstring_is_the_error_tree() -> None:
    drawn = re.findall(r"[├└]── (\w+)|^    (LimnerError)\b", inspect.getdoc(errors) or "", re.M)
    documented = {first or second for first, second in drawn} | {"LimnerError"}
    defined = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.LimnerError)
    }
    assert documented == defined


def test_every_error_code_is_unique_to_its_class() -> None:
    classes = [
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, errors.LimnerError)
    ]
    # The general provider error has the code of its commonest case.
    codes = [c.code for c in classes if c is not errors.ProviderError]
    assert len(codes) == len(set(codes))


def test_no_tracked_text_names_this_machine() -> None:
    telling = re.compile(r"(?<![\w.])/(work|root|home/\w+)/(?!user\b)")
    texts = [*SOURCES, *DOCUMENTS, *(ROOT / "scripts").glob("*"), ROOT / "Makefile"]
    assert [_name(p) for p in texts if telling.search(p.read_text(encoding="utf-8"))] == []


def test_every_link_in_the_documents_leads_somewhere() -> None:
    broken = [
        f"{_name(document)}: {target}"
        for document in DOCUMENTS
        for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", document.read_text("utf-8"))
        if not (document.parent / target).exists()
    ]
    assert broken == []
