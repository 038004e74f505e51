"""A manifest -> a plan with its price, or a batch: approved once, loaded, run, cancelled."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import msgspec

from limner.batches.cheap_lane import NO_CHEAP_LANE, CheapLane
from limner.batches.export import export_rows
from limner.batches.manifest import ManifestRow, digest_of, read_rows, rows_of
from limner.batches.queue import BatchQueue, CheckedRow
from limner.batches.rates import parse_rates
from limner.batches.records import Batch, BatchStatus, RowResult
from limner.batches.runner import BatchRunner
from limner.dollars import format_usd, usd_to_nano
from limner.errors import (
    NANO_PER_USD,
    BudgetExceeded,
    InputInvalid,
    LimnerError,
    UserError,
)
from limner.tools.base import ApprovalPolicy, ToolContext
from limner.tools.batch_calls import BatchCalls, RowCaller
from limner.tools.consent import approve_spending
from limner.tools.lane_calls import RemoteRowCalls

QUOTED_AT_ONCE = 8
ANSWER_WITHIN_S = 10.0
SHOWN_RESULTS = 50
# How often a worker without rows looks for a new batch.
WAIT_S = 5.0
SHOWN_PROBLEMS = 20
BATCH_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")

logger = logging.getLogger("limner.batches")

OnStatus = Callable[[BatchStatus], None]
Lane = Literal["now", "cheap"]


class BatchManifest(msgspec.Struct, frozen=True, kw_only=True):
    """Rows with a name and a digest; ``rows`` reads them from the start each time."""

    name: str
    digest: str
    rows: Callable[[], Iterator[ManifestRow]]

    @classmethod
    def of_file(cls, path: Path) -> BatchManifest:
        """The manifest in a file.

        Raises:
            UserError: it cannot be read.
        """
        return cls(name=str(path), digest=digest_of(path), rows=lambda: read_rows(path))

    @classmethod
    def of_rows(cls, rows: Sequence[Mapping[str, Any]]) -> BatchManifest:
        """A manifest of objects; the same objects have the same name."""
        text = msgspec.json.encode(rows, order="deterministic")
        digest = hashlib.sha256(text).hexdigest()
        return cls(name=f"rows-{digest[:16]}", digest=digest, rows=lambda: rows_of(rows))


class BatchPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a batch would do: its rows, the most it can cost, and the first rows that are wrong.

    ``quoted_nano`` is the price in the lane of the batch, ``now_nano`` that without the vendors'
    batch APIs, and ``cheap_nano`` that with them; None if a row has no price there.
    """

    manifest: str
    rows: int
    quoted_nano: int
    wrong: int
    problems: tuple[tuple[str, str], ...] = ()
    now_nano: int = 0
    cheap_nano: int | None = None

    @property
    def savings(self) -> str | None:
        """What the cheap lane costs, in one line; None if it has no price for a row."""
        if self.cheap_nano is None or not self.now_nano:
            return None
        cheap, now = format_usd(self.cheap_nano), format_usd(self.now_nano)
        return f"cheap lane: {cheap} instead of {now}, within 24 h"

    def as_json(self) -> dict[str, object]:
        """What ``limner batch plan --json`` prints."""
        return {
            "manifest": self.manifest,
            "rows": self.rows,
            "quoted_usd": self.quoted_nano / NANO_PER_USD,
            "now_usd": self.now_nano / NANO_PER_USD,
            "cheap_usd": None if self.cheap_nano is None else self.cheap_nano / NANO_PER_USD,
            "wrong": self.wrong,
            "problems": [{"key": key, "message": text} for key, text in self.problems],
        }


class BatchAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a model learns about a batch: its job, its state, and its first results."""

    job: str
    status: str
    rows: int
    done: int
    failed: int
    spent_usd: float
    budget_usd: float
    results: list[dict[str, Any]]
    hint: str


class Batches(msgspec.Struct, frozen=True, kw_only=True):
    """The batches of one program.

    ``running`` has the tasks of those that run in the background, by their ids. All scopes of a
    program share it.
    """

    queue: BatchQueue
    runner: BatchRunner
    lane: CheapLane
    calls: BatchCalls
    remote: RemoteRowCalls
    approval: ApprovalPolicy
    running: dict[str, asyncio.Task[BatchStatus]]

    async def plan(
        self,
        manifest: BatchManifest,
        context: ToolContext,
        *,
        lane: Lane = "now",
        on_row: Callable[[int], None] = lambda _: None,
    ) -> BatchPlan:
        """Check every row and add up the quotes; nothing is sent, loaded or paid.

        ``on_row`` gets the number of rows that are checked.
        """
        rows, problems, wrong = 0, list[tuple[str, str]](), 0
        now_nano, cheap_nano = 0, _Sum()
        context = RowCaller.of(context).context(context.reach)
        seen: set[bytes] = set()
        for group in _groups(manifest.rows(), QUOTED_AT_ONCE):
            quotes = (self._quote(row, context, seen, lane=lane) for row in group)
            found = await asyncio.gather(*quotes)
            for row, quote in zip(group, found, strict=True):
                rows += 1
                if not isinstance(quote, str):
                    now_nano += quote[0]
                    cheap_nano.add(quote[1])
                    continue
                wrong += 1
                if len(problems) < SHOWN_PROBLEMS:
                    problems.append((row.key, quote))
            on_row(rows)
        return BatchPlan(
            manifest=manifest.name,
            rows=rows,
            quoted_nano=now_nano if lane == "now" else cheap_nano.nano or 0,
            wrong=wrong,
            problems=tuple(problems),
            now_nano=now_nano,
            cheap_nano=cheap_nano.nano,
        )

    async def open(
        self,
        manifest: BatchManifest,
        context: ToolContext,
        *,
        budget_nano: int | None,
        rates: Sequence[str] = (),
        approved: bool,
        lane: Lane | None = None,
    ) -> Batch:
        """Load a manifest into its batch, after the user approved its budget.

        Args:
            manifest: the rows.
            context: the caller: its folder, its reach, and whom to ask.
            budget_nano: the most that the rows may cost together; None is the sum of their quotes.
            rates: requests a minute, as ``openai=50/min``.
            approved: the user named the budget, and is not asked.
            lane: ``cheap`` for the vendors' batch APIs; None is the lane that the batch has.

        Raises:
            InputInvalid: a row or a rate is wrong.
            UserError: requests of the batch are at vendors, and it is to change the lane.
            ApprovalDenied: the user must approve the price, and did not.
        """
        parse_rates(rates)
        lane = await self._lane_of(manifest.name, lane)
        if budget_nano is None:
            plan = await self.plan(manifest, context, lane=lane)
            if plan.wrong:
                key, message = plan.problems[0]
                raise InputInvalid(
                    f"{plan.wrong} of {plan.rows} rows are wrong. The first is {key!r}: {message}",
                    hint="`limner batch plan` lists them. With a budget, the others run.",
                )
            budget_nano, approved = plan.quoted_nano, False
        if not approved:
            await approve_spending(
                budget_nano, "The batch", context, self.approval, has_session_cap=False
            )
        batch = await self.queue.add(
            manifest.name,
            digest=manifest.digest,
            budget_nano=budget_nano,
            lane=lane,
            rates=msgspec.json.encode(rates).decode(),
            caller=msgspec.json.encode(RowCaller.of(context)).decode(),
        )
        checked = (self.calls.check(row) for row in manifest.rows())
        batch = await self.queue.load(batch, checked, digest=manifest.digest)
        return batch if batch.state == "open" else await self.queue.set_state(batch, "open")

    async def reopen(self, name: str, *, budget_nano: int | None = None) -> Batch:
        """A batch whose rows may be claimed, with another budget if one is given.

        If its manifest changed since it was loaded, the new rows are loaded.

        Raises:
            NotFound: there is no such batch.
            InputInvalid: a new row is wrong.
        """
        batch = await self.queue.get(name)
        if budget_nano is not None:
            batch = await self.queue.add(
                batch.name,
                digest=batch.digest,
                budget_nano=budget_nano,
                lane=batch.lane,
                rates=batch.rates,
                caller=batch.caller,
            )
        # The name of a manifest is a whole path; another name is no file of the present folder.
        if (path := Path(batch.name)).is_absolute() and path.is_file():
            manifest = BatchManifest.of_file(path)
            checked = (self.calls.check(row) for row in manifest.rows())
            batch = await self.queue.load(batch, checked, digest=manifest.digest)
        return batch if batch.state == "open" else await self.queue.set_state(batch, "open")

    async def run(
        self, batch: Batch, *, resume: bool = True, on_status: OnStatus | None = None
    ) -> BatchStatus:
        """Run the rows of a batch that have not ended.

        With ``resume``, failed rows that cost nothing run again too. A process that helps with the
        batch of another one does not resume it.
        """
        if batch.lane == "cheap":
            return await self.lane.run(batch, resume=resume, on_status=on_status)
        return await self.runner.run(batch, resume=resume, on_status=on_status)

    async def run_rows(
        self,
        rows: Sequence[Mapping[str, Any]],
        context: ToolContext,
        *,
        name: str,
        budget_nano: int,
        rates: Sequence[str] = (),
    ) -> list[RowResult]:
        """Add rows to the batch of this name, run these alone, and return what became of each.

        Rows that the batch has already are not paid for again. A wrong row fails alone.

        Raises:
            InputInvalid: a row has no key, or the name or a rate is wrong.
            UserError: the batch was cancelled.
        """
        given = list(rows_of(rows))
        batch = await self._named_batch(name, context, budget_nano=budget_nano, rates=rates)
        fine, failed = dict[str, CheckedRow](), dict[int, RowResult]()
        for row in given:
            try:
                if row.key in fine:
                    raise InputInvalid(f"Two rows have the key {row.key!r}", field="key")
                fine[row.key] = self.calls.check(row)
            except InputInvalid as error:
                failed[row.number] = _failed(row, error)
        taken = set(await self.queue.add_rows(batch, list(fine.values())))
        for row in given:
            if row.number not in failed and row.key in taken:
                other = InputInvalid(f"The batch has another row {row.key!r}", field="key")
                failed[row.number] = _failed(row, other)
        keys = [key for key in fine if key not in taken]
        status = await self.runner.run(batch, resume=True, keys=keys)
        ended = await self.queue.named(batch, keys)
        stopped = UserError(status.stopped or "The batch was cancelled")
        return [failed.get(row.number) or _ended(row, ended.get(row.key), stopped) for row in given]

    async def _named_batch(
        self, name: str, context: ToolContext, *, budget_nano: int, rates: Sequence[str]
    ) -> Batch:
        parse_rates(rates)
        if not BATCH_NAME.fullmatch(name) or name.startswith(("batch_", "rows-")):
            raise InputInvalid(
                f"{name!r} is no name for a batch: letters, digits, - and _, and neither batch_ "
                "nor rows- at its start",
                field="batch",
            )
        terms = msgspec.json.encode(rates).decode()
        batch = await self.queue.find(name)
        if batch is None or (batch.budget_nano, batch.rates) != (budget_nano, terms):
            batch = await self.queue.add(
                name,
                digest="",
                budget_nano=budget_nano,
                lane="now",
                rates=terms,
                caller=msgspec.json.encode(RowCaller.of(context)).decode(),
            )
        if batch.state == "cancelled":
            raise UserError(
                f"The batch {name!r} is cancelled", hint=f"limner batch resume {name} opens it."
            )
        return batch if batch.state == "open" else await self.queue.set_state(batch, "open")

    async def _lane_of(self, name: str, lane: Lane | None) -> Lane:
        """The lane of a batch, which cannot change while a vendor works for it."""
        found = await self.queue.find(name)
        if found is None:
            return lane or "now"
        current: Lane = "cheap" if found.lane == "cheap" else "now"
        if lane not in (None, current) and await self.queue.remote_batches(found):
            raise UserError(
                "Requests of this batch are at a vendor: its lane cannot change now",
                hint=f"limner batch cancel {found.id} collects what was answered.",
            )
        return lane or current

    async def status(self, name: str) -> BatchStatus:
        """The state of a batch, by its id or the name of its manifest.

        Raises:
            NotFound: there is no such batch.
        """
        return await self.runner.status(await self.queue.get(name))

    async def cancel(self, name: str, *, on_status: OnStatus = lambda _: None) -> BatchStatus:
        """Let no worker claim further rows; rows that run come to their end.

        Requests at vendors are cancelled, and what was answered is collected.

        Raises:
            NotFound: there is no such batch.
        """
        batch = await self.queue.set_state(await self.queue.get(name), "cancelled")
        if batch.lane == "cheap":
            return await self.lane.cancel(batch, on_status=on_status)
        return await self.runner.status(batch)

    async def start(
        self,
        given: str | Sequence[Mapping[str, Any]],
        context: ToolContext,
        *,
        budget_usd: float | None,
    ) -> BatchAnswer:
        """Run the rows of a model in the background.

        Raises:
            BudgetExceeded: the conversation has a budget of its own, which a batch would pass by.
        """
        resolve = partial(context.reach.resolve_read, cwd=context.cwd)
        manifest = await asyncio.to_thread(manifest_of, given, resolve=resolve)
        if context.budget_nano is not None and budget_usd != 0:
            raise BudgetExceeded(
                "This session has a budget, and a batch has one of its own; nothing was sent",
                hint="Call the tools one by one, or let the user run `limner batch run`.",
            )
        batch = await self.open(
            manifest, context, budget_nano=budget_of(budget_usd), approved=False
        )
        return await self.follow(batch.id, action="run")

    async def follow(self, job: str, *, action: str) -> BatchAnswer:
        """Go on with a batch in the background, report about it, or cancel it.

        Raises:
            NotFound: there is no such batch.
            LimnerError: it stopped.
        """
        batch = await self.queue.get(job)
        if action == "cancel":
            await self.cancel(batch.id)
        elif action == "run" and batch.id not in self.running:
            opened = await self.reopen(batch.id)
            if batch.id not in self.running:
                self.running[batch.id] = task = asyncio.ensure_future(self.run(opened))
                task.add_done_callback(partial(self._forget, batch.id))
        task = self.running.get(batch.id)
        if task is not None and task.get_loop() is asyncio.get_running_loop():
            await asyncio.wait({task}, timeout=ANSWER_WITHIN_S)
            if task.done() and not task.cancelled():
                task.result()
        return await self._answer(await self.runner.status(batch))

    def _forget(self, batch_id: str, task: asyncio.Task[BatchStatus]) -> None:
        self.running.pop(batch_id, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.warning("The batch %s stopped: %s", batch_id, error)

    async def aclose(self) -> None:
        """Stop the batches that run in the background; rows in flight come to their end."""
        here = asyncio.get_running_loop()
        tasks = [*self.running.values()]
        for task in tasks:
            with suppress(RuntimeError):  # its event loop is closed
                task.get_loop().call_soon_threadsafe(task.cancel)
        if own := [task for task in tasks if task.get_loop() is here]:
            await asyncio.wait(own)

    async def _answer(self, status: BatchStatus) -> BatchAnswer:
        rows = self.queue.results(status.batch, limit=SHOWN_RESULTS)
        is_over = status.state in ("done", "cancelled")
        return BatchAnswer(
            job=status.batch.id,
            status=status.state if is_over else "running",
            rows=status.counts.rows,
            done=status.counts.done,
            failed=status.counts.failed,
            spent_usd=status.spent_nano / NANO_PER_USD,
            budget_usd=status.batch.budget_usd,
            results=[_short(row) async for row in rows if row.state in ("done", "failed")],
            hint="" if is_over else f'Call image_batch with {{"job": "{status.batch.id}"}} later.',
        )

    async def export(self, name: str, path: Path) -> int:
        """Write the rows of a batch: JSONL, CSV, Parquet, a WebDataset tar, or pictures.

        Raises:
            NotFound: there is no such batch.
            LimnerError: the path cannot be written; see `check_export`.
        """
        batch = await self.queue.get(name)
        rows = self.queue.results(batch)
        return await export_rows(rows, path, picture_file=self.calls.picture_file)

    async def work_for_ever(self, *, on_status: OnStatus = lambda _: None) -> None:
        """Run rows of every open batch, and wait for more if none is left."""
        while True:
            await self.work(on_status=on_status)
            await asyncio.sleep(WAIT_S)

    async def work(self, *, on_status: OnStatus = lambda _: None) -> list[BatchStatus]:
        """Run rows of every open batch until none is left."""
        ended: list[BatchStatus] = []
        while batches := [
            batch
            for batch in await self.queue.open_batches()
            if batch.id not in {one.batch.id for one in ended}
        ]:
            ended.append(await self.run(batches[0], resume=False, on_status=on_status))
        return ended

    async def _quote(
        self, row: ManifestRow, context: ToolContext, seen: set[bytes], *, lane: Lane
    ) -> tuple[int, int | None] | str:
        """The quote of a row without and with the vendors' batch APIs, or what is wrong with it."""
        digest = hashlib.blake2b(row.key.encode(errors="replace"), digest_size=12).digest()
        if digest in seen:
            return "another row has the same key"
        seen.add(digest)
        try:
            checked = self.calls.check(row)
            try:
                arguments = msgspec.json.decode(checked.arguments)
                offer = await self.remote.offer(checked.tool, arguments, context)
            except UserError as error:
                if error.code != NO_CHEAP_LANE or lane == "cheap":
                    raise
                quote = await self.calls.quote(checked, context)
                # What is free needs no lane.
                return quote, 0 if quote == 0 else None
            return offer.now_nano, offer.quote_nano
        except LimnerError as error:
            return error.message.removeprefix(f"Row {row.key!r}: ")


