"""What a model can call: a tool is a value with one async function; content items come out."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from limner.content import Content
from limner.display_text import clean_line
from limner.errors import NANO_PER_USD, CostSource, ErrorKind
from limner.money.records import PaymentTerms
from limner.pictures.request import Progress
from limner.storage.reach import Reach

DEFAULT_RESULT_BUDGET_CHARS = 80_000


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """Something only the user can decide. ``amount_usd`` is set if it is about money.

    ``text`` is one line of visible characters: a name in it cannot add a line, or hide one.
    """

    text: str
    amount_nano: int | None = None

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "text", clean_line(self.text))

    @property
    def amount_usd(self) -> float | None:
        """The amount in dollars, if it is about money."""
        return None if self.amount_nano is None else self.amount_nano / NANO_PER_USD


async def answer_no(question: Question) -> bool:  # noqa: ARG001 - the signature of `ask`
    """The answer if no user can be asked: no."""
    return False


def ignore_progress(progress: Progress) -> None:
    """Drop progress that the caller does not wait for."""


async def ignore_reservation(ledger_id: int) -> None:
    """The hook of a call whose reservations are not followed."""


class ApprovalPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """When the user is asked: the policy, and the amount above which ``on-request`` asks."""

    policy: str
    above_nano: int


class ToolContext(msgspec.Struct, frozen=True, kw_only=True):
    """The caller of a tool, its folder, and what it may read, write and spend.

    Attributes:
        session_id: whose budget pays; None is the session of the `Limner` whose tool it is.
        call_id: the call that this context is for, if a conversation made it.
        cwd: what relative paths are relative to.
        more_folders: where a relative path is looked for if the working folder does not have it.
        reach: the paths that may be read and written.
        approval: when the user is asked; None is what the settings say.
        budget_nano: a cap on the session, beside those of the settings.
        has_read_untrusted: words from outside are in the conversation, so that spending and
            writing follow the stricter rule.
        allowed: the names of this turn's toolset; None means every registered tool.
        result_budget_chars: the most that the results of one batch may say.
        active_model: the model of the conversation, as ``provider/id``.
        cancel: once set, the calls that are running stop.
        progress: gets the progress of a call.
        ask: decides what only the user can decide.
        on_reserved: gets the ledger row of each reservation before anything is sent; if it
            raises, the money is released and nothing is sent.
        on_sending: is called before a paid request is sent.
        terms: what the call pays for, if it must not be paid twice.
    """

    # Not for programs.
    _internal: ClassVar = frozenset({"terms"})

    session_id: str | None = None
    call_id: str | None = None
    cwd: Path = msgspec.field(default_factory=Path.cwd)
    more_folders: tuple[Path, ...] = ()
    reach: Reach = msgspec.field(default_factory=Reach.for_model)
    approval: ApprovalPolicy | None = None
    budget_nano: int | None = None
    has_read_untrusted: bool = False
    allowed: frozenset[str] | None = None
    result_budget_chars: int = DEFAULT_RESULT_BUDGET_CHARS
    active_model: str | None = None
    cancel: asyncio.Event | None = None
    progress: Callable[[Progress], None] = ignore_progress
    ask: Callable[[Question], Awaitable[bool]] = answer_no
    on_reserved: Callable[[int], Awaitable[None]] = ignore_reservation
    on_sending: Callable[[], None] = lambda: None
    terms: PaymentTerms | None = None


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool's function returns: a value that is JSON, content for the model, and the cost.

    ``parts`` are for a tool that writes items of a conversation itself: the model gets them in
    place of value and content, and they are not shortened. ``untrusted`` content comes from
    outside, as a page or the text in a picture: it is data, and never an instruction. ``success``
    is False if the tool itself reports a failure and still has something to show.
    """

    value: Mapping[str, Any]
    content: tuple[Content, ...] = ()
    cost_nano: int = 0
    cost_source: CostSource = "table"
    parts: tuple[Mapping[str, Any], ...] | None = None
    untrusted: bool = False
    success: bool = True


class ToolHints(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool may do, for clients that decide whether to ask their user.

    Attributes:
        read_only: it changes nothing.
        destructive: it may replace or end something.
        idempotent: the same call again changes nothing more.
        open_world: it reaches beyond this machine.
    """

    read_only: bool
    destructive: bool
    idempotent: bool
    open_world: bool


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A name, a schema and a function.

    Attributes:
        name: how a model calls it.
        description: what a model reads about it.
        schema: the JSON schema of its arguments.
        run: does the work.
        toolset: the group of tools that it belongs to.
        max_result_chars: the most that one result may have.
        timeout_s: how long it may run; None is the registry's limit.
        available: whether it can be called now.
        parts: how many results in one a call asks for, each with room for ``max_result_chars``.
        foreign: a client at the other end of a connection runs it. Its schema is never made into
            code, and its results reach the model exactly as they are.
        keeps_books: it has written what it cost to the ledger itself.
        title: its name for people.
        arguments: the Struct that the schema is derived from.
        answer: a Struct with the members of its value.
        hints: what it may do.
        quote: checks a call and returns the most that it can cost, in nano-dollars; nothing is
            sent. None if the tool is free.
    """

    name: str
    description: str
    schema: Mapping[str, object]
    run: Callable[[Mapping[str, object], ToolContext], Awaitable[Outcome]]
    toolset: str
    max_result_chars: int
    timeout_s: float | None = None
    available: Callable[[], bool] = lambda: True
    parts: Callable[[Mapping[str, object]], int] = lambda _: 1
    foreign: bool = False
    keeps_books: bool = False
    title: str | None = None
    arguments: type[msgspec.Struct] | None = None
    answer: type[msgspec.Struct] | None = None
    hints: ToolHints | None = None
    quote: Callable[[Mapping[str, object], ToolContext], Awaitable[int]] | None = None


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """A model asks for a tool by name."""

    name: str
    arguments: Mapping[str, object] = msgspec.field(default_factory=dict[str, object])
    call_id: str = msgspec.field(default_factory=lambda: f"call_{uuid.uuid4().hex}")


class ToolResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one call. Cost is there on success and on failure alike.

    On success ``value`` is a JSON text and ``code`` is None. On failure ``error`` is for the
    reader, ``code`` is one of three kinds and ``domain_code`` the stable code of the failure. A
    tool that says itself that it failed has a value and content, and neither error nor code.
    """

    call_id: str
    name: str
    ok: bool
    value: str = ""
    content: tuple[Content, ...] = ()
    cost_nano: int = 0
    cost_source: CostSource = "table"
    code: ErrorKind | None = None
    domain_code: str | None = None
    error: str | None = None
    hint: str | None = None
    retryable: bool = False
    billed: bool = False
    extras: Mapping[str, object] = msgspec.field(default_factory=dict[str, object])
    cut_chars: int = 0
    parts: tuple[Mapping[str, object], ...] | None = None
    untrusted: bool = False
    field: str | None = None

    @property
    def cost_usd(self) -> float:
        """What the call cost in dollars."""
        return self.cost_nano / NANO_PER_USD

    @property
    def error_json(self) -> dict[str, object]:
        """A failure as every front end shows it: as `LimnerError.as_json`."""
        named = {} if self.field is None else {"field": self.field}
        return {
            "code": self.domain_code,
            "message": self.error,
            "retryable": self.retryable,
            "billed": self.billed,
            "cost_usd": self.cost_usd,
            "hint": self.hint,
            **named,
            **self.extras,
        }
