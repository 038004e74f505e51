"""Measured fits -> Markdown: means over the pictures, and every picture's row."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import PIL

from benchmarks.metered import Claim, Cost
from benchmarks.upstream import NAME as UPSTREAM_NAME

# Below this the peers mostly pass the bytes on, and what is measured is the pipe.
REAL_WORK_MS = 20
# Below this it is another picture: transparent parts turned black, say.
WRONG_PICTURE = 0.7
DASH = "-"
_MEMORY_HEAD = ("memory", "largest process", "highest MB")


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What came out of a fit: its bytes, what was said of it, what is true, how alike it is."""

    size: int
    claim: Claim
    true: Claim
    original: tuple[int, int]
    ssim: float

    @property
    def enlarged(self) -> bool:
        """Whether it has more pixels than the original."""
        return self.true.width > self.original[0]


@dataclass(slots=True, kw_only=True)
class Trial:
    """One entrant at one picture."""

    output: Output | None = None
    failure: str | None = None
    costs: list[Cost] = field(default_factory=list[Cost])


class Trials(dict[tuple[str, str], Trial]):
    """All trials by entrant and picture, with the order of both."""

    def __init__(self, entrants: list[str], pictures: list[str]) -> None:
        super().__init__()
        self.entrants, self.pictures = entrants, pictures
        # Everything is seen against the upstream tool, or where it is missing the next peer.
        self.base = entrants[0]


Pair = tuple[Trial, Trial]
Measure = Callable[[Trial, Trial], float]


