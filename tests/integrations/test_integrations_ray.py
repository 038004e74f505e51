"""A real Ray cluster: what it runs twice is paid for once, and what dies is done by others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.servers.components import needs
from tests.servers.postgres_server import needs_postgres
from tests.test_guides import sections_of

needs_ray = needs("ray")
ROWS = 200
# The rows of the processes that are killed: three with six rows each.
IN_FLIGHT = 18


def run(folder: Path, *words: str) -> str:
    """Run Python in a process of its own, since Ray stays in its process."""
    env = {**os.environ, "HOME": str(folder), "RAY_USAGE_STATS_ENABLED": "0"}
    done = subprocess.run(
        [sys.executable, *words], env=env, capture_output=True, text=True, check=False, timeout=280
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.slow
@needs_ray
@needs_postgres
def test_rows_on_two_nodes_are_paid_once_though_a_worker_and_a_node_are_killed(
    tmp_path: Path,
) -> None:
    outcome: dict[str, Any] = json.loads(run(tmp_path, "-m", "tests.faults.ray_cluster", str(ROWS)))
    assert outcome["refused"] == (
        "The cluster has 2 nodes, and LIMNER_STORE and LIMNER_BLOBS are not set: the home of a "
        "host is not shared"
    )
    batch, dataset = outcome["batch"], outcome["dataset"]
    wrong = ("billed_twice", "billed_without_ledger", "settled_without_bill")
    wrong += ("billed_without_picture", "done_without_file", "wrong_counters")
    assert {kind: batch[kind] for kind in wrong} == {kind: [] for kind in wrong}
    # A process that died between the mark that it sends and the sending leaves a row uncertain.
    uncertain = batch["unknown"]
    assert uncertain <= IN_FLIGHT
    done = ROWS - uncertain
    assert batch["counts"] == {"waiting": 0, "running": 0, "done": done, "failed": uncertain}
    assert batch["settled"] == done
    assert (dataset["billed_twice"], dataset["same_again"]) == ([], True)
    assert 40 - IN_FLIGHT <= dataset["done"] == dataset["billed"]


@pytest.mark.slow
@needs_ray
def test_the_examples_of_the_guide_run_on_ray(tmp_path: Path) -> None:
    sections = sections_of("engines")
    quiet = "import ray\nray.init(include_dashboard=False, log_to_driver=False, num_cpus=2)"
    said = run(tmp_path, "-c", "\n".join([quiet, sections["Ray"], sections["Ray Data"]]))
    assert said.splitlines() == ["6 0", str(["done"] * 6)]
