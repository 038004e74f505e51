"""An amount or a path -> the user's approval, if the policy asks for it.

============  ==========================================================================
policy        asks
============  ==========================================================================
untrusted     before every paid call, and every write outside the generated folder
on-request    above the amount ``above_nano``, and before a write outside the reach
on-failure    only after a cap or the reach has refused, and then once
never         never: what a cap or the reach refuses stays refused
============  ==========================================================================

Content from outside may contain instructions to the model. Once a conversation has read some, a
write outside the generated folder needs the user's approval under every policy. So does a paid
call, unless the session has a budget: the user has approved a budget by setting it. Under
``never`` the user is not asked, and what needs approval is denied.

The user cannot allow a path below the floor, and a read-only session writes nothing.
"""

from __future__ import annotations

import re
from pathlib import Path

from msgspec.structs import replace

from limner.display_text import quote
from limner.dollars import format_usd
from limner.errors import ApprovalDenied, BudgetExceeded, ReachDenied
from limner.imaging.formats import PICTURE_SUFFIXES
from limner.money.ledger import Money
from limner.money.paid_call import Payer
from limner.storage.reach import Reach
from limner.tools.base import ApprovalPolicy, Question, ToolContext

# A suffix that tells the kind of a file; that of "version 1.2" or "Mr. Fox" is only part of a name.
_KIND_OF_FILE = re.compile(r"\.(?=.*[a-z])[a-z0-9_+~-]{1,12}")
_OUTSIDE = "after content from outside was read"
_WARNING = "Content from outside was read before this. "


class OverCap(Question, frozen=True, kw_only=True):
    """Whether a call may exceed a cap."""


async def approve_spending(
    amount_nano: int,
    what: str,
    context: ToolContext,
    approval: ApprovalPolicy,
    *,
    has_session_cap: bool,
) -> None:
    """Return if the amount may be spent, after asking the user if necessary.

    Args:
        amount_nano: the most it can cost.
        what: what is paid for, as the subject of a sentence.
        context: the call; its approval policy and budget override the settings.
        approval: the policy of the settings.
        has_session_cap: the settings give each session a budget.

    Raises:
        ApprovalDenied: the user refused, or could not be asked.
    """
    approval = context.approval or approval
    has_budget = has_session_cap or context.budget_nano is not None
    by_policy = _asks_about(amount_nano, approval)
    by_content = context.has_read_untrusted and not has_budget and amount_nano > 0
    if not (by_policy or by_content):
        return
    costs = f"{what} costs {format_usd(amount_nano)}"
    question = Question(text=f"{_warning(context)}{costs}. Go on?", amount_nano=amount_nano)
    if await _ask(question, context, approval):
        return
    if by_policy:
        raise ApprovalDenied(
            f"{costs} and needs the user's approval; it was not given.",
            hint="Raise approval.above_usd, or change approval.policy.",
        )
    raise ApprovalDenied(
        f"{costs} and needs the user's approval {_OUTSIDE}; it was not given.",
        hint="Set a budget for the session (budget.session_usd), or let the user approve the call.",
    )


def payer_for(
    context: ToolContext,
    approval: ApprovalPolicy,
    money: Money,
    *,
    what: str | None,
    session_id: str = "",
) -> Payer:
    """The session that pays for a call, and the questions that its user is asked.

    Args:
        context: the call; its approval policy and budget override the settings.
        approval: the policy of the settings.
        money: the ledger.
        what: what is paid for, as the subject of a sentence; None asks only about caps.
        session_id: the session that pays if the context names none.
    """

    async def approve(quote_nano: int) -> None:
        if what is not None:
            await approve_spending(
                quote_nano, what, context, approval, has_session_cap=money.has_session_cap
            )

    async def approve_over_cap(refusal: BudgetExceeded, quote_nano: int) -> bool:
        policy = context.approval or approval
        text = f"{_warning(context)}{refusal.message}. Go over it?"
        question = OverCap(text=text, amount_nano=quote_nano)
        return policy.policy == "on-failure" and await _ask(question, context, policy)

    return Payer(
        session_id=context.session_id or session_id,
        budget_nano=context.budget_nano,
        approve=approve,
        approve_over_cap=approve_over_cap,
        on_reserved=context.on_reserved,
        on_sending=context.on_sending,
        terms=context.terms,
    )


async def approve_write(
    path: str, context: ToolContext, approval: ApprovalPolicy, *, generated: Path
) -> Path:
    """Resolve a path that may be written, after asking the user if necessary.

    Raises:
        ReachDenied: the path is outside the reach, and the user did not allow it; or its name is
            not one of a picture, and a model chose it.
        ApprovalDenied: the write needs the user's approval, which was not given.
    """
    approval = context.approval or approval
    try:
        resolved = _resolve(path, context.reach, context)
    except ReachDenied:
        # The user can allow any path above the floor; below it, this raises.
        above_floor = replace(context.reach, anywhere=True)
        resolved = _resolve(path, above_floor, context)
        if not await _ask(_write_question(resolved, context), context, approval):
            raise
        return resolved
    by_policy = approval.policy == "untrusted"
    is_generated = resolved.is_relative_to(generated.resolve())
    if is_generated or not (by_policy or context.has_read_untrusted):
        return resolved
    if await _ask(_write_question(resolved, context), context, approval):
        return resolved
    because = "" if by_policy else f" {_OUTSIDE}"
    raise ApprovalDenied(
        f"write of {quote(str(resolved))} needs the user's approval{because}; it was not given.",
        hint="Without output_path the picture is saved in the generated folder.",
    )


def _resolve(path: str, reach: Reach, context: ToolContext) -> Path:
    """The path to write; a model may write only under a name that a picture can have."""
    resolved = reach.resolve_write(path, cwd=context.cwd)
    if not (reach.by_person or resolved.is_dir() or _is_picture_name(resolved)):
        raise ReachDenied(
            f"write of {quote(str(resolved), max_chars=300)} is refused: a model may write only "
            "pictures, and this is the name of another kind of file.",
            code="OUTPUT_PATH_DENIED",
            hint="End the name with .png.",
        )
    return resolved


def _is_picture_name(path: Path) -> bool:
    """Whether a name has the suffix of a picture, or none. A hidden file needs one."""
    suffix = path.suffix.lower()
    if suffix in PICTURE_SUFFIXES:
        return True
    return not path.name.startswith(".") and _KIND_OF_FILE.fullmatch(suffix) is None


def _asks_about(amount_nano: int, approval: ApprovalPolicy) -> bool:
    """Whether the policy itself asks the user about an amount."""
    match approval.policy:
        case "untrusted":
            return amount_nano > 0
        case "on-request":
            return amount_nano > approval.above_nano
        case _:
            return False


async def _ask(question: Question, context: ToolContext, approval: ApprovalPolicy) -> bool:
    return approval.policy != "never" and await context.ask(question)


def _write_question(path: Path, context: ToolContext) -> Question:
    return Question(text=f"{_warning(context)}Write the picture to {quote(str(path))}?")


def _warning(context: ToolContext) -> str:
    return _WARNING if context.has_read_untrusted else ""
