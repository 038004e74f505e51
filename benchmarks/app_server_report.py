"""What the app-servers took -> tables with a ratio and a target for each thing measured."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version

import msgspec

from benchmarks.app_server_crowd import Crowd

ENDS = 10
OURS, THEIRS = "limner", "codex"


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """What one process and its children took, and what it left on disk."""

    idle_mb: float
    peak_mb: float
    large_peak_mb: float
    room_bytes: int


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was measured; times are in seconds, by the name of who took them."""

    starts: dict[str, list[float]]
    first_turns: dict[str, list[float]]
    text_turns: dict[str, list[float]]
    tool_turns: dict[str, list[float]]
    large_turns: dict[str, list[float]]
    memory: dict[str, list[Memory]]
    shot_bytes: list[int]
    crowd: Crowd


class Row(msgspec.Struct, frozen=True):
    """A line of the table: both figures, and the most that ours may be of theirs."""

    what: str
    unit: str
    ours: float
    theirs: float
    allowed: float | None = None

    def __str__(self) -> str:
        ratio = self.ours / self.theirs
        target, verdict = "", ""
        if self.allowed is not None:
            target, verdict = f"{self.allowed:g}x", "kept" if ratio <= self.allowed else "MISSED"
        return (
            f"| {self.what} | {ratio:.2f}x | {target} | {verdict} "
            f"| {self.ours:,.1f} {self.unit} | {self.theirs:,.1f} {self.unit} |"
        )


def report(results: Results) -> str:
    """The tables, as they are printed and recorded."""
    lines = [
        _circumstances(results),
        "",
        "| | beside Codex | at most | | limner | Codex |",
        "|---|---|---|---|---|---|",
        *map(str, _rows(results)),
        "",
        *_flatness(results.tool_turns),
        "",
        *_crowd(results.crowd),
    ]
    return "\n".join([*lines, ""])


def _circumstances(results: Results) -> str:
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    counts = ", ".join(
        f"{len(times[OURS])} {what}"
        for what, times in (
            ("starts", results.starts),
            ("text turns", results.text_turns),
            ("tool turns", results.tool_turns),
            ("large ones", results.large_turns),
        )
    )
    return f"Medians of {counts}, in turns; {machine}; Codex {version('openai-codex-cli-bin')}."


def _rows(results: Results) -> Iterator[Row]:
    def timed(what: str, times: dict[str, list[float]], allowed: float | None = None) -> Row:
        ours, theirs = (1000 * statistics.median(times[name]) for name in (OURS, THEIRS))
        return Row(what, "ms", ours, theirs, allowed)

    def weighed(
        what: str, unit: str, figure: Callable[[Memory], float], allowed: float | None = None
    ) -> Row:
        ours, theirs = (
            statistics.median(map(figure, results.memory[name])) for name in (OURS, THEIRS)
        )
        return Row(what, unit, ours, theirs, allowed)

    shots = len(results.shot_bytes)
    megabytes = sum(results.shot_bytes) / 1e6
    yield timed("spawn to the answer to `initialize`", results.starts, 1.2)
    yield timed("first turn of a process", results.first_turns)
    yield timed("text turn", results.text_turns, 0.25)
    yield timed("tool turn, PNG of 1280x800", results.tool_turns, 0.25)
    yield timed("tool turn, PNG of 3840x2160", results.large_turns, 0.3)
    yield weighed("RSS idle, with a thread open", "MB", lambda memory: memory.idle_mb, 0.6)
    yield weighed(f"peak RSS, {shots} screenshots", "MB", lambda memory: memory.peak_mb, 0.5)
    yield weighed("peak RSS, 4K screenshots", "MB", lambda memory: memory.large_peak_mb, 0.5)
    yield weighed(
        f"disk, {shots} screenshots of {megabytes:.1f} MB",
        "MB",
        lambda memory: memory.room_bytes / 1e6,
        0.45,
    )


def _flatness(times: dict[str, list[float]]) -> Iterator[str]:
    """Whether turns get slower as a thread gets longer."""
    ends = min(ENDS, (len(times[OURS]) + 1) // 2)
    turns = f"{len(times[OURS])} tool turns of 1280x800"
    yield f"| {turns} | first {ends} | last {ends} | last beside first |"
    yield "|---|---|---|---|"
    for name in (OURS, THEIRS):
        first, last = (
            1000 * statistics.median(some) for some in (times[name][:ends], times[name][-ends:])
        )
        yield f"| {name} | {first:.1f} ms | {last:.1f} ms | {last / first:.2f}x |"


def _crowd(met: Crowd) -> Iterator[str]:
    turns = len(met.turns_s) + met.lost_turns
    clients = len(met.idle_s) + met.lost_clients
    yield "| one limner with a crowd | lost | p50 | p99 |"
    yield "|---|---|---|---|"
    yield (
        f"| {turns:,} turns, of every thread at once | {met.lost_turns} | {_spread(met.turns_s)} |"
    )
    yield (
        f"| a question of each of {clients:,} idle clients, all at once "
        f"| {met.lost_clients} | {_spread(met.idle_s)} |"
    )
    yield ""
    yield f"Its memory: {met.idle_mb:.0f} MB before the first turn, {met.busy_mb:.0f} MB after all."


def _spread(times_s: Sequence[float]) -> str:
    # The inclusive method stays within what was seen, however few there are.
    cuts = statistics.quantiles([*times_s, *times_s], n=100, method="inclusive")
    return f"{1000 * cuts[49]:.0f} ms | {1000 * cuts[98]:.0f} ms"
