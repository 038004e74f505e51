"""Run benchmarks: `python -m benchmarks [--record] [NAME ...]`; all of them unless some are named.

``--record`` keeps what was found, and makes the page and the plots of the documentation anew. If
no benchmark is named, it runs those that have a peer.
"""

from __future__ import annotations

import argparse
import importlib
import os
import time
import traceback

from benchmarks import comparison

# The module of each benchmark, and the title of its part of the page: those with a peer, then
# those that measure limner alone.
BESIDE_PEERS = {
    "start_up": "Start-up",
    "mcp": "The MCP server",
    "app_server": "The app-server beside Codex",
    "tool_turns": "Tool turns beside other agent libraries",
    "in_flight": "A hundred pictures in flight",
    "fit": "A picture made fit for a model",
    "rendering": "Charts and diagrams",
    "batch": "The books of a batch",
}
ALONE = {
    "batch_postgres": "A batch on PostgreSQL",
    "team": "A million pictures on fifty hosts",
    "wires": "A request with twenty pictures",
    "sandbox": "The sandbox of a worker",
    "sessions": "A thousand turns with a screenshot each",
    "ledger": "The ledger",
    "growth": "How operations grow",
    "gc_lock": "The write lock during `limner gc`",
    "studio": "The studio with 100,000 pictures",
}
BENCHMARKS = BESIDE_PEERS | ALONE


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*BENCHMARKS, []], metavar="NAME")
    parser.add_argument("--record", action="store_true", help="keep what was found")
    options = parser.parse_args()
    names = options.names or (BESIDE_PEERS if options.record else BENCHMARKS)
    failed = [name for name in names if not _run(name, keep=options.record)]
    if options.record:
        comparison.write_page()
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


def _run(name: str, *, keep: bool) -> bool:
    """Whether it came to its end; if not, the others still run."""
    print(f"## {name}, at a load of {os.getloadavg()[0]:.1f}", flush=True)
    start_s = time.perf_counter()
    try:
        found = importlib.import_module(f"benchmarks.{name}").main()
    except Exception:
        traceback.print_exc()
        return False
    for one in found or ():
        print(f"\n{comparison.table(one)}")
    if keep and found:
        comparison.record(name, BENCHMARKS[name], found)
    print(f"{name} took {time.perf_counter() - start_s:.0f} s\n", flush=True)
    return True


if __name__ == "__main__":
    main()
