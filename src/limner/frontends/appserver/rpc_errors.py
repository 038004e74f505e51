"""limner's errors -> the messages and codes that clients of the Codex app-server know."""

from __future__ import annotations

import uuid
from collections.abc import Generator
from contextlib import contextmanager

from limner.agent.leases import SESSION_IN_USE
from limner.errors import (
    BudgetExceeded,
    ImageError,
    LimnerError,
    ModelBadAnswer,
    ModelTimeout,
    ProviderAuth,
    ProviderBadRequest,
    ProviderError,
    ProviderPaymentRequired,
    ProviderRateLimited,
    ProviderUnavailable,
    ReachDenied,
    UserError,
)
from limner.frontends.appserver.protocol.turns import ErrorInfo, TurnError
from limner.models.registry import NO_MODEL
from limner.net.jsonrpc import INVALID_REQUEST, RpcError

INVALID_PARAMS = -32602

_INFOS: tuple[tuple[type[LimnerError], ErrorInfo], ...] = (
    (ProviderAuth, "unauthorized"),
    (ProviderPaymentRequired, "usageLimitExceeded"),
    (ProviderRateLimited, "usageLimitExceeded"),
    (BudgetExceeded, "usageLimitExceeded"),
    (ProviderUnavailable, "internalServerError"),
    (ModelTimeout, "internalServerError"),
    (ModelBadAnswer, "internalServerError"),
    (ProviderBadRequest, "badRequest"),
    (ImageError, "badRequest"),
    (ReachDenied, "sandboxError"),
)
_CODES: dict[str, ErrorInfo] = {"NO_API_KEY": "unauthorized", NO_MODEL: "badRequest"}


def turn_error(error: LimnerError) -> TurnError:
    """Why a turn failed, as clients see it."""
    return TurnError(
        message=error.message, codex_error_info=_info(error), additional_details=error.hint
    )


def _info(error: LimnerError) -> ErrorInfo:
    from limner.agent.compaction import is_too_long  # noqa: PLC0415 - few requests fail

    if isinstance(error, ProviderError) and is_too_long(error):
        return "contextWindowExceeded"
    if error.extras.get("broke_off"):
        return {"responseStreamDisconnected": {"httpStatusCode": None}}
    if isinstance(error, ProviderRateLimited) and error.retryable:
        return {"responseTooManyFailedAttempts": {"httpStatusCode": 429}}
    if error.code in _CODES:
        return _CODES[error.code]
    for kind, info in _INFOS:
        if isinstance(error, kind):
            return info
    return "other"


def invalid_request(message: str) -> RpcError:
    """The error for a request that the server cannot serve."""
    return RpcError(INVALID_REQUEST, message)


def not_open(thread_id: str) -> RpcError:
    """The error for a thread that is not open in this process."""
    return invalid_request(f"thread not found: {thread_id}")


def not_stored(thread_id: str) -> RpcError:
    """The error for a thread that does not exist."""
    return invalid_request(f"no rollout found for thread id {thread_id}")


@contextmanager
def single_writer(thread_id: str) -> Generator[None]:
    """Translate the error of a session that another process has open.

    Raises:
        RpcError: another process has the thread open.
    """
    try:
        yield
    except UserError as error:
        if error.code != SESSION_IN_USE:
            raise
        message = f"thread {thread_id} already has an active writer"
        raise RpcError(INVALID_REQUEST, message, error.as_json()) from error


def check_id(thread_id: str) -> str:
    """The id of a thread in its normal form.

    Raises:
        RpcError: it is not a UUID.
    """
    try:
        return str(uuid.UUID(thread_id))
    except ValueError:
        raise invalid_request(f"invalid thread id: {thread_id[:80]!r} is not a UUID") from None
