"""Run benchmarks: `python -m benchmarks [--record] [NAME ...]`; all of them unless some are named.

``--record`` keeps what was found, and makes the page and the plots of the documentation anew.
"""

from __future__ import annotations

import argparse
import importlib

from benchmarks import comparison

# The module of each benchmark, and the title of its part of the page.
BENCHMARKS = {
    "start_up": "Start-up",
    "mcp": "The MCP server",
    "app_server": "The app-server beside Codex",
    "tool_turns": "Tool turns beside other agent libraries",
    "in_flight": "A hundred pictures in flight",
    "fit": "A picture made fit for a model",
    "rendering": "Charts and diagrams",
    "batch": "A batch",
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


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*BENCHMARKS, []], metavar="NAME")
    parser.add_argument("--record", action="store_true", help="keep what was found")
    options = parser.parse_args()
    for name in options.names or BENCHMARKS:
        print(f"## {name}")
        found = importlib.import_module(f"benchmarks.{name}").main()
        for one in found or ():
            print(f"\n{comparison.table(one)}")
        if options.record and found:
            comparison.record(name, BENCHMARKS[name], found)
        print()
    if options.record:
        comparison.write_page()


if __name__ == "__main__":
    main()
