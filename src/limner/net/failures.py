"""What a service or the network says went wrong -> one of our errors, by status and code.

Never by the words of a message: those are for the reader, and "1500 characters" is no 500.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

import httpx2
import msgspec

from limner.errors import (
    ProviderAuth,
    ProviderBadRequest,
    ProviderError,
    ProviderPaymentRequired,
    ProviderRateLimited,
    ProviderRefused,
    ProviderUnavailable,
)
from limner.json_shapes import as_list, as_object
from limner.net.redaction import redact

MAX_MESSAGE_CHARS = 300
MAX_PROVIDER_MESSAGE_CHARS = 4_000

MODERATION_CODES = frozenset(
    {
        "content_policy_violation",
        "moderation_blocked",
        "image_content_policy_violation",
        "content_filter",
        "refusal",
    }
)
OUT_OF_QUOTA_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
# Google answers 400 to a wrong key.
WRONG_KEY_CODES = frozenset({"API_KEY_INVALID"})
# Somebody on the way gave up waiting: whether the picture is drawn and charged, nobody knows.
# The last three are what a proxy in front of many services says instead of 502 and 504.
FATE_UNKNOWN = frozenset({408, 502, 504, 520, 522, 524})
MAY_BE_BILLED = "the request may be billed and was not sent again"

_REQUEST_ID_HEADERS = ("x-request-id", "request-id", "cf-ray")
# What vendors call a failure in the middle of an answer, where there is no status to go by.
_CODES_OF_KIND: Mapping[type[ProviderError], frozenset[str]] = {
    ProviderRefused: MODERATION_CODES,
    ProviderPaymentRequired: OUT_OF_QUOTA_CODES | {"billing_error"},
    ProviderRateLimited: frozenset(
        {"rate_limit_exceeded", "rate_limit_error", "RESOURCE_EXHAUSTED"}
    ),
    ProviderAuth: WRONG_KEY_CODES
    | {"authentication_error", "permission_error", "UNAUTHENTICATED", "PERMISSION_DENIED"},
    ProviderBadRequest: frozenset(
        {
            "FAILED_PRECONDITION",
            "INVALID_ARGUMENT",
            "NOT_FOUND",
            "empty_image_file",
            "image_file_too_large",
            "image_parse_error",
            "image_too_large",
            "image_too_small",
            "invalid_image",
            "invalid_image_format",
            "invalid_prompt",
            "invalid_request_error",
            "not_found_error",
            "request_too_large",
            "unsupported_image_media_type",
        }
    ),
}
_KIND_OF_CODE = {code: kind for kind, codes in _CODES_OF_KIND.items() for code in codes}
_NEVER_SENT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
    httpx2.LocalProtocolError,
)


class Vendor(msgspec.Struct, frozen=True, kw_only=True):
    """Who is being asked, in our words and in the reader's.

    ``key_env`` is None for a service that needs no key. ``rephrase`` and ``slow_down`` are the
    advice for a request that is refused, and for too many of them. ``unknown_outcome`` says what it
    means that nobody knows what became of a request that buys something.
    """

    provider: str
    title: str
    key_env: str | None
    base_url_env: str
    account_url: str
    rephrase: str = "Describe the picture in other words."
    slow_down: str = "Wait a little, or ask for fewer pictures at once."
    unknown_outcome: str = MAY_BE_BILLED


class HttpAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that is not a success: its status, its headers and the beginning of its body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class _Told(msgspec.Struct, frozen=True):
    """What an error answer says, as far as it can be read; without secrets."""

    message: str
    said: bool
    code: str | None
    stage: str | None
    categories: list[str] | None
    request_id: str | None


def failure_of_answer(
    answer: HttpAnswer, vendor: Vendor, *, secrets: tuple[str, ...], paid: bool
) -> ProviderError:
    """The error for an unsuccessful answer. ``paid`` says whether the request buys something."""
    told = _read(answer, secrets)
    fate_unknown = paid and answer.status in FATE_UNKNOWN
    text = f"{vendor.title} answered {answer.status}: {told.message[:MAX_MESSAGE_CHARS]}"
    error = _kind_of(answer, told)(
        f"{text}; {vendor.unknown_outcome}" if fate_unknown else text,
        may_be_billed=fate_unknown,
        provider_message=told.message if told.said else None,
        hint=_hint(answer.status, told, vendor),
        extras=_extras(answer, told, vendor),
    )
    if isinstance(error, ProviderRateLimited):
        error.retry_after_s = error.extras.get("retry_after_s")
    if fate_unknown or told.code in OUT_OF_QUOTA_CODES:
        error.retryable = False
    return error


def failure_within_answer(
    code: str | None, message: str | None, vendor: Vendor, *, secrets: tuple[str, ...], paid: bool
) -> ProviderError:
    """The error for an answer that began as a success and then told of a failure, by its code."""
    said = None if message is None else for_reader(message, secrets) or None
    kind = _KIND_OF_CODE.get(code or "", ProviderUnavailable)
    words = f"failed while answering: {(said or 'no reason given')[:MAX_MESSAGE_CHARS]}"
    extras = {"provider": vendor.provider, "sent": True}
    return kind(
        f"{vendor.title} {words}; {vendor.unknown_outcome}" if paid else f"{vendor.title} {words}",
        may_be_billed=paid,
        provider_message=said,
        hint=vendor.rephrase if kind is ProviderRefused else None,
        extras=extras if code is None else extras | {"provider_code": for_reader(code, secrets)},
    )


def for_reader(text: str, secrets: tuple[str, ...]) -> str:
    """A vendor's own words, safe to show: no secrets, no broken characters, not endless."""
    clean = text.strip().encode("utf-8", "replace").decode()
    return redact(clean, secrets)[:MAX_PROVIDER_MESSAGE_CHARS]


