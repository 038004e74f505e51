"""Benchmarks that start other programs run to their end, on a few of everything."""

from __future__ import annotations

import multiprocessing
import os
import select
import signal
import sqlite3
import subprocess
import sys
from multiprocessing.connection import Connection
from typing import Any

import PIL
import pytest
from benchmarks import (
    app_server,
    comparison,
    growth,
    ledger,
    process_group,
    profiles,
    sandbox,
    start_up,
    team,
)
from benchmarks.app_server_model import MARK, last_words
from tests.servers.components import needs


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
@needs("codex_cli_bin")
@pytest.mark.slow
def test_the_app_servers_are_measured_side_by_side_and_nothing_is_lost() -> None:
    plan = app_server.QUICK
    found = app_server.main(plan)
    assert [one.at_most for one in found] == [
        1.2,
        *(None, None, 0.2, 0.2, 0.25, 0.25, 0.3, 0.3),
        *(1.1, 1.1),
        *(0.6, 0.5, 0.5, 0.45),
        *(None, None),
    ]
    beside_codex = found[:9] + found[11:15]
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
def test_growth_is_a_ratio_to_the_fewest_things() -> None:
    lines = growth.main((10, 20), (2, 3), rounds=2, reading_rounds=2).splitlines()
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


MISSED = comparison.compare(
    "one picture",
    {"limner": [2.0, 4.0, 6.0], "a peer": [1.0, 2.0, 3.0]},
    unit="ms of CPU",
    peer="a peer",
    at_most=1.5,
    why_missed="limner verifies it.",
    note="It has 3 pixels.",
)
FACTS: dict[str, Any] = {"date": "2026-11-18", "commit": "abc", "machine": "M", "load": 0.5}


def test_a_comparison_says_how_much_each_takes_and_whether_the_target_is_kept() -> None:
    assert comparison.table(MISSED) == (
        "| one picture | ms of CPU | beside limner |\n"
        "|---|--:|--:|\n"
        "| limner | 4.00 (3.00 to 5.00) | 1.00x |\n"
        "| a peer | 2.00 (1.50 to 2.50) | 0.50x |\n"
        "\n"
        "Target: at most 1.5x of a peer. Measured: 2.00x, **missed** by 33 %. limner verifies it.\n"
        "\n"
        "It has 3 pixels.\n"
    )


def test_the_page_begins_with_all_targets_and_says_why_one_is_missed() -> None:
    kept = comparison.compare(
        "start", {"limner": [1.0], "a peer": [1.0]}, unit="ms", peer="a peer", at_most=1.5
    )
    found = {
        "one": comparison.Record(
            title="One", command="python -m benchmarks one", **FACTS, comparisons=(MISSED, kept)
        )
    }
    assert comparison.targets(found) == (
        f"\n## Targets\n\n{comparison.TARGETS}\n"
        "| work | unit | target | measured | | command |\n"
        "|---|---|--:|--:|---|---|\n"
        "| one picture | ms of CPU | 1.5x of a peer | 2.00x | **missed** by 33 %. "
        "limner verifies it. | `python -m benchmarks one` |\n"
        "| start | ms | 1.5x of a peer | 1.00x | kept. | `python -m benchmarks one` |\n"
    )
    page = comparison.page(found)
    assert page.index(comparison.INTRODUCTION) < page.index("## Targets") < page.index("## One")


def test_the_page_lists_where_a_peer_takes_less_the_largest_difference_first() -> None:
    other = comparison.compare(
        "start",
        {"limner": [2.0], "limner, slow": [1.0], "a peer": [1.9], "another": [1.998]},
        unit="ms",
    )
    found = {
        "one": comparison.Record(
            title="One", command="python -m benchmarks one", **FACTS, comparisons=(other, MISSED)
        )
    }
    assert comparison.peers_ahead(found) == (
        f"\n## Where a peer takes less\n\n{comparison.PEERS_AHEAD}\n"
        "| work | unit | limner | peer | | beside limner | command |\n"
        "|---|---|--:|---|--:|--:|---|\n"
        "| one picture | ms of CPU | 4.00 | a peer | 2.00 | 0.50x | `python -m benchmarks one` |\n"
        "| start | ms | 2.00 | a peer | 1.90 | 0.95x | `python -m benchmarks one` |\n"
    )
    assert comparison.peers_ahead({}) == ""


