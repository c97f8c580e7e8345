"""Is a process well? One question by HTTP or by a Unix socket, with a deadline."""

import http.client
import json
import socket
from pathlib import Path
from urllib.parse import urlsplit

TIMEOUT_SECONDS = 2.0
UNIX = "unix:"


def complaint(probe: str, *, timeout_seconds: float = TIMEOUT_SECONDS) -> str | None:
    """Why the probe does not answer; ``None`` = it does."""
    if probe.startswith(UNIX):
        return _unix(probe.removeprefix(UNIX), timeout_seconds)
    return _http(probe, timeout_seconds)


def ready_file_complaint(path: Path, pid: int) -> str | None:
    """Why a ready file does not speak for this process; ``None`` = it does."""
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return "it has not said that it is ready"
    except (OSError, ValueError) as error:
        return f"its ready file {path} can't be read: {error}"
    if not isinstance(found, dict) or found.get("pid") != pid:
        return f"the ready file {path} is not its own"
    return None


def _unix(path: str, timeout_seconds: float) -> str | None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as tried:
        tried.settimeout(timeout_seconds)
        try:
            tried.connect(path)
        except OSError as error:
            return f"nothing answers at {path}: {error.strerror or error}"
    return None


def _http(url: str, timeout_seconds: float) -> str | None:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=timeout_seconds)
    try:
        connection.request("GET", parts.path or "/")
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return f"nothing answers at {url}: {error}"
    finally:
        connection.close()
    return None if status == http.HTTPStatus.OK else f"{url} answers {status}"
