"""What a turn costs the processor: limner's host and its worker beside the real Codex.

Time on the wall needs an idle machine; processor time says nearly the same on a busy one. Both
servers run at the same time and take turns at every step, as in `app_server`. The medians of the
first ten and the last ten turns show what a longer conversation costs.

    python -m benchmarks.turn_costs [--turns N] [--large N] [--alone]
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import app_server_peers as peers
from benchmarks.app_server import LARGE, LARGE_SCALE, SCREEN, model_server, pictures
from benchmarks.app_server_client import Client, answer_with, connected
from benchmarks.app_server_peers import Peer
from benchmarks.metered import cpu_ns

EDGE = 10
"""How many turns at the beginning and at the end are compared."""
SETTLE_S = 0.05
"""What a server does after its answer belongs to the turn too."""

Turn = Callable[[Client, str, int], float]


class Costs:
    """The processor time of each turn in milliseconds: the server itself, and its children."""

    def __init__(self) -> None:
        self.host: list[float] = []
        self.children: list[float] = []
        self.wall: list[float] = []

    def add(self, before: dict[int, int], after: dict[int, int], pid: int, wall_s: float) -> None:
        """Add one turn."""
        spent = {one: now - before.get(one, 0) for one, now in after.items()}
        self.host.append(spent.pop(pid) / 1e6)
        self.children.append(sum(spent.values()) / 1e6)
        self.wall.append(wall_s * 1e3)

    @property
    def total(self) -> list[float]:
        """Of all processes together."""
        return [sum(pair) for pair in zip(self.host, self.children, strict=True)]


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.turn_costs")
    parser.add_argument("--turns", type=int, default=50, help="turns with text and small pictures")
    parser.add_argument("--large", type=int, default=10, help="turns with a 4K picture")
    parser.add_argument("--alone", action="store_true", help="without Codex, for a profiler")
    options = parser.parse_args(arguments)
    shots = [answer_with(shot) for shot in pictures(SCREEN, options.turns)]
    large = [answer_with(shot) for shot in pictures(LARGE, options.large, scale=LARGE_SCALE)]

    def shoot(answers: Sequence[bytes]) -> Turn:
        return lambda client, thread, number: client.tool_turn(
            thread, number, answer=answers[number]
        )

    kinds: dict[str, tuple[Turn, int]] = {
        "text": (Client.text_turn, options.turns),
        "PNG of 1280x800": (shoot(shots), options.turns),
        "PNG of 3840x2160": (shoot(large), options.large),
    }
    print("| turn | limner: host | worker | Codex | CPU | wall | last ten beside first ten |")
    print("|---|--:|--:|--:|--:|--:|---|")
    with tempfile.TemporaryDirectory() as name, model_server(1) as base_url:
        folder = Path(name)
        pair = [peers.limner(folder, base_url=base_url)]
        if not options.alone:
            pair.append(peers.codex(folder, base_url=base_url))
        with contextlib.ExitStack() as stack:
            clients = {peer.name: stack.enter_context(connected(peer)) for peer in pair}
            for client in clients.values():
                client.text_turn(client.start_thread(), 0)
            for kind, (turn, count) in kinds.items():
                print(_row(kind, _measure(pair, clients, turn, count)), flush=True)


def _measure(
    pair: Sequence[Peer], clients: dict[str, Client], turn: Turn, count: int
) -> dict[str, Costs]:
    threads = {name: client.start_thread() for name, client in clients.items()}
    costs = {name: Costs() for name in clients}
    for number in range(count):
        for peer in pair if number % 2 else reversed(pair):
            client = clients[peer.name]
            pid = client.process.pid
            before = cpu_ns(pid)
            wall_s = turn(client, threads[peer.name], number)
            time.sleep(SETTLE_S)
            costs[peer.name].add(before, cpu_ns(pid), pid, wall_s)
    return costs


def _row(kind: str, costs: dict[str, Costs]) -> str:
    ours, theirs = costs["limner"], costs.get("codex")
    cells = [
        kind,
        f"{statistics.median(ours.host):.1f} ms",
        f"{statistics.median(ours.children):.1f} ms",
        "-" if theirs is None else f"{statistics.median(theirs.total):.1f} ms",
        "-" if theirs is None else _ratio(ours.total, theirs.total),
        "-" if theirs is None else _ratio(ours.wall, theirs.wall),
        ", ".join(
            f"{name} {_ratio(one.total[-EDGE:], one.total[:EDGE])} of CPU, "
            f"{_ratio(one.wall[-EDGE:], one.wall[:EDGE])} of time"
            for name, one in costs.items()
        )
        if len(ours.wall) >= 2 * EDGE
        else "",
    ]
    return f"| {' | '.join(cells)} |"


def _ratio(one: Sequence[float], other: Sequence[float]) -> str:
    return f"{statistics.median(one) / statistics.median(other):.2f}x"


if __name__ == "__main__":
    main(sys.argv[1:])
