"""A tiny room for the supervisor's tests: answers 200 on its port and says that it is ready.

Arguments: name, port, ready file, journal; then words that make it misbehave.
"""

import http.server
import json
import os
import signal
import sys
import time
from pathlib import Path


class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def note(journal, line):
    with Path(journal).open("a", encoding="utf-8") as file:
        file.write(line + "\n")


def main():
    name, port, ready_file, journal, *words = sys.argv[1:]
    note(journal, f"start {name} {os.getpid()}")
    if "dies" in words:
        sys.exit(f"{name}: the disk says no")
    if "stubborn" in words:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    else:
        signal.signal(signal.SIGTERM, lambda *_: (note(journal, f"end {name}"), os._exit(0)))
    if "never-ready" in words:
        time.sleep(600)
    server = http.server.HTTPServer(("127.0.0.1", int(port)), Answer)
    temporary = Path(ready_file + ".tmp")
    temporary.write_text(json.dumps({"pid": os.getpid()}), encoding="utf-8")
    temporary.replace(ready_file)
    server.serve_forever()


main()
