"""What to try on a running demo: three commands that work as they are printed."""

import json
import shlex
import webbrowser
from collections.abc import Mapping

from cli.tour.own_command import own_command
from cli.tour.steps.exercise import ADVISORY
from cli.tour.steps.tenants import MODEL
from cli.tour.world import Document, Journey
from local.record import write_text
from local.start import RunningFleet


def hints(
    fleet: RunningFleet, journey: Journey, record: Document, *, opens_browser: bool, environment: Mapping[str, str]
) -> tuple[str, ...]:
    """URLs, a key, and the three commands; opens the web page where there is a screen."""
    web = fleet.urls["control_plane"]
    if opens_browser and any(environment.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")):
        webbrowser.open(web)
    key = journey.keys["acme"]
    body = {"model": MODEL, "stream": True, "messages": [{"role": "user", "content": "Hello!"}], "max_tokens": 40}
    chat = shlex.join(
        [
            *("curl", "-sN", f"{fleet.urls['gateway']}/v1/chat/completions"),
            *("-H", f"Authorization: Bearer {key}", "-H", "Content-Type: application/json", "-d", json.dumps(body)),
        ]
    )
    command = own_command()
    token = shlex.quote(str(fleet.layout.token("operator")))
    return (
        "",
        f"Control plane  {web}   (in a browser: sign in with the token in {fleet.layout.token('operator')})",
        f"Gateway        {fleet.urls['gateway']}",
        f"API key        {key}   (tenant acme; shown this once)",
        "",
        "In another terminal:",
        f'  export ENGINEHOUSE_SERVER={web} ENGINEHOUSE_TOKEN="$(cat {token})"',
        "and three commands to try there:",
        f"  1. {chat}",
        f"  2. {command} deployments list",
        f"  3. cp {_exercise(fleet, record)} {shlex.quote(str(fleet.layout.advisories))}/",
        f"     then 2. again; '{command} deployments accept {journey.exercised}' rolls out what is proposed",
        "",
        "Ctrl-C ends everything.",
    )


def _exercise(fleet: RunningFleet, record: Document) -> str:
    """The invented advisory, ready to be dropped in."""
    path = fleet.layout.state / f"{ADVISORY}.json"
    write_text(path, json.dumps(record, indent=2) + "\n")
    return shlex.quote(str(path))
