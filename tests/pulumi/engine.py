"""The real Pulumi engine, run on a file backend in a temporary folder, with the doubles first on PATH."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
ENGINE = ROOT / ".tools" / "pulumi" / "pulumi"
DOUBLES = Path(__file__).with_name("doubles")
DEADLINE_SECONDS = 600


@dataclass(frozen=True)
class Step:
    """What the engine did, or would do, with one resource."""

    op: str
    """same, create, update, create-replacement, replace, delete-replaced, delete …"""
    type: str
    name: str
    changed: tuple[str, ...]
    replacing: tuple[str, ...]
    inputs: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Violation:
    """What a policy said."""

    policy: str
    level: str
    message: str
    resource: str


@dataclass(frozen=True)
class Outcome:
    """One command of Pulumi."""

    words: tuple[str, ...]
    code: int
    output: str
    """stdout and stderr together, as a person sees them."""
    events: tuple[Mapping[str, Any], ...]

    @property
    def steps(self) -> tuple[Step, ...]:
        """Every resource that the engine looked at, in its order."""
        found = (event["resourcePreEvent"]["metadata"] for event in self.events if "resourcePreEvent" in event)
        return tuple(map(_step, found))

    def changes(self) -> dict[str, list[str]]:
        """Operation -> ``type name`` of the resources, without those that stay as they are."""
        found: dict[str, list[str]] = {}
        for step in self.steps:
            if step.op != "same":
                found.setdefault(step.op, []).append(f"{step.type} {step.name}")
        return {op: sorted(names) for op, names in found.items()}

    @property
    def violations(self) -> tuple[Violation, ...]:
        """What the policy packs said."""
        found = (event["policyEvent"] for event in self.events if "policyEvent" in event)
        return tuple(
            Violation(e["policyName"], e["enforcementLevel"], e["message"], e.get("resourceUrn", "")) for e in found
        )

    @property
    def later(self) -> set[str]:
        """The policies that leave something to the update."""
        return {item.policy for item in self.violations if "not judged yet" in item.message}

    @property
    def errors(self) -> str:
        """What the engine calls an error."""
        found = (event["diagnosticEvent"] for event in self.events if "diagnosticEvent" in event)
        return "".join(event["message"] for event in found if event["severity"] == "error")

    def ok(self) -> "Outcome":
        """The same, or a failure that shows what the command said."""
        assert self.code == 0, f"pulumi {' '.join(self.words)} ended with {self.code}:\n{self.output[-6000:]}"
        return self

    def refused(self) -> "Outcome":
        """The same, or a failure because the command went through."""
        assert self.code != 0, f"pulumi {' '.join(self.words)} went through:\n{self.output[-6000:]}"
        return self


@dataclass(frozen=True)
class Stack:
    """A stack of one project with a state of its own."""

    project: Path
    """The folder with Pulumi.yaml."""
    home: Path
    """A temporary folder for everything that is written."""
    name: str = "test"
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def config_file(self) -> Path:
        """The stack's configuration; JSON is YAML."""
        return self.home / f"Pulumi.{self.name}.yaml"

    @property
    def journal(self) -> list[dict[str, Any]]:
        """What happened in the pretended account."""
        path = self.home / "journal.jsonl"
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []

    def configure(self, values: Mapping[str, Any]) -> None:
        """Sets the whole configuration; the keys carry their namespace."""
        self.config_file.write_text(json.dumps({"config": values}), encoding="utf-8")

    def start(self, values: Mapping[str, Any]) -> "Stack":
        """Makes the stack."""
        (self.home / "state").mkdir(parents=True)
        self.configure(values)
        self.run("stack", "init", self.name).ok()
        return self

    def preview(self, *words: str) -> Outcome:
        """``pulumi preview``"""
        return self.run("preview", "--non-interactive", *words, logs=True)

    def up(self, *words: str) -> Outcome:
        """``pulumi up`` without the preview before it."""
        return self.run("up", "--yes", "--skip-preview", "--non-interactive", *words, logs=True)

    def destroy(self, *words: str) -> Outcome:
        """``pulumi destroy``, with the preview before it: without one, what is not protected goes before an error."""
        return self.run("destroy", "--yes", "--non-interactive", *words, logs=True)

    def protected(self) -> set[str]:
        """The types of the resources that are protected, as the state has them."""
        state = json.loads(self.run("stack", "export", "--stack", self.name).ok().output)
        return {item["type"] for item in state["deployment"]["resources"] if item.get("protect")}

    def run(self, *words: str, logs: bool = False) -> Outcome:
        """One command, ended with everything that it started when it takes too long."""
        log = self.home / "events.jsonl"
        log.unlink(missing_ok=True)
        options = ["--event-log", str(log)] if logs else []
        where = ["--stack", self.name, "--config-file", str(self.config_file)] if words[0] != "stack" else []
        command = [str(ENGINE), *words, *where, *options]
        output = _finished(command, self.project, self._environment())
        return Outcome(words, output[0], output[1], tuple(_events(log)))

    def _environment(self) -> dict[str, str]:
        path = [str(DOUBLES), str(ENGINE.parent), str(Path(sys.executable).parent), os.environ.get("PATH", "")]
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PULUMI_", "AWS_"))}
        return {
            **kept,
            "PATH": os.pathsep.join(path),
            "PULUMI_BACKEND_URL": f"file://{self.home / 'state'}",
            "PULUMI_CONFIG_PASSPHRASE": "",
            "PULUMI_HOME": str(self.home / "home"),
            "PULUMI_DEBUG_COMMANDS": "true",  # the option --event-log
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "PULUMI_ERROR_OUTPUT_STRING": "true",
            "PULUMI_DIY_BACKEND_DISABLE_CHECKPOINT_BACKUPS": "true",
            "PULUMI_SKIP_CHECKPOINTS": "true",  # the state is written once, at the end: three times as fast
            "DOUBLES_JOURNAL": str(self.home / "journal.jsonl"),
            "NO_COLOR": "1",
            **self.environment,
        }


def _finished(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> tuple[int, str]:
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            output, _ = process.communicate(timeout=DEADLINE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
            output += f"\nended after {DEADLINE_SECONDS} s"
        return process.returncode, output


def _events(log: Path) -> Iterator[Mapping[str, Any]]:
    if log.exists():
        for line in log.read_text(encoding="utf-8").splitlines():
            yield json.loads(line)


def _step(metadata: Mapping[str, Any]) -> Step:
    details = metadata.get("detailedDiff") or {}
    new = metadata.get("new") or {}
    return Step(
        metadata["op"],
        metadata["type"],
        metadata["urn"].rsplit("::", 1)[-1],
        tuple(sorted(details)),
        tuple(sorted(path for path, detail in details.items() if detail["diffKind"].endswith("replace"))),
        new.get("inputs") or {},
    )
