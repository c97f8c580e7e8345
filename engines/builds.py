"""What has to be built for an engine before it can start, and the command that builds it."""

from collections.abc import Sequence

from engines.wishes import Wish
from fleet.engine import BuildNeed
from fleet.spec import Spec
from fleet.versions import parse_version


def build_need(wish: Wish, version: str) -> BuildNeed | None:
    """What the wish needs built by this version, or ``None``."""
    build = wish.table.build
    if build is None or not wish.asks_for(*build.any):
        return None
    refusal = None if build.covers(parse_version(version)) else build.otherwise
    return BuildNeed(build.reason, refusal, build.most_gpus, _argv(build.argv, wish.spec))


def _argv(words: Sequence[str], spec: Spec) -> tuple[str, ...]:
    """The command with what the manifest decides filled in; empty while its batch or its split is open."""
    batch = spec.batch
    if batch is None or "parallelism" not in spec.model_fields_set:
        return ()
    known = {
        "model": spec.model.id,
        "tensor": spec.parallelism.tensor,
        "pipeline": spec.parallelism.pipeline,
        "max_model_len": batch.max_model_len,
        "max_num_seqs": batch.max_num_seqs,
        "max_num_batched_tokens": batch.max_num_batched_tokens,
    }
    return tuple(word.format_map(known) for word in words)
