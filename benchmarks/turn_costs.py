"""Where a turn's processor time goes: limner's host, its worker, and the real Codex.

The same turns as in `app_server`, which compares them. Here a profiler can watch limner alone, and
the host and the worker have a column each.

    python -m benchmarks.turn_costs [--turns N] [--large N] [--alone]
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import app_server_peers as peers
from benchmarks.app_server import (
    LARGE,
    LARGE_SCALE,
    SCREEN,
    Turn,
    model_server,
    pictures,
    showing,
    take_turns,
)
from benchmarks.app_server_client import Client, connected
from benchmarks.app_server_report import ENDS, OURS, THEIRS, Turns


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.turn_costs")
    parser.add_argument("--turns", type=int, default=50, help="turns with text and small pictures")
    parser.add_argument("--large", type=int, default=10, help="turns with a 4K picture")
    parser.add_argument("--alone", action="store_true", help="without Codex, for a profiler")
    options = parser.parse_args(arguments)
    shots = list(pictures(SCREEN, options.turns))
    large = list(pictures(LARGE, options.large, scale=LARGE_SCALE))
    kinds: dict[str, tuple[Turn, int]] = {
        "text": (Client.text_turn, options.turns),
        "PNG of 1280x800": (showing(shots), options.turns),
        "PNG of 3840x2160": (showing(large), options.large),
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
                print(_row(kind, take_turns(pair, clients, count, turn)), flush=True)


def _row(kind: str, turns: dict[str, Turns]) -> str:
    ours, theirs = turns[OURS], turns.get(THEIRS)
    cells = [
        kind,
        f"{statistics.median(ours.host):.1f} ms",
        f"{statistics.median(ours.children):.1f} ms",
        "-" if theirs is None else f"{statistics.median(theirs.cpu):.1f} ms",
        "-" if theirs is None else _ratio(ours.cpu, theirs.cpu),
        "-" if theirs is None else _ratio(ours.wall, theirs.wall),
        ", ".join(
            f"{name} {_ratio(one.cpu[-ENDS:], one.cpu[:ENDS])} of CPU, "
            f"{_ratio(one.wall[-ENDS:], one.wall[:ENDS])} of time"
            for name, one in turns.items()
        )
        if len(ours.wall) >= 2 * ENDS
        else "",
    ]
    return f"| {' | '.join(cells)} |"


def _ratio(one: Sequence[float], other: Sequence[float]) -> str:
    return f"{statistics.median(one) / statistics.median(other):.2f}x"


if __name__ == "__main__":
    main(sys.argv[1:])
