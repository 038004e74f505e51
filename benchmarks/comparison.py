"""The same work by limner and by its peers, in one run -> a record, and a page of the docs.

`python -m benchmarks --record NAME` writes what a benchmark found to ``recorded/NAME.json``, and
makes the page and its plots anew. Less is better in every unit.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

from benchmarks.environments import requirements_used

ROOT = Path(__file__).parent.parent
RECORDS = Path(__file__).with_name("recorded")
PAGE = ROOT / "docs" / "benchmarks.md"
PLOTS = ROOT / "docs" / "images" / "benchmarks"
# Above this load at its start, the numbers of a benchmark are those of a busy machine.
MOST_LOAD = 2.0
# Packages of limner, and peers that are installed beside it.
OWN_PACKAGES = ("pillow", "msgspec", "httpx2", "zlib-ng")
CODEX = ("openai-codex-cli-bin",)
PEER_PACKAGES = {"app_server": CODEX, "start_up": CODEX, "mcp": ("mcp", "fastmcp")}
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

TARGETS = """\
How much limner may take of what a peer takes, and what it took. Each table further down has the \
numbers.
"""


PEERS_AHEAD = """\
Everything in which another program takes less than limner, the largest difference first. Some do \
less than limner: a plain loop keeps no books, and an empty server or a bare Python does nothing.
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
        why_missed: why the target is out of reach; it is shown only if the target is missed.
        note: what else a reader must know.
    """

    work: str
    unit: str
    spreads: dict[str, Spread]
    ours: str = "limner"
    peer: str | None = None
    at_most: float | None = None
    why_missed: str = ""
    note: str = ""

    @property
    def share(self) -> float:
        """limner's median beside that of the peer that the target names."""
        assert self.peer is not None
        return self.spreads[self.ours].median / self.spreads[self.peer].median

    @property
    def verdict(self) -> str:
        """Whether the target is kept; if not, by how much it is missed, and why."""
        assert self.at_most is not None
        if self.share <= self.at_most:
            return "kept."
        excess = 100 * (self.share / self.at_most - 1)
        shown = f"{excess:.0f}" if excess >= 10 else f"{excess:.2g}"
        return f"**missed** by {shown} %. {self.why_missed}".rstrip()


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What one run of a benchmark found, and where.

    A benchmark that has no peer has a ``table`` of its own, as Markdown, and no plot.
    """

    title: str
    command: str
    date: str
    commit: str
    machine: str
    versions: str = ""
    load_before: float | None = None
    load: float
    comparisons: tuple[Comparison, ...] = ()
    table: str = ""


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
    why_missed: str = "",
    note: str = "",
) -> Comparison:
    """A comparison of these runs; a peer without one is left out, and so is a target beside it."""
    lost = [name for name, values in runs.items() if not values and name != ours]
    if lost:
        note = f"{note} Left out, since every run failed: {', '.join(lost)}.".strip()
    if peer in lost:
        peer = at_most = None
    return Comparison(
        work=work,
        unit=unit,
        spreads={name: spread(values) for name, values in runs.items() if name not in lost},
        ours=ours,
        peer=peer,
        at_most=at_most,
        why_missed=why_missed,
        note=note,
    )


@contextmanager
def one_run(name: str) -> Generator[None]:
    """A run of a peer may fail, and the others go on without it; limner must not fail."""
    try:
        yield
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        if "limner" in name:
            raise
        print(f"{name} failed: {error!r}", file=sys.stderr, flush=True)


def table(comparison: Comparison) -> str:
    """The rows of one piece of work, as Markdown."""
    ours = comparison.spreads[comparison.ours].median
    lines = [f"| {comparison.work} | {comparison.unit} | beside limner |", "|---|--:|--:|"]
    for name, found in comparison.spreads.items():
        lines.append(f"| {name} | {found} | {_ratio(found.median / ours)} |")
    text = "\n".join(lines) + "\n"
    if comparison.at_most is not None:
        text += (
            f"\nTarget: at most {comparison.at_most:g}x of {comparison.peer}. "
            f"Measured: {_ratio(comparison.share)}, {comparison.verdict}\n"
        )
    if comparison.note:
        text += f"\n{comparison.note}\n"
    return text


def targets(found: Mapping[str, Record]) -> str:
    """Every target, whether it is kept, and the command that measures it, as Markdown."""
    rows = [
        f"| {comparison.work} | {comparison.unit} | {comparison.at_most:g}x of {comparison.peer} "
        f"| {_ratio(comparison.share)} | {comparison.verdict} | `{one.command}` |\n"
        for one in found.values()
        for comparison in one.comparisons
        if comparison.at_most is not None
    ]
    if not rows:
        return ""
    head = "| work | unit | target | measured | | command |\n|---|---|--:|--:|---|---|\n"
    return f"\n## Targets\n\n{TARGETS}\n{head}{''.join(rows)}"


def peers_ahead(found: Mapping[str, Record]) -> str:
    """Every piece of work for which a peer takes less than limner, as Markdown."""
    ahead = sorted(
        (
            (spent.median / work.spreads[work.ours].median, peer, work, one.command)
            for one in found.values()
            for work in one.comparisons
            for peer, spent in work.spreads.items()
            if "limner" not in peer.lower()
        ),
        key=lambda row: row[0],
    )
    rows = [
        f"| {work.work} | {work.unit} | {_number(work.spreads[work.ours].median)} "
        f"| {peer} | {_number(work.spreads[peer].median)} | {_ratio(share)} | `{command}` |\n"
        for share, peer, work, command in ahead
        if round(share, 2) < 1
    ]
    if not rows:
        return ""
    head = "| work | unit | limner | peer | | beside limner | command |\n"
    return (
        f"\n## Where a peer takes less\n\n{PEERS_AHEAD}\n"
        f"{head}|---|---|--:|---|--:|--:|---|\n{''.join(rows)}"
    )


def record(
    name: str, title: str, result: Sequence[Comparison] | str, *, load_before: float | None = None
) -> None:
    """Keep what a benchmark found: comparisons, or a table of its own."""
    found = Record(
        title=title,
        command=f"python -m benchmarks {name}",
        date=datetime.now(UTC).date().isoformat(),
        commit=_commit(),
        machine=f"{_processor()}, {os.cpu_count()} cores, {platform.system()} "
        f"{platform.release().partition('-')[0]}, Python {platform.python_version()}",
        versions=versions(name),
        load_before=None if load_before is None else round(load_before, 1),
        load=round(os.getloadavg()[0], 1),
        comparisons=() if isinstance(result, str) else tuple(result),
        table=result if isinstance(result, str) else "",
    )
    RECORDS.mkdir(exist_ok=True)
    text = msgspec.json.format(msgspec.json.encode(found), indent=2)
    (RECORDS / f"{name}.json").write_bytes(text + b"\n")


def versions(name: str) -> str:
    """The versions of limner's parts and of the peers that this process has used."""
    own = [f"SQLite {sqlite3.sqlite_version}"]
    own += [f"{package} {found}" for package in OWN_PACKAGES if (found := _version(package))]
    peers = [
        f"{package} {found}"
        for package in PEER_PACKAGES.get(name, ())
        if (found := _version(package))
    ]
    peers += [one.replace("==", " ") for one in dict.fromkeys(requirements_used) if "==" in one]
    return ", ".join(own) + (f"; peers: {', '.join(peers)}" if peers else "")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def records() -> dict[str, Record]:
    """Everything that was recorded, by the name of its benchmark."""
    return {
        path.stem: msgspec.json.decode(path.read_bytes(), type=Record)
        for path in sorted(RECORDS.glob("*.json"))
    }


