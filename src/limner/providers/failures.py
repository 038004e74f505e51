"""What a service or the network says went wrong -> one of our errors, by status and code.

Never by the words of a message: those are for the reader, and "1500 characters" is no 500.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

import httpx2

from limner.errors import (
    ProviderAuth,
    ProviderBadRequest,
    ProviderError,
    ProviderPaymentRequired,
    ProviderRateLimited,
    ProviderRefused,
    ProviderUnavailable,
)
from limner.net.redact import redact
from limner.providers.untrusted import as_list, as_object

MAX_MESSAGE_CHARS = 300

MODERATION_CODES = frozenset({"content_policy_violation", "moderation_blocked"})
OUT_OF_QUOTA_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
# Somebody on the way gave up waiting: whether the picture is drawn and charged, nobody knows.
# The last three are what a proxy in front of many services says instead of 502 and 504.
FATE_UNKNOWN = frozenset({408, 502, 504, 520, 522, 524})
MAY_BE_BILLED = "the request may be billed and was not sent again"

_REQUEST_ID_HEADERS = ("x-request-id", "cf-ray")
_NEVER_SENT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
    httpx2.LocalProtocolError,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Vendor:
    """Who is being asked, in our words and in the reader's."""

    provider: str
    title: str
    key_env: str
    base_url_env: str
    account_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer that is not a success: its status, its headers and the beginning of its body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class _Told:
    """What an error answer says, as far as it can be read; without secrets."""

    message: str
    code: str | None
    stage: str | None
    categories: list[str] | None
    request_id: str | None


def failure_of_answer(
    answer: Answer, vendor: Vendor, *, secrets: tuple[str, ...], paid: bool
) -> ProviderError:
    """The error for an unsuccessful answer. ``paid`` says whether the request buys something."""
    told = _read(answer, secrets)
    fate_unknown = paid and answer.status in FATE_UNKNOWN
    text = f"{vendor.title} answered {answer.status}: {told.message}"
    error = _kind_of(answer, told)(
        f"{text}; {MAY_BE_BILLED}" if fate_unknown else text,
        may_be_billed=fate_unknown,
        hint=_hint(answer.status, told, vendor),
        extras=_extras(answer, told, vendor),
    )
    if isinstance(error, ProviderRateLimited):
        error.retry_after_s = error.extras.get("retry_after_s")
    if fate_unknown or told.code in OUT_OF_QUOTA_CODES:
        error.retryable = False
    return error


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
        f"{text}; {MAY_BE_BILLED}" if paid else text,
        may_be_billed=paid,
        retryable=not paid,
        hint=f"Look at {vendor.account_url} before asking again." if paid else None,
        extras=extras | {"sent": True},
    )


def is_safe_to_resend(error: ProviderError) -> bool:
    """Whether the service cannot have begun anything: refused for now, or never reached."""
    if isinstance(error, ProviderRateLimited):
        return error.retryable
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


def _kind_of(answer: Answer, told: _Told) -> type[ProviderError]:
    status = answer.status
    if 400 <= status < 500 and told.code in MODERATION_CODES:
        return ProviderRefused
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
        return "Describe the picture in other words."
    if told.code in OUT_OF_QUOTA_CODES or status == 402:
        return f"Add credit at {vendor.account_url}"
    if status < 400:
        return f"Set {vendor.base_url_env} to the address that it redirects to."
    if status in FATE_UNKNOWN:
        return f"Look at {vendor.account_url} before asking again."
    hints = {
        401: f"Check the key in {vendor.key_env}.",
        403: f"Check that the key in {vendor.key_env} may use this model.",
        404: f"Check the model's name, and {vendor.base_url_env} where it is set.",
        429: "Wait a little, or ask for fewer pictures at once.",
    }
    return hints.get(status)


def _extras(answer: Answer, told: _Told, vendor: Vendor) -> dict[str, Any]:
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


def _read(answer: Answer, secrets: tuple[str, ...]) -> _Told:
    """Read an error body: OpenAI's ``{"error": {…}}`` or Replicate's ``{"title", "detail"}``."""

    def first_text(*candidates: object) -> str | None:
        texts = (text.strip() for text in candidates if isinstance(text, str))
        found = next(filter(None, texts), None)
        if found is None:
            return None
        clean = found.encode("utf-8", "replace").decode()
        return redact(clean, secrets)[:MAX_MESSAGE_CHARS]

    body = as_object(_parsed(answer.body))
    error = as_object(body.get("error")) or body
    details = as_object(error.get("moderation_details"))
    categories = filter(None, map(first_text, as_list(details.get("categories"))))
    return _Told(
        message=first_text(error.get("message"), error.get("detail"), error.get("title"))
        or _phrase(answer.status),
        code=first_text(error.get("code"), error.get("type")),
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
