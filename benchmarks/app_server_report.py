"""What the app-servers took -> comparisons, with a target for each thing measured."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version

import msgspec

from benchmarks.app_server_crowd import Crowd
from benchmarks.comparison import Comparison, compare

ENDS = 10
WHY_START = "Python, `asyncio` and msgspec take four fifths of it."
WHY_TEXT = (
    "Half of it is one request through asyncio and httpx2, a third are five transactions, none of "
    "them large by itself."
)
WHY_SCREEN = (
    "limner reads the whole picture in a sandboxed worker before it keeps it, and syncs it to "
    "disk. Most of the rest is Python code of the host: two requests with up to 20 pictures, and "
    "12 transactions."
)
WHY_LARGE = (
    "At this detail the model sees 2048x1152 pixels. To undo the filters of the PNG and to scale "
    "it takes nearly all the processor time that the target allows for the whole turn. Two threads "
    "share this work; the picture is verified before it, and stored and sent after it."
)
WHY_FLATNESS = (
    "The first turns send 1 to 10 pictures to the model, the last ones 10 to 20, which is 6 and "
    "17 MB in two requests. What the kernel takes to send 11 MB more is three quarters of the "
    "growth, and more than the target allows. The rest is the longer history: each of its items "
    "is written for the API again."
)
OURS, THEIRS = "limner", "codex"

Times = dict[str, list[float]]


class Turns:
    """What each turn took in milliseconds: by the clock, and of the processor.

    ``host`` is the processor time of the server itself, ``children`` that of its processes.
    """

    def __init__(self) -> None:
        self.wall: list[float] = []
        self.host: list[float] = []
        self.children: list[float] = []

    def add(
        self, before: Mapping[int, int], after: Mapping[int, int], pid: int, *, wall_s: float
    ) -> None:
        """Add one turn, by the nanoseconds that each process had used before it and after it."""
        spent = {one: now - before.get(one, 0) for one, now in after.items()}
        self.host.append(spent.pop(pid) / 1e6)
        self.children.append(sum(spent.values()) / 1e6)
        self.wall.append(1000 * wall_s)

    @property
    def cpu(self) -> list[float]:
        """The processor time of all processes together."""
        return [sum(pair) for pair in zip(self.host, self.children, strict=True)]


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """What one process and its children took, and what it left on disk."""

    idle_mb: float
    peak_mb: float
    large_peak_mb: float
    room_bytes: int


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was measured, by the name of who was; starts are in seconds."""

    starts: Times
    first_turns: dict[str, Turns]
    text_turns: dict[str, Turns]
    tool_turns: dict[str, Turns]
    large_turns: dict[str, Turns]
    memory: dict[str, list[Memory]]
    shot_bytes: list[int]
    crowd: Crowd


def comparisons(results: Results) -> list[Comparison]:
    """Each thing measured, beside Codex; then how turns grow, and the crowd, by limner alone."""
    codex = f"Codex {version('openai-codex-cli-bin')}"

    def timed(
        work: str, turns: dict[str, Turns], at_most: float | None = None, why: str = ""
    ) -> list[Comparison]:
        wall = {OURS: turns[OURS].wall, codex: turns[THEIRS].wall}
        cpu = {OURS: turns[OURS].cpu, codex: turns[THEIRS].cpu}
        return [
            compare(work, runs, unit=unit, peer=codex, at_most=at_most, why_missed=why)
            for unit, runs in (("ms", wall), ("ms of CPU", cpu))
        ]

    def weighed(work: str, figure: Callable[[Memory], float], at_most: float) -> Comparison:
        runs = {
            OURS: [figure(one) for one in results.memory[OURS]],
            codex: [figure(one) for one in results.memory[THEIRS]],
        }
        return compare(work, runs, unit="MB", peer=codex, at_most=at_most)

    starts_ms = {
        OURS: [1000 * taken_s for taken_s in results.starts[OURS]],
        codex: [1000 * taken_s for taken_s in results.starts[THEIRS]],
    }
    shots = len(results.shot_bytes)
    megabytes = sum(results.shot_bytes) / 1e6
    return [
        compare(
            "spawn to the answer to `initialize`",
            starts_ms,
            unit="ms",
            peer=codex,
            at_most=1.2,
            why_missed=WHY_START,
        ),
        *timed("first turn of a process", results.first_turns),
        *timed("text turn", results.text_turns, 0.2, WHY_TEXT),
        *timed("tool turn, PNG of 1280x800", results.tool_turns, 0.25, WHY_SCREEN),
        *timed("tool turn, PNG of 3840x2160", results.large_turns, 0.3, WHY_LARGE),
        *_flatness(results.tool_turns, codex),
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


def _flatness(turns: dict[str, Turns], codex: str) -> list[Comparison]:
    """Whether turns get slower as a thread gets longer."""
    count = len(turns[OURS].wall)
    ends = min(ENDS, (count + 1) // 2)
    columns: dict[str, Callable[[Turns], list[float]]] = {
        "ms": lambda taken: taken.wall,
        "ms of CPU": lambda taken: taken.cpu,
    }
    found: list[Comparison] = []
    for unit, column in columns.items():
        runs: Times = {}
        for label, name in ((OURS, OURS), (codex, THEIRS)):
            taken_ms = column(turns[name])
            runs |= {
                f"{label}, last {ends}": taken_ms[-ends:],
                f"{label}, first {ends}": taken_ms[:ends],
            }
        found.append(
            compare(
                f"the last {ends} of {count} tool turns of 1280x800, and the first {ends}",
                runs,
                unit=unit,
                ours=f"{OURS}, last {ends}",
                peer=f"{OURS}, first {ends}",
                at_most=1.1,
                why_missed=WHY_FLATNESS,
            )
        )
    return found


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
