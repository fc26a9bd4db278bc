"""The node's metrics, in Prometheus' text format."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from prometheus_client import (
    CollectorRegistry,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from server.domain.errors import Unavailable
from server.store.connection import Connection, Read

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class StoredMetric(NamedTuple):
    """A metric that is read from the store."""

    help: str
    label: str | None
    values: Callable[[Connection], Mapping[str, float]]


class Metrics(Collector):
    """Counts calls in a plain dict, because the hot path can afford no more."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()
        self.gauges: dict[str, tuple[str, Callable[[], float]]] = {}
        self.families: dict[str, tuple[str, str, Callable[[], Mapping[str, float]]]] = {}
        self._stored: dict[str, StoredMetric] = {}
        self._read: dict[str, Mapping[str, float]] = {}
        """The values of stored metrics at the present scrape."""
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)

    def observe(self, method: str, outcome: str) -> None:
        """Count a call. Outcomes: ok, refused, failed."""
        self.calls[method, outcome] += 1

    def gauge(self, name: str, help: str, value: Callable[[], float]) -> None:
        """Register a metric whose `value` is called at each scrape. A name ending in _total is a
        counter."""
        self.gauges[name] = (help, value)

    def family(
        self, name: str, help: str, label: str, values: Callable[[], Mapping[str, float]]
    ) -> None:
        """Register a metric with one label. `values` maps the label's values to numbers."""
        self.families[name] = (help, label, values)

    def stored_gauge(self, name: str, help: str, value: Callable[[Connection], float]) -> None:
        """Register a gauge that is read from the store at each scrape."""
        self._stored[name] = StoredMetric(help, None, lambda db: {"": value(db)})

    def stored_family(
        self, name: str, help: str, label: str, values: Callable[[Connection], Mapping[str, float]]
    ) -> None:
        """The same for a metric with one label."""
        self._stored[name] = StoredMetric(help, label, values)

    def collect(self) -> Iterator[Metric]:
        calls = CounterMetricFamily(
            "cacp_calls", "JSON-RPC calls by method and outcome", labels=("method", "outcome")
        )
        for (method, outcome), count in self.calls.items():
            calls.add_metric((method, outcome), count)
        yield calls
        for name, (help, value) in self.gauges.items():
            family = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
            yield family(name, help, value=value())
        for name, (help, label, values) in self.families.items():
            yield _labelled(name, help, label, values())
        for name, numbers in self._read.items():
            help, stored_label, _ = self._stored[name]
            yield _labelled(name, help, stored_label, numbers)

    async def text(self, read: Read) -> bytes:
        """All metrics; without those of the store when it can't be read, which they then show."""
        try:
            self._read = await read(self._read_stored)
        except Unavailable:
            self._read = {}
        return generate_latest(self._registry)

    def _read_stored(self, db: Connection) -> dict[str, Mapping[str, float]]:
        return {name: stored.values(db) for name, stored in self._stored.items()}


def _labelled(name: str, help: str, label: str | None, values: Mapping[str, float]) -> Metric:
    family = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
    if label is None:
        return family(name, help, value=values[""])
    labelled = family(name, help, labels=(label,))
    for label_value, number in values.items():
        labelled.add_metric((label_value,), number)
    return labelled
