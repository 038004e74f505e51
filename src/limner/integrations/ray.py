"""Ray: a batch of the store runs on a cluster, and a `ray.data.Dataset` on limner's tools.

Ray places the workers and starts them again. The store decides which rows are left and what was
paid, so that a task that Ray runs twice pays once.
"""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from limner import blocking
from limner.batches.records import Batch, BatchStatus
from limner.client import Limner
from limner.errors import LimnerError, UserError
from limner.integrations import needs
from limner.settings import Settings

with needs("'limner[ray]'"):
    import ray
    from ray.exceptions import RayTaskError

LOOK_EVERY_S = 1.0
# How long Ctrl-C waits for rows in flight.
WIND_DOWN_S = 600.0
# If the processes of one worker die so often, the reason is not their node.
MAX_RESTARTS = 100
BLOCK_ROWS = 32
# What a row of a dataset gets. The prefix keeps its own columns, such as `path`.
COLUMNS = ("state", "handle", "path", "result", "cost_usd", "error")
PREFIX = "limner_"


def run_batch(
    rows: str | Path | Sequence[Mapping[str, object]],
    *,
    workers: int,
    budget_usd: float | str | None = None,
    rate: Sequence[str] = (),
    on_status: Callable[[BatchStatus], None] = lambda _: None,
    **ray_options: Any,
) -> BatchStatus:
    """Run a batch on the Ray cluster of this program; each row is paid for at most once.

    Ctrl-C lets the rows in flight end. The call again runs what is left.

    Args:
        rows: the path of a manifest, or the rows themselves, as `limner.batch` takes them.
        workers: how many processes run rows. Ray starts one again if it or its node dies.
        budget_usd: the most that all rows may cost; the default is the sum of their quotes.
        rate: requests a minute to providers, each as ``openai=50/min``.
        on_status: gets the state of the batch every second.
        ray_options: what each worker needs, as ``num_gpus=1``; see Ray's ``ActorClass.options``.

    Raises:
        UserError: ``workers`` is less than 1; or the cluster has several nodes, and the store or
            the pictures are on one of them.
        LimnerError: as `limner.batch`, or a worker cannot start.
    """
    if workers < 1:
        raise UserError(f"workers must be at least 1, not {workers}")
    if not ray.is_initialized():
        ray.init()
    options = {"num_cpus": 1, "max_restarts": MAX_RESTARTS, "max_task_retries": -1, **ray_options}
    opened = partial(_open, rows, budget_usd=budget_usd, rate=rate)
    return blocking.wait_for(_run_batch(opened, workers, options, on_status))


async def _open(
    rows: Any, lim: Limner, *, budget_usd: float | str | None, rate: Sequence[str]
) -> Batch:
    """Load the rows, after the user approved the price."""
    from limner.tools.batches import budget_of, manifest_of  # noqa: PLC0415 - only batches need it

    person, budget_nano = lim.person(), budget_of(budget_usd)
    resolve = partial(person.reach.resolve_read, cwd=lim.cwd)
    return await lim.batches.open(
        await asyncio.to_thread(manifest_of, rows, resolve=resolve),
        person,
        budget_nano=budget_nano,
        rates=rate,
        lane="now",
        approved=budget_nano is not None,
    )


async def _run_batch(
    open_batch: Callable[[Limner], Awaitable[Batch]],
    workers: int,
    options: Mapping[str, Any],
    on_status: Callable[[BatchStatus], None],
) -> BatchStatus:
    async with Limner() as lim:
        _refuse_unshared(lim.settings)
        batch, addresses = await open_batch(lim), _addresses(lim.settings)
        actors: list[Any] = [
            ray.remote(_Worker).options(**options).remote() for _ in range(workers)
        ]
        # One of them tries the failed rows again.
        tasks = [actor.run.remote(addresses, batch.id, actor is actors[0]) for actor in actors]
        runs = [asyncio.wrap_future(task.future()) for task in tasks]
        for run in runs:
            # Seen, so that asyncio does not report the end of a cancelled worker as an error.
            run.add_done_callback(lambda run: run.cancelled() or run.exception())
        try:
            return await _follow(lim, batch, runs, on_status)
        finally:
            for task in tasks:
                ray.cancel(task)
            await _wait_for_rows(lim, batch, runs)
            for actor in actors:
                ray.kill(actor)


async def _follow(
    lim: Limner,
    batch: Batch,
    runs: Sequence[asyncio.Future[str | None]],
    on_status: Callable[[BatchStatus], None],
) -> BatchStatus:
    """Wait until the store has nothing left to do, whatever became of the workers."""
    waiting, stopped = set(runs), None
    while True:
        ended, waiting = await asyncio.wait(
            waiting, timeout=LOOK_EVERY_S, return_when=asyncio.FIRST_COMPLETED
        )
        stopped = next(filter(None, [stopped, *map(_stopped, ended)]), None)
        status = await lim.batches.runner.status(batch, stopped=stopped)
        on_status(status)
        # A worker whose node is gone may wait for a new one, though the others did its rows.
        is_over = status.state != "open" or stopped is not None
        if not waiting or (is_over and status.counts.running == 0):
            return status


