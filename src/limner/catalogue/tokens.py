"""A picture's size and a detail -> the input tokens of a vision model, and the size it sees.

Each rule is one vendor's arithmetic, on integers and fractions. If a vendor multiplies floats, the
same steps are exact here, so that no size is wrong by a pixel.
"""

from bisect import bisect_left
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from math import ceil, isqrt
from typing import ClassVar, TypeVar

import msgspec

from limner.catalogue.sizes import Size
from limner.errors import ImageTooLarge, InputInvalid

OPENAI_PATCH = 32
CLAUDE_PATCH = 28
TILE = 512
TILED_MAX_EDGE = 2048
TILED_SHORT_EDGE = 768
# The tokens of a picture if it is not known how the model counts.
UNKNOWN_TOKENS = 3_000

_Level = TypeVar("_Level")


class ImageTokens(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of one picture in tokens.

    Attributes:
        tokens: the billed input tokens.
        width: the width of the picture after the model's own resizing.
        height: its height then.
        exact: the count follows a published rule; otherwise it is an upper bound.
    """

    tokens: int
    width: int
    height: int
    exact: bool

    @property
    def size(self) -> Size:
        """The size after the model's own resizing."""
        return Size(self.width, self.height)


class _Rule(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"
):
    """The base of the token rules: their source, its date, and whether the rule is published.

    ``says_size`` tells whether the vendor says to which size the model shrinks a picture.
    """

    says_size: ClassVar[bool] = True

    source: str
    read: date
    exact: bool = True


class Frame(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a picture is shrunk at one detail: into a square, then to a number of patches.

    Above ``refused_above_patches`` the service refuses the picture instead of shrinking it.
    """

    max_edge: int
    max_patches: int | None = None
    refused_above_patches: int | None = None

    def seen(self, size: Size) -> Size:
        """The size after the model's own resizing."""
        inside = _fit_edge(size, self.max_edge)
        return inside if self.max_patches is None else _fit_patches(inside, self.max_patches)

    def accepted(self, size: Size) -> Size:
        """The same size, but small enough that the service does not refuse it."""
        seen = self.seen(size)
        most = self.refused_above_patches
        return seen if most is None else _fit_patches(seen, most)


class OpenAIPatches(_Rule, frozen=True, tag="openai_patches"):
    """Patches of 32 pixels worth ``multiplier`` tokens each; ``auto`` names one of the frames."""

    multiplier: Decimal
    auto: str
    frames: dict[str, Frame]

    def count(self, size: Size, detail: str) -> ImageTokens:
        """The tokens of a picture at one detail.

        Raises:
            InputInvalid: the model has no such detail.
            ImageTooLarge: the service refuses so many patches; the hint has a size.
        """
        frame = self._frame(detail)
        seen, accepted = frame.seen(size), frame.accepted(size)
        if seen != accepted:
            raise ImageTooLarge(
                f"A picture of {size} is more than {frame.refused_above_patches} patches",
                hint=f"Send it at {accepted}, or ask for less detail.",
            )
        tokens = ceil(_cells(seen, OPENAI_PATCH) * self.multiplier)
        return ImageTokens(tokens=tokens, width=seen.width, height=seen.height, exact=self.exact)

    def useful(self, size: Size, detail: str) -> Size:
        """The largest useful size.

        Raises:
            InputInvalid: the model has no such detail.
        """
        return self._frame(detail).accepted(size)

    def _frame(self, detail: str) -> Frame:
        return _level(self.frames, detail, auto=self.auto)


class OpenAITiles(_Rule, frozen=True, tag="openai_tiles"):
    """Tiles of 512 pixels on top of a base price; at low detail the base price alone."""

    base_tokens: int
    tile_tokens: int

    def count(self, size: Size, detail: str) -> ImageTokens:
        """The tokens of a picture at one detail; with auto the vendor may choose either.

        Raises:
            InputInvalid: the model has no such detail.
        """
        seen = self.useful(size, detail)
        tiles = 0 if detail == "low" else _cells(seen, TILE)
        return ImageTokens(
            tokens=self.base_tokens + self.tile_tokens * tiles,
            width=seen.width,
            height=seen.height,
            exact=self.exact and detail != "auto",
        )

    def useful(self, size: Size, detail: str) -> Size:
        """The largest useful size.

        Raises:
            InputInvalid: the model has no such detail.
        """
        inside = _fit_edge(size, _level({"low": TILE, "high": TILED_MAX_EDGE}, detail, auto="high"))
        shortest = min(inside)
        if shortest <= TILED_SHORT_EDGE:
            return inside
        width, height = (edge * TILED_SHORT_EDGE // shortest for edge in inside)
        return Size(width, height)


class ClaudePatches(_Rule, frozen=True, tag="claude_patches"):
    """Patches of 28 pixels, one token each, within an edge and a number of tokens."""

    max_edge: int
    max_tokens: int

    def count(self, size: Size, detail: str) -> ImageTokens:
        """The tokens of a picture; there is only one detail.

        Raises:
            InputInvalid: a detail other than auto.
        """
        seen = self.useful(size, detail)
        tokens = _cells(seen, CLAUDE_PATCH)
        return ImageTokens(tokens=tokens, width=seen.width, height=seen.height, exact=self.exact)

    def useful(self, size: Size, detail: str) -> Size:
        """The largest useful size.

        Raises:
            InputInvalid: a detail other than auto.
        """
        _level({"auto": None}, detail, auto="auto")
        if self._fits(size):
            return size
        # All edges up to the longest that fits do fit, so a binary search finds it.
        edges = range(1, max(size))
        longest = bisect_left(edges, True, key=lambda edge: not self._fits(_scale(size, edge)))
        return _scale(size, longest)

    def _fits(self, size: Size) -> bool:
        padded = _divide_up(max(size), CLAUDE_PATCH) * CLAUDE_PATCH
        return padded <= self.max_edge and _cells(size, CLAUDE_PATCH) <= self.max_tokens


class MediaResolution(_Rule, frozen=True, tag="media_resolution"):
    """A number of tokens for each detail, whatever the size; the resizing is not published."""

    says_size: ClassVar[bool] = False

    tokens: dict[str, int]
    auto: str

    def count(self, size: Size, detail: str) -> ImageTokens:
        """The tokens of a picture at one detail.

        Raises:
            InputInvalid: the model has no such detail.
        """
        tokens = _level(self.tokens, detail, auto=self.auto)
        return ImageTokens(tokens=tokens, width=size.width, height=size.height, exact=self.exact)

    def useful(self, size: Size, detail: str) -> Size:
        """The size itself: the vendor does not publish a useful limit.

        Raises:
            InputInvalid: the model has no such detail.
        """
        _level(self.tokens, detail, auto=self.auto)
        return size


TokenRule = OpenAIPatches | OpenAITiles | ClaudePatches | MediaResolution


def _level(levels: Mapping[str, _Level], detail: str, *, auto: str) -> _Level:
    """The entry for a detail."""
    try:
        return levels[auto if detail == "auto" else detail]
    except KeyError:
        raise InputInvalid(
            f"The model has no detail {detail[:40]!r}",
            field="detail",
            hint=f"Use {' or '.join(dict.fromkeys(['auto', *levels]))}.",
        ) from None


def _cells(size: Size, edge: int) -> int:
    """The number of squares with that edge that cover a picture."""
    return _divide_up(size.width, edge) * _divide_up(size.height, edge)


def _divide_up(amount: int, by: int) -> int:
    return -(-amount // by)


def _scale(size: Size, longest: int) -> Size:
    """The same shape with another longer edge; half pixels round to even."""
    width, height = (max(1, _divide_to_even(edge * longest, max(size))) for edge in size)
    return Size(width, height)


def _divide_to_even(amount: int, by: int) -> int:
    whole, rest = divmod(amount, by)
    return whole + (2 * rest > by or (2 * rest == by and whole % 2))


def _fit_edge(size: Size, max_edge: int) -> Size:
    return size if max(size) <= max_edge else _scale(size, max_edge)


def _fit_patches(size: Size, budget: int) -> Size:
    """Shrink to at most ``budget`` patches, so that one edge is a whole number of patches.

    The vendor scales by sqrt(budget * 32² / area), and then further until the edge that has to
    shrink more is a whole number of patches. This is the same in integers.
    """
    if _cells(size, OPENAI_PATCH) <= budget:
        return size
    width, height = size
    columns, rows = isqrt(budget * width // height), isqrt(budget * height // width)
    if columns * height <= rows * width:
        return Size(columns * OPENAI_PATCH, columns * OPENAI_PATCH * height // width)
    return Size(rows * OPENAI_PATCH * width // height, rows * OPENAI_PATCH)
