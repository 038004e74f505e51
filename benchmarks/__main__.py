"""Run benchmarks: `python -m benchmarks [--record] [NAME ...]`; all of them unless some are named.

``--record`` keeps what was found, and makes the page and the plots of the documentation anew. If
no benchmark is named, it runs those whose results are on that page. Each benchmark runs in a group
of processes that ends with it, so neither Ctrl-C nor a peer that never ends leaves any behind.
"""

from __future__ import annotations

import argparse

from benchmarks import comparison, process_group

# The module of each benchmark, and the title of its part of the page: first those that the page of
# the documentation shows, nearly all with a peer.
ON_PAGE = {
    "start_up": "Start-up",
    "mcp": "The MCP server",
    "app_server": "The app-server beside Codex",
    "tool_turns": "Tool turns beside other agent libraries",
    "in_flight": "A hundred pictures in flight",
    "fit": "A picture made fit for a model",
    "gigapixel": "A picture of a thousand megapixels",
    "rendering": "Charts and diagrams",
    "batch": "The books of a batch",
    "growth": "How operations grow",
}
ALONE = {
    "batch_postgres": "A batch on PostgreSQL",
    "team": "A million pictures on fifty hosts",
    "wires": "A request with twenty pictures",
    "sandbox": "The sandbox of a worker",
    "sessions": "A thousand turns with a screenshot each",
    "ledger": "The ledger",
    "gc_lock": "The write lock during `limner gc`",
    "studio": "The studio with 100,000 pictures",
}
BENCHMARKS = ON_PAGE | ALONE


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*BENCHMARKS, []], metavar="NAME")
    parser.add_argument("--record", action="store_true", help="keep what was found")
    options = parser.parse_args()
    names = options.names or (ON_PAGE if options.record else BENCHMARKS)
    failed = [
        name
        for name in names
        if not process_group.run(name, BENCHMARKS[name] if options.record else None)
    ]
    if options.record:
        comparison.write_page()
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
