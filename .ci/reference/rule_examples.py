"""One real violation of every rule: manifests that break them, judged by the rules on the bundled snapshot."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import lru_cache
from typing import Any

from engines.catalogue import Catalogue, load
from fleet.advisory import Advisory, AffectedPackage, Record
from fleet.facts import AdvisoryData, Facts
from fleet.images import ImageRecord
from fleet.manifest import AnyManifest, Manifest, PinnedManifest, PinRecord
from fleet.policy import Denial
from fleet.rules import RULES, review
from fleet.spec import EngineName
from fleet.violation import Violation
from fleet.waiver import Triage, TriageStatus, Waiver
from sources import policy_file, snapshot

COMMIT = "9216db5781bf21249d130ec9da846c4624c16137"
IMAGE = "example.invalid/engine@sha256:" + "1" * 64
OTHER_IMAGE = "example.invalid/engine@sha256:" + "2" * 64
Change = dict[str, Any]


@dataclass(frozen=True)
class Example:
    """A pinned manifest and facts that break one rule."""

    spec: Change = field(default_factory=dict)
    facts: Change = field(default_factory=dict)
    is_written: bool = False
    written: Change | None = None
    """Changes to the written manifest that the pin is compared with."""
    has_no_hosts: bool = False


def _engine(name: str, version: str, **more: object) -> dict[str, object]:
    return {"engine": {"name": name, "version": version, "image": IMAGE, **more}}


def _l4(**more: object) -> dict[str, object]:
    return {"hardware": {"instance_type": "g6.xlarge", "gpus": 1, **more}}


def _hosted(api_key_ref: str) -> dict[str, object]:
    hosted = {"name": "groq", "endpoint": "https://example.invalid/v1", "api_key_ref": api_key_ref, "model": "model"}
    return {"engine": None, "batch": None, "hardware": None, "hosted": hosted}


def _exception(day: date) -> dict[str, Any]:
    return {"owner": "ada", "reason": "under review", "expires": day - timedelta(days=1)}


def _today() -> date:
    return snapshot.bundled().retrieved or date.fromisoformat(snapshot.bundled().published_retrieved)


def _malware() -> AdvisoryData:
    data = snapshot.bundled()
    affected = AffectedPackage(ecosystem="PyPI", package="vllm", versions=("0.33.0",))
    invented = Advisory(records=(Record(id="MAL-0000-EXAMPLE", is_malware=True, affected=(affected,)),))
    return data.model_copy(update={"advisories": (*data.advisories, invented)})


def _waiver(manifest: AnyManifest) -> Waiver:
    identity = manifest.identity if isinstance(manifest, PinnedManifest) else ""
    return Waiver(name="ended", identity=identity, rule="remote-code", **_exception(_today()))


def _triage() -> Triage:
    return Triage(
        name="ended",
        package="vllm",
        advisory="PYSEC-2026-4324",
        versions=("0.33.0",),
        status=TriageStatus.NOT_AFFECTED,
        reference="https://example.invalid/note",
        **_exception(_today()),
    )


def _examples() -> Mapping[str, Example]:
    denial = Denial(workload="chat", engine="vllm", reason="an example of a decision")
    return {
        "four-pins": Example(spec={"hardware": None}, is_written=True),
        "model-revision": Example(spec={"model": {"id": "Qwen/Qwen3-32B", "revision": "main"}}),
        "pin-stale": Example(written={"served_name": "another-name"}),
        "engine-offered": Example(spec=_engine("deepspeed", "0.19.8")),
        "version-published": Example(spec=_engine("vllm", "0.18.2")),
        "image-by-digest": Example(spec={"engine": {"name": "vllm", "version": "0.33.0", "runtime": "process"}}),
        "image-recorded": Example(spec={"engine": {"name": "vllm", "version": "0.33.0", "image": OTHER_IMAGE}}),
        "malware": Example(facts={"data": _malware()}),
        "advisory-affected": Example(spec=_engine("vllm", "0.18.1")),
        "advisory-residual": Example(),
        "advisory-data": Example(spec=_engine("lmdeploy", "0.18.0")),
        "advisory-age": Example(facts={"today": _today() + timedelta(days=30)}),
        "engine-denied": Example(facts={"denials": (denial,)}),
        "flags-valid": Example(spec=_engine("vllm", "0.33.0", flags={"--max-loras-per-batch": 4})),
        "flags-without-secrets": Example(spec=_engine("vllm", "0.33.0", flags={"--api-key": "example"})),
        "remote-code": Example(spec={"features": {"trust_remote_code": True}}),
        "supported": Example(
            spec=_engine("lmdeploy", "0.18.0") | {"parallelism": {"pipeline": 2}} | {"hardware": _two_gpus()}
        ),
        "gpus-match-plan": Example(spec={"parallelism": {"tensor": 2}}),
        "instance-known": Example(spec={"hardware": {"instance_type": "p5.48xlrge", "gpus": 1}}),
        "gpus-fit-instance": Example(spec=_l4(gpus=2) | {"parallelism": {"pipeline": 2}}),
        "sharing-possible": Example(spec=_l4(sharing="mig")),
        "purchase-possible": Example(spec=_l4(purchase="capacity-block")),
        "plan-fits": Example(spec={"model": {"id": "Qwen/Qwen3-32B", "revision": "0" * 40}} | _l4()),
        "requests-fit-context": Example(spec={"objectives": {"input_tokens": 40_000, "output_tokens": 1000}}),
        "hosted-known": Example(spec=_hosted("groq-key"), has_no_hosts=True),
        "hosted-key-by-reference": Example(spec=_hosted("gsk_" + "0" * 16)),
        "canary-other-engine": Example(spec={"canary": {"engine": {"name": "vllm"}}}),
        "waiver-valid": Example(facts={"waivers": ()}),
        "triage-valid": Example(facts={"triage": (_triage(),)}),
        "catalogue-same": Example(facts={"catalogue_digest": "sha256:" + "0" * 64}),
    }


def _two_gpus() -> dict[str, object]:
    return {"instance_type": "p5.48xlarge", "gpus": 2}


@lru_cache(maxsize=1)
def examples() -> dict[str, Violation]:
    """Rule id -> the first violation that its example gives.

    Raises:
        LookupError: a rule without an example, or an example that breaks nothing: write one above.
    """
    given = _examples()
    missing = [rule.id for rule in RULES if rule.id not in given]
    if missing:
        raise LookupError(f"no example of the rule {missing[0]}; add one to {__name__}")
    return {rule_id: _first(rule_id, example) for rule_id, example in given.items()}


def _first(rule_id: str, example: Example) -> Violation:
    catalogue = replace(load(), hosts={}) if example.has_no_hosts else load()
    manifest = _manifest(example.spec, is_written=example.is_written)
    facts = _facts(manifest, example.facts, catalogue)
    written = _written(example.spec | example.written) if example.written is not None else None
    for violation in review(manifest, facts, catalogue, written=written):
        if violation.rule == rule_id:
            return violation
    raise LookupError(f"the example of the rule {rule_id} breaks nothing; mend it in {__name__}")


def _spec(changes: Change) -> dict[str, object]:
    plain: dict[str, object] = {
        "workload": "chat",
        "model": {"id": "Qwen/Qwen3-32B", "revision": COMMIT},
        "batch": {"max_model_len": 32768},
        "hardware": {"instance_type": "p5.48xlarge", "gpus": 1},
        **_engine("vllm", "0.33.0"),
    }
    return {key: value for key, value in (plain | dict(changes)).items() if value is not None}


def _written(changes: Change) -> Manifest:
    return Manifest.model_validate({"metadata": {"name": "support-chat"}, "spec": _spec(changes)})


def _manifest(changes: Change, *, is_written: bool) -> AnyManifest:
    written = _written(changes)
    if is_written:
        return written
    pin = PinRecord(source_digest=written.source_digest, facts_digest="", catalogue_digest="", runtime="image")
    return PinnedManifest(metadata=written.metadata, spec=written.spec, pin=pin)


def _facts(manifest: AnyManifest, changes: Change, catalogue: Catalogue) -> Facts:
    given = dict(changes)
    policy = policy_file.policy_for(policy_file.read(), "prod")
    denials = given.pop("denials", ())
    if "waivers" in given:
        given["waivers"] = (_waiver(manifest),)
    plain: dict[str, Any] = {
        "environment": "prod",
        "today": _today(),
        "data": snapshot.bundled(),
        "policy": policy.model_copy(update={"denials": denials}),
        "images": tuple(_images()),
        "catalogue_digest": catalogue.digest,
    }
    return Facts(**(plain | given))


def _images() -> Iterator[ImageRecord]:
    for engine, version in (("vllm", "0.33.0"), ("vllm", "0.18.1"), ("lmdeploy", "0.18.0")):
        yield ImageRecord(engine=EngineName(engine), version=version, digest=IMAGE, date=_today(), who="an example")