def _short(row: RowResult) -> dict[str, Any]:
    """A row as a model reads it."""
    result: Any = {} if row.result is None else msgspec.json.decode(row.result)
    error: Any = {} if row.error is None else msgspec.json.decode(row.error)
    facts = {"path": result.get("path"), "text": result.get("text"), "error": error.get("message")}
    return {"key": row.row_key} | {name: value for name, value in facts.items() if value}


def _failed(row: ManifestRow, error: LimnerError) -> RowResult:
    """A row that is not in the batch."""
    return RowResult(
        row_key=row.key,
        number=row.number,
        tool=row.tool,
        state="failed",
        error=msgspec.json.encode(error.as_json()).decode(),
    )


def _ended(row: ManifestRow, found: RowResult | None, stopped: LimnerError) -> RowResult:
    """The result of a row; if it has not ended, why the batch stopped."""
    if found is not None and found.state in ("done", "failed"):
        return found
    return _failed(row, stopped)


class _Sum:
    """A sum that is None once a part of it is missing."""

    def __init__(self) -> None:
        self.nano: int | None = 0

    def add(self, nano: int | None) -> None:
        self.nano = None if nano is None or self.nano is None else self.nano + nano


def budget_of(usd: Any) -> int | None:
    """A budget in nano-dollars; None if there is none.

    Raises:
        InputInvalid: it is not an amount.
    """
    return None if usd is None else usd_to_nano(usd, field="budget_usd")


def manifest_of(
    given: str | Path | Sequence[Mapping[str, Any]], *, resolve: Callable[[str | Path], Path]
) -> BatchManifest:
    """The manifest that a program named or passed.

    Raises:
        UserError: the file cannot be read, or the rows are none.
    """
    if isinstance(given, str | Path):
        return BatchManifest.of_file(resolve(given))
    if not given:
        raise UserError("A batch needs at least one row.")
    return BatchManifest.of_rows(given)


def _groups(rows: Iterable[ManifestRow], size: int) -> Iterator[list[ManifestRow]]:
    following = iter(rows)
    while group := list(islice(following, size)):
        yield group
