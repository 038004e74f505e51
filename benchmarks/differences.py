"""Pairs of screens with known changes -> what limner, pixelmatch and SSIM find of them.

usage: python -m benchmarks.differences [SEED]

pixelmatch and scikit-image are run if they are installed. All three get the same pixels. What they
mark is grouped to areas in the same way, so only the measures differ.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Sequence
from io import BytesIO

from PIL import Image

from benchmarks.screen_pairs import HEIGHT, SEED, WIDTH, Change, ScreenPair, make_pairs
from limner.imaging.comparison.areas import find_areas
from limner.imaging.comparison.groups import Edges, group
from limner.imaging.pool import Imaging

# A common threshold of visual tests: a pixel whose local likeness is below it has changed.
SSIM_THRESHOLD = 0.95

Finder = Callable[[Image.Image, Image.Image], list[Edges]]


def by_limner(before: Image.Image, after: Image.Image) -> list[Edges]:
    boxes = [area.box for area in find_areas(before, after)]
    return [(box.x, box.y, box.x + box.width, box.y + box.height) for box in boxes]


def by_pixelmatch(before: Image.Image, after: Image.Image) -> list[Edges]:
    from pixelmatch.contrib.PIL import pixelmatch  # pyright: ignore[reportMissingImports]

    marked = Image.new("RGBA", before.size)
    pixelmatch(before, after, marked, threshold=0.1, includeAA=False, diff_mask=True)
    return group(marked.getchannel("A").point([0] + [255] * 255))


def by_ssim(before: Image.Image, after: Image.Image) -> list[Edges]:
    import numpy
    from skimage.metrics import structural_similarity  # pyright: ignore[reportMissingImports]

    grey = [numpy.asarray(one.convert("L")) for one in (before, after)]
    _, likeness = structural_similarity(*grey, full=True)
    mask = (likeness < SSIM_THRESHOLD).astype("uint8") * 255
    return group(Image.fromarray(mask))


FINDERS: dict[str, Finder] = {
    "limner": by_limner,
    "pixelmatch 0.1": by_pixelmatch,
    f"SSIM {SSIM_THRESHOLD}": by_ssim,
}


def overlaps(box: Edges, change: Change) -> bool:
    x, y, wide, high = change.box
    return min(box[2], x + wide) > max(box[0], x) and min(box[3], y + high) > max(box[1], y)


class Score:
    """What one measure found in all pairs."""

    def __init__(self) -> None:
        self.found: dict[str, int] = {}
        self.invented = self.pairs_right = 0
        self.cpu_s = 0.0

    def add(self, pair: ScreenPair, boxes: Sequence[Edges]) -> None:
        hit = [one for one in pair.visible if any(overlaps(box, one) for box in boxes)]
        for one in hit:
            self.found[one.kind] = self.found.get(one.kind, 0) + 1
        invented = [box for box in boxes if not any(overlaps(box, one) for one in pair.visible)]
        self.invented += len(invented)
        self.pairs_right += len(hit) == len(pair.visible) and not invented


async def main(seed: int = SEED) -> None:
    scores: dict[str, Score] = {name: Score() for name in FINDERS}
    total: dict[str, int] = {}
    missing: set[str] = set()
    async with Imaging(workers=1) as imaging:
        for pair in make_pairs(seed=seed):
            for one in pair.visible:
                total[one.kind] = total.get(one.kind, 0) + 1
            both = [await _drawn(imaging, text) for text in (pair.before, pair.after)]
            for name, find in FINDERS.items():
                start_s = time.process_time()
                try:
                    boxes = find(both[0], both[1])
                except ImportError:
                    missing.add(name)
                    continue
                scores[name].cpu_s += time.process_time() - start_s
                scores[name].add(pair, boxes)
    kinds = [*total]
    print(f"| | {' | '.join(kinds)} | areas without a change | pairs all right | CPU per pair |")
    print(f"|---|{'--:|' * (len(kinds) + 3)}")
    for name, score in scores.items():
        if name in missing:
            continue
        found = " | ".join(f"{score.found.get(kind, 0)} of {total[kind]}" for kind in kinds)
        cpu_ms = round(1000 * score.cpu_s / 40)
        print(f"| {name} | {found} | {score.invented} | {score.pairs_right} of 40 | {cpu_ms} ms |")


async def _drawn(imaging: Imaging, document: str) -> Image.Image:
    png = await imaging.render_svg(document, width=WIDTH, height=HEIGHT, assets={})
    return Image.open(BytesIO(png)).convert("RGB")


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:])))
