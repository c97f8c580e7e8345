"""Metrics of output filters: how many values by class, never which."""

from collections.abc import Container, Iterable, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge


class FilterMetrics:
    """Label values are names of the snapshot or of this code, never a client's or an engine's."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._values = Counter(
            "enginehouse_gateway_filtered_values",
            "Values that an output filter found in answers, by their class.",
            ("model", "class"),
            registry=registry,
        )
        self._request_values = Counter(
            "enginehouse_gateway_filtered_request_values",
            "Values that a filter found in requests, by their class.",
            ("model", "class"),
            registry=registry,
        )
        self._blocked = Counter(
            "enginehouse_gateway_filter_blocked",
            "Answers and requests that a filter ended, by the class of the value.",
            ("model", "class"),
            registry=registry,
        )
        self._failures = Counter(
            "enginehouse_gateway_filter_failures",
            "Answers whose filter could not go on, by the kind of error; the filter's failure mode said what happened.",
            ("model", "error"),
            registry=registry,
        )
        self._unusable = Gauge(
            "enginehouse_gateway_filters_unusable",
            "Filters that routes of the snapshot name and that can't be used; these routes refuse every request.",
            registry=registry,
        )

        self._series: set[tuple[Counter, str, str]] = set()

    def answered(self, model: str, counts: Mapping[str, int], blocked: str | None, failure: str | None) -> None:
        """Count what happened to one answer."""
        self._add(self._values, model, counts)
        self._add(self._blocked, model, {blocked: 1} if blocked else {})
        self._add(self._failures, model, {failure: 1} if failure else {})

    def asked(self, model: str, counts: Mapping[str, int], blocked: str | None) -> None:
        """Count what happened to one request."""
        self._add(self._request_values, model, counts)
        self._add(self._blocked, model, {blocked: 1} if blocked else {})

    def keep_only(self, models: Container[str]) -> None:
        """Drop the series of models that left the snapshot."""
        for counter, model, name in [series for series in self._series if series[1] not in models]:
            self._series.discard((counter, model, name))
            counter.remove(model, name)

    def show_unusable(self, names: Iterable[str]) -> None:
        """Show how many can't be used."""
        self._unusable.set(len(frozenset(names)))

    def _add(self, counter: Counter, model: str, counts: Mapping[str, int]) -> None:
        for name, count in counts.items():
            self._series.add((counter, model, name))
            counter.labels(model, name).inc(count)