def page(found: Mapping[str, Record]) -> str:
    """The page of the documentation."""
    parts = [MADE, INTRODUCTION, targets(found), peers_ahead(found)]
    for name, one in found.items():
        parts.append(f"\n## {one.title}\n\n{_conditions(one)}\n")
        if one.table:
            parts.append(f"\n{one.table}\n")
        else:
            parts.append(f"\n![{one.title}](images/benchmarks/{name}.png)\n")
        parts += [f"\n{table(comparison)}" for comparison in one.comparisons]
    return "".join(parts)


def _conditions(one: Record) -> str:
    """When and on what a record was made; a warning if the machine had other work."""
    before = one.load_before
    load = f"{one.load:g} at the end"
    if before is not None:
        load = f"{before:g} at the start and {load}"
    text = (
        f"`{one.command}`, on {one.date} at {one.commit}: {one.machine}; the load was {load}."
        + (f" {one.versions}." if one.versions else "")
    )
    if before is None or before <= MOST_LOAD:
        return text
    return f"{text}\n\n**The machine was busy: times on the clock are too long.**"


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
                if not one.comparisons:
                    continue
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
    shown = cpu if is_long and cpu else one.comparisons
    repeated = Counter(work.work for work in shown)
    bars = [
        (
            f"{peer}: {work.work}{f', {work.unit}' if repeated[work.work] > 1 else ''}",
            round(spent.median / work.spreads[work.ours].median, 2),
        )
        for work in shown
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
