"""Tokens of the admin API, made by the control plane's own command."""

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from local import record
from local.ending import child_environment
from local.errors import LocalFleetError
from local.layout import Layout
from local.programs import Programs

Scope = Literal["gateway", "reader", "operator", "security-admin"]
SECONDS = 60.0
GIVEN = "admin.given"
"""Not a token: the sign that the first one was shown."""
_TOKEN = re.compile(r"[!-~]{8,}")


def issue(layout: Layout, programs: Programs, name: str, scope: Scope, *, environment: Mapping[str, str]) -> str:
    """A new token; it is stored nowhere but as a hash in the database.

    Raises:
        LocalFleetError: the command failed or hung.
    """
    argv = [programs.python, "-P", "-m", "control_plane", "token", "--settings", str(layout.control_plane_settings)]
    argv += ["--name", name, "--scope", scope]
    try:
        done = subprocess.run(  # noqa: S603 - our own program, no shell
            argv,
            cwd=layout.state,
            env=child_environment(environment, layout.state),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        raise LocalFleetError(f"the token '{name}' could not be made within {SECONDS:g} s") from None
    lines = done.stdout.split()
    if done.returncode != 0 or not lines:
        said = "\n".join(f"  {line}" for line in done.stderr.splitlines()[-12:])
        raise LocalFleetError(
            f"the token '{name}' could not be made: exit code {done.returncode}. The command said:\n{said}"
        )
    return lines[-1]


def issue_once(layout: Layout, programs: Programs, name: str, scope: Scope, *, environment: Mapping[str, str]) -> str:
    """The token that a process of the fleet uses, kept in a file that only its owner reads."""
    path = layout.token(name)
    stored = _stored(path)
    if stored is not None:
        return stored
    token = issue(layout, programs, name, scope, environment=environment)
    record.write_text(path, token + "\n")
    return token


def forget_those_of_a_lost_database(layout: Layout) -> None:
    """Remove the tokens where the database that knows them was removed or emptied; raises `LocalFleetError`."""
    if layout.database.exists() and layout.database.stat().st_size > 0:
        return
    for name in ("gateway", "operator", GIVEN):
        record.remove(layout.token(name))


def _stored(path: Path) -> str | None:
    """The token in a file; ``None`` = there is none, or what stands there is no token."""
    try:
        text = path.read_bytes().decode("ascii").strip()
    except (FileNotFoundError, UnicodeDecodeError):
        return None
    except OSError as error:
        raise LocalFleetError(f"the token {path} can't be read: {error.strerror or error}; remove it") from None
    return text if _TOKEN.fullmatch(text) else None


def first(layout: Layout, programs: Programs, *, environment: Mapping[str, str]) -> str | None:
    """The first token of the person, once; ``None`` = it was given out before."""
    given = layout.token(GIVEN)
    if given.exists():
        return None
    token = issue(layout, programs, "admin", "security-admin", environment=environment)
    record.write_text(given, "shown once; only its hash is kept, in the control plane's database\n")
    return token