def test_a_peer_whose_runs_all_failed_is_left_out_with_its_target() -> None:
    found = comparison.compare(
        "one", {"limner": [1.0], "a peer": []}, unit="ms", peer="a peer", at_most=1.5, note="Small."
    )
    assert comparison.table(found) == (
        "| one | ms | beside limner |\n"
        "|---|--:|--:|\n"
        "| limner | 1.00 (1.00 to 1.00) | 1.00x |\n"
        "\n"
        "Small. Left out, since every run failed: a peer.\n"
    )


def test_a_peer_may_fail_and_limner_must_not() -> None:
    def fail() -> None:
        subprocess.run([sys.executable, "-c", "raise SystemExit(3)"], check=True)

    with comparison.one_run("a peer"):
        fail()
    with pytest.raises(subprocess.CalledProcessError), comparison.one_run("limner mcp"):
        fail()


@pytest.mark.parametrize(("load_before", "warns"), [(0.4, False), (2.0, False), (2.1, True)])
def test_the_page_warns_of_a_machine_that_was_busy_before_a_benchmark(
    load_before: float, warns: bool
) -> None:
    facts = {**FACTS, "load_before": load_before, "versions": "SQLite 3, pillow 13"}
    one = comparison.Record(title="One", command="c", **facts, table="| a |")
    page = comparison.page({"one": one})
    assert (
        f"M; the load was {load_before:g} at the start and 0.5 at the end. SQLite 3, pillow 13.\n"
        in page
    )
    assert ("**The machine was busy" in page) == warns


def test_a_record_has_the_versions_of_parts_and_of_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "requirements_used", ["litellm==1.2", "pillow", "litellm==1.2"])
    found = comparison.versions("batch")
    assert f"SQLite {sqlite3.sqlite_version}, pillow {PIL.__version__}, msgspec " in found
    assert found.endswith("; peers: litellm 1.2")


def lead_a_group_that_ignores_ctrl_c(pipe: Connection) -> None:
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    child = subprocess.Popen(["sleep", "600"])
    pipe.send(child.pid)
    child.wait()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has descriptors of processes")
def test_a_benchmark_that_does_not_end_is_killed_with_its_children(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process_group, "END_S", 0.1)
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=lead_a_group_that_ignores_ctrl_c, args=(theirs,)
    )
    process.start()
    child = ours.recv()
    descriptor = os.pidfd_open(child)
    process_group.end_group(process)
    assert process.exitcode == -signal.SIGKILL
    assert select.select([descriptor], [], [], 30)[0]  # readable once it has ended
    os.close(descriptor)


def test_the_page_shows_the_table_of_a_benchmark_that_has_no_peer() -> None:
    one = comparison.Record(
        title="Growth", command="python -m benchmarks growth", **FACTS, table="| a |"
    )
    assert comparison.page({"growth": one}) == (
        comparison.MADE + comparison.INTRODUCTION + "\n## Growth\n\n"
        "`python -m benchmarks growth`, on 2026-11-18 at abc: M; the load was 0.5 at the end.\n"
        "\n| a |\n"
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


def test_a_profile_of_imports_sums_up_the_modules_of_a_package() -> None:
    text = """\
import time: self [us] | cumulative | imported package
import time:      1500 |       1500 |     msgspec._core
import time:       500 |       2000 |   msgspec
import time:      3000 |       5000 | limner.errors
import time:       250 |        250 | _socket
import time:        40 |         40 | shlex
"""
    sums = {"msgspec": 2.0, "limner": 3.0, "asyncio": 0.25, "the others": 0.04, "all": 5.29}
    assert profiles._by_package(text) == pytest.approx(sums)


def test_the_time_of_a_function_in_c_belongs_to_its_callers() -> None:
    in_c = ("~", 0, "<built-in method len>")
    callers = {
        ("/x/limner/wires/turns.py", 171, "build_turns"): (3, 3, 0.3, 0.3),
        ("/x/asyncio/base_events.py", 1, "_run_once"): (1, 1, 0.1, 0.1),
    }
    owners = [
        (profiles._owner(path), spent_s) for path, spent_s in profiles._blamed(in_c, 0.4, callers)
    ]
    assert owners == [("prompt and API", 0.3), ("asyncio", 0.1)]
    in_python = ("/x/limner/money/ledger.py", 1, "settle")
    assert profiles._blamed(in_python, 0.2, callers) == [(in_python[0], 0.2)]


@pytest.mark.slow
def test_the_turns_of_an_app_server_are_profiled_in_its_main_thread() -> None:
    shares = profiles._shares(app_server.Client.text_turn, 0)
    assert sum(shares.values()) == pytest.approx(1)
    assert {"HTTP", "asyncio", "the turn", "prompt and API"} <= shares.keys()
