"""An error response or a broken connection -> one of limner's errors, by status and code.

Never by the text of a message, which is only for the reader: "1500 characters" is not a 500.
"""

from __future__ import annotations

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
from limner.json_shapes import as_list, as_object, decode_json
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
# Google responds with 400 to a wrong key.
WRONG_KEY_CODES = frozenset({"API_KEY_INVALID"})
# The service or a proxy failed after it got the request, so it is unknown if it drew and charged.
OUTCOME_UNKNOWN = frozenset({408, 409, *range(500, 600)})
# The service refuses a prompt that is too long for the model, before it works on it.
TOO_LONG_CODE = "context_length_exceeded"
MAY_BE_BILLED = "the request may be billed and was not sent again"

_REQUEST_ID_HEADERS = ("x-request-id", "request-id", "cf-ray")
# The codes of failures inside a successful response, which have no status.
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
            TOO_LONG_CODE,
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
    """What error messages say about a service.

    ``key_env`` is None for a service that needs no key. ``rephrase`` is the hint for a refused
    request, ``slow_down`` the hint for too many requests. ``unknown_outcome`` says what it means
    that the outcome of a paid request is unknown.
    """

    provider: str
    title: str
    key_env: str | None
    base_url_env: str
    account_url: str
    rephrase: str = "Describe the picture in other words."
    slow_down: str = "Wait a little, or ask for fewer pictures at once."
    unknown_outcome: str = MAY_BE_BILLED


class FailedResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A response that is not a success: its status, headers and the beginning of its body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class _ErrorBody(msgspec.Struct, frozen=True):
    """What the body of an error response says, without secrets.

    ``has_message`` is False if the message is only the name of the status.
    """

    message: str
    has_message: bool
    code: str | None
    stage: str | None
    categories: list[str] | None
    request_id: str | None


def response_error(
    response: FailedResponse, vendor: Vendor, *, secrets: tuple[str, ...], paid: bool
) -> ProviderError:
    """The error for an error response. ``paid`` says whether the request buys something."""
    body = _parse(response, secrets)
    is_outcome_unknown = paid and response.status in OUTCOME_UNKNOWN
    text = f"{vendor.title} answered {response.status}: {body.message[:MAX_MESSAGE_CHARS]}"
    error = _error_type(response, body)(
        _with_note(text, vendor.unknown_outcome) if is_outcome_unknown else text,
        may_be_billed=is_outcome_unknown,
        provider_message=body.message if body.has_message else None,
        hint=_hint(response.status, body, vendor, is_outcome_unknown=is_outcome_unknown),
        extras=_extras(response, body, vendor),
    )
    if isinstance(error, ProviderRateLimited):
        error.retry_after_s = error.extras.get("retry_after_s")
    if is_outcome_unknown or body.code in OUT_OF_QUOTA_CODES:
        error.retryable = False
    return error


def reported_error(
    code: str | None, message: str | None, vendor: Vendor, *, secrets: tuple[str, ...], paid: bool
) -> ProviderError:
    """The error for a failure that is reported inside a successful response, by its code."""
    paid = paid and code != TOO_LONG_CODE
    shown = None if message is None else safe_text(message, secrets) or None
    kind = _KIND_OF_CODE.get(code or "", ProviderUnavailable)
    reason = f"failed while answering: {(shown or 'no reason given')[:MAX_MESSAGE_CHARS]}"
    extras = {"provider": vendor.provider, "sent": True}
    return kind(
        _with_note(f"{vendor.title} {reason}", vendor.unknown_outcome)
        if paid
        else f"{vendor.title} {reason}",
        may_be_billed=paid,
        provider_message=shown,
        hint=vendor.rephrase if kind is ProviderRefused else None,
        extras=extras if code is None else extras | {"provider_code": safe_text(code, secrets)},
    )


def safe_text(text: str, secrets: tuple[str, ...]) -> str:
    """A text of the vendor that is safe to show: no secrets, no lone surrogates, not too long."""
    clean = text.strip().encode("utf-8", "replace").decode()
    return redact(clean, secrets)[:MAX_PROVIDER_MESSAGE_CHARS]


def transport_error(
    problem: httpx2.RequestError, vendor: Vendor, *, paid: bool
) -> ProviderUnavailable:
    """The error for a failed connection; it says if the request may be billed."""
    if isinstance(problem, _NEVER_SENT):
        return ProviderUnavailable(
            f"{vendor.title} cannot be reached ({type(problem).__name__}); nothing was sent",
            hint=f"Check the network, and {vendor.base_url_env} if it is set.",
            extras={"provider": vendor.provider, "sent": False},
        )
    if isinstance(problem, httpx2.TimeoutException):
        return _unknown_outcome(f"{vendor.title} did not answer in time", vendor, paid=paid)
    return _unknown_outcome(f"The connection to {vendor.title} broke off", vendor, paid=paid)


def timeout_error(vendor: Vendor, timeout_s: float, *, paid: bool) -> ProviderUnavailable:
    """The error for a request that took too long as a whole."""
    text = f"{vendor.title} had not answered in full after {timeout_s:g} s"
    error = _unknown_outcome(text, vendor, paid=paid)
    error.hint = error.hint or "Set services.timeout_s to wait longer."
    return error


