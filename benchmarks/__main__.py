"""Run every benchmark: `python -m benchmarks [NAME ...]`."""

from __future__ import annotations

import sys

from benchmarks import (
    app_server,
    batch,
    fit,
    gc_lock,
    growth,
    in_flight,
    ledger,
    mcp,
    rendering,
    sandbox,
    sessions,
    start_up,
    studio,
    wires,
)

BENCHMARKS = {
    "start_up": start_up.main,
    "in_flight": in_flight.main,
    "sessions": sessions.main,
    "ledger": ledger.main,
    "growth": growth.main,
    "wires": wires.main,
    "fit": fit.main,
    "mcp": mcp.main,
    "gc_lock": gc_lock.main,
    "sandbox": sandbox.main,
    "app_server": app_server.main,
    "rendering": rendering.main,
    "batch": batch.main,
    "studio": studio.main,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or BENCHMARKS:
        print(f"## {name}")
        BENCHMARKS[name]()
        print()
