"""The tool `image_check`: a picture, a reference and criteria in, a verdict for each out."""

from __future__ import annotations

from typing import Any

import msgspec

from limner.content import Picture
from limner.eyes.differences import ScreenChange
from limner.imaging.evidence import Box
from limner.tools.base import Outcome, Tool, ToolContext, ToolHints
from limner.tools.built_in import ToolParts
from limner.tools.declaration import ToolDeclaration
from limner.tools.picture_check import CheckArguments, CriterionVerdict, PictureCheck

# So that a model that takes too long is reported as such, and not as a tool that does.
SPARE_S = 30.0


class ChangeAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One difference from the reference."""

    box: Box
    kind: str
    text: str
    what: str
    before: str
    after: str
    moved_by: tuple[int, int] | None


class DifferenceAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """All differences from the reference."""

    changed: bool
    boxes: list[ChangeAnswer]
    left_out: int


class CheckAnswer(msgspec.Struct, frozen=True, kw_only=True, rename={"passed": "pass"}):
    """The value of `image_check`."""

    passed: bool | None
    criteria: list[CriterionVerdict]
    difference: DifferenceAnswer | None
    sheet: str | None
    cost_usd: float
    cost_source: str


IMAGE_CHECK = ToolDeclaration(
    name="image_check",
    title="Check a picture",
    description="Check a picture: compare it with a reference (`against`), and judge criteria in "
    "words (`expect`). Returns a verdict for each criterion (pass, fail, cannot tell) with "
    "evidence and box, and each difference with its box and what changed. Text, counts, colours, "
    "sizes, contrast, states of controls and chart values are measured, free of charge; only other "
    "criteria are put to a vision model. Use it after you made or changed a screen, a chart or a "
    "picture.",
    arguments=CheckArguments,
    answer=CheckAnswer,
    hints=ToolHints(read_only=False, destructive=False, idempotent=False, open_world=True),
    max_result_chars=20_000,
    keeps_books=True,
)


def build(parts: ToolParts) -> Tool:
    """Build the tool."""

    async def run(arguments: CheckArguments, context: ToolContext) -> Outcome:
        found = await parts.checker().check(arguments, context)
        shown: tuple[Picture, ...] = () if found.sheet_image is None else (found.sheet_image,)
        return Outcome(
            value=as_value(found),
            content=shown,
            cost_nano=found.cost_nano,
            cost_source=found.cost_source,
            untrusted=found.untrusted,
        )

    return IMAGE_CHECK.tool(run, timeout_s=parts.inspector.timeout_s + SPARE_S)


def as_value(check: PictureCheck) -> dict[str, Any]:
    """The answer of the tool, and what `limner check --json` prints."""
    difference = check.difference
    answer = CheckAnswer(
        passed=check.passed,
        criteria=list(check.criteria),
        difference=None
        if difference is None
        else DifferenceAnswer(
            changed=difference.changed,
            boxes=[_change(one) for one in difference.boxes],
            left_out=difference.left_out,
        ),
        sheet=None if check.sheet is None else str(check.sheet),
        cost_usd=check.cost_usd,
        cost_source=check.cost_source,
    )
    return msgspec.to_builtins(answer)


def _change(one: ScreenChange) -> ChangeAnswer:
    return ChangeAnswer(
        box=one.box,
        kind=one.kind,
        text=one.sentence,
        what=one.what,
        before=one.before,
        after=one.after,
        moved_by=one.moved_by,
    )
