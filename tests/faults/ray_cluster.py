"""A batch and a dataset on a Ray cluster of two nodes, of which one is killed -> what was billed.

Run as ``python -m tests.faults.ray_cluster ROWS``. PostgreSQL, Ray and the services are real
processes of this machine; each node has a home of its own. All rows go to a service whose jobs can
be found again, so that every row that it billed must end with a picture. A row that was not billed
may have failed: its process died between the mark that it sends and the sending.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.faults.batch_kills import Faults, compare
from tests.servers.postgres_server import running_postgres

from limner import Limner
from limner.errors import UserError
from limner.testing import FakeServices
from limner.tools.batches import BatchManifest

WORKERS_OF_A_NODE = 2
SEED = 1
CONCURRENCY = 6
# The rows of the three workers that are killed.
IN_FLIGHT = 3 * CONCURRENCY


def rows(count: int, word: str) -> list[dict[str, Any]]:
    kind = {"provider": "replicate-flux", "size": "512x512"}
    return [{"key": f"k{number}", "prompt": f"{word} {number}", **kind} for number in range(count)]


class Strikes:
    """Calls one function after the other, each when the services have got a number of requests."""

    def __init__(self, faults: Faults, *strikes: tuple[int, Callable[[], None]]) -> None:
        self._faults, self._strikes = faults, list(strikes)
        faults.ask_for_kills([mark for mark, _ in strikes])
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        for _, strike in self._strikes:
            self._faults.due.wait()
            strike()
            self._faults.due.clear()
            self._faults.killed.set()


def kill_family(pid: int, *, only: str = "") -> int:
    """Kill a process and what it has started, or the first of these with a word in its name."""
    names: dict[int, tuple[int, str]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            names[int(folder.name)] = (parent, (folder / "cmdline").read_bytes().decode())
        except OSError:
            continue
    family = [pid]
    for one in family:
        family += [child for child, (parent, _) in names.items() if parent == one]
    chosen = [one for one in family if only in names[one][1]]
    for one in chosen[:1] if only else chosen:
        os.kill(one, signal.SIGKILL)
    return len(chosen)


@contextmanager
def running_cluster(folder: Path) -> Iterator[tuple[int, int]]:
    """Two nodes; the ids of their main processes."""
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DATA_DISABLE_PROGRESS_BARS": "1"}
    import ray
    from ray.cluster_utils import Cluster

    of_node: dict[str, Any] = {"num_cpus": WORKERS_OF_A_NODE, "object_store_memory": 80_000_000}
    cluster = Cluster(initialize_head=True, head_node_args={**of_node, "include_dashboard": False})
    other = cluster.add_node(**of_node, env_vars={"LIMNER_HOME": str(folder / "other-home")})
    ray.init(address=cluster.address, log_to_driver=False, logging_level=logging.ERROR)
    try:
        nodes: list[Any] = [cluster.head_node, other]
        ids = [node.all_processes["raylet"][0].process.pid for node in nodes]
        yield ids[0], ids[1]
    finally:
        ray.shutdown()
        cluster.shutdown()


def interrupted_batch(faults: Faults, given: list[dict[str, Any]], nodes: tuple[int, int]) -> None:
    """Run the rows with Ctrl-C, and again while a worker dies and a node dies."""
    from limner.integrations.ray import run_batch

    count = len(given)
    Strikes(faults, (count // 6, lambda: os.kill(os.getpid(), signal.SIGINT)))
    try:
        run_batch(given, workers=2 * WORKERS_OF_A_NODE, budget_usd=1_000)
    except KeyboardInterrupt:
        print("Ctrl-C ended the first call.", file=sys.stderr, flush=True)
    else:
        raise AssertionError("Ctrl-C did not end the call")
    Strikes(
        faults,
        (count // 6, lambda: _struck(kill_family(nodes[0], only="_Worker"))),
        (count // 3, lambda: _struck(kill_family(nodes[1]))),
    )
    run_batch(given, workers=2 * WORKERS_OF_A_NODE, budget_usd=1_000)
    # Once more, to ask the service about the requests of processes that died.
    run_batch(given, workers=1, budget_usd=1_000)


def mapped_dataset(faults: Faults, count: int, nodes: tuple[int, int]) -> dict[str, Any]:
    """Run a dataset while a worker dies, and again in other blocks."""
    import ray

    from limner.integrations.ray import map_rows

    given = ray.data.from_items(rows(count, "hen"))
    Strikes(faults, (count // 3, lambda: _struck(kill_family(nodes[0], only="MapWorker"))))
    terms = {"batch": "hens", "budget_usd": 100, "workers": 1}
    first = map_rows(given, batch_size=8, **terms).take_all()
    again = map_rows(given, batch_size=11, **terms).take_all()
    same = ("key", "limner_handle", "limner_state", "limner_error", "limner_cost_usd")
    kept = [sorted([row[name] for name in same] for row in ran) for ran in (first, again)]
    billed = {prompt: times for prompt, times in faults.billed.items() if prompt.startswith("hen")}
    return {
        "done": sum(row["limner_state"] == "done" for row in first),
        "same_again": kept[0] == kept[1],
        "billed": len(billed),
        "billed_twice": [prompt for prompt, times in billed.items() if times > 1],
    }


def _struck(count: int) -> None:
    assert count, "there was no process to kill"


def refusal() -> str:
    """What Ray's nodes say to a home that they do not share."""
    from limner.integrations.ray import run_batch

    kept = {name: os.environ.pop(name) for name in ("LIMNER_STORE", "LIMNER_BLOBS")}
    try:
        run_batch(rows(1, "owl"), workers=1, budget_usd=1)
    except UserError as error:
        return error.message
    finally:
        os.environ |= kept
    return ""