def failure_of_transport(
    problem: httpx2.RequestError, vendor: Vendor, *, paid: bool
) -> ProviderUnavailable:
    """The error for a connection that failed, with what that means for the money."""
    extras = {"provider": vendor.provider}
    if isinstance(problem, _NEVER_SENT):
        return ProviderUnavailable(
            f"{vendor.title} cannot be reached ({type(problem).__name__}); nothing was sent",
            hint=f"Check the network, and {vendor.base_url_env} where it is set.",
            extras=extras | {"sent": False},
        )
    timed_out = isinstance(problem, httpx2.TimeoutException)
    text = (
        f"{vendor.title} did not answer in time"
        if timed_out
        else f"The connection to {vendor.title} broke off"
    )
    return ProviderUnavailable(
        f"{text}; {vendor.unknown_outcome}" if paid else text,
        may_be_billed=paid,
        retryable=not paid,
        hint=f"Look at {vendor.account_url} before asking again." if paid else None,
        extras=extras | {"sent": True},
    )


def is_safe_to_resend(error: ProviderError) -> bool:
    """Whether the service cannot have begun anything: refused for now, or never reached."""
    if isinstance(error, ProviderRateLimited):
        # Told in the middle of an answer, it comes after work that may be charged.
        return error.retryable and not error.may_be_billed
    return error.extras.get("sent") is False


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """The pause a service asks for, in seconds, or None where it asks for none we understand."""
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            pause = float(headers.get(name, "")) * unit_s
        except ValueError:
            continue
        if math.isfinite(pause) and pause >= 0:
            return pause
    return _until(headers.get("retry-after", ""), headers.get("date", ""))


def _until(moment: str, now: str) -> float | None:
    """Seconds until an HTTP date, by the service's own clock where it tells the time."""
    when = _date(moment)
    if when is None:
        return None
    return max(0.0, (when - (_date(now) or datetime.now(UTC))).total_seconds())


