"""The world of the tour on this machine: a fleet that `local` runs, reached as a user reaches it."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path

import httpx2 as httpx

from cli.client import Api
from cli.exits import CommandError
from cli.server_profile import Profile
from cli.tour.evidence import StepFailed
from cli.tour.stream import ChatStream
from cli.tour.world import AdminApi, Document, Reply, Said
from local.record import write_text
from local.start import RunningFleet

COMMAND_SECONDS = 60.0
REQUEST_SECONDS = 30.0
POLL_SECONDS = 0.02
ENTRY = "from cli.main import run; run()"


class LocalWorld:
    """A running local fleet."""

    def __init__(
        self, fleet: RunningFleet, token: str, *, agree: Callable[[str], bool], environment: Mapping[str, str]
    ) -> None:
        self.fleet = fleet
        self._token = token
        self._agree = agree
        self._environment = dict(environment)
        self._gateway = httpx.Client(base_url=fleet.urls["gateway"], timeout=REQUEST_SECONDS, trust_env=False)
        self._admin = httpx.HTTPTransport()
        self.api: AdminApi = Api(Profile(fleet.urls["control_plane"], token), transport=self._admin)
        self.manifests: Sequence[Path] = _copied("local", fleet.layout.environment)
        self.runbook: Sequence[Path] = _copied("runbook-2026", fleet.layout.state / "runbook-2026")

    def close(self) -> None:
        """Close its connections."""
        self._gateway.close()
        self._admin.close()

    def command(self, *arguments: str) -> Said:
        """Run ``enginehouse`` with these arguments and ``-o json``, the server and token in its environment."""
        line = " ".join(["enginehouse", *(Path(part).name if part.startswith("/") else part for part in arguments)])
        known = {"ENGINEHOUSE_SERVER": self.fleet.urls["control_plane"], "ENGINEHOUSE_TOKEN": self._token}
        try:
            done = subprocess.run(  # noqa: S603 - our own program, no shell
                [sys.executable, "-P", "-c", ENTRY, *arguments, "-o", "json"],
                cwd=self.fleet.layout.state,
                env={**self._environment, **known},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=COMMAND_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise StepFailed(f"'{line}' took more than {COMMAND_SECONDS:g} s") from None
        try:
            document = json.loads(done.stdout) if done.stdout.strip() else {}
        except ValueError:
            raise StepFailed(f"'{line}' did not print JSON; exit code {done.returncode}: {done.stderr}") from None
        return Said(line, done.returncode, document, done.stderr.strip())

    def ask(self, key: str, path: str, body: Document | None = None) -> Reply:
        """A request through Envoy; POST when there is a body."""
        headers = {"Authorization": f"Bearer {key}"}
        try:
            response = self._gateway.request("POST" if body else "GET", path, json=body, headers=headers)
            return Reply(response.status_code, response.json() if response.content else {})
        except (httpx.HTTPError, ValueError) as error:
            raise StepFailed(f"the gateway at {self.fleet.urls['gateway']} does not answer: {error}") from None

    @contextmanager
    def chat(self, key: str, model: str, text: str, *, max_tokens: int) -> Iterator[ChatStream]:
        """A streamed chat through Envoy."""
        body: Document = {
            "model": model,
            "messages": [{"role": "user", "content": text}],
            "max_tokens": max_tokens,
            "ignore_eos": True,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        headers = {"Authorization": f"Bearer {key}"}
        begin = time.monotonic()
        try:
            with self._gateway.stream("POST", "/v1/chat/completions", json=body, headers=headers) as response:
                if response.status_code != httpx.codes.OK:
                    response.read()
                    raise StepFailed(f"the chat with {model} got {response.status_code}: {response.text[:300]}")
                yield ChatStream(_lines(response), begin=begin)
        except httpx.HTTPError as error:
            raise StepFailed(f"the gateway at {self.fleet.urls['gateway']} does not answer: {error}") from None

    def drop_advisory(self, record: Document) -> None:
        """Put a record into the watched folder, as a whole."""
        write_text(self.fleet.layout.advisories / f"{record['id']}.json", json.dumps(record, indent=2) + "\n")

    def agree(self, question: str) -> bool:
        """Ask the person."""
        return self._agree(question)

    def now_iso(self) -> str:
        """The moment, in UTC."""
        return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def until(self, condition: Callable[[], object], *, seconds: float) -> float | None:
        """Wait for a condition; how long it took, or ``None`` when it did not come true in time."""
        begin = time.monotonic()
        while True:
            found = condition()
            took = time.monotonic() - begin
            if found:
                return took
            if took > seconds:
                return None
            time.sleep(POLL_SECONDS)


def _lines(response: httpx.Response) -> Iterator[str]:
    try:
        yield from response.iter_lines()
    except httpx.HTTPError as error:
        raise ConnectionError(str(error)) from None


def _copied(name: str, target: Path) -> tuple[Path, ...]:
    """The example manifests of the package, copied where the fleet's files lie; the exercise's one stands first."""
    source = resources.files("cli.tour") / "manifests" / name
    found = sorted((item for item in source.iterdir() if item.name.endswith(".yaml")), key=lambda item: item.name)
    found.sort(key=lambda item: item.name != "support-chat.yaml")
    try:
        target.mkdir(parents=True, exist_ok=True)
        for item in found:
            (target / item.name).write_text(item.read_text(encoding="utf-8"), encoding="utf-8")
    except OSError as error:
        raise CommandError(f"the example manifests can't be copied to {target}: {error.strerror}") from None
    return tuple(target / item.name for item in found)