def _unknown_outcome(text: str, vendor: Vendor, *, paid: bool) -> ProviderUnavailable:
    return ProviderUnavailable(
        _with_note(text, vendor.unknown_outcome) if paid else text,
        may_be_billed=paid,
        retryable=not paid,
        hint=f"Look at {vendor.account_url} before asking again." if paid else None,
        extras={"provider": vendor.provider, "sent": True},
    )


def _with_note(text: str, note: str) -> str:
    """The text and a note; the text may be a whole sentence of the service."""
    return f"{text.rstrip(' .')}; {note}"


def is_safe_to_resend(error: ProviderError) -> bool:
    """Whether the service cannot have started anything: rate limited, or not reached."""
    if isinstance(error, ProviderRateLimited):
        # Reported inside a successful response, it follows work that may be charged.
        return error.retryable and not error.may_be_billed
    return error.extras.get("sent") is False


def parse_retry_after_s(headers: Mapping[str, str]) -> float | None:
    """The ``Retry-After`` of a response in seconds; None if there is none that is valid."""
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            pause = float(headers.get(name, "")) * unit_s
        except ValueError:
            continue
        if math.isfinite(pause) and pause >= 0:
            return pause
    return _seconds_until(headers.get("retry-after", ""), headers.get("date", ""))


def _seconds_until(moment: str, now: str) -> float | None:
    """Seconds until an HTTP date, by the service's clock if the response has a date."""
    end = parse_date(moment)
    if end is None:
        return None
    return max(0.0, (end - (parse_date(now) or datetime.now(UTC))).total_seconds())


def parse_date(text: str) -> datetime | None:
    """An HTTP date; None if the text is not one."""
    try:
        parsed = parsedate_to_datetime(text)
    except (ValueError, OverflowError):  # the latter: an hour with twenty digits
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def _error_type(response: FailedResponse, body: _ErrorBody) -> type[ProviderError]:
    status = response.status
    if 400 <= status < 500 and body.code in MODERATION_CODES:
        return ProviderRefused
    if 400 <= status < 500 and body.code in WRONG_KEY_CODES:
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


def _hint(status: int, body: _ErrorBody, vendor: Vendor, *, is_outcome_unknown: bool) -> str | None:
    if body.code in MODERATION_CODES:
        return vendor.rephrase
    if body.code in OUT_OF_QUOTA_CODES or status == 402:
        return f"Add credit at {vendor.account_url}"
    if status < 400:
        return f"Set {vendor.base_url_env} to the address that it redirects to."
    if is_outcome_unknown:
        return f"Look at {vendor.account_url} before asking again."
    if status in (401, 403) or body.code in WRONG_KEY_CODES:
        return _key_hint(status, vendor)
    hints = {
        404: f"Check the model's name, and {vendor.base_url_env} if it is set.",
        429: vendor.slow_down,
    }
    return hints.get(status)


def _key_hint(status: int, vendor: Vendor) -> str:
    if vendor.key_env is None:
        return f"{vendor.title} asks for a key: name the variable that holds it as key_env."
    if status == 403:
        return f"Check that the key in {vendor.key_env} may use this model."
    return f"Check the key in {vendor.key_env}."


def _extras(response: FailedResponse, body: _ErrorBody, vendor: Vendor) -> dict[str, Any]:
    known = {
        "provider": vendor.provider,
        "status": response.status,
        "provider_code": body.code,
        "request_id": body.request_id,
        "retry_after_s": parse_retry_after_s(response.headers),
        "stage": body.stage,
        "categories": body.categories,
    }
    return {name: value for name, value in known.items() if value is not None}


def _parse(response: FailedResponse, secrets: tuple[str, ...]) -> _ErrorBody:
    """Parse an error body: ``{"error": {…}}`` at most services, or flat fields."""

    def first_text(*candidates: object) -> str | None:
        texts = (safe_text(text, secrets) for text in candidates if isinstance(text, str))
        return next(filter(None, texts), None)

    body = as_object(decode_json(response.body.decode("utf-8", "replace")))
    error = as_object(body.get("error")) or body
    details = as_object(error.get("moderation_details"))
    # OpenRouter's code repeats the status; the reason is in its metadata.
    more = as_object(error.get("metadata"))
    named = as_list(details.get("categories")) or as_list(more.get("reasons"))
    categories = filter(None, map(first_text, named))
    reasons = [as_object(detail).get("reason") for detail in as_list(error.get("details"))]
    flagged = "content_policy_violation" if "flagged_input" in more else None
    reasons += [more.get("error_type"), flagged]
    # FastAPI sends a list of problems; show the first.
    complaint = as_object(next(iter(as_list(error.get("detail"))), None))
    reasons.append(complaint.get("type"))
    texts = (error.get(name) for name in ("message", "detail", "title", "errors"))
    parts = (first_text(*texts, complaint.get("msg")), first_text(error.get("details")))
    message = ": ".join(filter(None, parts)) or None
    return _ErrorBody(
        message=message or _status_phrase(response.status),
        has_message=message is not None,
        code=first_text(error.get("code"), *reasons, error.get("type"), error.get("status")),
        stage=first_text(details.get("moderation_stage")),
        categories=list(categories) or None,
        request_id=first_text(*(response.headers.get(name) for name in _REQUEST_ID_HEADERS)),
    )


def _status_phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "no reason given"
