"""Our schemas: whole, valid, true to what is sent, and the documentation made of the same table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft7Validator
from tests.frontends.appserver.appserver_samples import NOTICES, RESULTS

from limner.frontends.appserver.methods import METHODS
from limner.frontends.appserver.schema import BUNDLE, write


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("schemas") / "new" / "folder"
    write(out)
    return out


def schema(written: Path, name: str) -> Any:
    (found,) = written.rglob(f"{name}.json")
    return json.loads(found.read_text())


def test_every_file_is_a_schema_with_the_title_of_its_name(written: Path) -> None:
    for path in written.rglob("*.json"):
        found = json.loads(path.read_text())
        Draft7Validator.check_schema(found)
        assert found["title"] == path.name.partition(".")[0]


def test_a_method_without_an_answer_has_a_schema_all_the_same(written: Path) -> None:
    assert schema(written, "ThreadArchiveResponse")["properties"] == {}


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_follows_our_own_schema(written: Path, name: str) -> None:
    sent = json.loads(msgspec.json.encode(RESULTS[name]))
    Draft7Validator(schema(written, name)).validate(sent)


@pytest.mark.parametrize("notice", NOTICES, ids=lambda notice: type(notice).__name__)
def test_a_notification_follows_our_own_schema(written: Path, notice: Any) -> None:
    sent = json.loads(msgspec.json.encode(notice))
    Draft7Validator(schema(written, type(notice).__name__)).validate(sent)


def test_one_file_has_everything(written: Path) -> None:
    whole = json.loads((written / BUNDLE).read_text())["definitions"]
    single = {path.stem for path in written.rglob("*.json") if path.name != BUNDLE}
    assert single <= set(whole)


def test_schemas_are_the_same_each_time(written: Path, tmp_path: Path) -> None:
    again = {path.relative_to(tmp_path): path.read_bytes() for path in write(tmp_path)}
    assert again == {p.relative_to(written): p.read_bytes() for p in written.rglob("*.json")}


def test_every_method_is_in_the_reference() -> None:
    page = Path(__file__).parents[3] / "docs" / "reference" / "app-server.md"
    text = page.read_text(encoding="utf-8")
    assert [name for name in METHODS if f"| `{name}` |" not in text] == []
