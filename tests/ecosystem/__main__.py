"""`make ecosystem`: every framework and agent, each by itself -> what reached the model.

    python -m tests.ecosystem [--only PART]… [NAME]…

Without names it runs every page and every agent, and without parts everything. The results go to
results.json and conformance.json, and the pages in docs/ are made of these. The environments stay
in .ecosystem/, so that a second run is quick.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial

from msgspec.structs import replace
from tests.ecosystem import codex_race, conformance, sdk_clients
from tests.ecosystem.agents import AGENTS
from tests.ecosystem.environments import ALONE, environment, npm_version
from tests.ecosystem.pages import all_pages
from tests.ecosystem.report import read_results, write_results
from tests.ecosystem.runs import Subject, try_approval, try_once, try_slow

SLOW_S = 90
PARTS = ("rows", "approval", "slow", "race", "clients", "conformance")


def main() -> int:
    """Run what was asked for, and write the tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.ecosystem")
    parser.add_argument("names", nargs="*", help="pages and agents; all of them if left out")
    parser.add_argument("--only", action="append", choices=PARTS, help="run this part alone")
    asked = parser.parse_args()
    pages = [page for page in all_pages() if not asked.names or page.name in asked.names]
    agents = [agent for agent in AGENTS if not asked.names or agent.name in asked.names]
    of_agents = [Subject(agent=agent) for agent in agents]
    # One after the other: only one process at a time may install.
    for page in (ALONE, *pages):
        environment(page)
    for agent in agents:
        npm_version(agent.package)
    parts = asked.only or (PARTS if not asked.names else PARTS[:3])
    good: list[bool] = []
    if "rows" in parts:
        programs = [Subject(page=page, program=one) for page in pages for one in page.programs]
        good.append(run_rows([*programs, *of_agents]))
    if "approval" in parts:
        good.append(
            run_approvals(
                [Subject(page=page, program=one) for page in pages for one in page.approvals]
            )
        )
    if "slow" in parts:
        firsts = [Subject(page=page, program=page.programs[0]) for page in pages]
        good.append(run_slow([*firsts, *of_agents]))
    if "race" in parts:
        races = codex_race.run()
        write_results(replace(read_results(), races=races))
        good.append(races[0].there == races[0].runs)
    if "clients" in parts:
        clients = sdk_clients.run()
        write_results(replace(read_results(), clients=clients))
        good.append(all(client.is_good for client in clients))
    if "conformance" in parts:
        record = conformance.run_suite()
        conformance.write_record(record)
        good.append(record.is_good)
    return 0 if all(good) else 1


def run_rows(subjects: Sequence[Subject]) -> bool:
    """Run each subject once and record its row."""
    today = datetime.now(UTC).date().isoformat()
    rows = [replace(try_once(subject)[0], day=today) for subject in subjects]
    write_results(read_results().with_rows(rows))
    return all(row.is_good for row in rows)


def run_approvals(subjects: Sequence[Subject]) -> bool:
    """Run each program that asks its user, and record what was paid."""
    rows = [try_approval(subject) for subject in subjects]
    notes = {row.key: row.approval for row in rows}
    write_results(read_results().with_notes("approval", notes))
    return not any(note.startswith("**") for note in notes.values())


def run_slow(subjects: Sequence[Subject]) -> bool:
    """Run each subject with a slow picture. They mostly wait, so they run side by side."""
    with ThreadPoolExecutor(6) as pool:
        rows = list(pool.map(partial(try_slow, image_wait_s=SLOW_S), subjects))
    write_results(read_results().with_notes("slow", {row.key: row.slow for row in rows}))
    return all(row.is_good for row in rows)


if __name__ == "__main__":
    sys.exit(main())
