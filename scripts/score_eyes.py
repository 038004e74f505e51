"""Pictures with questions -> how many ``limner/eyes`` answers right, wrong, or cannot tell.

``python scripts/score_eyes.py [FOLDER …]`` asks every question of each FOLDER/questions.json and
prints the short answer beside the pattern that it has to match, then the CPU time of a picture in
the workers (decoding, OCR, layout, objects) and of a question. It exits with 1 if fewer than 85 %
are right or if one answer is wrong.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from limner.eyes import Eyes
from limner.eyes.model import look, short_answer
from limner.imaging.pool import Imaging

HERE = Path(__file__).parents[1] / "tests" / "eyes" / "questions"
LEAST_RIGHT = 0.85


class CpuTimes:
    """Seconds of CPU, and of how many things."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.counts: Counter[str] = Counter()

    @contextmanager
    def of(self, what: str, clock: Callable[[], float], count: int = 1) -> Iterator[None]:
        start_s = clock()
        yield
        self.seconds[what] += clock() - start_s
        self.counts[what] += count

    def line(self) -> str:
        parts = [f"{self.seconds[what] / self.counts[what]:.4f} s of CPU" for what in self.counts]
        return " and ".join(
            f"{one} for each of the {what}" for one, what in zip(parts, self.counts, strict=True)
        )


CPU = CpuTimes()


def _workers_s() -> float:
    """The CPU time of the child processes that are alive, on Linux."""
    ticks = 0
    for children in Path("/proc/self/task").glob("*/children"):
        for child in children.read_text().split():
            fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


async def main() -> int:
    folders = [Path(name) for name in sys.argv[1:]] or sorted(HERE.iterdir())
    good = True
    async with Imaging(workers=1) as imaging:
        for folder in folders:
            counts: Counter[str] = Counter()
            async for verdict, line in ask(Eyes(imaging), folder):
                counts[verdict] += 1
                print(f"{verdict:12} {line}", flush=True)
            print(f"{folder.name}: {dict(counts)}")
            print(CPU.line())
            good &= counts["wrong"] == 0 and counts["right"] >= LEAST_RIGHT * counts.total()
    return 0 if good else 1


async def ask(eyes: Eyes, folder: Path):
    """Each question of a folder with its verdict."""
    for entry in json.loads((folder / "questions.json").read_text(encoding="utf-8")):
        pictures = [(folder / name).read_bytes() for name in entry["pictures"]]
        with CPU.of("pictures", _workers_s, len(pictures)):
            seen = [await eyes.gather(picture) for picture in pictures]
        for asked in entry["questions"]:
            with CPU.of("questions", time.process_time):
                short = short_answer(look(seen, asked["question"]))
            verdict = "cannot tell" if short is None else "wrong"
            if short is not None and re.search(asked["expected"], short, re.DOTALL):
                verdict = "right"
            name, question = entry["pictures"][0], asked["question"]
            yield verdict, f"{name} | {question} | {short} | {asked['expected']}"


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
