"""What the fake rooms have in common: a port that answers 200, a ready file, a journal."""

import http.server
import json
import os
from pathlib import Path


class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def listen(port):
    http.server.HTTPServer(("127.0.0.1", port), Answer).serve_forever()


def ready(settings):
    path = Path(settings["ready_file"])
    path.with_suffix(".tmp").write_text(json.dumps({"pid": os.getpid()}), encoding="utf-8")
    path.with_suffix(".tmp").replace(path)


def note(state, line):
    with (state / "journal").open("a", encoding="utf-8") as file:
        file.write(line + "\n")


def start_ticks(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
