"""The codes of errors: each one is declared, and in the reference."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import limner
from limner import errors
from limner.errors import MORE_CODES, LimnerError, ProviderError

SOURCE = Path(limner.__file__).parent
PAGE = Path(__file__).parent.parent / "docs" / "reference" / "errors.md"
_CODE = re.compile(r"[A-Z]+(_[A-Z]+)+")


@cache
def _calls() -> list[tuple[ast.AST, Mapping[str, object]]]:
    """Every call and assignment of the package, and the constants of all its modules."""
    files = [file for file in SOURCE.rglob("*.py") if "testing" not in file.parts]
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in files]
    constants = {
        ast.unparse(node.targets[0]): node.value.value
        for tree in trees
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
    }
    kinds = (ast.Call, ast.Assign)
    return [
        (node, constants) for tree in trees for node in ast.walk(tree) if isinstance(node, kinds)
    ]


def _raised() -> Iterator[tuple[str, str]]:
    """The class and the code of every call with ``code=`` in the package, and of assignments."""
    for node, constants in _calls():
        if isinstance(node, ast.Call):
            for word in node.keywords:
                if word.arg in ("code", "domain_code"):
                    yield from _codes(ast.unparse(node.func), word.value, constants)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).endswith("error.code"):
            yield from _codes("", node.value, constants)


def _codes(
    kind: str, value: ast.expr, constants: Mapping[str, object]
) -> Iterator[tuple[str, str]]:
    text = value.value if isinstance(value, ast.Constant) else None
    if isinstance(value, ast.Name):
        text = constants.get(value.id)
    if isinstance(text, str) and _CODE.fullmatch(text):
        yield kind, text


def _classes() -> list[type[LimnerError]]:
    found = [one for one in vars(errors).values() if isinstance(one, type)]
    return [one for one in found if issubclass(one, LimnerError)]


def test_every_code_in_the_source_is_declared_with_its_class() -> None:
    of_classes = {one.code for one in _classes()}
    of_classes |= {one.model_code for one in _classes() if issubclass(one, ProviderError)}
    raised = [(kind, code) for kind, code in _raised() if code not in of_classes]
    assert {code for _, code in raised} == {*MORE_CODES}
    classes = {one.__name__ for one in _classes()}
    wrong = {
        (code, kind)
        for kind, code in raised
        if kind in classes and kind != MORE_CODES[code][0].__name__
    }
    assert wrong == set()


def _retries() -> Iterator[tuple[str, str]]:
    """The code of every error that the source raises, and whether a retry helps: yes, no, if."""
    of_class = {one.__name__: one for one in _classes()}
    for node, constants in _calls():
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        kind = of_class.get(node.func.id)
        if kind is None:
            continue
        words = {word.arg: word.value for word in node.keywords}
        said = words.get("retryable", ast.Constant(kind.retryable))
        answer = "if" if not isinstance(said, ast.Constant) else "yes" if said.value else "no"
        own = [code for _, code in _codes("", words.get("code", ast.Constant("")), constants)]
        yield (own[0] if own else kind.code), answer


def test_the_reference_says_whether_a_retry_helps_as_the_source_does() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \|[^|]+\|[^|]+\| ([^|]+) \|", PAGE.read_text("utf-8"), flags=re.M
    )
    said = {code: answer if answer in ("yes", "no") else "if" for code, answer in rows}
    wrong = {
        (code, answer) for code, answer in _retries() if said.get(code, "if") not in ("if", answer)
    }
    assert wrong == set()


def test_the_json_of_an_error_has_its_extras_as_members_and_names_the_wrong_field() -> None:
    wrong = errors.InputInvalid("n must be at most 10", field="n", extras={"most": 10})
    assert wrong.as_json() == {
        "code": "INPUT_INVALID",
        "message": "n must be at most 10",
        "retryable": False,
        "billed": False,
        "cost_usd": 0.0,
        "hint": None,
        "most": 10,
        "field": "n",
    }
    assert "field" not in errors.InputInvalid("the arguments must be an object").as_json()


def test_every_code_is_in_the_reference() -> None:
    listed = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(encoding="utf-8"), flags=re.M)
    codes = {*MORE_CODES, *(one.code for one in _classes())}
    codes |= {one.model_code for one in _classes() if issubclass(one, ProviderError)}
    assert (len(listed), {*listed}) == (len({*listed}), codes)


def test_the_errors_behind_an_error_are_found_even_if_one_is_behind_itself() -> None:
    first, last = KeyError("first"), OSError("last")
    first.__cause__, last.__context__ = last, first
    assert [*errors.causes(first)] == [first, last]
