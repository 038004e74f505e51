"""What a run of the tests left out -> some lines at its end, and a failure if all was required."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from tests.servers.components import IS_ALL_REQUIRED, MISSING

SLOW = pytest.StashKey[int]()


def pytest_deselected(items: list[pytest.Item]) -> None:
    slow = sum(item.get_closest_marker("slow") is not None for item in items)
    stash = items[0].config.stash
    stash[SLOW] = stash.get(SLOW, 0) + slow


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker reports to the process that started it; that one judges the run."""
    report: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if report is not None:
        report["slow"] = session.config.stash.get(SLOW, 0)
    elif IS_ALL_REQUIRED and any(why.startswith(MISSING) for why in _skips(session.config)):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Every worker collects the same tests, so the report of one is enough."""
    node.config.stash[SLOW] = getattr(node, "workeroutput", {}).get("slow", 0)


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    say = terminalreporter.write_line
    for reason, count in _skips(config).most_common():
        say(f"{count} skipped: {reason}")
    slow = config.stash.get(SLOW, 0)
    if slow and not config.option.keyword:
        say(f"{slow} slow tests left out; run them by: REQUIRE=all make test")


def _skips(config: pytest.Config) -> Counter[str]:
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    reports: list[Any] = reporter.stats.get("skipped", []) if reporter else []
    return Counter(report.longrepr[2].removeprefix("Skipped: ") for report in reports)
