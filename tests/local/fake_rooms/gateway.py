"""Stands for the gateway: writes a small configuration for the real Envoy and listens on its socket."""

import json
import os
import socket
import sys
import time
from pathlib import Path

from fake_listener import note, ready

settings = json.loads(Path(sys.argv[-1]).read_text(encoding="utf-8"))
note(Path(settings["ready_file"]).parents[1], "start gateway")
if os.environ.get("FAKE_GATEWAY") == "never-ready":
    time.sleep(600)
assert Path(settings["token_file"]).read_text(encoding="utf-8").strip() == "secret-of-gateway"
admin = {"address": {"socket_address": {"address": "127.0.0.1", "port_value": settings["admin_port"]}}}
if os.environ.get("FAKE_GATEWAY") == "bad-configuration":
    admin["adress"] = "a typing error"
(Path(settings["state_dir"]) / "envoy.json").write_text(json.dumps({"admin": admin}), encoding="utf-8")
Path(settings["socket_path"]).unlink(missing_ok=True)
with socket.socket(socket.AF_UNIX) as server:
    server.bind(settings["socket_path"])
    server.listen()
    ready(settings)
    while True:
        server.accept()[0].close()
