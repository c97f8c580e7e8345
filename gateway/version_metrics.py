"""Whether this gateway reads the form of snapshots that its control plane writes."""

from prometheus_client import CollectorRegistry, Gauge


class VersionMetrics:
    """The metric of a gateway that was left behind by an update."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._is_older = Gauge(
            "enginehouse_gateway_older_than_control_plane",
            "1 while the control plane's snapshot has a newer form than this gateway reads; the last good one goes on.",
            registry=registry,
        )

    def show(self, *, is_older: bool) -> None:
        """Whether the control plane's newest snapshot could not be read for that reason."""
        self._is_older.set(is_older)
