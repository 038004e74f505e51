"""Measured fits -> comparisons with targets: geometric means over pictures, in each round."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence

from benchmarks.comparison import Comparison, compare
from benchmarks.fit_report import Trial, Trials, is_fit
from benchmarks.metered import Cost
from benchmarks.upstream import PACKAGE, VERSION

UPSTREAM = f"{PACKAGE.rpartition('/')[2]} {VERSION}"
# The labels of entrants, and their names in a comparison; limner's own is the first.
LADDER = {
    "seed": "limner[fast]",
    "seed without [fast]": "limner",
    "upstream": UPSTREAM,
    "pillow": "Pillow",
}
FAST = {
    "fast": "limner[fast]",
    "fast without [fast]": "limner",
    "upstream": UPSTREAM,
    "floor": "the floor",
}
CORPORA = {
    "own": "{} pictures that limner was tuned on",
    "drawn": "{} pictures that a seed decided, and photographs",
}
LARGE_PIXELS = 20_000_000
WHY_CPU = (
    "Six tenths of it are one WebP by libwebp's method 2, nearly all the rest is decoding and "
    "scaling. Method 1 takes three quarters of the time and makes 11 to 15 % more bytes."
)
WHY_WALL = (
    "One WebP by libwebp's method 2 takes most of what the goal allows. It runs on one processor, "
    "after decoding and scaling."
)
WHY_FAST = "Decoding and scaling alone, with the same libraries, take nearly as much: the floor."
WHY_BYTES = (
    "libwebp's method 2 makes 4 to 6 % more bytes than upstream's method 4, in half the time."
)
WHY_LIKENESS = "libwebp's method 2 loses 1.2 to 1.5 thousandths more than upstream's method 4."
WHY_LARGE = (
    "limner is two processes: a host, and a sandboxed worker with its own Python. They have 46 MB "
    "before the first picture; pages that both share count twice, else it is 30. The pixels of the "
    "picture at half its size are 24 MB, and both processes hold the file of 5.5 MB."
)


def comparisons(trials: Trials, corpora: Mapping[str, Sequence[str]]) -> list[Comparison]:
    """The ladder over each set of pictures, then memory, then one encoding beside libraries."""
    found: list[Comparison] = []
    for corpus, names in corpora.items():
        found += _of_corpus(trials, names, CORPORA[corpus].format(len(names)))
    names = [name for some in corpora.values() for name in some]
    large = [name for name in names if _pixels(trials, name) >= LARGE_PIXELS]
    if large:
        work = f"memory of all processes at the peak, {len(large)} photographs of 24 megapixels"
        found.append(
            _costs(trials, large, LADDER, work, "MB", _peak_mb, at_most=0.75, why_missed=WHY_LARGE)
        )
    return [*found, *_beside_libraries(trials, names)]


def _of_corpus(trials: Trials, names: Sequence[str], what: str) -> list[Comparison]:
    """The goals: 4 and 8 times less processor time, a third of the time, no more bytes."""
    one = f"one of {what}"
    return [
        _costs(
            *(trials, names, LADDER, f"`seed`, {one}", "ms of CPU", _cpu_ms),
            at_most=0.25,
            why_missed=WHY_CPU,
        ),
        _costs(
            *(trials, names, LADDER, f"`seed`, {one}", "ms", _wall_ms),
            at_most=0.333,
            why_missed=WHY_WALL,
        ),
        _outputs(
            *(trials, names, LADDER, f"bytes of `seed`, {one}", "KiB", _mean_kib),
            why_missed=WHY_BYTES,
        ),
        _outputs(
            *(trials, names, LADDER, f"likeness lost by `seed`, {what}", LOST, _mean_lost),
            why_missed=WHY_LIKENESS,
        ),
        _costs(trials, names, LADDER, f"memory at the peak, {one}", "MB", _peak_mb),
        _costs(
            *(trials, names, FAST, f"`fast`, {one}", "ms of CPU", _cpu_ms),
            at_most=0.125,
            why_missed=WHY_FAST,
        ),
    ]


def _beside_libraries(trials: Trials, names: Sequence[str]) -> list[Comparison]:
    """One JPEG and one WebP of each picture that must be scaled."""
    scaled = [name for name in names if _is_scaled(trials, name)]
    found: list[Comparison] = []
    for kind, title in (("jpeg", "JPEG"), ("webp", "WebP")):
        entrants = {f"{peer}, {kind}": peer for peer in ("limner", "pyvips", "OpenCV")}
        entrants[f"limner, {kind}"] = "limner[fast]"
        if not set(entrants) <= set(trials.entrants):
            continue
        work = f"decode, scale, encode one {title}, one of {len(scaled)} pictures"
        found += [
            _costs(trials, scaled, entrants, work, "ms of CPU", _cpu_ms),
            _costs(trials, scaled, entrants, work, "ms", _wall_ms),
            _costs(trials, scaled, entrants, f"memory at the peak, {title}", "MB", _peak_mb),
            _outputs(trials, scaled, entrants, f"bytes of the {title}", "KiB", _mean_kib),
            _outputs(trials, scaled, entrants, f"likeness lost by the {title}", LOST, _mean_lost),
        ]
    return found


# What a fit took and what came out of it

LOST = "thousandths of SSIM"


def _cpu_ms(cost: Cost) -> float:
    return cost.cpu_ms


def _wall_ms(cost: Cost) -> float:
    return cost.wall_ms


def _peak_mb(cost: Cost) -> float:
    return cost.peak_mb


def _mean_kib(some: Sequence[Trial]) -> float:
    return _geometric([trial.output.size / 1024 for trial in some if trial.output])


def _mean_lost(some: Sequence[Trial]) -> float:
    return 1000 * (1 - statistics.fmean(trial.output.ssim for trial in some if trial.output))


def _geometric(values: Sequence[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, values)))


def _costs(
    trials: Trials,
    names: Sequence[str],
    entrants: Mapping[str, str],
    work: str,
    unit: str,
    figure: Callable[[Cost], float],
    *,
    at_most: float | None = None,
    why_missed: str = "",
) -> Comparison:
    """A mean for each round, over the pictures that every peer could fit."""
    present = _present(trials, entrants)
    done = [name for name in names if all(not trials[one, name].failure for one in present)]
    rounds = len(trials[next(iter(present)), done[0]].costs)
    runs = {
        label: [
            _geometric([figure(trials[one, name].costs[turn]) for name in done])
            for turn in range(rounds)
        ]
        for one, label in present.items()
    }
    return _compared(work, runs, unit, at_most, why_missed=why_missed)


def _outputs(
    trials: Trials,
    names: Sequence[str],
    entrants: Mapping[str, str],
    work: str,
    unit: str,
    figure: Callable[[Sequence[Trial]], float],
    *,
    why_missed: str = "",
) -> Comparison:
    """A mean over the pictures that every peer decodes, and none enlarged."""
    present = _present(trials, entrants)
    alike = [name for name in names if all(is_fit(trials[one, name]) for one in present)]
    runs = {
        label: [figure([trials[one, name] for name in alike])] for one, label in present.items()
    }
    shown = f"Over the {len(alike)} that all of them show."
    return _compared(work, runs, unit, 1.0, why_missed=why_missed, note=shown)


def _present(trials: Trials, entrants: Mapping[str, str]) -> dict[str, str]:
    return {one: label for one, label in entrants.items() if one in trials.entrants}


def _compared(
    work: str,
    runs: Mapping[str, Sequence[float]],
    unit: str,
    at_most: float | None,
    *,
    why_missed: str,
    note: str = "",
) -> Comparison:
    """Only upstream is a goal."""
    ours = next(iter(runs))
    if UPSTREAM not in runs:
        return compare(work, runs, unit=unit, ours=ours, note=note)
    return compare(
        *(work, runs),
        unit=unit,
        ours=ours,
        peer=UPSTREAM,
        at_most=at_most,
        why_missed=why_missed,
        note=note,
    )


def _pixels(trials: Trials, name: str) -> int:
    outputs = (trials[one, name].output for one in trials.entrants)
    return next((math.prod(output.original) for output in outputs if output), 0)


def _is_scaled(trials: Trials, name: str) -> bool:
    """Whether every library has made it smaller."""
    outputs = [
        trials[one, name].output for one in trials.entrants if one.endswith((", jpeg", ", webp"))
    ]
    return all(output and output.true.width < output.original[0] for output in outputs)
