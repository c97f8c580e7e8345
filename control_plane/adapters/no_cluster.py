"""The cluster of a control plane that only keeps and reviews deployments."""

from collections.abc import Sequence

from control_plane.ports import ClusterError
from control_plane.records import Launch, Replica


class NoCluster:
    """Runs nothing."""

    runs_engines = False

    def observe(self) -> Sequence[Replica]:
        """None."""
        return ()

    def cannot_start(self, engine: str) -> str | None:
        """Every engine."""
        return f"{engine} can't be started: this control plane runs no engines (setting 'cluster')"

    def start(self, launch: Launch) -> None:
        """Always fails."""
        raise ClusterError(f"{launch.deployment} can't be started: this control plane runs no engines")

    def drain(self, replica_id: str) -> None:
        """Nothing runs."""

    def end(self, replica_id: str) -> None:
        """Nothing runs."""

    def forget(self, replica_id: str) -> None:
        """Nothing runs."""

    def close(self) -> None:
        """Nothing is held."""
