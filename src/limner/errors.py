"""A failure -> one class of one tree, with the facts that a program needs.

Each class has a stable ``code``, the ``kind`` of its tool result, whether a retry can help, whether
money was or may have been spent, and the exit status of the command line.

::

    LimnerError                     execution_failed     exit 1
    ├── UserError                   the caller must change something         exit 2
    │   ├── InputInvalid              an argument is wrong; names the field    input_invalid
    │   │   └── InvalidSize             INVALID_SIZE_FOR_PROVIDER
    │   ├── SettingsError             a settings file or variable is wrong     input_invalid
    │   ├── MissingExtra              an optional package is not installed     not_available
    │   ├── NoProvider                IMAGE_GEN_NO_PROVIDER                    not_available
    │   ├── OutputExists              OUTPUT_EXISTS
    │   └── NotFound                  no such file or picture; a StorageError too
    ├── ProviderError               a service failed                         exit 3
    │   ├── ProviderRefused           IMAGE_GEN_REJECTED; the model may rephrase
    │   ├── ProviderRateLimited       IMAGE_GEN_QUOTA_EXCEEDED
    │   ├── ProviderUnavailable       IMAGE_GEN_PROVIDER_UNAVAILABLE
    │   ├── ProviderAuth              IMAGE_GEN_AUTH
    │   ├── ProviderPaymentRequired   IMAGE_GEN_PAYMENT_REQUIRED
    │   ├── ProviderBadRequest        IMAGE_GEN_BAD_REQUEST
    │   ├── ModelBadAnswer            MODEL_BAD_ANSWER
    │   └── ModelTimeout              MODEL_TIMEOUT
    ├── ImageError                  bytes are not a valid picture            exit 4
    │   ├── UnrecognizedImage         no known format
    │   ├── CorruptImage              a known format that does not decode
    │   ├── ImageTooLarge             over the byte, pixel, memory or time limit
    │   ├── UnsafeSvg                 an SVG document with more than a drawing
    │   └── BadProviderImage          IMAGE_GEN_BAD_RESPONSE
    ├── Denied                      a policy denies it                       exit 5
    │   ├── ReachDenied               OUTPUT_PATH_DENIED
    │   ├── BudgetExceeded            BUDGET_EXCEEDED
    │   └── ApprovalDenied            APPROVAL_DENIED
    ├── StorageError                disk or database
    │   └── JobTaken                  JOB_TAKEN; a job at a service belongs to another request
    ├── UnexpectedError             UNEXPECTED; another exception stopped a paid call
    ├── ToolTimeout                 TOOL_TIMEOUT
    ├── ToolUnavailable             TOOL_UNAVAILABLE                         not_available
    └── Cancelled                   the user stopped it                      exit 130
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from limner.shortage import causes

ErrorKind = Literal["not_available", "input_invalid", "execution_failed"]
CostSource = Literal["provider", "computed", "table", "unknown"]

NANO_PER_USD = 1_000_000_000


class LimnerError(Exception):
    """A failure; the class and the fields say what to do about it.

    Attributes:
        message: one sentence for the reader, without the code.
        hint: what to do next, or None.
        retryable: the same call may work later.
        billed: money was spent, or may have been (then ``cost_source`` is "unknown").
        cost_nano: what it cost, in nano-dollars.
        untrusted: the message may repeat words of a file or a service; a model gets it quoted.
        extras: further facts as JSON values (a job id, moderation categories).
    """

    code: str = "FAILED"
    kind: ClassVar[ErrorKind] = "execution_failed"
    exit_status: ClassVar[int] = 1
    retryable: bool = False
    untrusted: bool = False

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        code: str | None = None,
        retryable: bool | None = None,
        extras: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if code is not None:
            self.code = code
        if retryable is not None:
            self.retryable = retryable
        self.extras: dict[str, Any] = dict(extras or {})
        self.billed = False
        self.cost_nano = 0
        self.cost_source: CostSource = "table"

    def charge(self, cost_nano: int, source: CostSource) -> None:
        """Record the cost of the failed call."""
        self.billed = cost_nano > 0
        self.cost_nano = cost_nano
        self.cost_source = source

    @property
    def cost_usd(self) -> float:
        """What it cost in dollars."""
        return self.cost_nano / NANO_PER_USD

    def as_json(self) -> dict[str, object]:
        """The JSON object: code, message, retryable, billed, cost_usd, hint, then each extra."""
        return {
            "code": self.code,
            "message": self.message,
            "retryable": self.retryable,
            "billed": self.billed,
            "cost_usd": self.cost_usd,
            "hint": self.hint,
            **self.extras,
        }


class UserError(LimnerError):
    """The caller must change something before it can work."""

    code = "USAGE"
    exit_status = 2


class InputInvalid(UserError):
    """An argument is missing, of the wrong type or out of range; ``field`` names it."""

    code = "INPUT_INVALID"
    kind = "input_invalid"

    def __init__(self, message: str, *, field: str | None = None, **rest: Any) -> None:
        super().__init__(message, **rest)
        self.field = field

    def as_json(self) -> dict[str, object]:
        """As `LimnerError.as_json`, with the ``field`` that is wrong if there is one."""
        return super().as_json() | ({} if self.field is None else {"field": self.field})


class InvalidSize(InputInvalid):
    """The model cannot draw that size or quality; the hint has the nearest size."""

    code = "INVALID_SIZE_FOR_PROVIDER"


class SettingsError(UserError):
    """A settings file, variable or flag has an unknown key or a value that is not valid."""

    code = "SETTINGS_INVALID"
    kind = "input_invalid"


class MissingExtra(UserError):
    """An optional part of limner is not installed; the hint is the command that installs it."""

    code = "MISSING_EXTRA"
    kind = "not_available"


class NoProvider(UserError):
    """No provider can draw this; the hint names the keys to set."""

    code = "IMAGE_GEN_NO_PROVIDER"
    kind = "not_available"


class OutputExists(UserError):
    """The output file exists, and the caller did not ask to overwrite it."""

    code = "OUTPUT_EXISTS"


class ProviderError(LimnerError):
    """A service failed; ``extras`` has the provider, its status and its own error code.

    ``may_be_billed`` is True if the request reached the service and its outcome is unknown. Such a
    request is never sent again, and its quoted price stays counted. ``model_code`` is the code for
    a request to a language model. ``provider_message`` is the service's own message without
    secrets.
    """

    code = "IMAGE_GEN_PROVIDER_UNAVAILABLE"
    model_code: ClassVar[str] = "MODEL_UNAVAILABLE"
    exit_status = 3

    def __init__(
        self,
        message: str,
        *,
        may_be_billed: bool = False,
        provider_message: str | None = None,
        **rest: Any,
    ) -> None:
        super().__init__(message, **rest)
        self.may_be_billed = may_be_billed
        self.provider_message = provider_message


class ProviderRefused(ProviderError):
    """The service's policy refuses this prompt: never retried, the caller may rephrase."""

    code = "IMAGE_GEN_REJECTED"
    model_code = "MODEL_REFUSED"


