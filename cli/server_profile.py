"""Which server a command talks to: options, environment variables, a profile, else the one fleet on this machine."""

import os
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from cli.exits import UsageError


@dataclass(frozen=True, slots=True)
class Profile:
    """A server and the token for it."""

    server: str
    token: str | None = field(default=None, repr=False)


def config_file() -> Path:
    """``$XDG_CONFIG_HOME/enginehouse/config.toml``, by default below ``~/.config``."""
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "enginehouse" / "config.toml"


def profile(server: str | None, token: str | None, name: str | None = None) -> Profile:
    """The server and token to use.

    Raises:
        UsageError: no server is known, or the config file can't be read.
    """
    stored = _stored(config_file(), name)
    if not (server or name or stored or os.environ.get("ENGINEHOUSE_SERVER")):
        stored = _local_fleet()
    url = server or os.environ.get("ENGINEHOUSE_SERVER") or stored.get("server")
    if not url:
        raise UsageError(
            "no server: give --server URL, set ENGINEHOUSE_SERVER, or start one with 'enginehouse local up'"
        )
    if not url.startswith(("http://", "https://")):
        raise UsageError(f"--server '{url}' is not a URL; write for example http://127.0.0.1:8080")
    return Profile(url.rstrip("/"), _usable(token or os.environ.get("ENGINEHOUSE_TOKEN") or stored.get("token")))


def _usable(token: str | None) -> str | None:
    """A token as a header can carry it; one from a file may end with a line break."""
    stripped = (token or "").strip()
    if not (stripped.isascii() and stripped.isprintable()):
        raise UsageError("the token holds signs that no token has, such as a line break; give it as it was shown")
    return stripped or None


def _local_fleet() -> dict[str, str]:
    """Server and operator token of the fleet that runs on this machine, if there is exactly one."""
    from local.errors import LocalFleetError
    from local.layout import Layout, state_home
    from local.record import read

    try:
        home = state_home(dict(os.environ), Path.home())
        layouts = [Layout(path) for path in sorted(home.iterdir()) if path.is_dir()] if home.is_dir() else []
        running = [(layout, record) for layout in layouts if (record := read(layout.record)) and record.urls]
        if len(running) != 1:
            return {}
        layout, record = running[0]
        token = layout.token("operator")
        known = {"token": token.read_text().strip()} if token.exists() else {}
        return {"server": record.urls.get("control_plane", "")} | known
    except (LocalFleetError, OSError, RuntimeError):
        return {}


def _stored(path: Path, name: str | None) -> dict[str, str]:
    try:
        document = tomllib.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} can't be read: {error}") from None
    profiles = document.get("profiles", {})
    if not (isinstance(profiles, dict) and all(isinstance(entry, dict) for entry in profiles.values())):
        raise UsageError(f"{path}: 'profiles' holds no tables; write [profiles.NAME] with server and token below it")
    chosen = name or os.environ.get("ENGINEHOUSE_PROFILE") or document.get("profile", "default")
    found = profiles.get(str(chosen))
    if found is None and name is not None:
        raise UsageError(f"--profile {name} is not in {path}; it has {', '.join(profiles) or 'none'}")
    return {key: str(value) for key, value in (found or {}).items()}
