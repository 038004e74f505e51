"""A picture in a test -> a failed assertion with the verdicts and the sheet, or nothing."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from pathlib import Path

import limner
from limner.imaging.fit import Region
from limner.tools.image_input import ImageInput
from limner.tools.picture_check import PictureCheck

Area = Region | tuple[int, int, int, int]
"""A part of a picture: a `Region`, or x, y, width and height."""


class PictureFixture:
    """The pytest fixture ``picture``: call it with a picture, then check that picture.

    A reference is a path relative to the folder of the test. With ``--limner-update`` it is
    written instead of compared.
    """

    def __init__(self, *, folder: Path, sheets: Path, update: bool) -> None:
        self._folder, self._sheets, self._update = folder, sheets, update
        self._numbers = count(1)
        self._image: ImageInput | None = None

    def __call__(self, image: ImageInput) -> PictureFixture:
        """Check this picture from now on: a path, bytes, a Pillow image, a handle."""
        self._image = image
        return self

    def matches(self, reference: str | Path, *, ignore: Iterable[Area] = ()) -> None:
        """Fail unless the picture looks like its reference, outside the ignored parts.

        Raises:
            AssertionError: it differs, or there is no reference; the message says what to do.
        """
        __tracebackhide__ = True
        file = self._folder / reference
        if self._update:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(limner.picture(limner.take(self._given)).bytes())
            return
        if not file.exists():
            raise AssertionError(
                f"there is no reference {file}. Write it with: pytest --limner-update"
            )
        parts = [part if isinstance(part, Region) else _region(part) for part in ignore]
        _assert_passed(
            limner.check(self._given, against=file, ignore=parts, sheet=self._new_sheet())
        )

    def shows(self, *texts: str) -> None:
        """Fail unless the picture shows each of these texts.

        Raises:
            AssertionError: one is missing, or the text cannot be read here.
        """
        __tracebackhide__ = True
        self.meets(*(f"shows “{text}”" for text in texts))

    def meets(self, *criteria: str) -> None:
        """Fail unless the picture meets each criterion, in the words of `limner.check`.

        Raises:
            AssertionError: it does not meet one, or that cannot be determined.
        """
        __tracebackhide__ = True
        _assert_passed(limner.check(self._given, expect=criteria, sheet=self._new_sheet()))

    @property
    def _given(self) -> ImageInput:
        if self._image is None:
            raise TypeError("say which picture: picture(path_or_bytes).matches(…)")
        return self._image

    def _new_sheet(self) -> Path:
        return self._sheets / f"limner-sheet-{next(self._numbers)}.png"


def _region(part: tuple[int, int, int, int]) -> Region:
    x, y, width, height = part
    return Region(x=x, y=y, width=width, height=height)


def _assert_passed(found: PictureCheck) -> None:
    __tracebackhide__ = True
    if not found:
        raise AssertionError(found.report)
