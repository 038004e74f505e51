"""What `image_check` takes -> what it returns: a verdict for each criterion, with evidence."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from limner.content import Picture
from limner.errors import NANO_PER_USD, CostSource
from limner.eyes.differences import ScreenChange
from limner.imaging.evidence import Box
from limner.tools.declaration import ImageText, PathText
from limner.tools.regions import RegionArgument

MAX_CRITERIA = 100
MAX_IGNORED = 100

CheckVerdict = Literal["pass", "fail", "cannot tell"]
LIMNER = "limner"


class CheckArguments(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of `image_check`."""

    image: Annotated[ImageText, Meta(description="The picture to check: a file path, or a handle.")]
    against: (
        Annotated[
            ImageText,
            Meta(
                description="A reference of the same size: every visible difference fails.",
                extra={"metavar": "REFERENCE"},
            ),
        ]
        | None
    ) = None
    expect: Annotated[
        tuple[str, ...],
        Meta(
            description="Criteria in words, as: shows 'Save'; has 3 buttons; text is readable.",
            max_length=MAX_CRITERIA,
            extra={"metavar": "TEXT"},
        ),
    ] = ()
    ignore: Annotated[
        tuple[RegionArgument, ...],
        Meta(
            description="Parts that may differ from the reference, in pixels.",
            max_length=MAX_IGNORED,
        ),
    ] = ()
    sheet: (
        Annotated[
            PathText,
            Meta(
                description="File path for a PNG with both pictures and the differences marked.",
                extra={"metavar": "PATH"},
            ),
        ]
        | None
    ) = None


class CriterionVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What was found out about one criterion. ``by`` is limner, or the model that was asked."""

    criterion: str
    verdict: CheckVerdict
    evidence: str
    box: Box | None = None
    by: str = LIMNER


class PictureDifference(msgspec.Struct, frozen=True, kw_only=True):
    """How a picture differs from its reference.

    ``left_out`` counts the changes beyond those that are listed.
    """

    changed: bool
    boxes: tuple[ScreenChange, ...] = ()
    left_out: int = 0


class PictureCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The verdicts about a picture. It is true if everything passed.

    Attributes:
        passed: whether all passed; None if none failed and one cannot be determined.
        criteria: a verdict for each criterion, in their order.
        difference: how it differs from the reference, if there is one.
        sheet: the file with the marked pictures, if one was asked for.
        sheet_image: the picture in that file.
        cost_nano: what the model cost, in nano-dollars.
        cost_source: how the cost is known.
        untrusted: a picture comes from outside; the evidence may repeat the text in it.
    """

    passed: bool | None
    criteria: tuple[CriterionVerdict, ...] = ()
    difference: PictureDifference | None = None
    sheet: Path | None = None
    sheet_image: Picture | None = None
    cost_nano: int = 0
    cost_source: CostSource = "table"
    untrusted: bool = True

    def __bool__(self) -> bool:
        return self.passed is True

    @property
    def cost_usd(self) -> float:
        """What it cost in dollars."""
        return self.cost_nano / NANO_PER_USD

    @property
    def report(self) -> str:
        """The verdicts as text, one on each line, and the path of the sheet."""
        lines = [f"{one.verdict}: {one.criterion} ({one.evidence})" for one in self.criteria]
        if self.difference is not None:
            lines += _difference_lines(self.difference)
        if self.sheet is not None:
            lines.append(f"sheet: {self.sheet}")
        return "\n".join(lines)


def _difference_lines(difference: PictureDifference) -> list[str]:
    if not difference.changed:
        return ["pass: no visible difference from the reference"]
    boxes = difference.boxes
    count = len(boxes) + difference.left_out
    found = "1 difference" if count == 1 else f"{count} differences"
    return [
        f"fail: {found} from the reference",
        *(
            f"  {number}. {one.sentence} at {','.join(map(str, msgspec.structs.astuple(one.box)))}"
            for number, one in enumerate(boxes, start=1)
        ),
    ]
