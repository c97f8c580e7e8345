"""What to try on a running demo: three commands that work as they are printed."""

import json
import shlex
import shutil
import sys
import webbrowser
from collections.abc import Mapping
from pathlib import Path

from cli.tour.steps.exercise import ADVISORY, exercise_record
from cli.tour.steps.tenants import MODEL
from cli.tour.world import Journey
from local.record import write_text
from local.start import RunningFleet

EXERCISE_PACKAGE, EXERCISE_VERSION, EXERCISE_FIXED = "vllm", "0.32.0", "0.33.0"


def hints(
    fleet: RunningFleet, journey: Journey, *, opens_browser: bool, environment: Mapping[str, str]
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
    command = (
        "enginehouse" if shutil.which("enginehouse") else shlex.quote(str(Path(sys.executable).parent / "enginehouse"))
    )
    token = shlex.quote(str(fleet.layout.token("operator")))
    return (
        "",
        f"Control plane  {web}",
        f"Gateway        {fleet.urls['gateway']}",
        f"API key        {key}   (tenant acme; shown this once)",
        "",
        "Three commands to try, in another terminal:",
        f"  1. {chat}",
        f'  2. ENGINEHOUSE_SERVER={web} ENGINEHOUSE_TOKEN="$(cat {token})" {command} deployments list',
        f"  3. cp {_exercise(fleet)} {shlex.quote(str(fleet.layout.advisories))}/   (then 2. again)",
        "",
        "Ctrl-C ends everything.",
    )


def _exercise(fleet: RunningFleet) -> str:
    """The invented advisory, ready to be dropped in."""
    path = fleet.layout.state / f"{ADVISORY}.json"
    record = exercise_record(EXERCISE_PACKAGE, EXERCISE_VERSION, EXERCISE_FIXED, "2026-11-29T00:00:00Z")
    write_text(path, json.dumps(record, indent=2) + "\n")
    return shlex.quote(str(path))
