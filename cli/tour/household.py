"""`enginehouse local up`: a fleet to work with, in the foreground or in the background."""

import contextlib
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence

import httpx2 as httpx

from cli.client import Api
from cli.exits import CommandError, Exit
from cli.server_profile import Profile
from cli.tour.own_command import own_command
from local import tokens
from local.down import readable
from local.errors import LocalFleetError, StartFailed
from local.layout import Layout
from local.lock import held
from local.programs import find
from local.record import FleetRecord
from local.room import last_lines
from local.start import Wishes, opened
from local.stop_request import Interrupted, StopRequest

POLL_SECONDS = 0.05
START_SECONDS = 120.0
TENANT = "local"
Say = Callable[[str], None]


def foreground(layout: Layout, wishes: Wishes, *, python: str, environment: Mapping[str, str], say: Say) -> int:
    """Run the fleet until a signal comes."""
    with StopRequest() as stop, stop.handling_signals():
        try:
            with opened(layout, wishes, python=python, environment=environment, stop=stop, tell=_tell) as fleet:
                admin = tokens.first(layout, fleet.programs, environment=environment)
                for line in _welcome(layout, fleet.urls, fleet.operator_token, admin):
                    say(line)
                say("Ctrl-C ends everything.")
                fleet.supervisor.watch()
        except Interrupted as error:
            _tell(f"{error}; everything of the fleet has been ended")
            return 128 + error.signum
    _tell("everything of the fleet has been ended")
    return Exit.DONE


def in_background(layout: Layout, wishes: Wishes, *, python: str, environment: Mapping[str, str], say: Say) -> int:
    """Start a supervisor of its own session, wait until its fleet runs, and come back."""
    programs = find(python, wishes.engine, environment=environment)
    layout.create()
    with held(layout.lock):
        log = layout.logs / "supervisor.log"
    with log.open("ab") as file:
        child = subprocess.Popen(  # noqa: S603 - our own program, no shell
            [python, "-P", "-m", "local", str(layout.state), wishes.model_dump_json()],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            cwd=layout.state,
            env=dict(environment),
            start_new_session=True,
        )
    try:
        found = _wait_until_running(layout, child)
    except BaseException:  # Ctrl-C too: nobody asked for a fleet that starts on after that
        child.terminate()
        raise
    admin = tokens.first(layout, programs, environment=environment)
    operator = layout.token("operator").read_text(encoding="utf-8").strip()
    for line in _welcome(layout, found.urls, operator, admin):
        say(line)
    say(f"It runs in the background; '{own_command()} local down --state {shlex.quote(str(layout.state))}' ends it.")
    return Exit.DONE


def _wait_until_running(layout: Layout, child: "subprocess.Popen[bytes]") -> FleetRecord:
    log = layout.logs / "supervisor.log"
    deadline = time.monotonic() + START_SECONDS
    while True:
        found = readable(layout)
        is_up = found is not None and found.supervisor.pid == child.pid and found.state == "running"
        if found is not None and is_up and layout.token("operator").exists():
            return found
        code = child.poll()
        if code is not None:
            raise StartFailed("the fleet", f"exit code {code}", log=log, last_lines=last_lines(log))
        if time.monotonic() > deadline:
            raise LocalFleetError(f"the fleet did not run after {START_SECONDS:g} s; its log: {log}")
        time.sleep(POLL_SECONDS)


def _welcome(layout: Layout, urls: Mapping[str, str], operator: str, admin: str | None) -> Sequence[str]:
    key = _first_key(urls["control_plane"], operator)
    made = f"make another with '{own_command()} keys create {TENANT}'"
    settings = shlex.quote(str(layout.control_plane_settings))
    again = f"{shlex.quote(sys.executable)} -P -m control_plane token --settings {settings} --name NAME --scope SCOPE"
    token = shlex.quote(str(layout.token("operator")))
    return (
        f"Control plane  {urls['control_plane']}   (in a browser: sign in with one of the tokens)",
        f"Gateway        {urls['gateway']}",
        f"First token    {admin}   (security-admin; shown this once)"
        if admin
        else f"First token    was shown before; another: {again}",
        f"API key        {key}   (tenant {TENANT}; shown this once)"
        if key
        else f"API key        was shown before; {made}",
        f"State, logs    {layout.state}",
        "",
        "In another terminal:",
        f'  export ENGINEHOUSE_SERVER={urls["control_plane"]} ENGINEHOUSE_TOKEN="$(cat {token})"',
        f"  {own_command()} deployments list",
    )


def _first_key(server: str, token: str) -> str | None:
    """The key of the tenant ``local``, once; ``None`` = it was made before."""
    with httpx.HTTPTransport() as transport:
        api = Api(Profile(server, token), transport=transport)
        try:
            if api.find(f"/v1/tenants/{TENANT}") is not None:
                return None
            body = {"apiVersion": "enginehouse.dev/v1", "kind": "Tenant", "metadata": {"name": TENANT}, "spec": {}}
            api.put(f"/v1/tenants/{TENANT}", body)
            return str(api.post("/v1/keys", {"tenant": TENANT})["key"])
        except CommandError as error:
            raise LocalFleetError(f"the fleet runs, but no API key could be made: {error}") from None


def _tell(message: str) -> None:
    with contextlib.suppress(OSError):  # the terminal may have gone; the fleet must still be ended
        sys.stderr.write(message + "\n")
        sys.stderr.flush()
