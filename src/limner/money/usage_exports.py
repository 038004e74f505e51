"""A provider's usage export and rows of the ledger -> the differences between them.

OpenAI reports dollars by day: the CSV file of its cost page, or the JSON of ``GET
/v1/organization/costs``. Replicate reports predictions without prices: the JSON of ``GET
/v1/predictions``. So OpenAI is compared by day, and Replicate by the ids of its jobs.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal, DecimalException
from typing import Any, TypeAlias

import msgspec

from limner.errors import NANO_PER_USD, UserError
from limner.json_shapes import as_list, as_object
from limner.money.records import UsageRow

OPENAI = frozenset({"openai", "openai-dalle", "openai-image"})
REPLICATE = frozenset({"replicate", "replicate-flux"})
# The price of the smallest request is larger; what is below comes from rounding.
ROUNDING_NANO = 100_000
DRAWN = "succeeded"
RUNNING = frozenset({"starting", "processing"})

# The start of a period, an amount and its currency, as an export has them.
_Cost: TypeAlias = tuple[Any, Any, Any]


class Difference(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One difference: about a day, about a job at the service, or about a row of the ledger."""

    problem: str
    day: str | None = None
    export_usd: float | None = None
    ledger_usd: float | None = None
    remote_id: str | None = None
    job: str | None = None


class UsageExport(msgspec.Struct, frozen=True, kw_only=True):
    """The export of one service.

    Attributes:
        service: whose export it is.
        providers: the providers of limner that this service bills.
        day_nano: what the service charged, by UTC day.
        job_status: the status of each job, by its id.
        first_ms: when the first job of the export was created.
        last_ms: when the last one was created.
    """

    service: str
    providers: frozenset[str]
    day_nano: Mapping[str, int] = msgspec.field(default_factory=dict[str, int])
    job_status: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    first_ms: int = 0
    last_ms: int = 0

    @property
    def days(self) -> tuple[str, str]:
        """The first and the last day that the export covers."""
        if self.day_nano:
            return min(self.day_nano), max(self.day_nano)
        return _day(self.first_ms / 1000), _day(self.last_ms / 1000)


def parse_export(text: str) -> UsageExport:
    """Parse an export, whose form says whose it is.

    Raises:
        UserError: it is not an export that limner knows.
    """
    try:
        documents = _documents(text)
        if documents is None:
            return _parse_openai_csv(text)
        buckets = [bucket for page in documents for bucket in as_list(page.get("data"))]
        if buckets:
            return _openai(cost for bucket in buckets for cost in _openai_costs(as_object(bucket)))
        predictions = [one for page in documents for one in as_list(page.get("results"))]
        return _parse_replicate([*map(as_object, predictions or documents)])
    except (ValueError, TypeError, KeyError, OverflowError, DecimalException, csv.Error) as error:
        raise UserError(
            "This is not a usage export that limner can read.",
            hint="It takes OpenAI's costs (CSV or JSON) and Replicate's predictions (JSON).",
        ) from error


def compare(export: UsageExport, rows: Sequence[UsageRow]) -> list[Difference]:
    """The differences between an export and the rows of its days and providers."""
    return [*(_compare_days if export.day_nano else _compare_jobs)(export, rows)]


def _compare_days(export: UsageExport, rows: Sequence[UsageRow]) -> Iterator[Difference]:
    counted = Counter[str]()
    for row in rows:
        counted[row.day] += row.counted_nano
    for day, charged_nano in sorted(export.day_nano.items()):
        missing_nano = charged_nano - counted[day]
        if abs(missing_nano) >= ROUNDING_NANO:
            yield Difference(
                problem="the service charged more" if missing_nano > 0 else "the ledger has more",
                day=day,
                export_usd=charged_nano / NANO_PER_USD,
                ledger_usd=counted[day] / NANO_PER_USD,
            )


def _compare_jobs(export: UsageExport, rows: Sequence[UsageRow]) -> Iterator[Difference]:
    known = {row.remote_id: row for row in rows if row.remote_id is not None}
    for remote_id, status in export.job_status.items():
        row = known.get(remote_id)
        if status == DRAWN and row is None:
            yield Difference(problem="the ledger does not have this job", remote_id=remote_id)
        elif row is not None and status not in RUNNING:
            is_counted = row.counted_nano > 0
            if is_counted != (status == DRAWN):
                counts = "counts" if is_counted else "does not count"
                yield _about(row, f"the job has {status}, and the ledger {counts} it")
    for row in rows:
        is_covered = export.first_ms <= row.created_ms <= export.last_ms
        if row.remote_id not in export.job_status and row.counted_nano and is_covered:
            yield _about(row, "the export does not have this job")


def _about(row: UsageRow, problem: str) -> Difference:
    return Difference(
        problem=problem,
        day=row.day,
        ledger_usd=row.counted_nano / NANO_PER_USD,
        remote_id=row.remote_id,
        job=row.job_id,
    )


def _documents(text: str) -> list[Mapping[str, Any]] | None:
    """The JSON objects of a file: one, a list of them, or one on each line; None if it has none."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        values: list[Any] = [json.loads(text)]
    except ValueError:
        values = [json.loads(line) for line in text.splitlines() if line.strip()]
    return [as_object(item) for value in values for item in as_list(value) or [value]]


def _parse_openai_csv(text: str) -> UsageExport:
    head = text.partition("\n")[0]
    rows = csv.DictReader(text.splitlines(), delimiter="\t" if "\t" in head else ",")
    if not {"start_time", "amount_value"} <= set(rows.fieldnames or ()):
        raise ValueError("the columns are not those of OpenAI's costs")
    return _openai(
        (row["start_time"], row["amount_value"], row.get("amount_currency")) for row in rows
    )


def _openai_costs(bucket: Mapping[str, Any]) -> Iterator[_Cost]:
    yield bucket["start_time"], 0, None  # a day without costs is compared too
    for result in as_list(bucket.get("results")):
        amount = as_object(as_object(result).get("amount"))
        yield bucket["start_time"], amount["value"], amount.get("currency")


def _openai(costs: Iterable[_Cost]) -> UsageExport:
    day_nano = Counter[str]()
    for start_time, value, currency in costs:
        if currency not in (None, "", "usd"):
            raise ValueError(f"the costs are in {currency}")
        day_nano[_day(int(start_time))] += int(Decimal(str(value or 0)) * NANO_PER_USD)
    if not day_nano:
        raise ValueError("the export has no day")
    return UsageExport(service="OpenAI", providers=OPENAI, day_nano=dict(day_nano))


def _parse_replicate(predictions: list[Mapping[str, Any]]) -> UsageExport:
    created = [_milliseconds(one["created_at"]) for one in predictions]
    if not created:
        raise ValueError("the export has no prediction")
    return UsageExport(
        service="Replicate",
        providers=REPLICATE,
        job_status={str(one["id"]): str(one["status"]) for one in predictions},
        first_ms=min(created),
        last_ms=max(created),
    )


def _milliseconds(moment: str) -> int:
    parsed = datetime.fromisoformat(moment)
    aware = parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
    return (aware - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()
