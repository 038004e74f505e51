"""Our messages held to what the real Codex, and the official SDK, say about theirs."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft7Validator
from tests.frontends.appserver.appserver_samples import NOTICES, QUESTIONS, RESULTS
from tests.fuzz import EVERY_CHECK
from tests.servers.codex_schema import CodexSchema, printed, recorded
from tests.servers.components import needs

from limner.frontends.appserver.methods import METHODS
from limner.frontends.appserver.protocol import notifications
from limner.frontends.appserver.protocol.base import OUR_NOTIFICATIONS
from limner.frontends.appserver.protocol.notifications import METHOD_OF, NOTIFICATIONS
from limner.frontends.appserver.protocol.params import read_params
from limner.frontends.appserver.protocol.server_requests import SERVER_REQUESTS
from limner.frontends.appserver.protocol.startup import UNSERVED
from limner.frontends.appserver.schema import params_name, result_name, write
from limner.frontends.appserver.v1.types import METHODS as FIRST_METHODS

THEIRS = {name: method for name, method in METHODS.items() if not method.is_ours}
# What we add to an item.
OUR_MEMBERS = {"label", "detail"}
# What upstream's schema has and a plain answer of upstream's does not: it is sent on request only.
UNSENT = {"supportsIndependentSpeedModes"}


@pytest.fixture(scope="module")
def upstream() -> CodexSchema:
    return recorded()


@needs("codex_cli_bin")
@pytest.mark.slow
def test_the_recorded_schemas_are_what_codex_prints(upstream: CodexSchema) -> None:
    """The tests have 0.163; ``LIMNER_TEST_CODEX`` may name the release that was recorded."""
    found = printed()
    if found.release == upstream.release:
        assert found == upstream
        return
    names = {*found.types, *upstream.types}
    differ = {name for name in names if found.types.get(name) != upstream.types.get(name)}
    assert (found.release, len(differ), set(found.types) - set(upstream.types)) == (
        "0.163.0",
        48,
        set(),
    )


def as_json(message: Any) -> Any:
    return json.loads(msgspec.json.encode(message))


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_one_by_the_schema_of_codex(name: str, upstream: CodexSchema) -> None:
    schema = upstream.schema(name)
    sent = as_json(RESULTS[name])

    Draft7Validator(schema).validate(sent)
    assert set(schema.get("properties", sent)) - UNSENT == set(sent)


@pytest.mark.parametrize("notice", NOTICES, ids=lambda notice: type(notice).__name__)
def test_a_notification_is_one_by_the_schema_of_codex(
    notice: notifications.Notice, upstream: CodexSchema
) -> None:
    schema = upstream.schema(type(notice).__name__)
    Draft7Validator(schema).validate(as_json(notice))


@pytest.mark.parametrize("message", QUESTIONS, ids=lambda message: type(message).__name__)
def test_a_question_and_its_answer_are_so_by_the_schema_of_codex(
    message: Any, upstream: CodexSchema
) -> None:
    schema = upstream.schema(type(message).__name__)
    Draft7Validator(schema).validate(as_json(message))
    assert set(as_json(message)) <= set(schema["properties"])


@pytest.mark.parametrize("kind", ["Thread", "Turn", "TurnError", "Model", "RateLimitSnapshot"])
def test_an_object_has_the_members_that_codex_sends(kind: str, upstream: CodexSchema) -> None:
    found = [
        type_
        for module in ("threads", "turns", "accounts")
        if (
            type_ := getattr(
                import_module(f"limner.frontends.appserver.protocol.{module}"), kind, None
            )
        )
    ]
    ours = {field.encode_name for field in msgspec.structs.fields(found[0])}
    assert ours == set(upstream.types[kind]["properties"])


def test_items_have_the_members_that_codex_sends(upstream: CodexSchema) -> None:
    common = upstream.types["ThreadItem"]["properties"]
    theirs = {
        one["properties"]["type"]["enum"][0]: {*one["properties"], *common}
        for one in upstream.types["ThreadItem"]["oneOf"]
    }
    seen = [as_json(notice)["item"] for notice in NOTICES if hasattr(notice, "item")]
    # An image is a file at OpenAI or, as here, a result.
    theirs["imageGeneration"] |= {"result"}
    assert [(item["type"], set(item) - OUR_MEMBERS) for item in seen] == [
        (item["type"], theirs[item["type"]]) for item in seen
    ]


@pytest.mark.parametrize("method", THEIRS)
def test_params_are_read_by_the_names_and_needs_of_codex(
    method: str, upstream: CodexSchema
) -> None:
    kind = METHODS[method].params
    name = params_name(METHODS[method])
    if name is None or name == "LoginAccountParams":
        return
    schema = upstream.schema(name)
    fields = msgspec.structs.fields(kind)
    ours = METHODS[method].our_fields
    assert {f.encode_name for f in fields} - ours <= set(schema.get("properties", {}))
    assert {f.encode_name for f in fields if f.required} == set(schema.get("required", []))


def test_methods_notifications_and_questions_are_those_of_codex(upstream: CodexSchema) -> None:
    def named(bundle: str) -> set[str]:
        kinds = upstream.schema(bundle)["oneOf"]
        return {kind["properties"]["method"]["enum"][0] for kind in kinds}

    assert set(THEIRS) <= named("ClientRequest")
    assert set(NOTIFICATIONS) - OUR_NOTIFICATIONS <= named("ServerNotification")
    assert set(SERVER_REQUESTS) <= named("ServerRequest")


def test_what_is_gated_is_what_codex_leaves_out_of_its_stable_schemas(
    upstream: CodexSchema,
) -> None:
    found = {}
    for method, about in THEIRS.items():
        name = params_name(about)
        if name is None:
            continue
        assert about.is_experimental == (upstream.stable.get(name, {}) is None), method
        if about.is_experimental:
            continue
        whole, stable = upstream.schema(name), upstream.schema(name, stable=True)
        gated = set(whole.get("properties", {})) - set(stable.get("properties", {}))
        if gated:
            found[method] = gated | METHODS[method].our_fields
    found["thread/tools/set"] = {"dynamicTools"}
    ours = {name: row.experimental_fields for name, row in METHODS.items()}
    assert found == {name: fields for name, fields in ours.items() if fields}


def test_our_schemas_have_the_file_names_of_codex(upstream: CodexSchema, tmp_path: Path) -> None:
    ours = {str(path.relative_to(tmp_path)) for path in write(tmp_path)}
    assert ours - set(upstream.files) == {
        "limner_app_server_protocol.schemas.json",
        "v2/ThreadToolsSetParams.json",
        "v2/ThreadToolsSetResponse.json",
        "v2/ThreadSpendUpdatedNotification.json",
        "v2/ThreadItemStoredNotification.json",
        "v2/ThreadToolsChangedNotification.json",
    }


def values(schema: Any, root: Any, depth: int = 0) -> st.SearchStrategy[Any]:
    """What a schema allows, as far as the schemas of Codex go."""
    if schema is True:
        return st.one_of(st.none(), st.booleans(), st.text(max_size=5), st.integers(0, 9))
    if "$ref" in schema:
        return values(root["definitions"][schema["$ref"].rpartition("/")[2]], root, depth + 1)
    for word in ("anyOf", "oneOf", "allOf"):
        if word in schema:
            chosen = st.one_of([values(one, root, depth + 1) for one in schema[word]])
            if "properties" not in schema:
                return chosen
            members = {k: v for k, v in schema.items() if k != word}
            return st.tuples(values(members, root, depth), chosen).map(lambda two: two[0] | two[1])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kinds = schema.get("type", "null")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    return st.one_of([of_type(kind, schema, root, depth) for kind in kinds])


def of_type(kind: str, schema: Any, root: Any, depth: int) -> st.SearchStrategy[Any]:
    match kind:
        case "string":
            return st.text(max_size=8)
        case "integer":
            return st.integers(int(schema.get("minimum", -(2**31))), 2**31)
        case "number":
            return st.floats(0, 9)
        case "boolean":
            return st.booleans()
        case "null":
            return st.none()
        case "array":
            most = 2 if depth < 8 else 0
            return st.lists(values(schema.get("items", True), root, depth + 1), max_size=most)
    members = schema.get("properties", {})
    needed = {k: values(v, root, depth + 1) for k, v in members.items() if k in required(schema)}
    more = {k: values(v, root, depth + 1) for k, v in members.items() if k not in needed}
    return st.fixed_dictionaries(needed, optional=more if depth < 8 else {})


def required(schema: Any) -> list[str]:
    return schema.get("required", [])


# That an item must be an object is found out at once here, and later by Codex.
@pytest.mark.parametrize("method", sorted(set(THEIRS) - {"thread/inject_items"}))
def test_whatever_codex_would_read_is_read_here_property(
    method: str, upstream: CodexSchema
) -> None:
    about = METHODS[method]
    name = params_name(about)
    if name is None:
        return
    schema = upstream.schema(name)

    @settings(max_examples=25, suppress_health_check=EVERY_CHECK)
    @given(values(schema, schema))
    def check(params: Any) -> None:
        read_params(about.params, params)

    check()


# Results of methods that limner has from the schemas of 0.166, which the SDK of 0.163 has not.
LATER_THAN_THE_SDK = {
    "CollaborationModeListResponse",
    "FuzzyFileSearchResponse",
    "ProjectListResponse",
    "RemoteControlStatusReadResponse",
    "ThreadItemsReadResponse",
    "ThreadReadStateUpdateResponse",
    "ThreadSearchResponse",
}


@pytest.mark.slow
@needs("openai_codex")
@pytest.mark.parametrize("name", [n for n in RESULTS if n != "ConfigReadResponse"])
def test_the_official_sdk_reads_a_result(name: str) -> None:
    types = import_module("openai_codex.generated.v2_all")
    if name in LATER_THAN_THE_SDK:
        assert not hasattr(types, name)
        return
    kind = getattr(types, name)
    kind.model_validate(as_json(RESULTS[name]))


@needs("openai_codex")
@pytest.mark.parametrize("notice", NOTICES, ids=lambda notice: type(notice).__name__)
def test_the_official_sdk_reads_a_notification(notice: notifications.Notice) -> None:
    registry = import_module("openai_codex.generated.notification_registry")
    kind = registry.NOTIFICATION_MODELS[METHOD_OF[type(notice)]]
    kind.model_validate(as_json(notice))


def test_every_method_of_codex_is_served_or_listed_with_a_reason(upstream: CodexSchema) -> None:
    asked = {
        name
        for form in upstream.types["ClientRequest"]["oneOf"]
        for name in form["properties"]["method"]["enum"]
    }
    starts = tuple(start for names in UNSERVED for start in names.split(", "))
    unknown = asked - {*METHODS} - {*FIRST_METHODS}
    assert [name for name in sorted(unknown) if not name.startswith(starts)] == []
    assert not {name for names in UNSERVED for name in names.split(", ")} & {*METHODS}


def test_every_method_and_notification_has_a_sample() -> None:
    results = {result_name(method) for method in METHODS.values()}
    said_nothing = {result_name(m) for m in METHODS.values() if m.result.__name__ == "Empty"}
    assert set(RESULTS) == results - said_nothing - {"InitializeResponse"}
    sampled = {METHOD_OF[type(notice)] for notice in NOTICES}
    assert sampled == set(NOTIFICATIONS) - OUR_NOTIFICATIONS
