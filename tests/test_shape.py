"""The shape of the code base: what reviews would otherwise have to say again and again."""

from __future__ import annotations

import ast
import inspect
import re
from collections import Counter
from functools import cache
from pathlib import Path

from limner import errors

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))
DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]

# What two of the tests still find. Names only leave these lists.
TRADE_WORDS = {
    *("blocking", "fitting", "imaging", "logging", "planning"),
    *("pricing", "rendering", "streaming", "testing"),
}


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def test_no_function_is_longer_than_a_screen() -> None:
    long = [
        f"{_name(path)}:{node.lineno} {node.name}"
        for path in SOURCES
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno + 1 > 60
    ]
    assert long == []


def test_no_module_is_a_drawer_for_everything() -> None:
    drawers = {"utils", "util", "helpers", "helper", "common", "misc"}
    assert [_name(path) for path in SOURCES if path.stem in drawers] == []


def test_a_value_about_money_or_pictures_cannot_change_and_names_its_fields() -> None:
    limner = ROOT / "src" / "limner"
    places = ("money", "pictures", "catalogue/prices.py", "catalogue/tokens.py")
    values = {
        f"{_name(path)}:{node.name}": {
            word.arg: ast.unparse(word.value)
            for word in node.keywords
            if word.arg in ("frozen", "kw_only")
        }
        for path in SOURCES
        if any(path.is_relative_to(limner / place) for place in places)
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.ClassDef) and "msgspec.Struct" in map(ast.unparse, node.bases)
    }
    assert len(values) > 30
    assert values == {name: {"frozen": "True", "kw_only": "True"} for name in values}


def test_a_public_class_name_has_one_meaning() -> None:
    # The types of the protocols have the names that others gave them.
    theirs = {"protocol", "v1"}
    ours = [path for path in SOURCES if not theirs & set(path.relative_to(ROOT).parts)]
    count = Counter(
        node.name
        for path in ours
        for node in _tree(path).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name for name, times in count.items() if times > 1} == set()


def test_a_module_is_named_by_a_noun_or_a_word_of_the_trade() -> None:
    names = {part for path in SOURCES for part in path.relative_to(ROOT).with_suffix("").parts}
    assert {name for name in names if name.endswith("ing")} - TRADE_WORDS == set()


def test_every_module_says_in_one_line_what_crosses_it() -> None:
    assert [_name(path) for path in SOURCES if not ast.get_docstring(_tree(path))] == []


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
    texts = [*SOURCES, *DOCUMENTS, *(ROOT / "scripts").glob("*.*"), ROOT / "Makefile"]
    texts += [ROOT / "pyproject.toml", *(ROOT / "requirements").glob("*")]
    assert [_name(p) for p in texts if telling.search(p.read_text(encoding="utf-8"))] == []


def test_every_link_in_the_documents_leads_somewhere() -> None:
    broken = [
        f"{_name(document)}: {target}"
        for document in DOCUMENTS
        for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", document.read_text("utf-8"))
        if not (document.parent / target).exists()
    ]
    assert broken == []
