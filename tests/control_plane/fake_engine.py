"""A tiny engine: /health after a while, /metrics with the running requests that a file says, SIGTERM ends it.

python fake_engine.py CONTROL_FOLDER [VERSION] -- ... --port N ...
"""

import signal
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

FOLDER = Path(sys.argv[1])
PORT = int(sys.argv[sys.argv.index("--port") + 1])


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/health":
            self.answer(200 if not (FOLDER / "sick").exists() else 503, "")
        else:
            busy = (FOLDER / "busy").read_text() if (FOLDER / "busy").exists() else "0"
            self.answer(200, f'# HELP x y\nvllm:num_requests_running{{model_name="m"}} {busy}.0\n')

    def answer(self, status: int, text: str) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_parts: object) -> None:
        pass


if (FOLDER / "broken").exists():
    sys.exit("the weights are not there")
if (FOLDER / "stubborn").exists():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
else:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
