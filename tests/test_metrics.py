"""Counted events in the text format of Prometheus, checked with the parser of its own library."""

from __future__ import annotations

import re
import threading
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fuzz import examples
from tests.servers.components import needs

from limner import metrics
from limner.metrics import CounterMetric, GaugeMetric, HistogramMetric, MeasuredGauge, render


def test_each_kind_of_metric_is_shown_as_prometheus_reads_it() -> None:
    spent = CounterMetric("spent_usd_total", "Dollars.", labels=("model",), per=1_000_000_000)
    spent.add(13_000_000, model="b")
    spent.add(1_000_000_000, model='a "quoted"\\\n')
    running = GaugeMetric("running", "Calls.")
    running.add(3)
    running.add(-1)
    seconds = HistogramMetric("seconds", "Time.", labels=("kind",), buckets_s=(0.5, 2.0))
    for took_s in (0.25, 0.5, 1.0, 7.5):
        seconds.observe(took_s, kind="read")
    sessions = MeasuredGauge("sessions", "Open.")
    not_loaded = MeasuredGauge("nothing", "Not loaded.")
    sessions.measure = lambda: 4
    assert render([spent, running, seconds, sessions, not_loaded]) == (
        "# HELP spent_usd_total Dollars.\n"
        "# TYPE spent_usd_total counter\n"
        'spent_usd_total{model="a \\"quoted\\"\\\\\\n"} 1\n'
        'spent_usd_total{model="b"} 0.013\n'
        "# HELP running Calls.\n"
        "# TYPE running gauge\n"
        "running{} 2\n"
        "# HELP seconds Time.\n"
        "# TYPE seconds histogram\n"
        'seconds_bucket{kind="read",le="0.5"} 2\n'
        'seconds_bucket{kind="read",le="2"} 3\n'
        'seconds_bucket{kind="read",le="+Inf"} 4\n'
        'seconds_sum{kind="read"} 9.25\n'
        'seconds_count{kind="read"} 4\n'
        "# HELP sessions Open.\n"
        "# TYPE sessions gauge\n"
        "sessions{} 4\n"
        "# HELP nothing Not loaded.\n"
        "# TYPE nothing gauge\n"
    )


def test_a_metric_has_a_bounded_number_of_labels_and_of_their_characters() -> None:
    calls = CounterMetric("calls_total", "Calls.", labels=("provider", "model"))
    for number in range(metrics.MAX_SERIES + 7):
        calls.add(provider="ollama", model=f"{number:04}{'x' * 1_000}")
    calls.add(provider="ollama", model=f"0000{'x' * 1_000}")
    shown = {tuple(labels.values()): value for _, labels, value in calls.samples()}
    assert len(shown) == metrics.MAX_SERIES + 1
    assert shown["other", "other"] == 7
    assert shown["ollama", "0000" + "x" * (metrics.MAX_LABEL_CHARS - 4)] == 2


def test_threads_that_count_at_once_lose_nothing() -> None:
    calls = CounterMetric("calls_total", "Calls.")

    def count() -> None:
        for _ in range(2_000):
            calls.add()

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [*calls.samples()] == [("", {}, 8_000)]


def test_every_metric_is_named_by_the_rules_of_prometheus() -> None:
    assert len(metrics.FAMILIES) == len({family.name for family in metrics.FAMILIES}) > 10
    for family in metrics.FAMILIES:
        assert re.fullmatch(r"limner_[a-z_]+", family.name)
        assert family.name.endswith("_total") == (family.kind == "counter")
        assert "\n" not in family.about
        assert {*family.labels} <= {
            *("provider", "model", "outcome", "state", "status", "code", "made", "kind")
        }


def test_every_metric_is_used_by_the_module_that_knows_of_the_event() -> None:
    folder = Path(metrics.__file__).parent
    texts = [path.read_text("utf-8") for path in folder.rglob("*.py") if path.name != "metrics.py"]
    names = [name for name, value in vars(metrics).items() if value in metrics.FAMILIES]
    unused = [name for name in names if not any(f"metrics.{name}." in text for text in texts)]
    assert unused == ["STARTED"]


@needs("prometheus_client")
@settings(max_examples=examples(30))
@given(text=st.text(), amount=st.integers(0, 10**18), seconds=st.floats(0, 1e6))
def test_the_parser_of_prometheus_reads_hostile_labels_and_every_number(
    text: str, amount: int, seconds: float
) -> None:
    from prometheus_client.parser import text_string_to_metric_families

    spent = CounterMetric("usd_total", "Dollars.", labels=("model",), per=10**9)
    took = HistogramMetric("took_seconds", "Time.", labels=("model",), buckets_s=(1.0, 60.0))
    spent.add(amount, model=text)
    took.observe(seconds, model=text)
    label = text[: metrics.MAX_LABEL_CHARS].encode("utf-8", "replace").decode()
    counted, timed = text_string_to_metric_families(render([spent, took]))
    (sample,) = counted.samples
    assert (counted.type, sample.name, sample.labels) == ("counter", "usd_total", {"model": label})
    assert sample.value == amount / 10**9
    assert timed.type == "histogram"
    assert [(one.name, one.labels.get("le"), one.value) for one in timed.samples] == [
        ("took_seconds_bucket", "1", float(seconds <= 1)),
        ("took_seconds_bucket", "60", float(seconds <= 60)),
        ("took_seconds_bucket", "+Inf", 1.0),
        ("took_seconds_sum", None, seconds),
        ("took_seconds_count", None, 1.0),
    ]
