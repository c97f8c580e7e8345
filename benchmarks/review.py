"""How long a review of 1,000 manifests takes with cold caches, and whether it says what plain loops say.

Run it with ``python benchmarks/review.py``. The reference (``review_reference.py``) shares no matching code with the
rules: it walks every record of the data for every manifest, evaluates events as the OSV schema's pseudocode does, and
keeps nothing.
"""

import gc
import random
import sys
import time
from collections import Counter
from collections.abc import Iterable
from datetime import date, timedelta

from review_reference import Said, reference

from cli.main import GARBAGE_THRESHOLD
from engines.catalogue import Catalogue, load
from fleet.facts import AdvisoryData, Facts
from fleet.hardware import gpu_models, instance_types
from fleet.manifest import PinnedManifest, PinRecord
from fleet.policy import Policy
from fleet.rules import review
from fleet.severity import Severity
from fleet.spec import Metadata, Spec
from fleet.versions import parse_public, parse_version, shown
from fleet.violation import Violation
from fleet.waiver import Triage, TriageStatus, Waiver
from sources.snapshot import bundled

MANIFESTS, DISTINCT_RELEASES, DISTINCT_EXPOSURES, TARGET_SECONDS = 1_000, 40, 200, 1.0
TODAY = date(2030, 1, 1)
COMMIT = "0123456789abcdef0123456789abcdef01234567"  # invented
MODELS = ("Qwen/Qwen3-32B", "Qwen/Qwen3-VL-8B-Instruct", "deepseek-ai/DeepSeek-V3.1", "google/gemma-3-27b-it")
VERSIONS_PER_ENGINE = {"vllm": 24, "sglang": 16, "tensorrt-llm": 8, "lmdeploy": 4}
FLAGS = {
    "vllm": ("--enable-prompt-embeds", "--grpc", "--enable-mm-embeds", "--enable-lora"),
    "sglang": ("--enable-metrics", "--enable-custom-logit-processor", "--enable-multimodal", "--enable-trace"),
    "tensorrt-llm": (),
    "lmdeploy": (),
}


def main() -> int:
    """Measure, compare, print; 1 when the answers differ or the load is smaller than promised."""
    data, catalogue, chance = bundled(), load(), random.Random(20300101)  # noqa: S311 (a seeded load, no secret)
    manifests = [pinned(number, data, chance) for number in range(MANIFESTS)]
    facts = facts_for(manifests, data, chance)
    for read_data in (gpu_models, instance_types):  # data, as the snapshot and the catalogue are
        read_data()
    manifests = [manifest.model_copy() for manifest in manifests]  # without the identities that the waivers asked for
    for remembered in (parse_version, parse_public, shown):
        remembered.cache_clear()
    gc.collect()
    gc.freeze()  # what was read lies outside of the searches for garbage, as in the control plane
    gc.set_threshold(GARBAGE_THRESHOLD)
    wall, cpu = time.perf_counter(), time.process_time()
    answers = [review(manifest, facts, catalogue) for manifest in manifests]
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    releases = {(str(item.engine_name), item.spec.engine and item.spec.engine.version) for item in manifests}
    exposures = {exposed(manifest, catalogue) for manifest in manifests}
    said = [sorted(map(said_of, violations), key=str) for violations in answers]
    print(f"manifests            {MANIFESTS}, with {len(releases)} (engine, version) and {len(exposures)} exposures")
    print(f"advisories           {len(data.advisories)}, as of {data.as_of}")
    print(f"violations           {sum(map(len, answers))}: {counted(said)}")
    print(f"review, caches cold  {wall:.3f} s ({cpu:.3f} s of CPU); target {TARGET_SECONDS:.0f} s")
    start = time.perf_counter()
    wrong = [
        (manifest.name, ours, theirs)
        for manifest, ours in zip(manifests, said, strict=True)
        if ours != (theirs := sorted(reference(manifest, facts, catalogue), key=str))
    ]
    print(f"reference            {time.perf_counter() - start:.3f} s; equal: {'no' if wrong else 'yes'}")
    for name, ours, theirs in wrong[:5]:
        print(f"  {name}: only the rules: {set(ours) - set(theirs)}; only the reference: {set(theirs) - set(ours)}")
    is_small = len(releases) < DISTINCT_RELEASES or len(exposures) < DISTINCT_EXPOSURES
    return 1 if wrong or is_small else 0


