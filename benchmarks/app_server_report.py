"""What the app-servers took -> comparisons, with a target for each thing measured."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from importlib.metadata import version

import msgspec

from benchmarks.app_server_crowd import Crowd
from benchmarks.comparison import Comparison, compare

ENDS = 10
PYTHON = "A Python that imports asyncio and msgspec alone takes longer than Codex does in all."
VERIFIED = (
    "limner decodes the picture in a sandboxed worker before it keeps it, and syncs it to disk."
)
OURS, THEIRS = "limner", "codex"

Times = dict[str, list[float]]


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """What one process and its children took, and what it left on disk."""

    idle_mb: float
    peak_mb: float
    large_peak_mb: float
    room_bytes: int


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was measured; times are in seconds, by the name of who took them."""

    starts: Times
    first_turns: Times
    text_turns: Times
    tool_turns: Times
    large_turns: Times
    memory: dict[str, list[Memory]]
    shot_bytes: list[int]
    crowd: Crowd


def comparisons(results: Results) -> list[Comparison]:
    """Each thing measured, beside Codex; then how turns grow, and the crowd, by limner alone."""
    codex = f"Codex {version('openai-codex-cli-bin')}"

    def timed(work: str, times: Times, at_most: float | None = None, note: str = "") -> Comparison:
        runs = {
            OURS: [1000 * taken_s for taken_s in times[OURS]],
            codex: [1000 * taken_s for taken_s in times[THEIRS]],
        }
        return compare(work, runs, unit="ms", peer=codex, at_most=at_most, note=note)

    def weighed(work: str, figure: Callable[[Memory], float], at_most: float) -> Comparison:
        runs = {
            OURS: [figure(one) for one in results.memory[OURS]],
            codex: [figure(one) for one in results.memory[THEIRS]],
        }
        return compare(work, runs, unit="MB", peer=codex, at_most=at_most)

    shots = len(results.shot_bytes)
    megabytes = sum(results.shot_bytes) / 1e6
    return [
        timed("spawn to the answer to `initialize`", results.starts, 1.2, PYTHON),
        timed("first turn of a process", results.first_turns),
        timed("text turn", results.text_turns, 0.2),
        timed("tool turn, PNG of 1280x800", results.tool_turns, 0.25, VERIFIED),
        timed("tool turn, PNG of 3840x2160", results.large_turns, 0.3, VERIFIED),
        _flatness(results.tool_turns, codex),
        weighed("RSS idle, with a thread open", lambda one: one.idle_mb, 0.6),
        weighed(f"peak RSS, {shots} screenshots", lambda one: one.peak_mb, 0.5),
        weighed("peak RSS, 4K screenshots", lambda one: one.large_peak_mb, 0.5),
        weighed(
            f"disk, {shots} screenshots of {megabytes:.1f} MB",
            lambda one: one.room_bytes / 1e6,
            0.45,
        ),
        *_crowd(results.crowd),
    ]


def _flatness(times: Times, codex: str) -> Comparison:
    """Whether turns get slower as a thread gets longer."""
    turns = len(times[OURS])
    ends = min(ENDS, (turns + 1) // 2)
    runs: Times = {}
    for label, name in ((OURS, OURS), (codex, THEIRS)):
        taken_ms = [1000 * taken_s for taken_s in times[name]]
        runs |= {
            f"{label}, last {ends}": taken_ms[-ends:],
            f"{label}, first {ends}": taken_ms[:ends],
        }
    return compare(
        f"the last {ends} of {turns} tool turns of 1280x800, and the first {ends}",
        runs,
        unit="ms",
        ours=f"{OURS}, last {ends}",
        peer=f"{OURS}, first {ends}",
        at_most=1.1,
    )


def _crowd(met: Crowd) -> list[Comparison]:
    turns = len(met.turns_s) + met.lost_turns
    clients = len(met.idle_s) + met.lost_clients
    return [
        _one_of_a_crowd(
            f"one of {turns:,} turns, of every thread at once",
            met.turns_s,
            f"{met.lost_turns} were lost. The server's memory: {met.idle_mb:.0f} MB before the "
            f"first turn, {met.busy_mb:.0f} MB after all.",
        ),
        _one_of_a_crowd(
            f"a question of each of {clients:,} idle clients, all at once",
            met.idle_s,
            f"{met.lost_clients} were lost.",
        ),
    ]


def _one_of_a_crowd(work: str, taken_s: Sequence[float], note: str) -> Comparison:
    taken_ms = [1000 * one for one in taken_s]
    # The inclusive method stays within what was seen, however few there are.
    cuts = statistics.quantiles([*taken_ms, *taken_ms], n=100, method="inclusive")
    slowest = f"99 of 100 took at most {cuts[98]:,.0f} ms; {note}"
    return compare(work, {OURS: taken_ms}, unit="ms", note=slowest)
