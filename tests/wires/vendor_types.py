"""The vendors' own published types, as judges of what we send and of what our servers say."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from anthropic.types.message_create_params import MessageCreateParamsStreaming
from botocore.session import get_session
from botocore.validate import ParamValidator
from google.genai import types as genai
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import TypeAdapter

PARAMS: Mapping[str, Any] = {
    "openai-responses": ResponseCreateParamsStreaming,
    "openai-chat": CompletionCreateParamsStreaming,
    "anthropic-messages": MessageCreateParamsStreaming,
}


def assert_legal(api: str, sent: dict[str, Any]) -> None:
    """The vendor's types know every field, at every depth, and take every value."""
    judge = _JUDGES.get(api)
    if judge is not None:
        judge(sent)
        return
    if api == "openai-responses":
        sent = {**sent, "input": [_with_id(item) for item in sent["input"]]}
    # A field that the types do not know is dropped, and missing in the comparison.
    assert _whole(_adapter(api).validate_python(sent)) == sent


# Members that the types want, and that an item of a history may lack.
_WANTED: Mapping[str, Mapping[str, Any]] = {
    "reasoning": {"id": "rs_1"},
    "local_shell_call": {"id": "lsh_1"},
    "web_search_call": {"id": "ws_1", "status": "completed", "action": None},
}
_NO_SEARCH = {"type": "search", "query": ""}


def _with_id(item: dict[str, Any]) -> dict[str, Any]:
    """The types want an id; a service that keeps nothing has no use for it.

    They also want an action with all of its members, which the histories of clients may lack.
    """
    whole = {**_WANTED.get(item["type"], {}), **item}
    if item["type"] == "local_shell_call":
        whole["action"] = {"env": {}, **{k: v for k, v in item["action"].items() if v is not None}}
    if item["type"] == "web_search_call":
        whole |= {"status": "completed", "action": _NO_SEARCH}
    return whole


def _assert_legal_for_google(sent: dict[str, Any]) -> None:
    assert set(sent) <= {"contents", "systemInstruction", "generationConfig", "tools"}
    # These types forbid what they do not know.
    assert genai.Content.model_config.get("extra") == "forbid"
    for content in [*sent["contents"], sent.get("systemInstruction", {})]:
        genai.Content.model_validate(content)
    for tool in sent.get("tools", []):
        genai.Tool.model_validate(tool)
    genai.GenerationConfig.model_validate(sent["generationConfig"])


def _assert_legal_for_amazon(sent: dict[str, Any]) -> None:
    report = ParamValidator().validate({"modelId": "m", **sent}, _converse())
    assert not report.has_errors(), report.generate_report()


_JUDGES: Mapping[str, Callable[[dict[str, Any]], None]] = {
    "gemini-generate-content": _assert_legal_for_google,
    "bedrock-converse": _assert_legal_for_amazon,
}


@cache
def _converse() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        service = get_session().get_service_model("bedrock-runtime")
    return service.operation_model("ConverseStream").input_shape


@cache
def _adapter(api: str) -> TypeAdapter[Any]:
    # Kept for good: what it validates lazily, it must live to validate; and it is slow to make.
    return TypeAdapter(PARAMS[api])


def _whole(value: Any) -> Any:
    """The value with everything in it validated that the types only validate when it is read."""
    if isinstance(value, Mapping):
        return {key: _whole(one) for key, one in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [_whole(one) for one in value]
    return value