def counted(said: Iterable[Iterable[Said]]) -> str:
    """How often each rule spoke."""
    return ", ".join(
        f"{name} {count}" for name, count in Counter(item[0] for one in said for item in one).most_common()
    )


def said_of(violation: Violation) -> Said:
    """What is compared of a violation."""
    return violation.rule, violation.severity.value, violation.pointer, violation.advisory


def exposed(manifest: PinnedManifest, catalogue: Catalogue) -> frozenset[str]:
    """The code paths that are switched on."""
    engine = manifest.spec.engine
    if engine is None or engine.name is None or engine.version is None:
        return frozenset()
    return catalogue.exposure(manifest, engine.name, engine.version).paths


# --- The load ------------------------------------------------------------------------------------------------------
def pinned(number: int, data: AdvisoryData, chance: random.Random) -> PinnedManifest:
    """One manifest; every 50th names a version that was never published."""
    name = chance.choice(tuple(VERSIONS_PER_ENGINE))
    version = "0.18.2" if number % 50 == 0 else chance.choice(data.published[name][: VERSIONS_PER_ENGINE[name]])
    gpus = chance.choice((1, 1, 2, 8))
    some = {flag: True for flag in FLAGS[name] if chance.random() < 0.3}
    some |= {"--no-such-flag": True} if number % 100 == 1 else {}
    spec = {
        "workload": chance.choice(("chat", "batch", "reasoning")),
        "model": {"id": chance.choice(MODELS), "revision": COMMIT},
        "engine": {"name": name, "version": version, "runtime": "process", "flags": some},
        "batch": {"max_model_len": 4096, "enable_prefix_caching": chance.random() < 0.5},
        "hardware": {"instance_type": "p5.48xlarge", "gpus": gpus},
        "parallelism": {"tensor": gpus if number % 40 else 4},
        "features": {
            "modalities": ("text", "image") if chance.random() < 0.4 else ("text",),
            "lora": ("invented/adapter",) if chance.random() < 0.4 else (),
            "kv_offload": chance.choice(("none", "none", "host", "lmcache")),
            "speculative": chance.choice(("none", "none", "ngram", "eagle")),
            "structured_output": chance.random() < 0.5,
            "tool_parser": chance.choice((None, "hermes")),
            "trust_remote_code": number % 25 == 0,
        },
    }
    pin = PinRecord(source_digest="", facts_digest="", catalogue_digest="", runtime="process")
    return PinnedManifest(metadata=Metadata(name=f"load-{number}"), spec=Spec.model_validate(spec), pin=pin)


def facts_for(manifests: list[PinnedManifest], data: AdvisoryData, chance: random.Random) -> Facts:
    """A strict policy, with some waivers that hold or have ended and some triage."""
    named = [advisory for advisory in data.advisories if advisory.packages & {"vllm", "sglang", "tensorrt-llm"}]
    waivers = tuple(
        Waiver(
            name=f"waiver-{number}",
            identity=manifest.identity,
            advisory=None if number % 2 else chance.choice(named).id,
            rule="remote-code" if number % 2 else None,
            owner="invented",
            reason="invented",
            expires=TODAY + timedelta(days=chance.choice((-1, 30, 400))),
        )
        for number, manifest in enumerate(manifests[::5])
    )
    triage = tuple(
        Triage(
            name=f"triage-{number}",
            package=sorted(advisory.packages)[0],
            advisory=advisory.id,
            versions=(),
            status=chance.choice(tuple(TriageStatus)),
            owner="invented",
            reason="invented",
            reference="invented",
            expires=TODAY + timedelta(days=-1 if number % 10 == 0 else 30),
        )
        for number, advisory in enumerate(chance.sample(named, 20))
    )
    policy = Policy(
        allow_runtime_process=True, residuals_need_triage_from=Severity.HIGH, unrated_affected_needs_triage=True
    )
    return Facts(today=TODAY, data=data, policy=policy, waivers=waivers, triage=triage)


if __name__ == "__main__":
    sys.exit(main())
