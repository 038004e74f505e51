"""When the user is asked, and what happens without an answer.

============  ==========================================================================
policy        asks
============  ==========================================================================
untrusted     before every paid call, and every write outside the generated folder
on-request    above the amount ``above_nano``, and before a write outside the reach
on-failure    nothing, but a write that the reach denies is put to the user once
never         nothing: what the reach denies stays denied
============  ==========================================================================
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from limner.errors import ApprovalDenied, ReachDenied
from limner.money.amounts import format_usd
from limner.tools.base import Question, ToolContext


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """The policy, and the amount above which ``on-request`` asks."""

    policy: str
    above_nano: int


async def may_spend(amount_nano: int, what: str, context: ToolContext, approval: Approval) -> None:
    """Return if the amount may be spent.

    Raises:
        ApprovalDenied: the user said no, or could not be asked.
    """
    match approval.policy:
        case "untrusted":
            must_ask = amount_nano > 0
        case "on-request":
            must_ask = amount_nano > approval.above_nano
        case _:
            must_ask = False
    if not must_ask:
        return
    amount = format_usd(amount_nano)
    if not await context.ask(
        Question(text=f"{what} costs {amount}. Go on?", amount_nano=amount_nano)
    ):
        raise ApprovalDenied(
            f"{what} costs {amount}, which needs the user's approval, and there was none.",
            hint="Raise approval.above_usd, or change approval.policy.",
        )


async def writable(path: str, context: ToolContext, approval: Approval, *, generated: Path) -> Path:
    """The resolved path, if it may be written.

    Raises:
        ReachDenied: it is outside the reach, and the user did not allow it.
        ApprovalDenied: the user must allow it, and did not.
    """
    try:
        resolved = context.reach.resolve_write(path, cwd=context.cwd)
    except ReachDenied:
        # Whatever the user says, the floor holds: a denial below it comes from this line.
        above_floor = replace(context.reach, anywhere=True)
        resolved = above_floor.resolve_write(path, cwd=context.cwd)
        if approval.policy == "never" or not await _allows(resolved, context):
            raise
        return resolved
    is_ours = resolved.is_relative_to(generated.resolve())
    must_ask = approval.policy == "untrusted" and not is_ours
    if must_ask and not await _allows(resolved, context):
        raise ApprovalDenied(
            f'write of "{resolved}" needs the user\'s approval, and there was none.'
        )
    return resolved


async def _allows(path: Path, context: ToolContext) -> bool:
    return await context.ask(Question(text=f'Write the picture to "{path}"?'))
