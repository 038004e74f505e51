"""Benchmarks that start other programs run to their end, on a few of everything."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from benchmarks import app_server, comparison, growth, ledger, sandbox, start_up, team
from benchmarks.app_server_model import MARK, last_words
from tests.servers.components import needs


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
@needs("codex_cli_bin")
@pytest.mark.slow
def test_the_app_servers_are_measured_side_by_side_and_nothing_is_lost() -> None:
    plan = app_server.QUICK
    found = app_server.main(plan)
    assert [one.at_most for one in found] == [
        *(1.2, None, 0.2, 0.25, 0.3),
        1.1,
        *(0.6, 0.5, 0.5, 0.45),
        *(None, None),
    ]
    beside_codex = found[:5] + found[6:10]
    assert all([*one.spreads] == ["limner", one.peer] for one in beside_codex)
    turns, questions = found[-2:]
    assert turns.work == f"one of {plan.threads} turns, of every thread at once"
    assert "; 0 were lost. " in turns.note
    assert questions.work == f"a question of each of {plan.idle} idle clients, all at once"
    assert questions.note.endswith("; 0 were lost.")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (f'{{"input":[{{"text":"{MARK}Say a"}}],"tools":[]}}', "Say a"),
        (f'{{"input":[{{"text": "{MARK}one"}},{{"text":"{MARK}two"}}]}}', "two"),
        (f'[{{"text":"{MARK}one"}},{{"type":"function_call_output","output":"x"}}]', None),
        (f'[{{"type":"function_call_output"}},{{"text":"{MARK}more"}}]', "more"),
    ],
)
def test_the_model_hears_what_was_said_last(body: str, words: str | None) -> None:
    assert last_words(body.encode()) == words


@pytest.mark.slow
def test_the_ledger_is_measured_and_its_sums_agree(capsys: pytest.CaptureFixture[str]) -> None:
    ledger.main({"few": 100, "many": 2_000}, rounds=3)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[2:6]] == ["reserve", "settle", "spend", "spent"]
    assert lines[-1] == "sums that differ from their rows: none"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is no sandbox")
@pytest.mark.slow
def test_the_cost_of_the_sandbox_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    sandbox.main(rounds=1, starts=1)
    rows = [line[:12].strip() for line in capsys.readouterr().out.splitlines()]
    assert rows == ["lock down", "verify PNG", "verify JPEG", "JPEG to PNG", "draw SVG"]


@pytest.mark.skipif(sys.platform != "linux", reason="the time of servers is read from /proc")
@needs("codex_cli_bin")
@pytest.mark.slow
def test_starts_are_compared_with_a_bare_interpreter_and_with_codex() -> None:
    found = start_up.main(rounds=1)
    compared = [(one.unit, one.ours, one.peer, one.at_most, set(one.spreads)) for one in found]
    servers = {"limner", "codex"}
    assert compared == [
        ("ms of CPU", start_up.DRY_RUN, start_up.BARE, 6, set(start_up.COMMANDS)),
        ("ms", "limner", "codex", 1.2, servers),
        ("ms of CPU", "limner", "codex", None, servers),
        ("ms", "limner", "codex", 2, servers),
        ("ms of CPU", "limner", "codex", None, servers),
    ]
    assert all(one.low > 0 for compared in found for one in compared.spreads.values())


@pytest.mark.slow
def test_growth_is_a_ratio_to_the_fewest_things(capsys: pytest.CaptureFixture[str]) -> None:
    growth.main((10, 20), (2, 3), rounds=2)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "| of | operation | 10 | 20 | |"
    assert [line.split(" | ")[0] for line in lines[2:]] == [
        *["| calls in the ledger"] * 3,
        *["| pictures"] * 5,
        *["| sessions"] * 3,
        *["| items in a session"] * 2,
        *["| rows in a batch"] * 2,
        "",
        "| of",
        "|---|---|--:|--:|---|",
        "| connections",
    ]


def test_a_comparison_says_how_much_each_takes_and_whether_the_target_is_kept() -> None:
    found = comparison.compare(
        "one picture",
        {"limner": [2.0, 4.0, 6.0], "a peer": [1.0, 2.0, 3.0]},
        unit="ms of CPU",
        peer="a peer",
        at_most=1.5,
        note="It verifies the picture.",
    )
    assert comparison.table(found) == (
        "| one picture | ms of CPU | beside limner |\n"
        "|---|--:|--:|\n"
        "| limner | 4.00 (3.00 to 5.00) | 1.00x |\n"
        "| a peer | 2.00 (1.50 to 2.50) | 0.50x |\n"
        "\n"
        "Target: at most 1.5x of a peer. Measured: 2.00x, **missed**. It verifies the picture.\n"
    )


def test_a_simulated_team_is_as_fast_as_its_narrowest_place() -> None:
    free: dict[str, Any] = dict.fromkeys(team.Measured._fields, 0.0)
    found = team.Measured(**free | {"requests": {}, "round_trips": 40, "locked_round_trips": 8})

    def rate(at_once: int, *, drawing_s: float = 1.0, **changed: float) -> float:
        run = team.simulate(
            found._replace(**changed), pictures=10_000, at_once=at_once, drawing_s=drawing_s
        )
        return 10_000 / run.hours / 3600

    # Fifty hosts draw one picture each in ten seconds; the last ones end alone.
    assert rate(1, drawing_s=10.0) == pytest.approx(5, rel=0.1)
    # Under the lock of the budget: 8 round trips of 0.5 ms, and one sync of 16 ms.
    assert rate(64, sync_s=0.016) == pytest.approx(50, rel=0.1)
    # Eight processors of a database that works 0.4 s for each.
    assert rate(64, database_cpu_s=0.4, locked_round_trips=0) == pytest.approx(20, rel=0.1)
    # Two hundred processors of hosts that work 10 s for each.
    assert rate(64, host_cpu_s=10.0) == pytest.approx(20, rel=0.1)