def report(trials: Trials) -> str:
    """The whole report."""
    parts = [
        f"{len(trials.pictures)} pictures, Pillow {PIL.__version__}, upstream is {UPSTREAM_NAME}.",
        _summary(trials),
        _remarks(trials),
        _speeds(trials),
        _outputs(trials),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


# What two trials of one picture say about each other; the first is ours, the second the peer's


def faster(what: str) -> Measure:
    """How many times less of ``what`` (a field of `Cost`) the first needs."""
    return lambda ours, theirs: _ratio(theirs, ours, what)


def _ratio(one: Trial, other: Trial, what: str) -> float:
    # Pairs of the same round, since only they met the same machine.
    pairs = zip(one.costs, other.costs, strict=True)
    return statistics.median(getattr(a, what) / getattr(b, what) for a, b in pairs)


def memory(ours: Trial, theirs: Trial) -> float:
    """Of all processes together, which for limner are the host and its worker."""
    return _ratio(ours, theirs, "peak_mb")


def process_memory(ours: Trial, theirs: Trial) -> float:
    """Of the largest process alone, which for limner is the worker."""
    return _ratio(ours, theirs, "largest_mb")


def size(ours: Trial, theirs: Trial) -> float:
    assert ours.output is not None
    assert theirs.output is not None
    return ours.output.size / theirs.output.size


def likeness(ours: Trial, theirs: Trial) -> float:
    assert ours.output is not None
    assert theirs.output is not None
    return ours.output.ssim / theirs.output.ssim


# Over the corpus


def _pairs(trials: Trials, ours: str, theirs: str) -> dict[str, Pair]:
    """The pictures that neither failed at, with their trials."""
    both = {name: (trials[ours, name], trials[theirs, name]) for name in trials.pictures}
    return {
        name: pair for name, pair in both.items() if all(trial.failure is None for trial in pair)
    }


def _alike(trials: Trials, ours: str, theirs: str) -> dict[str, Pair]:
    """Those of them whose bytes can be compared: both show the picture, neither enlarged it."""
    pairs = _pairs(trials, ours, theirs)
    return {name: pair for name, pair in pairs.items() if all(map(is_fit, pair))}


def is_fit(trial: Trial) -> bool:
    output = trial.output
    return output is not None and output.ssim >= WRONG_PICTURE and not output.enlarged


def _mean(measure: Measure, pairs: Iterable[Pair]) -> float:
    """The geometric mean over pictures."""
    logs = [math.log(measure(*pair)) for pair in pairs]
    return math.exp(statistics.fmean(logs)) if logs else math.nan


def _highest_mb(trials: Trials, entrant: str) -> float:
    costs = (cost for name in trials.pictures for cost in trials[entrant, name].costs)
    return max((cost.peak_mb for cost in costs), default=math.nan)


def _summary(trials: Trials) -> str:
    work = f"over {REAL_WORK_MS} ms"
    head = ("", "wall", "CPU", f"wall, {work}", f"CPU, {work}", "size", "SSIM")
    rows = [_summary_row(trials, entrant) for entrant in trials.entrants]
    title = f"Geometric means against {trials.base}: times faster, then ratios."
    return f"{title}\n\n{_table((*head, *_MEMORY_HEAD, 'failed'), rows)}"


def _summary_row(trials: Trials, entrant: str) -> Sequence[str]:
    pairs = list(_pairs(trials, entrant, trials.base).values())
    alike = list(_alike(trials, entrant, trials.base).values())
    work = [pair for pair in pairs if _wall_ms(pair[1]) > REAL_WORK_MS]
    speeds = [_mean(faster(what), some) for some in (pairs, work) for what in ("wall_ms", "cpu_ms")]
    ratios = [_mean(measure, alike) for measure in (size, likeness)]
    ratios += [_mean(measure, pairs) for measure in (memory, process_memory)]
    failed = sum(trials[entrant, name].failure is not None for name in trials.pictures)
    return (
        entrant,
        *(_figure(speed, "{:.2f}x") for speed in speeds),
        *(_figure(ratio, "{:.3f}") for ratio in ratios),
        f"{_highest_mb(trials, entrant):.0f}",
        str(failed),
    )


def _figure(value: float, form: str) -> str:
    return DASH if math.isnan(value) else form.format(value)


def _wall_ms(trial: Trial) -> float:
    return statistics.median(cost.wall_ms for cost in trial.costs)


# Picture by picture


def _remarks(trials: Trials) -> str:
    """What numbers hide: failures, other pictures, untrue dimensions, and where ours is behind."""
    lines = [
        f"- {entrant}, {name}: {remark}"
        for name in trials.pictures
        for entrant in trials.entrants
        for remark in _remarks_on(trials[entrant, name])
    ]
    if "seed" in trials.entrants and trials.base == "upstream":
        pairs = _alike(trials, "seed", "upstream")
        lines += [
            f"- seed, {name}: {size(*pair):.3f} of upstream's size"
            for name, pair in pairs.items()
            if size(*pair) > 1.01
        ]
        lines += [
            f"- seed, {name}: {likeness(*pair):.3f} of upstream's SSIM"
            for name, pair in pairs.items()
            if likeness(*pair) < 0.99
        ]
    return "\n".join(["Worth knowing:", "", *lines]) if lines else ""


def _remarks_on(trial: Trial) -> list[str]:
    if trial.failure is not None:
        return [f"failed: {trial.failure}"]
    assert trial.output is not None
    output, remarks = trial.output, list[str]()
    if output.ssim < WRONG_PICTURE:
        remarks.append(f"bytes not compared, SSIM {output.ssim:.3f} is another picture")
    if output.enlarged:
        remarks.append(f"bytes not compared, enlarged to {output.true.width} pixels across")
    if output.claim != output.true:
        remarks.append(f"says {_shape(output.claim)}, sends {_shape(output.true)}")
    return remarks


def _shape(claim: Claim) -> str:
    return f"{claim.mime} {claim.width}x{claim.height}"


def _speeds(trials: Trials) -> str:
    """Median times of the base, and how many times faster the others are, by wall and CPU."""
    base, others = trials.base, trials.entrants[1:]
    rows: list[Sequence[str]] = []
    for name in trials.pictures:
        theirs = trials[base, name]
        cells = [name, DASH if not theirs.costs else _times(theirs)]
        cells += [_speed(trials[other, name], theirs) for other in others]
        rows.append(cells)
    head = ("wall / CPU", f"{base}, ms", *(f"{other}, x" for other in others))
    return _table(head, rows)


def _times(trial: Trial) -> str:
    cpu_ms = statistics.median(cost.cpu_ms for cost in trial.costs)
    return f"{_wall_ms(trial):.1f} / {cpu_ms:.1f}"


def _speed(ours: Trial, theirs: Trial) -> str:
    if ours.failure is not None or theirs.failure is not None:
        return DASH
    return f"{faster('wall_ms')(ours, theirs):.1f} / {faster('cpu_ms')(ours, theirs):.1f}"


def _outputs(trials: Trials) -> str:
    """What each sends: format, KiB, SSIM and the memory it took."""
    rows: list[Sequence[str]] = [
        (name, *(_sent(trials[entrant, name]) for entrant in trials.entrants))
        for name in trials.pictures
    ]
    return _table(("KiB, SSIM, peak MB", *trials.entrants), rows)


def _sent(trial: Trial) -> str:
    if trial.output is None or trial.failure is not None:
        return DASH
    output = trial.output
    kind = output.true.mime.removeprefix("image/")
    peak_mb = statistics.median(cost.peak_mb for cost in trial.costs)
    return f"{kind} {output.size / 1024:.0f}, {output.ssim:.3f}, {peak_mb:.0f}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Markdown whose columns also line up in a terminal."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    rule = ["-" * max(3, width) for width in widths]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in (head, rule, *rows)
    ]
    return "\n".join(lines)
