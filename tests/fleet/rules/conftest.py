"""An invented world for the rules: a fake catalogue, invented advisories, and one manifest that passes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

import pytest

from fleet.advisory import Advisory, AffectedPackage, AffectedRange, Event, EventKind, Label, Record, Reference
from fleet.codepath import Exposure
from fleet.engine import CommandLine, FlagProblem, Preference, Unsupported
from fleet.facts import AdvisoryData, Facts
from fleet.images import ImageRecord
from fleet.manifest import Manifest, PinnedManifest, PinRecord
from fleet.policy import Policy
from fleet.rules import review
from fleet.severity import Severity
from fleet.spec import EngineName, HostedName
from fleet.violation import Enforcement, Violation
from fleet.waiver import Triage, TriageStatus, Waiver

TODAY = date(2030, 1, 1)
COMMIT = "0123456789abcdef0123456789abcdef01234567"
PUBLISHED = ("0.17.0", "0.18.0", "0.18.1", "0.19.0", "0.20.0", "1.0.0")


@dataclass(frozen=True)
class FakeCatalogue:
    """Engines whose exposure follows the features, and whose flags and abilities a test gives."""

    names: tuple[EngineName, ...] = (EngineName.VLLM, EngineName.SGLANG, EngineName.LMDEPLOY)
    hosted_names: tuple[HostedName, ...] = (HostedName.GROQ,)
    digest: str = "sha256:catalogue"
    refusals: Mapping[EngineName, str] = field(default_factory=dict)
    bad_flags: Mapping[str, str] = field(default_factory=dict)
    lacking: tuple[Unsupported, ...] = ()
    always: tuple[str, ...] = ()

    def package(self, name):
        return name.value

    def refusal(self, name):
        return self.refusals.get(name)

    def exposure(self, manifest, name, version):
        features = manifest.spec.features
        reasons = dict.fromkeys(self.always, "always on in this fake")
        if set(features.modalities) - {"text"}:
            reasons["multimodal"] = "features.modalities"
        if features.structured_output:
            reasons["structured-output"] = "features.structured_output"
        if features.lora:
            reasons["lora"] = "features.lora"
        return Exposure.of(reasons)

    def flag_problems(self, manifest, name, version):
        flags = manifest.spec.engine.flags
        return tuple(FlagProblem(flag, message) for flag, message in self.bad_flags.items() if flag in flags)

    def unsupported(self, manifest, name, version):
        return self.lacking

    def preference(self, manifest, name):
        return Preference(0.5, "the same for every engine in this fake")

    def command_line(self, manifest, *, host, port):
        return CommandLine((), {}, {})


@dataclass(frozen=True)
class World:
    """Builders of invented values; what a test does not name is unremarkable."""

    today: date = TODAY

    def image(self, digit: str = "1") -> str:
        return f"invented.invalid/vllm@sha256:{digit * 64}"

    def spec(self, **changes: Any) -> dict[str, Any]:
        plain: dict[str, Any] = {
            "workload": "chat",
            "model": {"id": "invented/model", "revision": COMMIT},
            "engine": {"name": "vllm", "version": "1.0.0", "image": self.image()},
            "batch": {"max_model_len": 4096},
            "hardware": {"instance_type": "p5.48xlarge", "gpus": 1},
        }
        for key, value in changes.items():
            if isinstance(value, dict) and isinstance(plain.get(key), dict):
                plain[key] = plain[key] | value
            else:
                plain[key] = value
        return {key: value for key, value in plain.items() if value is not None}

    def written(self, name: str = "support-chat", **changes: Any) -> Manifest:
        return Manifest.model_validate({"metadata": {"name": name}, "spec": self.spec(**changes)})

    def pinned(self, name: str = "support-chat", runtime: str = "image", **changes: Any) -> PinnedManifest:
        written = self.written(name, **changes)
        pin = PinRecord(
            source_digest=written.source_digest,
            facts_digest="sha256:facts",
            catalogue_digest="sha256:catalogue",
            runtime=runtime,
        )
        return PinnedManifest.model_validate(
            {"metadata": written.metadata.model_dump(), "spec": self.spec(**changes), "pin": pin.model_dump()}
        )

    def catalogue(self, **changes: Any) -> FakeCatalogue:
        return FakeCatalogue(**changes)

    def record(
        self,
        name: str = "INVENTED-1",
        *,
        package: str = "vllm",
        fixed: str | None = None,
        last_affected: str | None = None,
        versions: tuple[str, ...] = (),
        severity: str | None = "high",
        **changes: Any,
    ) -> Record:
        events = [Event(kind=EventKind.INTRODUCED, version="0")]
        events += [Event(kind=EventKind.FIXED, version=fixed)] if fixed else []
        events += [Event(kind=EventKind.LAST_AFFECTED, version=last_affected)] if last_affected else []
        ranges = (AffectedRange(type="ECOSYSTEM", events=tuple(events)),) if len(events) > 1 else ()
        return Record(
            id=name,
            severity=Severity(severity) if severity else None,
            affected=(AffectedPackage(ecosystem="PyPI", package=package, ranges=ranges, versions=versions),),
            references=(Reference(type="WEB", url=f"https://advisories.invalid/{name}"),),
            **changes,
        )

    def advisory(self, *records: Record, paths: tuple[str, ...] = (), confirmed: bool = True, **given: Any) -> Advisory:
        records = records or (self.record(**given),)
        package = records[0].affected[0].package
        labels = ((package, Label(paths=paths, is_confirmed=confirmed)),) if paths else ()
        return Advisory(records=records, labels=labels)

    def data(self, *advisories: Advisory, **changes: Any) -> AdvisoryData:
        harmless = [
            self.advisory(name=f"INVENTED-OLD-{package}", package=package, fixed="0.0.1")
            for package in ("vllm", "sglang")
        ]
        given = {
            "advisories": (*advisories, *harmless),
            "published": {"vllm": PUBLISHED, "sglang": PUBLISHED},
            "published_retrieved": "2029-12-31",
            "retrieved": TODAY,
        }
        return AdvisoryData(**(given | changes))

    def facts(self, *advisories: Advisory, policy: Policy | None = None, **changes: Any) -> Facts:
        given = {
            "environment": "prod",
            "today": TODAY,
            "data": self.data(*advisories),
            "policy": policy or Policy(),
            "images": self.images(),
            "catalogue_digest": "sha256:catalogue",
        }
        return Facts(**(given | changes))

    def images(self) -> tuple[ImageRecord, ...]:
        return tuple(
            ImageRecord(engine=engine, version=version, digest=self.image(digit), date=TODAY, who="invented for tests")
            for engine, digit in (("vllm", "1"), ("sglang", "1"))
            for version in PUBLISHED
        )

    def waiver(self, manifest: PinnedManifest, **changes: Any) -> Waiver:
        given = {
            "name": "w-1",
            "identity": manifest.identity,
            "owner": "ada",
            "reason": "invented for tests",
            "expires": TODAY + timedelta(days=7),
        }
        return Waiver(**(given | changes))

    def triage(self, advisory: str = "INVENTED-1", **changes: Any) -> Triage:
        given = {
            "name": "t-1",
            "package": "vllm",
            "advisory": advisory,
            "versions": ("1.0.0",),
            "status": TriageStatus.NOT_AFFECTED,
            "owner": "ada",
            "reason": "invented for tests",
            "reference": "https://triage.invalid/1",
            "expires": TODAY + timedelta(days=7),
        }
        return Triage(**(given | changes))

    def review(self, manifest, facts=None, catalogue=None, **given) -> list[Violation]:
        return review(manifest, facts or self.facts(), catalogue or self.catalogue(), **given)

    def of(self, rule: str, violations: list[Violation]) -> list[Violation]:
        return [violation for violation in violations if violation.rule == rule]

    def refusing(self, violations: list[Violation]) -> set[str]:
        return {violation.rule for violation in violations if violation.severity is Enforcement.MANDATORY}


@pytest.fixture(scope="session")
def world() -> World:
    """Builders of invented values."""
    return World()
