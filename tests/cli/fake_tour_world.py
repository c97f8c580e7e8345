"""A small house in memory for the tour's tests; each fault breaks one thing, as a real house could."""

import time
from contextlib import contextmanager
from pathlib import Path

from cli.client import Refused
from cli.exits import CommandError, Exit
from cli.tour.evidence import StepFailed
from cli.tour.stream import ChatStream
from cli.tour.world import Reply, Said

RUNBOOK = Path(__file__).parents[2] / "cli/tour/manifests/runbook-2026/vllm-multimodal-0.18.2.yaml"
TENANTS = {"support-chat": ("acme", "globex"), "claim-photos": ("acme",), "invoice-fields": ("globex",)}
ENGINES = {
    "support-chat": ("vllm", "0.32.0"),
    "claim-photos": ("vllm", "0.33.0"),
    "invoice-fields": ("sglang", "0.5.23"),
}


def pinned(name, version=None):
    engine, written = ENGINES[name]
    return {
        "kind": "PinnedInferenceDeployment",
        "metadata": {"name": name},
        "spec": {"model": {"id": f"org/{name}"}, "engine": {"name": engine, "version": version or written}},
    }


def _version(body):
    return body["spec"]["engine"]["version"]


def event(text, fingerprint):
    return f'data: {{"system_fingerprint": "{fingerprint}", "choices": [{{"delta": {{"content": "{text}"}}}}]}}'


USAGE = 'data: {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 3}}'


class FakeHouse:
    """Control plane, gateway and person in one."""

    def __init__(self, *faults):
        self.faults = set(faults)
        self.deployments = {}
        self.advisory = None
        self.events = []
        self.api = self
        self.manifests = tuple(Path(f"/env/{name}.yaml") for name in ENGINES)
        self.runbook = (RUNBOOK,)

    def close(self):
        pass

    # the admin API

    def get(self, path, **_query):
        if path == "/v1/facts":
            known = [{}] * (3 if "no advisories" in self.faults else 600)
            data = {"source": "bundled", "advisories": known}
            return {"as_of": "2026-11-04", "digest": "sha256:0", "facts": {"data": data}}
        if path.startswith("/v1/pins/"):
            return {"status": {"recommended": "0.33.0"}}
        return self._deployment(path.rpartition("/")[2])

    def find(self, path):
        return None

    def get_with_etag(self, path):
        return self.get(path), '"1"'

    def every(self, path, **_query):
        if path == "/v1/audit-events":
            return iter([] if "lost audit" in self.faults else self.events)
        return iter([self._deployment(name) for name in self.deployments])

    def put(self, path, body, *, etag=None, dry_run=False):
        kind, name = path.split("/")[2:]
        if kind == "tenants":
            return body
        if body["kind"] == "InferenceDeployment" and "lenient rules" not in self.faults:
            raise Refused("refused", [{"rule": "version-published"}])
        if kind == "deployments" and body["kind"] != "InferenceDeployment" and _version(body) == "0.18.2":
            raise CommandError("refused: 0.18.2 was never published", Exit.REFUSED)
        self.events.append({"name": name, "action": "deployment.replace" if etag else "deployment.create"})
        self.deployments[name] = body
        return self._deployment(name)

    def post(self, _path, body):
        return {"key": f"key-of-{body['tenant']}"}

    def _deployment(self, name):
        body = self.deployments[name]
        version = body["spec"]["engine"]["version"]
        hit = self.advisory is not None and ENGINES[name][0] == "vllm" and version == "0.32.0"
        message = f"affected by {self.advisory}" if hit else "keeps the rules"
        proposal = {"manifest": pinned(name, "0.33.0"), "reason": "fixed there"} if hit else None
        return body | {
            "status": {
                "identity": f"identity-{version}",
                "phase": "Failed" if "dead engine" in self.faults else "Running",
                "conditions": [{"type": "Compliant", "status": "False" if hit else "True", "message": message}],
                "proposal": None if "no proposal" in self.faults else proposal,
                "endpoints": [{"address": f"127.0.0.1:{version}"}],
            }
        }

    # commands

    def command(self, *arguments):
        code, document = self._answer(arguments)
        return Said(" ".join(("enginehouse", *arguments)), code, document, "")

    def _answer(self, arguments):
        if arguments[:2] == ("advisories", "check"):
            return 0, {"verdict": "affected", "matches": [{"id": "CVE-1", "result": "affected"}]}
        if arguments[0] == "pin":
            wrong = "0.18.2" if "wrong pin" in self.faults else None
            rejections = [{"engine": "sglang"}, {"engine": "vllm"}]
            return 0, {"manifests": [{"pinned": pinned(name, wrong), "rejections": rejections} for name in ENGINES]}
        if arguments[0] == "review":
            violation = {"severity": "mandatory", "message": "never published", "advisory": None}
            return 3, {"manifests": [{"name": "vllm-0-18-2", "violations": [violation]}]}
        broken = "broken chain" in self.faults
        return int(broken), {"valid": not broken, "events": len(self.events), "head": "f" * 64, "break": None}

    # the gateway

    def ask(self, key, path, body=None):
        if "killed envoy" in self.faults:
            raise StepFailed("the gateway at http://127.0.0.1:1 does not answer: connection refused")
        tenant = key.removeprefix("key-of-")
        if tenant not in ("acme", "globex") and "open door" not in self.faults:
            return Reply(401, {"error": {"code": "invalid_api_key"}})
        if path == "/v1/models":
            return Reply(200, {"data": [{"id": name} for name, known in TENANTS.items() if tenant in known]})
        if tenant not in TENANTS[body["model"]] and "leaky tenants" not in self.faults:
            return Reply(404, {"error": {"code": "model_not_found"}})
        return Reply(200, {})

    @contextmanager
    def chat(self, key, model, text, *, max_tokens):
        fingerprint = f"vllm-{self.deployments[model]['spec']['engine']['version']}-abc"
        yield ChatStream(self._stream(fingerprint, long=max_tokens > 100), begin=time.monotonic())

    def _stream(self, fingerprint, *, long):
        yield ": keep-alive"
        yield event("one", fingerprint)
        yield event("two", fingerprint)
        if long:
            deadline = time.monotonic() + 5
            while self.deployments["support-chat"]["spec"]["engine"]["version"] == "0.32.0":
                assert time.monotonic() < deadline
                time.sleep(0.005)
            time.sleep(0 if "short stream" in self.faults else 0.2)
        if long and "cut stream" in self.faults:
            raise ConnectionError("peer closed the connection")
        yield USAGE
        yield "data: [DONE]"

    # the person and the clock

    def drop_advisory(self, record):
        if "dropped record" not in self.faults:
            self.advisory = "GHSA-else" if "another advisory" in self.faults else record["id"]

    def agree(self, _question):
        return "nobody agrees" not in self.faults

    def now_iso(self):
        return "2030-01-01T00:00:00Z"

    def until(self, condition, *, seconds):
        deadline = time.monotonic() + min(seconds, 1.0)
        while not condition():
            if time.monotonic() > deadline:
                return None
            time.sleep(0.002)
        return 0.01