class ProviderRateLimited(ProviderError):
    """Too many requests or no quota left; ``retry_after_s`` is the pause it asks for."""

    code = "IMAGE_GEN_QUOTA_EXCEEDED"
    model_code = "MODEL_RATE_LIMITED"
    retryable = True

    def __init__(self, message: str, *, retry_after_s: float | None = None, **rest: Any) -> None:
        super().__init__(message, **rest)
        self.retry_after_s = retry_after_s


class ProviderUnavailable(ProviderError):
    """A server error, a dropped connection or a timeout."""

    code = "IMAGE_GEN_PROVIDER_UNAVAILABLE"
    retryable = True


class ProviderAuth(ProviderError):
    """The key is wrong, or may not do this (401, 403)."""

    code = "IMAGE_GEN_AUTH"
    model_code = "MODEL_AUTH"


class ProviderPaymentRequired(ProviderError):
    """The account has no credit (402)."""

    code = "IMAGE_GEN_PAYMENT_REQUIRED"
    model_code = "MODEL_PAYMENT_REQUIRED"


class ProviderBadRequest(ProviderError):
    """The service did not accept the request (other 4xx)."""

    code = "IMAGE_GEN_BAD_REQUEST"
    model_code = "MODEL_BAD_REQUEST"


class ModelBadAnswer(ProviderError):
    """A model's response is not valid or incomplete."""

    code = model_code = "MODEL_BAD_ANSWER"


class ModelTimeout(ProviderError):
    """A model did not finish its response in time."""

    code = model_code = "MODEL_TIMEOUT"
    retryable = True


class ImageError(LimnerError):
    """Bytes are not a valid picture."""

    code = "IMAGE_INVALID"
    exit_status = 4
    untrusted = True