def _date(text: str) -> datetime | None:
    try:
        parsed = parsedate_to_datetime(text)
    except ValueError:
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def _kind_of(answer: HttpAnswer, told: _Told) -> type[ProviderError]:
    status = answer.status
    if 400 <= status < 500 and told.code in MODERATION_CODES:
        return ProviderRefused
    if 400 <= status < 500 and told.code in WRONG_KEY_CODES:
        return ProviderAuth
    exact: dict[int, type[ProviderError]] = {
        401: ProviderAuth,
        403: ProviderAuth,
        402: ProviderPaymentRequired,
        408: ProviderUnavailable,
        409: ProviderUnavailable,
        429: ProviderRateLimited,
    }
    return exact.get(status, ProviderUnavailable if status >= 500 else ProviderBadRequest)


def _hint(status: int, told: _Told, vendor: Vendor) -> str | None:
    if told.code in MODERATION_CODES:
        return vendor.rephrase
    if told.code in OUT_OF_QUOTA_CODES or status == 402:
        return f"Add credit at {vendor.account_url}"
    if status < 400:
        return f"Set {vendor.base_url_env} to the address that it redirects to."
    if status in FATE_UNKNOWN:
        return f"Look at {vendor.account_url} before asking again."
    if status in (401, 403) or told.code in WRONG_KEY_CODES:
        return _key_hint(status, vendor)
    hints = {
        404: f"Check the model's name, and {vendor.base_url_env} where it is set.",
        429: vendor.slow_down,
    }
    return hints.get(status)


def _key_hint(status: int, vendor: Vendor) -> str:
    if vendor.key_env is None:
        return f"{vendor.title} asks for a key: name the variable that holds it as key_env."
    if status == 403:
        return f"Check that the key in {vendor.key_env} may use this model."
    return f"Check the key in {vendor.key_env}."


def _extras(answer: HttpAnswer, told: _Told, vendor: Vendor) -> dict[str, Any]:
    known = {
        "provider": vendor.provider,
        "status": answer.status,
        "provider_code": told.code,
        "request_id": told.request_id,
        "retry_after_s": retry_after_s(answer.headers),
        "stage": told.stage,
        "categories": told.categories,
    }
    return {name: value for name, value in known.items() if value is not None}


def _read(answer: HttpAnswer, secrets: tuple[str, ...]) -> _Told:
    """Read an error body: ``{"error": {…}}`` as most word it, or texts beside each other."""

    def first_text(*candidates: object) -> str | None:
        texts = (for_reader(text, secrets) for text in candidates if isinstance(text, str))
        return next(filter(None, texts), None)

    body = as_object(_parsed(answer.body))
    error = as_object(body.get("error")) or body
    details = as_object(error.get("moderation_details"))
    # OpenRouter's code is the status over again; what happened is in its metadata.
    more = as_object(error.get("metadata"))
    named = as_list(details.get("categories")) or as_list(more.get("reasons"))
    categories = filter(None, map(first_text, named))
    reasons = [as_object(one).get("reason") for one in as_list(error.get("details"))]
    flagged = "content_policy_violation" if "flagged_input" in more else None
    reasons += [more.get("error_type"), flagged]
    # A list of complaints, as FastAPI words it: the first is the one to mend.
    complaint = as_object(next(iter(as_list(error.get("detail"))), None))
    reasons.append(complaint.get("type"))
    texts = (error.get(name) for name in ("message", "detail", "title", "errors"))
    said = (first_text(*texts, complaint.get("msg")), first_text(error.get("details")))
    message = ": ".join(filter(None, said)) or None
    return _Told(
        message=message or _phrase(answer.status),
        said=message is not None,
        code=first_text(error.get("code"), *reasons, error.get("type"), error.get("status")),
        stage=first_text(details.get("moderation_stage")),
        categories=list(categories) or None,
        request_id=first_text(*(answer.headers.get(name) for name in _REQUEST_ID_HEADERS)),
    )


def _parsed(body: bytes) -> object:
    try:
        return json.loads(body.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "no reason given"
