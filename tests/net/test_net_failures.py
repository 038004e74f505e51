"""What a service says went wrong becomes one of our errors, by status and code alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from limner.errors import (
    ProviderAuth,
    ProviderBadRequest,
    ProviderError,
    ProviderPaymentRequired,
    ProviderRateLimited,
    ProviderRefused,
    ProviderUnavailable,
)
from limner.net.failures import (
    MAX_MESSAGE_CHARS,
    FailedResponse,
    Vendor,
    is_safe_to_resend,
    parse_retry_after_s,
    reported_error,
    response_error,
    transport_error,
)

KEY = "the-plain-key-0123"
VENDOR = Vendor(
    provider="acme-brush",
    title="Acme",
    key_env="ACME_KEY",
    base_url_env="ACME_BASE_URL",
    account_url="https://acme.example/usage",
)


def failure(
    status: int, body: Any = None, *, headers: Mapping[str, str] | None = None, paid: bool = True
) -> ProviderError:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = FailedResponse(status=status, headers=httpx2.Headers(headers or {}), body=raw)
    return response_error(answer, VENDOR, secrets=(KEY,), paid=paid)


def openai_error(message: str = "no", **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": "x_error", "param": None, "code": None} | more}


@pytest.mark.parametrize(
    ("status", "kind", "retryable", "may_be_billed"),
    [
        (302, ProviderBadRequest, False, False),
        (400, ProviderBadRequest, False, False),
        (401, ProviderAuth, False, False),
        (402, ProviderPaymentRequired, False, False),
        (403, ProviderAuth, False, False),
        (404, ProviderBadRequest, False, False),
        (408, ProviderUnavailable, False, True),
        (409, ProviderUnavailable, False, True),
        (413, ProviderBadRequest, False, False),
        (422, ProviderBadRequest, False, False),
        (429, ProviderRateLimited, True, False),
        (451, ProviderBadRequest, False, False),
        (500, ProviderUnavailable, False, True),
        (502, ProviderUnavailable, False, True),
        (503, ProviderUnavailable, False, True),
        (504, ProviderUnavailable, False, True),
        (524, ProviderUnavailable, False, True),
        (529, ProviderUnavailable, False, True),
    ],
)
def test_the_status_decides(
    status: int, kind: type[ProviderError], retryable: bool, may_be_billed: bool
) -> None:
    # None of these words may decide anything.
    message = "content policy safety rejected rate limit 429 server error 500 1500 characters"
    error = failure(status, openai_error(message))
    assert (type(error), error.retryable, error.may_be_billed) == (kind, retryable, may_be_billed)
    assert error.message.startswith(f"Acme answered {status}: {message}")
    assert ("may be billed" in error.message) == may_be_billed
    assert error.extras == {
        "provider": "acme-brush",
        "status": status,
        "provider_code": "x_error",
    }
    assert failure(status, paid=False).may_be_billed is False


@pytest.mark.parametrize("code", ["content_policy_violation", "moderation_blocked"])
@pytest.mark.parametrize("status", [400, 403, 422])
def test_moderation_is_a_refusal_with_its_categories_and_stage(code: str, status: int) -> None:
    details = {"categories": ["violence", 7, ""], "moderation_stage": "input"}
    error = failure(
        status,
        openai_error("Your request was rejected", code=code, moderation_details=details),
        headers={"x-request-id": "req_1"},
    )
    assert type(error) is ProviderRefused
    assert (error.retryable, error.may_be_billed) == (False, False)
    assert error.hint == "Describe the picture in other words."
    assert error.extras == {
        "provider": "acme-brush",
        "status": status,
        "provider_code": code,
        "request_id": "req_1",
        "categories": ["violence"],
        "stage": "input",
    }


@pytest.mark.parametrize("details", [None, [], "x", {"categories": {}, "moderation_stage": 1}])
def test_moderation_details_of_another_shape_are_left_out(details: Any) -> None:
    error = failure(400, openai_error(code="moderation_blocked", moderation_details=details))
    assert type(error) is ProviderRefused
    assert set(error.extras) == {"provider", "status", "provider_code"}


def test_a_moderation_code_on_a_server_error_is_no_refusal() -> None:
    assert type(failure(500, openai_error(code="moderation_blocked"))) is ProviderUnavailable


@pytest.mark.parametrize("code", ["insufficient_quota", "billing_hard_limit_reached"])
def test_an_empty_account_is_not_worth_retrying(code: str) -> None:
    error = failure(429, openai_error(code=code))
    assert (type(error), error.retryable) == (ProviderRateLimited, False)
    assert error.hint == "Add credit at https://acme.example/usage"
    assert not is_safe_to_resend(error)


def test_the_first_of_a_list_of_complaints_is_read() -> None:
    complaints = [
        {"loc": ["body", "width"], "msg": "Must be a multiple of 16", "type": "value_error"},
        {"loc": ["body", "prompt"], "msg": "Field required", "type": "missing"},
    ]
    error = failure(422, {"detail": complaints})
    assert (type(error), error.message) == (
        ProviderBadRequest,
        "Acme answered 422: Must be a multiple of 16",
    )
    assert error.extras["provider_code"] == "value_error"
    complaints[0]["type"] = "content_policy_violation"
    assert type(failure(422, {"detail": complaints})) is ProviderRefused


def test_replicates_problem_details_are_read() -> None:
    body = {"title": "Insufficient credit", "detail": "You have no credit.", "status": 402}
    error = failure(402, body)
    assert error.message == "Acme answered 402: You have no credit."
    assert failure(402, {"title": "Insufficient credit"}).message.endswith("Insufficient credit")


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>502</html>", b"[1]", b"null", b'{"error": 5}', b"\xff\xfe", b"[" * 100_000],
)
def test_a_body_that_says_nothing_leaves_the_reason_phrase(body: bytes) -> None:
    assert failure(500, body, paid=False).message == "Acme answered 500: Internal Server Error"
    assert failure(599, body, paid=False).message == "Acme answered 599: no reason given"


@pytest.mark.parametrize(
    ("status", "hint"),
    [
        (401, "Check the key in ACME_KEY."),
        (403, "Check that the key in ACME_KEY may use this model."),
        (402, "Add credit at https://acme.example/usage"),
        (404, "Check the model's name, and ACME_BASE_URL if it is set."),
        (429, "Wait a little, or ask for fewer pictures at once."),
        (504, "Look at https://acme.example/usage before asking again."),
        (307, "Set ACME_BASE_URL to the address that it redirects to."),
        (400, None),
        (500, "Look at https://acme.example/usage before asking again."),
    ],
)
def test_the_hint_says_what_to_do(status: int, hint: str | None) -> None:
    assert failure(status).hint == hint


def test_the_vendors_words_are_redacted_before_they_are_shortened() -> None:
    padding = "x " * (MAX_MESSAGE_CHARS // 2 - 4)
    error = failure(400, openai_error(f"{padding}{KEY} and more {KEY}"))
    assert KEY[:8] not in error.message
    assert len(error.message) == len("Acme answered 400: ") + MAX_MESSAGE_CHARS


def test_broken_characters_do_not_break_the_message() -> None:
    body = b'{"error": {"message": "half \\ud83e a fox"}}'
    assert failure(400, body).message == "Acme answered 400: half ? a fox"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "7"}, 7.0),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "1 Jan 1 99999999999999999999:0:0 GMT"}, None),
        (
            {
                "retry-after": "Wed, 21 Oct 2026 07:28:10 GMT",
                "date": "Wed, 21 Oct 2026 07:28:00 GMT",
            },
            10.0,
        ),
        (
            {
                "retry-after": "Wed, 21 Oct 2026 07:28:00 GMT",
                "date": "Wed, 21 Oct 2026 07:28:10 GMT",
            },
            0.0,
        ),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 -0000", "date": "never"}, 0.0),
    ],
)
def test_a_pause_is_read_in_all_its_forms(
    headers: Mapping[str, str], seconds: float | None
) -> None:
    assert parse_retry_after_s(httpx2.Headers(headers)) == seconds
    error = failure(429, headers=headers)
    assert isinstance(error, ProviderRateLimited)
    assert error.retry_after_s == seconds
    assert error.extras.get("retry_after_s") == seconds


@given(
    st.dictionaries(
        st.sampled_from(["retry-after", "retry-after-ms", "date"]),
        st.text(st.characters(codec="latin-1")),
    )
)
def test_property_no_header_makes_reading_the_pause_fail(headers: dict[str, str]) -> None:
    pause = parse_retry_after_s(headers)
    assert pause is None or pause >= 0


@given(status=st.integers(300, 599), body=st.binary() | st.text().map(str.encode))
def test_property_any_answer_is_one_of_our_errors(status: int, body: bytes) -> None:
    error = failure(status, body)
    assert isinstance(error, ProviderError)
    assert json.dumps(error.as_json())


@pytest.mark.parametrize(
    "problem",
    [
        httpx2.ConnectError(f"refused {KEY}"),
        httpx2.ConnectTimeout(""),
        httpx2.PoolTimeout(""),
        httpx2.ProxyError(""),
        httpx2.UnsupportedProtocol(""),
        httpx2.LocalProtocolError(f"Illegal header value {KEY}"),
    ],
)
def test_what_was_never_sent_costs_nothing(problem: httpx2.RequestError) -> None:
    error = transport_error(problem, VENDOR, paid=True)
    assert (error.retryable, error.may_be_billed) == (True, False)
    assert error.message == (f"Acme cannot be reached ({type(problem).__name__}); nothing was sent")
    assert error.hint == "Check the network, and ACME_BASE_URL if it is set."
    assert error.extras == {"provider": "acme-brush", "sent": False}
    assert is_safe_to_resend(error)


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (httpx2.ReadTimeout(""), "Acme did not answer in time"),
        (httpx2.WriteTimeout(""), "Acme did not answer in time"),
        (httpx2.ReadError(""), "The connection to Acme broke off"),
        (httpx2.WriteError(""), "The connection to Acme broke off"),
        (httpx2.RemoteProtocolError(""), "The connection to Acme broke off"),
        (httpx2.DecodingError(""), "The connection to Acme broke off"),
    ],
)
def test_what_was_sent_may_be_billed_and_is_not_resent(
    problem: httpx2.RequestError, words: str
) -> None:
    error = transport_error(problem, VENDOR, paid=True)
    assert (error.retryable, error.may_be_billed) == (False, True)
    assert error.message == f"{words}; the request may be billed and was not sent again"
    assert not is_safe_to_resend(error)
    free = transport_error(problem, VENDOR, paid=False)
    assert (free.message, free.retryable, free.may_be_billed) == (words, True, False)


# --- the words of other vendors, and failures in the middle of an answer ---


def test_anthropics_errors_are_read() -> None:
    body = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    error = failure(529, body, headers={"request-id": "req_9"})
    assert (type(error), error.provider_message) == (ProviderUnavailable, "Overloaded")
    assert error.extras == {
        "provider": "acme-brush",
        "status": 529,
        "provider_code": "overloaded_error",
        "request_id": "req_9",
    }


def test_googles_errors_are_read() -> None:
    error = {"code": 429, "message": "Quota", "status": "RESOURCE_EXHAUSTED", "details": [7]}
    limited = failure(429, {"error": error})
    assert (type(limited), limited.extras["provider_code"]) == (
        ProviderRateLimited,
        "RESOURCE_EXHAUSTED",
    )
    wrong_key = {**error, "status": "INVALID_ARGUMENT", "details": [{"reason": "API_KEY_INVALID"}]}
    auth = failure(400, {"error": wrong_key})
    assert (type(auth), auth.hint) == (ProviderAuth, "Check the key in ACME_KEY.")


def test_what_the_vendor_said_is_kept_apart_and_longer() -> None:
    words = "very " * 200 + KEY
    error = failure(400, openai_error(words))
    assert error.provider_message == "very " * 200 + "•••"
    assert len(error.message) < 400
    assert failure(400, b"").provider_message is None


def test_a_service_without_a_key_that_asks_for_one_says_where_to_name_it() -> None:
    local = replace(VENDOR, key_env=None)
    answer = FailedResponse(status=401, headers=httpx2.Headers(), body=b"")
    error = response_error(answer, local, secrets=(), paid=False)
    assert error.hint == "Acme asks for a key: name the variable that holds it as key_env."


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (None, ProviderUnavailable),
        ("server_error", ProviderUnavailable),
        ("a_new_one", ProviderUnavailable),
        ("rate_limit_error", ProviderRateLimited),
        ("authentication_error", ProviderAuth),
        ("insufficient_quota", ProviderPaymentRequired),
        ("invalid_request_error", ProviderBadRequest),
        ("image_content_policy_violation", ProviderRefused),
    ],
)
@pytest.mark.parametrize("paid", [True, False])
def test_a_failure_within_an_answer_is_known_by_its_code(
    code: str | None, kind: type[ProviderError], paid: bool
) -> None:
    error = reported_error(code, f"no {KEY}", VENDOR, secrets=(KEY,), paid=paid)
    assert (type(error), error.provider_message, error.may_be_billed) == (kind, "no •••", paid)
    assert error.message.startswith("Acme failed while answering: no •••")
    assert error.extras.get("provider_code") == code


@pytest.mark.parametrize(("paid", "safe"), [(True, False), (False, True)])
def test_a_rate_limit_in_the_middle_of_a_paid_answer_is_not_safe_to_send_again(
    paid: bool, safe: bool
) -> None:
    error = reported_error("rate_limit_exceeded", "slow", VENDOR, secrets=(), paid=paid)
    assert isinstance(error, ProviderRateLimited)
    assert is_safe_to_resend(error) == safe