class UnrecognizedImage(ImageError):
    """The first bytes match no accepted format."""

    code = "IMAGE_UNRECOGNIZED"


class CorruptImage(ImageError):
    """The format is known, but the picture does not decode."""

    code = "IMAGE_CORRUPT"


class ImageTooLarge(ImageError):
    """The picture is over the byte, pixel, memory or time limit."""

    code = "IMAGE_TOO_LARGE"


class UnsafeSvg(ImageError):
    """The SVG document contains something that a drawing does not need."""

    code = "SVG_REFUSED"


class BadProviderImage(ImageError):
    """The service answered without a usable picture."""

    code = "IMAGE_GEN_BAD_RESPONSE"


class Denied(LimnerError):
    """A policy denies it; nothing was sent and nothing was spent."""

    code = "DENIED"
    exit_status = 5


class ReachDenied(Denied):
    """The path is outside the folders that the caller may read or write."""

    code = "OUTPUT_PATH_DENIED"


class BudgetExceeded(Denied):
    """The call would exceed a cap; the message has the amount, the cap and the rest."""

    code = "BUDGET_EXCEEDED"


class ApprovalDenied(Denied):
    """The user denied the call, or limner could not ask the user."""

    code = "APPROVAL_DENIED"


class StorageError(LimnerError):
    """The disk or the database failed."""

    code = "STORAGE_FAILED"


class JobTaken(StorageError):
    """A job at a service belongs to another request already."""

    code = "JOB_TAKEN"


class NotFound(UserError, StorageError):
    """The caller named a file or a picture that does not exist."""

    code = "FILE_NOT_FOUND"


class UnexpectedError(LimnerError):
    """An exception that is no LimnerError stopped a paid call; it is the ``__cause__``."""

    code = "UNEXPECTED"


class ToolTimeout(LimnerError):
    """A tool ran longer than its time limit and was stopped."""

    code = "TOOL_TIMEOUT"
    retryable = True


class ToolUnavailable(LimnerError):
    """The model called a tool that it cannot call now."""

    code = "TOOL_UNAVAILABLE"
    kind = "not_available"


class Cancelled(LimnerError):
    """The user stopped the call."""

    code = "CANCELLED"
    exit_status = 130


def attach_cost(error: BaseException, cost: Cancelled) -> None:
    """Put a cost into an exception that must keep its type: `cancellation_cost` finds it there."""
    error.args = (cost, *error.args)
    if cost.billed:
        error.add_note(f"It may have cost ${cost.cost_usd:.6g}: limner spend shows what was spent.")


def cancellation_cost(stop: BaseException) -> Cancelled | None:
    """The cost in a cancellation, an interrupt or an exit; None if no paid call was stopped.

    An event loop may turn a cancellation into another exception: its context has the cost.
    """
    found = (cost for cause in causes(stop) for cost in cause.args if isinstance(cost, Cancelled))
    return next(found, None)


def shortage_error(shortage: str) -> LimnerError:
    """The error of a call that ended because the system has no more files or memory."""
    return LimnerError(
        f"The system gives limner no more resources: {shortage}.",
        code="NO_MEMORY",
        hint="Raise the limits of this process (ulimit -n, ulimit -v), and try again.",
    )


