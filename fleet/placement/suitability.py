"""What suits a manifest beyond its workload's word: prefixes that come again, hosted engines, engines to be built."""

from collections.abc import Iterator

from fleet.cold_start_data import constants
from fleet.engine import EngineCatalogue, Preference
from fleet.facts import Facts
from fleet.known_models import known_model
from fleet.manifest import Manifest
from fleet.model import Missing
from fleet.placement.decision import EngineBuild, Rejection
from fleet.placement.scoring_data import Suits, weights
from fleet.spec import EngineName
from fleet.weights import parameters_total


def suitability(manifest: Manifest, name: EngineName, preference: Preference) -> Preference:
    """The catalogue's preference for the workload, or a closer one where the manifest says more than that."""
    closer = (item for item in weights().suits if item.engine == name and _applies(item, manifest))
    found = next(closer, None)
    return preference if found is None else Preference(found.score, found.reason)


def _applies(item: Suits, manifest: Manifest) -> bool:
    spec = manifest.spec
    if spec.workload not in item.workloads or (item.text_only and spec.features.modalities != ("text",)):
        return False
    if item.disaggregation is not None and spec.features.disaggregation != item.disaggregation:
        return False
    return item.input_over_output is None or _reads_much(manifest, item.input_over_output)


def _reads_much(manifest: Manifest, ratio: float) -> bool:
    """Prompts so much longer than answers, and prefix caching asked for in so many words."""
    objectives, batch = manifest.spec.objectives, manifest.spec.batch
    if objectives is None or objectives.input_tokens is None or objectives.output_tokens is None:
        return False
    asked = batch is not None and "enable_prefix_caching" in batch.model_fields_set and batch.enable_prefix_caching
    return asked and objectives.input_tokens >= ratio * objectives.output_tokens


def hosted_instead(manifest: Manifest, facts: Facts, catalogue: EngineCatalogue) -> Iterator[Rejection]:
    """Hosted engines, where the wished first token of a large model is one that they are known for.

    They can't be chosen: endpoint, key reference and model have to be written by a person.
    """
    limits, objectives, engine = weights().hosted, manifest.spec.objectives, manifest.spec.engine
    ttft = None if objectives is None else objectives.ttft_p95_seconds
    if ttft is None or ttft >= limits.ttft_seconds or (engine is not None and engine.name is not None):
        return
    known = known_model(manifest.spec.model.id, facts)
    size = None if known is None else parameters_total(known.model)
    if size is None or isinstance(size, Missing) or size < limits.parameters:
        return
    for name in catalogue.hosted_names:
        reason = (
            f"a first token within {ttft:g} s of a model of {size / 1e9:.0f} billion parameters is what "
            f"{limits.reason}; write spec.hosted with endpoint, api_key_ref and model to take it"
        )
        evidence: dict[str, int | float | str] = {"ttft_p95_seconds": ttft, "parameters": size}
        yield Rejection(name, None, "hosted-endpoint", reason, model_id=manifest.spec.model.id, evidence=evidence)


def engine_build(manifest: Manifest, name: EngineName, version: str, catalogue: EngineCatalogue) -> EngineBuild | None:
    """The job that has to run before the engine can start, or ``None``; its command where batch and split are known."""
    need = catalogue.engine_build(manifest, name, version)
    if need is None:
        return None
    engine, seconds = manifest.spec.engine, constants().seconds["engine-build"].interval
    job = f"{manifest.name[:50]}-engine-build"
    return EngineBuild(need.reason, seconds, job, need.most_gpus, need.argv, None if engine is None else engine.image)


def build_refusal(manifest: Manifest, name: EngineName, build: EngineBuild | None) -> Rejection | None:
    """A build forbids itself where engines start while people wait for the first token."""
    spec = manifest.spec
    wished = None if spec.objectives is None else spec.objectives.ttft_p95_seconds
    if build is None or wished is None or spec.scaling.idle != "scale-to-zero" or wished >= build.seconds.low:
        return None
    reason = (
        f"{build.reason}; that takes {build.seconds.low:.0f} to {build.seconds.high:.0f} s, and with scale-to-zero the "
        f"first request waits for the start while {wished:g} s are wished"
    )
    evidence: dict[str, int | float | str] = {"build_seconds": build.seconds.low, "ttft_p95_seconds": wished}
    return Rejection(name, None, "engine-build", reason, evidence=evidence)
