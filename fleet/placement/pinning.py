"""From a decision to a pinned manifest: hardware, parallelism and batch settings are written down."""

from fleet.engine import EngineCatalogue
from fleet.facts import Facts
from fleet.manifest import PinnedManifest, PinRecord, identity_of
from fleet.model import Missing
from fleet.parallel_plan import ParallelPlan
from fleet.placement.asking import has_plan
from fleet.placement.ground import Origin
from fleet.placement.option import Option
from fleet.placement.pair import PairOption
from fleet.plan_judgement import Judged
from fleet.spec import Batch, Hardware, Metadata, Model, Parallelism, Spec

USUAL_SEQUENCES = 128
"""Proposed for an engine that would take more: most requests are shorter than the longest one."""


def pinned(
    metadata: Metadata, spec: Spec, facts: Facts, catalogue: EngineCatalogue, source_digest: str
) -> PinnedManifest:
    """The pinned manifest of a whole spec."""
    runtime = spec.engine.runtime if spec.engine and spec.engine.image is None else "image"
    record = PinRecord(
        source_digest=source_digest,
        identity=identity_of(spec),
        facts_digest=facts.digest,
        catalogue_digest=catalogue.digest,
        runtime="process" if runtime == "process" else "image",
    )
    return PinnedManifest(metadata=metadata, spec=spec, pin=record)


def completed(spec: Spec, option: Option | PairOption) -> Spec:
    """The spec with what its plan decided; what the manifest says stays as it is."""
    model = option.model
    if isinstance(option, Option):
        update = _of_one(spec, option)
    else:  # both sides stay as they are written, and share a batch
        update = {"batch": _batch(spec.batch, option.estimate.decode.judged, option.estimate.concurrency)}
    if model.id != spec.model.id:
        update["model"] = Model(id=model.id, revision=model.revision)
    elif model.origin is Origin.AT_LOAD:
        update["model"] = spec.model.model_copy(update={"quantization": model.quantization})
    return spec.model_copy(update=update)


def _of_one(spec: Spec, option: Option) -> dict[str, object]:
    update: dict[str, object] = {"batch": _batch(spec.batch, option.judged, option.estimate.concurrency)}
    if spec.hardware is None:
        place = option.place
        update["hardware"] = Hardware(
            instance_type=place.instance.name,
            gpus=option.plan.gpus,
            sharing=place.sharing.value,
            purchase=place.purchase,  # type: ignore[arg-type]  # the pool and the instance offer it
            memory_share=option.memory_share,
        )
    elif option.memory_share is not None:
        update["hardware"] = spec.hardware.model_copy(update={"memory_share": option.memory_share})
    if not has_plan(spec):
        update["parallelism"] = _parallelism(option.plan)
    return update


def _parallelism(plan: ParallelPlan) -> Parallelism:
    return Parallelism(
        tensor=plan.tensor,
        pipeline=plan.pipeline,
        data=plan.data,
        context=plan.context,
        expert=max(1, plan.expert),
    )


def _batch(given: Batch | None, judged: Judged, concurrency: int) -> Batch | None:
    """What is written stays; what is open becomes what the plan was judged with."""
    memory = judged.memory
    if isinstance(memory, Missing):
        return given
    proposed = Batch(
        max_model_len=memory.context_tokens,
        max_num_seqs=min(memory.settings.max_num_seqs, max(USUAL_SEQUENCES, concurrency)),
        max_num_batched_tokens=memory.settings.max_num_batched_tokens,
    )
    written = {name: getattr(given, name) for name in given.model_fields_set} if given else {}
    return proposed.model_copy(update=written)