MORE_CODES: Mapping[str, tuple[type[LimnerError], str]] = {
    "ALREADY_PAID": (UserError, "The row of the batch was paid for before; nothing was sent."),
    "BLOBS_DENIED": (StorageError, "The bucket of pictures refuses the keys of this process."),
    "BLOBS_SHARED": (StorageError, "Two databases store their pictures in one folder or bucket."),
    "BLOBS_UNREACHABLE": (StorageError, "The bucket of pictures cannot be read or written now."),
    "CONVERSATION_CLOSED": (UserError, "The conversation was closed; open it again."),
    "DATABASE_DAMAGED": (StorageError, "The database is damaged, empty or missing."),
    "HOME_IN_USE": (StorageError, "Another limner uses this home in a way that excludes this."),
    "HOME_READ_ONLY": (StorageError, "The home cannot be written; reading works."),
    "IMAGES_BLOCKED": (UserError, "The setting images.block_images forbids to send pictures."),
    "IMAGING_FAILED": (
        LimnerError,
        "The process that decodes pictures was killed.",
    ),
    "JOB_ALREADY_RECEIVED": (UserError, "Another process has fetched the picture of this job."),
    "JOB_ENDED": (LimnerError, "The job ended without a picture and cost nothing."),
    "JOB_LOST": (LimnerError, "The result of the job is unknown or was not stored."),
    "JOB_RUNNING_ELSEWHERE": (LimnerError, "Another process waits for this job."),
    "MODEL_CANNOT": (UserError, "The model cannot do what was asked."),
    "MODEL_CANNOT_SEE": (UserError, "The model takes no pictures."),
    "MODEL_NO_TEXT": (ModelBadAnswer, "The model answered without text."),
    "NO_API_KEY": (UserError, "The key of the model's service is not set."),
    "NO_BUCKET": (StorageError, "The bucket or folder of the setting blobs does not exist."),
    "NO_CHEAP_LANE": (UserError, "The row cannot be sent to a batch API of its vendor."),
    "NO_MODEL": (UserError, "There is no such model, or no model at all."),
    "NO_MEMORY": (LimnerError, "The process has too little memory, or too few files."),
    "NO_ROOM": (StorageError, "The disk has too little room for a picture; nothing was sent."),
    "NO_SUCH_JOB": (UserError, "There is no such job."),
    "NO_SUCH_PERSONALITY": (InputInvalid, "There is no such personality."),
    "NO_SUCH_PICTURE": (NotFound, "No picture with this handle is stored."),
    "NO_SUCH_RUN": (NotFound, "The studio has no such run."),
    "NO_SUCH_SESSION": (InputInvalid, "There is no such session."),
    "NO_TURN": (UserError, "No turn is running, so it cannot be steered."),
    "NOT_A_ROLLOUT": (InputInvalid, "The file is not a rollout of a session."),
    "PATH_DENIED": (ReachDenied, "The caller may not read the path."),
    "PICTURE_DAMAGED": (StorageError, "The stored bytes of a picture do not match its handle."),
    "PICTURE_MISSING": (StorageError, "The bytes of a picture are not in this home."),
    "PRICE_CHANGED": (ApprovalDenied, "It costs more than the user agreed to; nothing was sent."),
    "PROVIDER_CANNOT": (UserError, "The provider cannot do what was asked; the hint names others."),
    "RATE_WAIT": (LimnerError, "The rate of requests of a batch is reached; it waits."),
    "SERVER_BUSY": (LimnerError, "The server runs as many calls as it may."),
    "SERVER_GONE": (LimnerError, "The connection to the app-server ended."),
    "SERVER_REFUSED": (LimnerError, "The app-server refused the request."),
    "SESSION_EXISTS": (InputInvalid, "A session with this id exists."),
    "SESSION_IN_USE": (UserError, "Another process uses the session."),
    "SETTINGS_CHANGED": (UserError, "The settings file was changed since the caller read it."),
    "TOO_MANY_STRAYS": (StorageError, "The database does not know most of the stored files."),
    "TOOL_CRASHED": (LimnerError, "The tool itself failed with an error that is not limner's."),
    "TOOL_NOT_ALLOWED": (ToolUnavailable, "The tool is not among those of this turn."),
    "TURN_IS_OVER": (UserError, "The turn is over, so it cannot be steered."),
    "TURN_LIMIT": (InputInvalid, "The turn made as many requests or calls as it may."),
    "TURN_UNDER_WAY": (UserError, "A turn is running; steer it, or wait."),
    "UNKNOWN_TOOL": (ToolUnavailable, "There is no tool of this name."),
}
"""The codes that are set where an error is raised, each with its class and its meaning."""


RETRYABLE: Mapping[str, str] = {
    "BLOBS_UNREACHABLE": "yes",
    "BUDGET_EXCEEDED": "if only calls in flight are in the way",
    "HOME_IN_USE": "yes",
    "IMAGE_GEN_PROVIDER_UNAVAILABLE": "if nothing can have been billed",
    "IMAGE_GEN_QUOTA_EXCEEDED": "if the account has quota left",
    "JOB_ENDED": "yes",
    "JOB_RUNNING_ELSEWHERE": "yes",
    "MODEL_RATE_LIMITED": "if the account has quota left",
    "MODEL_UNAVAILABLE": "if nothing can have been billed",
    "RATE_WAIT": "yes",
    "SERVER_BUSY": "yes",
    "SERVER_GONE": "if the connection had worked before",
    "SESSION_IN_USE": "yes",
    "STORAGE_FAILED": "if another process was in the way",
}
"""When a retry can help, for the codes that differ from their class."""
