"""Stands for the control plane: makes tokens, listens, starts one engine and records it."""

import json
import os
import subprocess
import sys
from pathlib import Path

from fake_listener import listen, note, ready, start_ticks


def token(arguments):
    folder = Path(arguments[arguments.index("--settings") + 1]).parent
    (folder / "state.db").write_text("knows the token", encoding="utf-8")
    note(folder, f"token {arguments[-1]}")
    sys.stdout.write(f"secret-of-{arguments[arguments.index('--name') + 1]}\n")


def serve(settings):
    note(Path(settings["ready_file"]).parents[1], "start control-plane")
    if os.environ.get("FAKE_CONTROL_PLANE") == "dies":
        sys.exit("fake control plane: address already in use")
    engine_port = settings["metrics_port"]  # a port that nobody else uses here
    code = f"import fake_listener; fake_listener.listen({engine_port})"
    engine = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    record = {"id": "chat-1", "pid": engine.pid, "start_ticks": start_ticks(engine.pid), "port": engine_port}
    (Path(settings["process_dir"]) / "chat-1.process.json").write_text(json.dumps(record), encoding="utf-8")
    ready(settings)
    listen(settings["port"])


if sys.argv[1] == "token":
    token(sys.argv)
else:
    serve(json.loads(Path(sys.argv[-1]).read_text(encoding="utf-8")))
