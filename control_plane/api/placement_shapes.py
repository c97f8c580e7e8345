"""The shapes of placements: a written manifest goes in, the choice and every rejection come out."""

from typing import Any, Literal

from pydantic import Field

from control_plane.api.shapes import ApiVersion
from fleet.manifest import Manifest, PinnedManifest
from fleet.value import Value
from fleet.violation import Violation


class PlacementBody(Value):
    """What is to be placed."""

    manifest: Manifest
    config: dict[str, Any] | None = Field(
        default=None,
        alias="model_config",
        description="The model's `config.json`, where the house does not know the model or another one is meant; "
        "JSON has no Infinity, so leave such keys out.",
    )


class IntervalShape(Value):
    """Low, most likely, high."""

    low: float
    mid: float
    high: float


class PlanShape(Value):
    """How one replica is split."""

    tp: int
    pp: int
    dp: int
    ep: int
    """Over how many ranks whole experts are spread; 1 = none."""
    cp: int
    gpus: int
    nodes: int | None


class EstimateShape(Value):
    """What is expected of a candidate at the wished load."""

    tpot: IntervalShape | None
    """Seconds per output token; ``null`` = no basis, here and below."""
    ttft: IntervalShape | None
    tokens_per_second: IntervalShape | None
    """Output tokens of one replica at saturation; of separate prefill and decode, of all replicas."""
    basis: Literal["fitted", "extrapolated", "none"]
    concurrency: int
    """Requests in flight on one replica; on one decode replica where prefill is separate."""
    replicas: int
    usd_per_hour: float | None
    """Of all replicas."""
    priced_on: str | None


class JobShape(Value):
    """It runs on GPUs of the candidate's own kind, as many as a replica has."""

    name: str
    image: str | None
    """``null`` = no digest of the engine's image is known."""
    argv: tuple[str, ...]
    """In a folder that holds ``checkpoint``, the model's files, and gets ``engines``."""


class BuildShape(Value):
    """The job that has to run before the engine can start."""

    reason: str
    seconds: IntervalShape
    job: JobShape


class ScoreShape(Value):
    """One part of a score."""

    name: str
    weight: float
    value: float
    reason: str


class SideShape(Value):
    """One side of separate prefill and decode."""

    instance_type: str
    pool: str | None
    sharing: str
    purchase: str
    plan: PlanShape
    replicas: int
    """That the wished rate and latency need of this side."""
    tokens_per_second: IntervalShape | None
    """Output tokens that all replicas of this side would allow."""
    usd_per_hour: float | None
    """Of all replicas of this side."""
    priced_on: str | None


class FirstTokenShape(Value):
    """What the time to the first token is made of, in seconds; the likely value of each."""

    prompt: float
    waiting: float
    transfer: float
    step: float


class PoolsShape(Value):
    """Separate prefill and decode."""

    prefill: SideShape
    decode: SideShape
    limited_by: Literal["prefill", "decode", "transfer"] | None
    """What allows no more tokens; ``null`` = no speed is known, here and below."""
    prefill_utilisation: float | None
    first_token_seconds: FirstTokenShape | None
    reasons: tuple[str, ...]
    """What of the speed was not measured, or is not known."""


class CandidateShape(Value):
    """The candidate that was taken."""

    engine: str
    version: str
    model_id: str
    quantization: str | None
    """``null`` = as the checkpoint is stored."""
    instance_type: str | None
    """``null`` = open: nothing is known of the model, and the manifest names none. Or prefill and decode are separate:
    ``pools`` has it of each side, as all down to ``plan``."""
    pool: str | None
    sharing: str | None
    purchase: str | None
    plan: PlanShape | None
    pools: PoolsShape | None
    """``null`` = prefill and decode are not separate."""
    estimate: EstimateShape | None
    build: BuildShape | None
    """``null`` = the engine starts from the checkpoint as it is."""
    preference: float
    reason: str
    scores: tuple[ScoreShape, ...]
    total: float


class RejectionShape(Value):
    """A candidate that was not taken, by a rule or by a better one."""

    engine: str
    version: str | None
    """``null`` = no version was looked at."""
    rule: str
    reason: str
    instance_type: str | None
    """``null`` = on any hardware."""
    pool: str | None
    plan: str | None
    model_id: str | None
    quantization: str | None
    """``null`` = as the checkpoint is stored."""
    evidence: dict[str, int | float | str]


class ChoiceShape(Value):
    """What placement decided; ``choice`` is null where nothing is acceptable, ``pinned`` also where a part is open."""

    choice: CandidateShape | None
    considered: int
    rejections: tuple[RejectionShape, ...]
    would_fit: tuple[str, ...]
    """Changes with which the nearest miss would fit, where nothing does."""
    notes: tuple[str, ...]
    violations: tuple[Violation, ...]
    pinned: PinnedManifest | None
    identity: str | None
    canary: "ChoiceShape | None"


class FactsStamp(Value):
    """The facts that decided."""

    digest: str
    as_of: str | None


class Placement(ChoiceShape):
    """The answer; nothing was stored."""

    apiVersion: ApiVersion
    kind: Literal["Placement"]
    name: str
    facts: FactsStamp