async def _books(given: list[dict[str, Any]], faults: Faults, began_s: float) -> dict[str, Any]:
    import msgspec

    async with Limner() as lim:
        batch = await lim.batches.queue.get(BatchManifest.of_rows(given).name)
        counts = await lim.batches.queue.counts(batch)
        outcome = await compare(lim, batch, faults, counts, 3, [], began_s)
        lost = [
            row.row_key
            async for row in lim.batches.queue.results(batch)
            if json.loads(row.arguments)["prompt"] in faults.billed
            and (row.picture is None or not await lim.picture(row.picture).bytes())
        ]
    return {**msgspec.to_builtins(outcome), "billed_without_picture": lost}


def run(count: int, folder: Path) -> dict[str, Any]:
    """Run everything, and compare the bills with the books."""
    (folder / "pictures").mkdir()
    with FakeServices(folder) as services, running_postgres() as database:
        os.environ |= services.env
        os.environ |= {
            "LIMNER_STORE": database.new_url(),
            "LIMNER_BLOBS": f"file://{folder}/pictures",
            "LIMNER_IMAGES_CONCURRENCY": str(CONCURRENCY),
        }
        faults = Faults(services, random.Random(SEED), weights=(1, 0, 0, 0, 0))
        given, began_s = rows(count, "fox"), time.monotonic()
        with running_cluster(folder) as nodes:
            refused = refusal()
            _say("The cluster is up", began_s)
            interrupted_batch(faults, given, nodes)
            _say("The batch has ended", began_s)
            batch = asyncio.run(_books(given, faults, began_s))
            dataset = mapped_dataset(faults, max(40, count // 20), nodes)
            _say("The dataset has ended", began_s)
    return {
        "refused": refused,
        "batch": batch,
        "dataset": dataset,
        "wrong": wrong(count, batch, dataset, refused),
    }


def wrong(count: int, batch: dict[str, Any], dataset: dict[str, Any], refused: str) -> list[str]:
    """What may not be."""
    empty = ("billed_twice", "billed_without_ledger", "settled_without_bill")
    empty += ("billed_without_picture", "done_without_file", "wrong_counters")
    found = [name for name in empty if batch[name]]
    done, uncertain = batch["settled"], batch["unknown"]
    checks = {
        "a row did not end": done + uncertain == count,
        "a row was paid for and is not done": batch["counts"]["done"] == done,
        "more rows are uncertain than were in flight": uncertain <= IN_FLIGHT,
        "a block was paid for twice": dataset["billed_twice"] == [],
        "a block has other results": dataset["same_again"],
        "a row of the dataset was lost": dataset["done"] == dataset["billed"],
        "a home of one host was taken": "is not shared" in refused,
    }
    return [*found, *(what for what, is_right in checks.items() if not is_right)]


def _say(what: str, began_s: float) -> None:
    print(f"{what} after {time.monotonic() - began_s:.0f} s.", file=sys.stderr, flush=True)


def main() -> None:
    """Run, and print the outcome as JSON; the exit status says if something is wrong."""
    with tempfile.TemporaryDirectory(prefix="limner-ray-") as folder:
        outcome = run(int(sys.argv[1]), Path(folder))
    print(json.dumps(outcome, indent=1))
    sys.exit(1 if outcome["wrong"] else 0)


if __name__ == "__main__":
    main()
