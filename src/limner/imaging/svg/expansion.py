"""A tree of elements -> how much it becomes once every reference in it is followed.

A few lines of nested ``use`` can stand for billions of shapes. References made by rules of a
``style`` element are not followed here: the time and memory limits of the worker bound those.
"""

from __future__ import annotations

import msgspec

from limner.errors import ImageTooLarge, UnsafeSvg
from limner.imaging.limits import WorkerLimits
from limner.imaging.svg import rules
from limner.imaging.svg.read import Element


def check_expansion(root: Element, limits: WorkerLimits) -> None:
    """Refuse a document that refers to itself, or grows too large or too deep.

    Where several elements share an id the first one keeps it, as in a browser, so that what is
    counted here is what the renderer follows.

    Raises:
        UnsafeSvg: a reference leads back to where it came from.
        ImageTooLarge: the expanded document is over a limit.
    """
    targets: dict[str, Element] = {}
    for element in root.elements():
        identifier = element.attributes.get("id")
        if identifier is not None and targets.setdefault(identifier, element) is not element:
            del element.attributes["id"]
    _Survey(targets, limits).measure(root, depth=1)


class _Survey(msgspec.Struct):
    targets: dict[str, Element]
    limits: WorkerLimits
    # By identity: what an element becomes, as (elements, levels); None while it is being measured.
    known: dict[int, tuple[int, int] | None] = msgspec.field(
        default_factory=dict[int, "tuple[int, int] | None"]
    )

    def measure(self, element: Element, *, depth: int) -> tuple[int, int]:
        """Count the elements and levels that an element stands for."""
        key = id(element)
        if key in self.known:
            measured = self.known[key]
            if measured is None:
                name = element.attributes.get("id", "")
                raise UnsafeSvg(f"<{element.tag} id={name!r}> refers to itself")
            self._check(depth - 1 + measured[1])
            return measured
        self.known[key] = None
        self._check(depth)
        count, levels = 1, 0
        for part in self._parts(element):
            more, deeper = self.measure(part, depth=depth + 1)
            count, levels = count + more, max(levels, deeper)
        if count > self.limits.max_svg_expanded:
            limit = self.limits.max_svg_expanded
            raise ImageTooLarge(f"the document stands for more than {limit:,} elements")
        self.known[key] = count, levels + 1
        return count, levels + 1

    def _parts(self, element: Element) -> list[Element]:
        """What is drawn for an element: its children, and what its attributes refer to."""
        parts = [child for child in element.children if isinstance(child, Element)]
        for name, value in element.attributes.items():
            names = [value[1:]] if name == "href" else rules.local_references(value)
            parts += [self.targets[found] for found in names if found in self.targets]
        return parts

    def _check(self, depth: int) -> None:
        if depth > self.limits.max_svg_depth:
            message = f"elements nest more than {self.limits.max_svg_depth} deep"
            raise ImageTooLarge(f"{message} once references are followed")
