"""Usage exports of services, and the differences between them and the ledger."""

from __future__ import annotations

import json
from typing import Any

import pytest

from limner.errors import UserError
from limner.money.usage_exports import (
    OPENAI,
    REPLICATE,
    Difference,
    UsageExport,
    UsageRow,
    compare,
    parse_export,
)

CENT = 10_000_000
NOON_MS = 1_794_744_000_000  # 2026-11-15T12:00:00Z
CSV = """\
start_time,end_time,amount_value,amount_currency,line_item
1794700800,1794787200,0.0300000000000000,usd,"gpt-image-2.5-flare, output"
1794700800,1794787200,0.0100000000000000,usd,"gpt-5.5, input"
1794787200,1794873600,,,
"""
COSTS = {
    "object": "page",
    "data": [
        {
            "object": "bucket",
            "start_time": 1794700800,
            "end_time": 1794787200,
            "results": [
                {"amount": {"value": "0.03", "currency": "usd"}, "line_item": None},
                {"amount": {"value": 0.01, "currency": "usd"}, "line_item": None},
            ],
        },
        {"object": "bucket", "start_time": 1794787200, "end_time": 1794873600, "results": []},
    ],
}
OPENAI_EXPORT = UsageExport(
    service="OpenAI", providers=OPENAI, day_nano={"2026-11-15": 4 * CENT, "2026-11-16": 0}
)


def row(**changes: Any) -> UsageRow:
    facts: dict[str, Any] = {
        "id": 1,
        "day": "2026-11-15",
        "created_ms": NOON_MS,
        "provider": "replicate-flux",
        "state": "settled",
        "quoted_nano": CENT,
        "cost_nano": CENT,
        "job_id": "job_1",
        "remote_id": "p1",
    }
    return UsageRow(**(facts | changes))


def predictions(**statuses: str) -> UsageExport:
    return UsageExport(
        service="Replicate",
        providers=REPLICATE,
        job_status=statuses,
        first_ms=NOON_MS - 1000,
        last_ms=NOON_MS + 1000,
    )


@pytest.mark.parametrize(
    "text",
    [CSV, CSV.replace(", ", ";").replace(",", "\t"), json.dumps(COSTS), json.dumps([COSTS])],
    ids=["csv", "tab-separated", "json", "pages"],
)
def test_openais_costs_are_read_by_day(text: str) -> None:
    export = parse_export(text)
    assert export == OPENAI_EXPORT
    assert export.days == ("2026-11-15", "2026-11-16")


def test_replicates_predictions_are_read_by_id() -> None:
    listed = [
        {"id": "p1", "status": "succeeded", "created_at": "2026-11-15T12:00:01Z"},
        {"id": "p2", "status": "failed", "created_at": "2026-11-15T11:59:59.000Z"},
    ]
    for document in ({"results": listed}, listed):
        assert parse_export(json.dumps(document)) == predictions(p1="succeeded", p2="failed")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\x89PNG",
        "day,dollars\n1,2\n",
        "{}",
        "[1]",
        '{"results": []}',
        '{"data": [{"start_time": "soon", "results": []}]}',
        '{"results": [{"id": "p1", "status": "succeeded", "created_at": 7}]}',
        CSV.replace("usd", "eur"),
        CSV.replace("0.03", "much"),
        "start_time,amount_value\n",
    ],
)
def test_another_file_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="not a usage export"):
        parse_export(text)


def test_days_are_compared_by_what_the_ledger_counts() -> None:
    rows = [
        row(cost_nano=3 * CENT),
        row(state="unknown", quoted_nano=CENT, cost_nano=0),
        row(state="released", cost_nano=0),
    ]
    assert compare(OPENAI_EXPORT, rows) == []
    assert compare(OPENAI_EXPORT, [*rows, row(cost_nano=90_000)]) == []
    assert compare(OPENAI_EXPORT, [*rows, row(day="2026-11-16")]) == [
        Difference(problem="the ledger has more", day="2026-11-16", export_usd=0.0, ledger_usd=0.01)
    ]
    assert compare(OPENAI_EXPORT, rows[1:]) == [
        Difference(
            problem="the service charged more", day="2026-11-15", export_usd=0.04, ledger_usd=0.01
        )
    ]


@pytest.mark.parametrize(
    ("status", "changes", "problem"),
    [
        ("succeeded", {}, None),
        ("succeeded", {"state": "unknown", "cost_nano": 0}, None),
        ("failed", {"state": "released", "cost_nano": 0}, None),
        ("processing", {"state": "unknown", "cost_nano": 0}, None),
        ("failed", {}, "the job has failed, and the ledger counts it"),
        (
            "succeeded",
            {"state": "released", "cost_nano": 0},
            "the job has succeeded, and the ledger does not count it",
        ),
    ],
)
def test_jobs_are_compared_by_their_status(
    status: str, changes: dict[str, Any], problem: str | None
) -> None:
    found = compare(predictions(p1=status), [row(**changes)])
    assert [one.problem for one in found] == ([] if problem is None else [problem])


def test_jobs_that_one_side_does_not_have_are_listed() -> None:
    rows = [
        row(remote_id=None, state="unknown", cost_nano=0),
        row(remote_id="p9", created_ms=NOON_MS - 60_000),
        row(remote_id="p8", state="released", cost_nano=0),
    ]
    assert compare(predictions(p1="succeeded", p2="canceled"), rows) == [
        Difference(problem="the ledger does not have this job", remote_id="p1"),
        Difference(
            problem="the export does not have this job",
            day="2026-11-15",
            ledger_usd=0.01,
            job="job_1",
        ),
    ]
