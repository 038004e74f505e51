"""Events of this process -> the numbers that Prometheus reads: every metric is declared here, once.

The module that logs an event also adds it to a metric. Nothing here asks the database or a service,
so reading the numbers is always quick. Labels have the names of providers, models, states and error
codes, and never a prompt, a path or a key.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import ClassVar, Generic, TypeVar

from limner.errors import NANO_PER_USD

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# A server keeps every combination of labels for months. Models may have any name, so the number of
# combinations has a limit: all further ones are counted together.
MAX_SERIES = 500
MAX_LABEL_CHARS = 100
OTHER = "other"

CALL_BUCKETS_S = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0)
STORE_BUCKETS_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0, 30.0)

V = TypeVar("V")


class MetricFamily:
    """One metric: its name, what it counts, and the names of its labels."""

    kind: ClassVar[str]

    def __init__(self, name: str, about: str, *, labels: tuple[str, ...] = ()) -> None:
        self.name, self.about, self.labels = name, about, labels

    def samples(self) -> Iterator[tuple[str, Mapping[str, str], float]]:
        """The suffix, the labels and the value of each line."""
        raise NotImplementedError


class _Series(MetricFamily, Generic[V]):
    """A metric with a value for each combination of labels. Any thread may change it."""

    def __init__(self, name: str, about: str, *, labels: tuple[str, ...] = ()) -> None:
        super().__init__(name, about, labels=labels)
        self._lock = threading.Lock()
        self._values: dict[tuple[str, ...], V] = {}

    def _key(self, labels: Mapping[str, str]) -> tuple[str, ...]:
        key = tuple(labels[name][:MAX_LABEL_CHARS] for name in self.labels)
        if key in self._values or len(self._values) < MAX_SERIES:
            return key
        return (OTHER,) * len(key)

    def _items(self) -> list[tuple[dict[str, str], V]]:
        with self._lock:
            found = sorted(self._values.items())
        return [(dict(zip(self.labels, key, strict=True)), value) for key, value in found]


class CounterMetric(_Series[int]):
    """A number that only grows. It is ``per`` times as large as what is shown."""

    kind = "counter"

    def __init__(
        self, name: str, about: str, *, labels: tuple[str, ...] = (), per: int = 1
    ) -> None:
        super().__init__(name, about, labels=labels)
        self._per = per

    def add(self, amount: int = 1, **labels: str) -> None:
        """Count something."""
        with self._lock:
            key = self._key(labels)
            self._values[key] = self._values.get(key, 0) + amount

    def samples(self) -> Iterator[tuple[str, Mapping[str, str], float]]:
        """One line for each combination of labels."""
        for labels, value in self._items():
            yield "", labels, value / self._per


class GaugeMetric(CounterMetric):
    """A number that grows and shrinks."""

    kind = "gauge"

    def set(self, value: int, **labels: str) -> None:
        """Replace the number."""
        with self._lock:
            self._values[self._key(labels)] = value


class MeasuredGauge(MetricFamily):
    """A number that a function knows, without labels."""

    kind = "gauge"

    measure: Callable[[], float] | None = None

    def samples(self) -> Iterator[tuple[str, Mapping[str, str], float]]:
        """One line, or none if the part of the program that knows the number is not loaded."""
        if self.measure is not None:
            yield "", {}, self.measure()


class _Distribution:
    """How many values are in which bucket, and their sum."""

    def __init__(self, buckets: int) -> None:
        self.counts = [0] * (buckets + 1)
        self.sum_s = 0.0


class HistogramMetric(_Series[_Distribution]):
    """How many events took how many seconds."""

    kind = "histogram"

    def __init__(
        self, name: str, about: str, *, labels: tuple[str, ...] = (), buckets_s: tuple[float, ...]
    ) -> None:
        super().__init__(name, about, labels=labels)
        self.buckets_s = buckets_s

    def observe(self, seconds: float, **labels: str) -> None:
        """Count an event that took so long."""
        with self._lock:
            key = self._key(labels)
            if (found := self._values.get(key)) is None:
                found = self._values[key] = _Distribution(len(self.buckets_s))
            found.counts[bisect_left(self.buckets_s, seconds)] += 1
            found.sum_s += seconds

    def samples(self) -> Iterator[tuple[str, Mapping[str, str], float]]:
        """The buckets, each with all shorter events, then the sum and the number."""
        for labels, found in self._items():
            total = 0
            for most, count in zip((*self.buckets_s, float("inf")), found.counts, strict=True):
                total += count
                yield "_bucket", {**labels, "le": _number(most)}, total
            yield "_sum", labels, found.sum_s
            yield "_count", labels, total


def render(families: Iterable[MetricFamily]) -> str:
    """Metrics in the text format of Prometheus."""
    lines: list[str] = []
    for family in families:
        lines += [
            f"# HELP {family.name} {family.about}",
            f"# TYPE {family.name} {family.kind}",
        ]
        for suffix, labels, value in family.samples():
            pairs = ",".join(f'{name}="{_escape(text)}"' for name, text in labels.items())
            lines.append(f"{family.name}{suffix}{{{pairs}}} {_number(value)}")
    return "\n".join(lines) + "\n"


def _escape(text: str) -> str:
    text = text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return text.encode("utf-8", "replace").decode()


def _number(value: float) -> str:
    if value == float("inf"):
        return "+Inf"
    return str(int(value)) if value == int(value) else repr(value)


CALLS = CounterMetric(
    "limner_calls_total",
    "Calls of services and of the embedded illustrator that ended; outcome is ok or an error code.",
    labels=("provider", "model", "outcome"),
)
CALL_SECONDS = HistogramMetric(
    "limner_call_seconds",
    "Seconds of a call, from its reservation to its end.",
    labels=("provider",),
    buckets_s=CALL_BUCKETS_S,
)
CALLS_IN_FLIGHT = GaugeMetric("limner_calls_in_flight", "Calls that run now.")
LEDGER_USD = CounterMetric(
    "limner_ledger_usd_total",
    "Dollars that this process settled, released, or left unknown because a service may charge.",
    labels=("provider", "model", "state"),
    per=NANO_PER_USD,
)
RESERVED_USD = GaugeMetric(
    "limner_reserved_usd", "Dollars that calls in flight have reserved.", per=NANO_PER_USD
)
RESPONSES = CounterMetric(
    "limner_service_responses_total",
    "HTTP responses of services by status; 429 is a rate limit.",
    labels=("provider", "status"),
)
RETRIES = CounterMetric(
    "limner_retries_total",
    "Requests that were sent again, by the error code before.",
    labels=("provider", "code"),
)
PICTURES = CounterMetric(
    "limner_pictures_stored_total",
    "Pictures that were stored: drawn, taken in, or fitted for a model.",
    labels=("made",),
)
BATCH_ROWS = GaugeMetric(
    "limner_batch_rows",
    "Rows by state of the batch that this process works on, of all hosts; waiting is the queue.",
    labels=("state",),
)
BATCH_ROWS_ENDED = CounterMetric(
    "limner_batch_rows_ended_total",
    "Rows that this process ran: done, failed, or waiting to be tried again.",
    labels=("outcome",),
)
STORE_SECONDS = HistogramMetric(
    "limner_store_transaction_seconds",
    "Seconds of a transaction of the database, with the wait for its locks.",
    labels=("kind", "outcome"),
    buckets_s=STORE_BUCKETS_S,
)
BLOB_REQUESTS = CounterMetric(
    "limner_blob_requests_total",
    "Requests to the bucket, by kind; a list of more than 1,000 objects is several.",
    labels=("kind", "outcome"),
)
WORKERS_STARTED = CounterMetric(
    "limner_imaging_workers_started_total", "Processes that were started to decode pictures."
)
WORKERS_DIED = CounterMetric(
    "limner_imaging_workers_died_total", "Such processes that died or were killed during a job."
)
SESSIONS = MeasuredGauge("limner_sessions_open", "Conversations that this process holds.")
CONNECTIONS = GaugeMetric("limner_connections", "Clients that are connected over TCP or HTTP.")
STARTED = GaugeMetric("limner_start_time_seconds", "When this process started, in Unix time.")
STARTED.set(int(time.time()))

FAMILIES = tuple(value for value in globals().values() if isinstance(value, MetricFamily))
"""All metrics, in the order of their declaration."""
