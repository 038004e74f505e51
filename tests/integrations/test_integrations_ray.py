"""The guide's examples on a real Ray. `make cluster` kills workers and nodes of a larger one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.servers.components import needs
from tests.test_guides import sections_of

# A cluster of its own, though another one may run on this machine.
START = """
import ray
ray.init(address="local", include_dashboard=False, log_to_driver=False, num_cpus=2)
"""


@pytest.mark.slow
@needs("ray")
def test_the_examples_of_the_guide_run_on_ray(tmp_path: Path) -> None:
    sections = sections_of("engines")
    code = "\n".join([START, sections["Ray"], sections["Ray Data"]])
    env = {**os.environ, "HOME": str(tmp_path), "RAY_USAGE_STATS_ENABLED": "0"}
    # A process of its own, since Ray stays in its process.
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.splitlines()) == (0, ["6 0", str(["done"] * 6)])


@pytest.mark.slow
@needs("ray")
def test_a_batch_without_workers_is_refused_before_ray_starts() -> None:
    code = "from limner.integrations.ray import run_batch; run_batch([], workers=0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1].endswith("UserError: workers must be at least 1, not 0")
