"""Country flags on a pole and outlines of countries for the picture pack."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np

_POLE = (
    '<rect x="2.6" y="1.5" width="1.3" height="29.5" rx="0.6" fill="#9A7B52"/>'
    '<circle cx="3.25" cy="1.5" r="1.2" fill="#E8C25A"/>'
)
# Light and shade as on cloth in the wind.
_FOLDS = (
    '<path d="M3.9 3h6.5v17.4h-6.5zM17 3h6.5v17.4h-6.5z" fill="#000000" fill-opacity="0.06"/>'
    '<path d="M10.4 3h6.6v17.4h-6.6zM23.5 3h6.5v17.4h-6.5z" fill="#FFFFFF" '
    'fill-opacity="0.1"/>'
)
_EUROPE = frozenset(
    [
        "ad",
        "al",
        "at",
        "ba",
        "be",
        "bg",
        "by",
        "ch",
        "cy",
        "cz",
        "de",
        "dk",
        "ee",
        "es",
        "fi",
        "fr",
        "gb",
        "gr",
        "hr",
        "hu",
        "ie",
        "is",
        "it",
        "li",
        "lt",
        "lu",
        "lv",
        "mc",
        "md",
        "me",
        "mk",
        "mt",
        "nl",
        "no",
        "pl",
        "pt",
        "ro",
        "rs",
        "se",
        "si",
        "sk",
        "sm",
        "ua",
        "va",
        "xk",
    ]
)
_ONLY_EUROPE = (430.0, 240.0, 590.0, 365.0)
_EDGE = 100.0


def flag(svg: str) -> str:
    """The drawing of a flag of 513 x 342 units, on a pole in a square of 32 units."""
    inner = re.sub(r"^<svg[^>]*>|</svg>$", "", svg.strip())
    return f'{_POLE}<g transform="translate(3.9 3) scale(0.0508)">{inner}</g>{_FOLDS}'


def outlines(path: Path) -> dict[str, tuple[str, list[np.ndarray]]]:
    """Each country by its code: its name, and the rings of its outline."""
    text = path.read_text(encoding="utf-8")
    data = json.loads(text[text.index("{") : text.rindex("}") + 1])
    return {
        place["id"]: (place["name"], list(_rings(place["path"]))) for place in data["locations"]
    }


def _rings(data: str) -> Iterator[np.ndarray]:
    """The rings of path data that has only relative lines."""
    x = y = 0.0
    for ring in re.findall(r"[mM]([^mMzZ]+)", data):
        points: list[tuple[float, float]] = []
        for dx, dy in re.findall(r"(-?[\d.]+(?:e-?\d+)?)[ ,]+(-?[\d.]+(?:e-?\d+)?)", ring):
            x, y = x + float(dx), y + float(dy)
            points.append((x, y))
        yield np.array(points, dtype=np.float32)
        x, y = points[0]


def country_map(rings: list[np.ndarray]) -> str:
    """The drawing of one country in a square of 100 units."""
    largest = max(cv2.contourArea(ring) for ring in rings)
    main = [ring for ring in rings if cv2.contourArea(ring) > 0.04 * largest]
    return _draw(_fit(rings, np.concatenate(main)), "#5FA56A")


def europe(countries: dict[str, tuple[str, list[np.ndarray]]]) -> str:
    """The drawing of the countries of Europe."""
    left, top, right, bottom = _ONLY_EUROPE
    window = np.array([(left, top), (right, bottom)], dtype=np.float32)
    colours = ("#5FA56A", "#8FBF6A", "#D9B45A", "#C98F6A", "#7FAFC9", "#B98FC0")
    body = ""
    for nth, code in enumerate(sorted(_EUROPE & countries.keys())):
        rings = [
            ring
            for ring in countries[code][1]
            if left < ring[:, 0].mean() < right and top < ring[:, 1].mean() < bottom
        ]
        if rings:
            body += _draw(_fit(rings, window), colours[nth % len(colours)])
    return body


def _fit(rings: list[np.ndarray], window: np.ndarray) -> list[np.ndarray]:
    low, high = window.min(axis=0), window.max(axis=0)
    scale = (_EDGE - 8) / float((high - low).max())
    shift = (_EDGE - (high - low) * scale) / 2
    return [((ring - low) * scale + shift).astype(np.float32) for ring in rings]


def _draw(rings: list[np.ndarray], colour: str) -> str:
    data = ""
    for ring in rings:
        simple = cv2.approxPolyDP(ring, 0.25, closed=True)[:, 0, :]
        inside = bool((simple > -20).all() and (simple < _EDGE + 20).all())
        if len(simple) > 3 and inside:
            data += "M" + " ".join(f"{x:.1f} {y:.1f}" for x, y in simple) + "Z"
    return f'<path d="{data}" fill="{colour}" stroke="#FFFFFF" stroke-width="0.6"/>'
