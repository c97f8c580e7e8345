"""Where everything of one local fleet lies: one private folder."""

import hashlib
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from local.errors import LocalFleetError

SOCKET_PATH_BYTES = 100  # Linux takes 107; the gateway may put a suffix behind it
SOCKET_FOLDER = "enginehouse"
"""What the names of short folders elsewhere begin with; user and state follow."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths below a state folder."""

    state: Path

    @property
    def record(self) -> Path:
        """What runs: processes, ports, URLs."""
        return self.state / "fleet.json"

    @property
    def lock(self) -> Path:
        """Held by the supervisor as long as it lives."""
        return self.state / "lock"

    @property
    def database(self) -> Path:
        """The control plane's state."""
        return self.state / "state.db"

    @property
    def logs(self) -> Path:
        """One log per process."""
        return self.state / "logs"

    @property
    def engines(self) -> Path:
        """The control plane's records and logs of the engines it started."""
        return self.state / "engines"

    @property
    def advisories(self) -> Path:
        """Records dropped in here are read at once."""
        return self.state / "advisories"

    @property
    def environment(self) -> Path:
        """Waivers, triage and images of the environment ``local``."""
        return self.state / "environments" / "local"

    @property
    def gateway(self) -> Path:
        """The gateway's last good snapshot and Envoy's configuration."""
        return self.state / "gateway"

    @property
    def control_plane_settings(self) -> Path:
        """What the control plane is started with."""
        return self.state / "control-plane.json"

    @property
    def gateway_settings(self) -> Path:
        """What the gateway is started with."""
        return self.state / "gateway.json"

    @property
    def socket(self) -> Path:
        """The decision service's Unix socket; a deep state folder gets a short path elsewhere (`socket_folder`)."""
        inside = self.gateway / "decision.sock"
        if len(os.fsencode(inside)) <= SOCKET_PATH_BYTES:
            return inside
        name = hashlib.sha256(os.fsencode(self.state)).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"{SOCKET_FOLDER}-{os.getuid()}-{name}" / "decision.sock"

    def token(self, name: str) -> Path:
        """A token that a process of the fleet reads; readable by its owner alone."""
        return self.state / "tokens" / name

    def ready_file(self, process: str) -> Path:
        """Written by a process when it listens."""
        return self.state / "ready" / f"{process}.json"

    def create(self) -> None:
        """Make every folder below the state, closed to other users.

        Raises:
            LocalFleetError: the folder can't be made or written, or belongs to somebody else.
        """
        folders = (self.state, self.logs, self.engines, self.advisories, self.environment, self.gateway)
        inner = (self.token("x").parent, self.ready_file("x").parent)
        try:
            self.state.parent.mkdir(parents=True, exist_ok=True)
            for folder in (*folders, *inner):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._close_to_others(self.state)
            with tempfile.TemporaryFile(dir=self.state) as probe:
                probe.write(b"x" * 4096)
                probe.flush()
        except OSError as error:
            reason = error.strerror or str(error)
            raise LocalFleetError(
                f"the state folder {self.state} can't be used: {reason} ({error.filename or self.state}). "
                "Give a folder that you may write, on a disk with space, with --state DIR."
            ) from None

    @staticmethod
    def _close_to_others(folder: Path) -> None:
        if folder.stat().st_uid != os.getuid():
            raise PermissionError(13, "it belongs to another user", str(folder))
        folder.chmod(0o700)


def state_home(environment: Mapping[str, str], home: Path) -> Path:
    """The folder below which fleets keep their state unless told otherwise."""
    base = environment.get("XDG_STATE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else home / ".local/state") / "enginehouse"
