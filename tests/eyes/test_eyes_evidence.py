from __future__ import annotations

import pytest
from eyes_samples import DIALOG, WHITE, evidence

from limner.eyes.evidence import Kind, kind
from limner.imaging.evidence import Origin, Texture

LIKE_A_PHOTO = Texture(equal=6, sharp=1, two_colours=0, grey=3)
LIKE_A_DRAWING = Texture(equal=78, sharp=0, two_colours=2, grey=6)
LIKE_INK = Texture(equal=71, sharp=9, two_colours=78, grey=100)
LIKE_A_DARK_WINDOW = Texture(equal=95, sharp=3, two_colours=96, grey=1)


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (
            {"texture": LIKE_A_PHOTO, "lines": ()},
            Kind("photo", "only 6 % of the pixels equal their neighbour, as in photos and scans"),
        ),
        (
            {"texture": LIKE_A_DRAWING, "lines": ()},
            Kind("drawing", "78 % of the pixels equal their neighbour"),
        ),
        (
            {"texture": LIKE_INK, "lines": ()},
            Kind(
                "line art",
                "71 % of the pixels equal their neighbour, and 78 % have one of two colours; "
                "it has no more than a line of text",
            ),
        ),
        (
            {"texture": LIKE_INK, "lines": (), "no_text_reason": "no reader"},
            Kind(
                "line art",
                "71 % of the pixels equal their neighbour, and 78 % have one of two colours; "
                "it may also be a page of text: OCR did not run",
            ),
        ),
        (
            {"texture": LIKE_A_DARK_WINDOW, "lines": (), "no_text_reason": "no reader"},
            Kind(
                "screenshot",
                "95 % of the pixels equal their neighbour, and 96 % have one of two colours",
            ),
        ),
        (
            {"texture": DIALOG.texture},
            Kind(
                "screenshot",
                "92 % of the pixels equal their neighbour, and 93 % have one of two colours; "
                "it has 3 lines of text",
            ),
        ),
        (
            {
                "texture": Texture(equal=100, sharp=0, two_colours=100, grey=100),
                "colours": (WHITE,),
                "lines": (),
            },
            Kind("flat colour", "all of it is white"),
        ),
        (
            {"origin": Origin(camera="Canon", taken=None, software=None, place=None)},
            Kind("photo", "EXIF names the camera"),
        ),
    ],
)
def test_the_kind_follows_from_what_was_measured(known: dict[str, object], expected: Kind) -> None:
    assert kind(evidence(**known)) == expected  # pyright: ignore[reportArgumentType]
