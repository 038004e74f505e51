"""How a worker waits for its next job, and returns memory to the system meanwhile."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Small blocks are kept by the C library when they are freed; the last one holds the heap's end.
PROGRAM = """
import os
from limner.imaging.sandbox import share_one_heap, wait_for_job

def resident_mib():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20

share_one_heap()
reading, writing = os.pipe()
with open(reading, "rb") as jobs:
    blocks = [bytes([1]) * 60_000 for _ in range(1000)]
    last = bytes(60_000)
    del blocks
    kept = resident_mib()
    os.write(writing, b"job")
    wait_for_job(jobs, on_idle=lambda: print("at rest"), idle_s=60)
    at_once = resident_mib()
    jobs.read1()
    wait_for_job(jobs, on_idle=lambda: print("at rest"), idle_s=0)
    print(at_once >= kept, resident_mib() < kept - 40)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere memory is left to the system")
def test_freed_memory_goes_back_once_there_is_no_next_job() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, check=True, text=True, timeout=60
    )
    assert done.stdout == "at rest\nTrue True\n"