def _stopped(run: asyncio.Future[str | None]) -> str | None:
    """Why a worker stopped before the rows ended.

    Raises:
        LimnerError: it could not work at all.
    """
    try:
        return run.result()
    except RayTaskError as error:
        if isinstance(error.cause, LimnerError):
            raise error.cause from None
        raise


async def _wait_for_rows(lim: Limner, batch: Batch, runs: Sequence[asyncio.Future[Any]]) -> None:
    """Let the rows in flight end. A worker that waits for a node has none."""
    deadline_s = time.monotonic() + WIND_DOWN_S
    while time.monotonic() < deadline_s:
        _, waiting = await asyncio.wait(runs, timeout=LOOK_EVERY_S)
        if not waiting or (await lim.batches.queue.counts(batch)).running == 0:
            return


class _Worker:
    """An actor: a process that runs rows of a batch."""

    async def run(self, addresses: Mapping[str, str], batch_id: str, resume: bool) -> str | None:
        """Run rows until none is left; return why it stopped before that."""
        async with _limner(addresses) as lim:
            batch = await lim.batches.queue.get(batch_id)
            return (await lim.batches.run(batch, resume=resume)).stopped


def map_rows(
    dataset: Any,
    *,
    batch: str,
    budget_usd: float | str,
    workers: int,
    rate: Sequence[str] = (),
    **ray_options: Any,
) -> Any:
    """A `ray.data.Dataset` with the results of limner's tools beside its rows.

    A row has the column ``key``, if need be ``tool`` (default: `image_generate`), and the arguments
    of the tool. It gets the columns ``limner_state``, ``limner_handle``, ``limner_path``,
    ``limner_result`` (JSON text), ``limner_cost_usd`` and ``limner_error``. If Ray runs a block
    again, no row is paid for again.

    Args:
        dataset: the rows.
        batch: the name of the batch in the store: letters, digits, - and _.
        budget_usd: the most that all rows of the batch may cost together.
        workers: how many processes run rows.
        rate: requests a minute to providers, each as ``openai=50/min``.
        ray_options: more for Ray's ``Dataset.map_batches``, as ``num_gpus=1``.

    Raises:
        UserError: the cluster has several nodes, and the store or the pictures are on one of them.
    """
    settings = Limner().settings
    _refuse_unshared(settings)
    terms = {"batch": batch, "budget_usd": budget_usd, "rate": list(rate)}
    options = {"batch_size": BLOCK_ROWS, "compute": ray.data.ActorPoolStrategy(size=workers)}
    return dataset.map_batches(
        _RowRunner,
        fn_constructor_args=(_addresses(settings), terms),
        batch_format="pyarrow",
        **{**options, **ray_options},
    )


class _RowRunner:
    """A block of rows -> the same rows with their results."""

    def __init__(self, addresses: Mapping[str, str], terms: Mapping[str, Any]) -> None:
        self._lim, self._terms = _limner(addresses), terms

    def __call__(self, block: Any) -> Any:
        """Run the rows of a block, which is a table of Arrow."""
        import pyarrow  # noqa: PLC0415 - only datasets need it

        ended = blocking.wait_for(self._lim.run_rows(block.to_pylist(), **self._terms))
        for name in COLUMNS:
            kind = pyarrow.float64() if name == "cost_usd" else pyarrow.string()
            values = pyarrow.array([row[name] for row in ended], kind)
            block = block.append_column(f"{PREFIX}{name}", values)
        return block


def _limner(addresses: Mapping[str, str]) -> Limner:
    """A `Limner` on a node. Keys, and a store of its own, come from the environment of the node."""
    for name, address in addresses.items():
        os.environ.setdefault(name, address)
    made = Limner()
    _refuse_unshared(made.settings)
    return made


def _addresses(settings: Settings) -> dict[str, str]:
    """What the workers need of the settings, without secrets: Ray shows and logs it."""
    found: dict[str, str] = {}
    if settings.store is not None:
        from limner.storage.postgres_engine import without_password  # noqa: PLC0415 - not for SQLite

        found["LIMNER_STORE"] = without_password(settings.store)
    if settings.blobs is not None:
        found["LIMNER_BLOBS"] = settings.blobs
    return found


def _refuse_unshared(settings: Settings) -> None:
    """Refuse a home whose records or pictures the other nodes do not have."""
    nodes = sum(node["Alive"] for node in ray.nodes())
    missing = [
        name
        for name, address in (("LIMNER_STORE", settings.store), ("LIMNER_BLOBS", settings.blobs))
        if address is None
    ]
    if nodes > 1 and missing:
        raise UserError(
            f"The cluster has {nodes} nodes, and {' and '.join(missing)} "
            f"{'are' if len(missing) > 1 else 'is'} not set: the home of a host is not shared",
            hint="Set a PostgreSQL database and a bucket or a shared folder, which all nodes use.",
        )
