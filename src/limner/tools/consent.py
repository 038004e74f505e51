"""When the user is asked, and what happens without an answer.

============  ==========================================================================
policy        asks
============  ==========================================================================
untrusted     before every paid call, and every write outside the generated folder
on-request    above the amount ``above_nano``, and before a write outside the reach
on-failure    nothing, but what a cap or the reach denies is put to the user once
never         nothing: what a cap or the reach denies stays denied
============  ==========================================================================

Once content from outside was read, somebody else may be speaking through the model. Then, under
every policy, a write outside the generated folder needs the user's yes; so does a paid call,
unless the session has a budget: money that was set aside for it is approved, and the row above
holds. Under ``never`` nobody is asked, and what needs a yes is denied.

The floor holds whatever the user says, and a session that is read-only writes nothing.
"""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from limner.dollars import format_usd
from limner.errors import ApprovalDenied, BudgetExceeded, ReachDenied
from limner.money.ledger import Money
from limner.money.paid_call import Payer
from limner.tools.base import ApprovalPolicy, Question, ToolContext

_OUTSIDE = "after content from outside was read"
_WARNING = "Content from outside was read before this. "


class OverCap(Question, frozen=True, kw_only=True):
    """Whether a call may go over a cap that leaves less than it costs."""


async def approve_spending(
    amount_nano: int,
    what: str,
    context: ToolContext,
    approval: ApprovalPolicy,
    *,
    has_session_cap: bool,
) -> None:
    """Return if the amount may be spent.

    Args:
        amount_nano: the most it can cost.
        what: what is paid for, to begin a sentence with.
        context: who calls; what it says of approval and budget goes before the settings.
        approval: what the settings say.
        has_session_cap: the settings give each session a budget.

    Raises:
        ApprovalDenied: the user said no, or could not be asked.
    """
    approval = context.approval or approval
    is_set_aside = has_session_cap or context.budget_nano is not None
    by_policy = _asks_about(amount_nano, approval)
    by_strangers = context.has_read_untrusted and not is_set_aside and amount_nano > 0
    if not (by_policy or by_strangers):
        return
    costs = f"{what} costs {format_usd(amount_nano)}"
    question = Question(text=f"{_warning(context)}{costs}. Go on?", amount_nano=amount_nano)
    if await _agrees(question, context, approval):
        return
    if by_policy:
        raise ApprovalDenied(
            f"{costs}, which needs the user's approval, and there was none.",
            hint="Raise approval.above_usd, or change approval.policy.",
        )
    raise ApprovalDenied(
        f"{costs}, which {_OUTSIDE} needs the user's approval, and there was none.",
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
    """Who pays for a call of this context, and how the user is asked about it.

    Args:
        context: who calls; what it says of approval and budget goes before the settings.
        approval: what the settings say.
        money: the ledger that the call is paid from.
        what: what is paid for, to begin a sentence with; None asks only about caps.
        session_id: the session that pays for a call that names none.
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
        return policy.policy == "on-failure" and await _agrees(question, context, policy)

    return Payer(
        session_id=context.session_id or session_id,
        budget_nano=context.budget_nano,
        approve=approve,
        approve_over_cap=approve_over_cap,
        on_reserved=context.on_reserved,
        on_sending=context.on_sending,
    )


async def approve_write(
    path: str, context: ToolContext, approval: ApprovalPolicy, *, generated: Path
) -> Path:
    """The resolved path, if it may be written.

    Raises:
        ReachDenied: it is outside the reach, and the user did not allow it.
        ApprovalDenied: the user must allow it, and did not.
    """
    approval = context.approval or approval
    try:
        resolved = context.reach.resolve_write(path, cwd=context.cwd)
    except ReachDenied:
        # Whatever the user says, the floor holds: a denial below it comes from this line.
        above_floor = replace(context.reach, anywhere=True)
        resolved = above_floor.resolve_write(path, cwd=context.cwd)
        if not await _agrees(_about(resolved, context), context, approval):
            raise
        return resolved
    by_policy = approval.policy == "untrusted"
    is_ours = resolved.is_relative_to(generated.resolve())
    if is_ours or not (by_policy or context.has_read_untrusted):
        return resolved
    if await _agrees(_about(resolved, context), context, approval):
        return resolved
    because = "" if by_policy else f" {_OUTSIDE}"
    raise ApprovalDenied(
        f'write of "{resolved}"{because} needs the user\'s approval, and there was none.',
        hint="Without output_path the picture is saved in the generated folder.",
    )


def _asks_about(amount_nano: int, approval: ApprovalPolicy) -> bool:
    """Whether the policy itself wants the user's word on an amount."""
    match approval.policy:
        case "untrusted":
            return amount_nano > 0
        case "on-request":
            return amount_nano > approval.above_nano
        case _:
            return False


async def _agrees(question: Question, context: ToolContext, approval: ApprovalPolicy) -> bool:
    return approval.policy != "never" and await context.ask(question)


def _about(path: Path, context: ToolContext) -> Question:
    return Question(text=f'{_warning(context)}Write the picture to "{path}"?')


def _warning(context: ToolContext) -> str:
    return _WARNING if context.has_read_untrusted else ""
