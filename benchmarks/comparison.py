"""The same work by limner and by its peers, in one run -> a record, and a page of the docs.

`python -m benchmarks --record NAME` writes what a benchmark found to ``recorded/NAME.json``, and
makes the page and its plots anew. Less is better in every unit.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import statistics
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

ROOT = Path(__file__).parent.parent
RECORDS = Path(__file__).with_name("recorded")
PAGE = ROOT / "docs" / "benchmarks.md"
PLOTS = ROOT / "docs" / "images" / "benchmarks"
# More would overlap in a plot, so a longer one shows processor time alone.
MOST_BARS = 30
MADE = "<!-- Made by `python -m benchmarks --record`. -->\n\n"
INTRODUCTION = """\
# limner beside its peers

Each table is one run on one machine: limner and its peers do the same work in turns, so that a \
busy moment falls on all of them. Less is better everywhere. A number is the median; the middle \
half of all runs is in brackets. "Beside limner" is the median of the peer divided by limner's: \
above 1 the peer takes more, below 1 limner does.

limner does more than a peer in most of these: it decodes every picture in a sandboxed process, \
records each paid call before it is sent, and syncs what it stores to the disk. That is never \
switched off here.
"""


class Spread(msgspec.Struct, frozen=True):
    """The middle of several runs: lower quartile, median, upper quartile."""

    low: float
    median: float
    high: float

    def __str__(self) -> str:
        return f"{_number(self.median)} ({_number(self.low)} to {_number(self.high)})"


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of work.

    Attributes:
        work: what was done, as a sentence without a full stop.
        unit: what the numbers are.
        ours: the name of limner's row.
        spreads: what each of them took.
        peer: whom the target names.
        at_most: limner's share of what that peer takes, at most.
        note: why a target is missed, or what else a reader must know.
    """

    work: str
    unit: str
    spreads: dict[str, Spread]
    ours: str = "limner"
    peer: str | None = None
    at_most: float | None = None
    note: str = ""

    @property
    def share(self) -> float:
        """limner's median beside that of the peer that the target names."""
        assert self.peer is not None
        return self.spreads[self.ours].median / self.spreads[self.peer].median


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What one run of a benchmark found, and where."""

    title: str
    command: str
    date: str
    commit: str
    machine: str
    load: float
    comparisons: tuple[Comparison, ...]


def spread(values: Iterable[float]) -> Spread:
    """The middle of some runs."""
    found = sorted(values)
    if len(found) == 1:
        return Spread(*found * 3)
    return Spread(*statistics.quantiles(found, n=4, method="inclusive"))


def compare(
    work: str,
    runs: Mapping[str, Sequence[float]],
    *,
    unit: str,
    ours: str = "limner",
    peer: str | None = None,
    at_most: float | None = None,
    note: str = "",
) -> Comparison:
    """A comparison of these runs."""
    spreads = {name: spread(values) for name, values in runs.items()}
    return Comparison(
        work=work, unit=unit, spreads=spreads, ours=ours, peer=peer, at_most=at_most, note=note
    )


def table(comparison: Comparison) -> str:
    """The rows of one piece of work, as Markdown."""
    ours = comparison.spreads[comparison.ours].median
    lines = [f"| {comparison.work} | {comparison.unit} | beside limner |", "|---|--:|--:|"]
    for name, found in comparison.spreads.items():
        lines.append(f"| {name} | {found} | {_ratio(found.median / ours)} |")
    text = "\n".join(lines) + "\n"
    if comparison.at_most is not None:
        kept = "kept" if comparison.share <= comparison.at_most else "**missed**"
        text += (
            f"\nTarget: at most {comparison.at_most:g}x of {comparison.peer}. "
            f"Measured: {_ratio(comparison.share)}, {kept}. {comparison.note}"
        ).rstrip()
        text += "\n"
    elif comparison.note:
        text += f"\n{comparison.note}\n"
    return text


def record(name: str, title: str, comparisons: Sequence[Comparison]) -> None:
    """Keep what a benchmark found."""
    found = Record(
        title=title,
        command=f"python -m benchmarks {name}",
        date=datetime.now(UTC).date().isoformat(),
        commit=_commit(),
        machine=f"{_processor()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        load=round(os.getloadavg()[0], 1),
        comparisons=tuple(comparisons),
    )
    RECORDS.mkdir(exist_ok=True)
    text = msgspec.json.format(msgspec.json.encode(found), indent=2)
    (RECORDS / f"{name}.json").write_bytes(text + b"\n")


def records() -> dict[str, Record]:
    """Everything that was recorded, by the name of its benchmark."""
    return {
        path.stem: msgspec.json.decode(path.read_bytes(), type=Record)
        for path in sorted(RECORDS.glob("*.json"))
    }


def page(found: Mapping[str, Record]) -> str:
    """The page of the documentation."""
    parts = [MADE, INTRODUCTION]
    for name, one in found.items():
        parts.append(
            f"\n## {one.title}\n\n`{one.command}`, on {one.date} at {one.commit}: {one.machine}; "
            f"the load was {one.load:g} at the end.\n\n"
            f"![{one.title}](images/benchmarks/{name}.png)\n"
        )
        parts += [f"\n{table(comparison)}" for comparison in one.comparisons]
    return "".join(parts)


def write_page() -> None:
    """Make the page and its plots anew from the records."""
    found = records()
    PAGE.write_text(page(found), encoding="utf-8")
    PLOTS.mkdir(parents=True, exist_ok=True)
    asyncio.run(_plot(found))


async def _plot(found: Mapping[str, Record]) -> None:
    """Draw how much each peer takes beside limner; limner draws it itself."""
    from limner.client import Limner

    with tempfile.TemporaryDirectory() as folder:
        async with Limner(env={"LIMNER_HOME": f"{folder}/home"}, cwd=PLOTS) as lim:
            for name, one in found.items():
                chart = json.dumps(_chart(one))
                height = 200 + 44 * len(json.loads(chart)["labels"])
                size = f"1000x{min(max(height, 320), 1600)}"
                await lim.render(chart, output_path=f"{name}.png", size=size, overwrite=True)


def _chart(one: Record) -> dict[str, object]:
    cpu = [work for work in one.comparisons if "CPU" in work.unit]
    is_long = sum(len(work.spreads) - 1 for work in one.comparisons) > MOST_BARS
    title = "What a peer takes, if limner takes 1"
    if is_long and cpu:
        title = "Processor time that a peer takes, if limner takes 1"
    bars = [
        (f"{peer}: {work.work}", round(spent.median / work.spreads[work.ours].median, 2))
        for work in (cpu if is_long and cpu else one.comparisons)
        for peer, spent in work.spreads.items()
        if peer != work.ours
    ]
    return {
        "type": "bar",
        "horizontal": True,
        "title": title,
        "labels": [name.replace("`", "") for name, _ in bars],
        "values": [value for _, value in bars],
    }


def _number(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _ratio(value: float) -> str:
    return f"{value:.2f}x" if value < 10 else f"{value:.1f}x"


def _commit() -> str:
    told = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return told.stdout.strip()


def _processor() -> str:
    told = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = [line.partition(":")[2].strip() for line in told if line.startswith("model name")]
    return names[0] if names else platform.machine()
