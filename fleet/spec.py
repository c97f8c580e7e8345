"""What a manifest says: the workload, the four pins (model, engine, batch, hardware) and the wishes around them."""

from enum import StrEnum
from typing import Annotated, Literal, Self, get_args

from pydantic import Field, StringConstraints, ValidationError, ValidationInfo, field_validator, model_validator

from fleet.alternatives import listed_wrongly
from fleet.value import Value

NAME_PATTERN = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"
Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]
"""A DNS label: it becomes the name of Kubernetes objects."""
Line = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]*$", max_length=4096)]
"""One line of text: no control characters, so that it means the same in every file and log."""
LabelKey = Annotated[
    str,
    StringConstraints(
        pattern=r"^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
    ),
]
LabelValue = Annotated[str, StringConstraints(pattern=r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$")]
"""Keys and values as Kubernetes takes them for labels."""
Positive = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(gt=0, le=1)]
IMAGE_PATTERN = r"^[^\s@]+@sha256:[0-9a-f]{64}$"
ImageDigest = Annotated[str, StringConstraints(pattern=IMAGE_PATTERN)]
FlagValue = Line | int | float | bool


class Workload(StrEnum):
    """What kind of traffic a deployment serves; placement scores engines by it."""

    CHAT = "chat"
    STRUCTURED_OUTPUT = "structured-output"
    LATENCY_CRITICAL = "latency-critical"
    MULTIMODAL = "multimodal"
    REASONING = "reasoning"
    MOE = "moe"
    EMBEDDING = "embedding"
    RERANK = "rerank"
    BATCH = "batch"
    SPEECH = "speech"


class EngineName(StrEnum):
    """Engines that run as pods or processes of the fleet."""

    VLLM = "vllm"
    SGLANG = "sglang"
    TENSORRT_LLM = "tensorrt-llm"
    LMDEPLOY = "lmdeploy"
    DEEPSPEED = "deepspeed"


class HostedName(StrEnum):
    """Engines that somebody else runs."""

    CEREBRAS = "cerebras"
    GROQ = "groq"


Quantization = Literal["bf16", "fp8", "nvfp4", "mxfp4", "int4", "awq", "gptq", "int8"]
KvCacheDtype = Literal["auto", "bf16", "fp8"]
Purchase = Literal["on-demand", "spot", "capacity-block"]
Modality = Literal["text", "image", "video", "audio"]
QUANTIZATIONS: tuple[str, ...] = get_args(Quantization)
KV_CACHE_DTYPES: tuple[str, ...] = get_args(KvCacheDtype)
PURCHASES: tuple[str, ...] = get_args(Purchase)


class Quality(Value):
    """A measured quality of a model, with where the number comes from."""

    metric: Line
    value: float
    source: Line


class AlternativeModel(Value):
    """Another model that could serve the workload."""

    id: Line
    revision: Line | None = None
    kind: Literal["smaller", "distilled", "pruned", "quantized"]
    quality: Quality | None = None


class Model(Value):
    """The first pin: which weights, at which revision."""

    id: Line
    revision: Line | None = None
    """A commit of the model repository; ``None`` = not pinned yet."""
    quantization: Quantization | None = None
    """``None`` = as the checkpoint is."""
    alternatives: tuple[AlternativeModel, ...] = ()

    @field_validator("alternatives")
    @classmethod
    def _others(cls, listed: tuple[AlternativeModel, ...], info: ValidationInfo) -> tuple[AlternativeModel, ...]:
        """Each is another checkpoint than the model and those before it."""
        own = (info.data.get("id", ""), info.data.get("revision"))
        wrong = list(listed_wrongly(own, [(item.id, item.revision) for item in listed]))
        if wrong:
            raise ValidationError.from_exception_data(cls.__name__, wrong)
        return listed


class EngineChoice(Value):
    """The second pin: which engine, version and image. ``None`` = left to ``enginehouse pin``."""

    name: EngineName | None = None
    version: Line | None = None
    image: ImageDigest | None = None
    runtime: Literal["image", "process"] = "image"
    """``process`` runs the engine as a process without an image; only policy ``local`` lets it."""
    front: Literal["trtllm-serve", "triton"] | None = None
    """The server in front of TensorRT-LLM."""
    flags: dict[Line, FlagValue] = Field(default_factory=dict)
    """Further flags of the engine, by their long spelling with the leading dashes; ``true`` = a bare switch."""


class HostedEngine(Value):
    """An engine behind somebody else's endpoint: no pods, no version, a key by reference."""

    name: HostedName
    endpoint: Annotated[str, StringConstraints(pattern=r"^https://[^\s]+$")]
    api_key_ref: Line
    """The name of a secret; never the key."""
    model: Line


class Batch(Value):
    """The third pin: how requests share the engine."""

    max_model_len: Positive
    max_num_seqs: Positive = 128
    max_num_batched_tokens: Positive = 8192
    kv_cache_dtype: KvCacheDtype = "auto"
    enable_prefix_caching: bool = True


class Hardware(Value):
    """The fourth pin: which instances. ``gpus`` counts the GPUs of one replica."""

    instance_type: Line
    gpus: Positive
    sharing: Literal["exclusive", "mig", "mps", "time-slicing"] = "exclusive"
    purchase: Purchase = "on-demand"
    memory_share: Share | None = None
    """Of the memory of each GPU or slice that a replica takes; ``None`` = the engine's own default.

    Engines that share a GPU by MPS or time-slicing each need one, and together they stay below 1. TensorRT-LLM and
    LMDeploy take it of what is free once the weights are loaded.
    """


class Parallelism(Value):
    """How one replica is split; ``expert`` is the size of expert parallelism and never multiplies."""

    tensor: Positive = 1
    pipeline: Positive = 1
    data: Positive = 1
    context: Positive = 1
    expert: Positive = 1
    sequence: bool = False

    @property
    def gpus(self) -> int:
        """GPUs of one replica: tensor x pipeline x data x context."""
        return self.tensor * self.pipeline * self.data * self.context


class Pool(Value):
    """One side of a disaggregated deployment."""

    hardware: Hardware
    parallelism: Parallelism = Parallelism()


class Pools(Value):
    """Separate replicas for prefill and decode."""

    prefill: Pool
    decode: Pool


class Features(Value):
    """What the deployment may do; each switch opens code paths."""

    modalities: tuple[Modality, ...] = ("text",)
    lora: tuple[Line, ...] = ()
    disaggregation: Literal["none", "prefill-decode", "encoder"] = "none"
    kv_offload: Literal["none", "host", "lmcache", "mooncake"] = "none"
    speculative: Literal["none", "ngram", "draft", "eagle", "mtp"] = "none"
    kv_events: Literal["zmq"] | None = None
    """``zmq``: engines tell the gateways which prompts they hold, in clear; ``None`` = they tell nobody."""
    structured_output: bool = False
    tool_parser: Line | None = None
    trust_remote_code: bool = False


class Objectives(Value):
    """What the people who use it expect."""

    ttft_p95_seconds: Annotated[float, Field(gt=0)] | None = None
    tpot_p95_seconds: Annotated[float, Field(gt=0)] | None = None
    requests_per_second: Annotated[float, Field(gt=0)] | None = None
    input_tokens: Positive | None = None
    output_tokens: Positive | None = None
    max_cost_per_hour: Annotated[float, Field(gt=0)] | None = None


class Schedule(Value):
    """A floor for the number of replicas from a time on.

    It holds to the next entry's time on the same days in the same timezone, else to the end of the day.
    """

    cron: Line
    timezone: Line = "UTC"
    min: Annotated[int, Field(ge=0)]


class Scaling(Value):
    """How many replicas, of each side where prefill is separate; ``idle: never`` keeps the minimum when nobody asks."""

    min: Annotated[int, Field(ge=0)] = 1
    max: Positive = 1
    idle: Literal["never", "scale-to-zero"] = "never"
    schedule: tuple[Schedule, ...] = ()
    managed_by: Literal["pulumi"] | None = None
    """Who makes the scaler; ``None`` = who makes the pods, ``pulumi`` = the platform's program."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min > self.max:
            raise ValueError(f"min {self.min} is above max {self.max}; give a max of at least {self.min}")
        return self


class Compare(Value):
    """The golden prompts that both arms answer."""

    prompts: Line


class Canary(Value):
    """A second arm on another engine."""

    engine: EngineChoice
    share: Share = 0.02
    compare: Compare | None = None


class Access(Value):
    """Who may ask, and what is done to the answers."""

    tenants: tuple[Name, ...] = ()
    output_filter: Name = "none"
    """``none``, ``pii``, or the name of an output filter that the control plane has."""
    isolation: Literal["shared", "hardware"] = "shared"
    """``hardware``: no process of others on the same GPU or slice, so no MPS and no time-slicing."""


class Metadata(Value):
    """The name and labels of a deployment."""

    name: Name
    labels: dict[LabelKey, LabelValue] = Field(default_factory=dict)


class Spec(Value):
    """Everything that a manifest wishes or pins."""

    workload: Workload
    model: Model
    served_name: Line | None = None
    """The public model name; ``None`` = the deployment's name."""
    engine: EngineChoice | None = None
    hosted: HostedEngine | None = None
    batch: Batch | None = None
    hardware: Hardware | None = None
    parallelism: Parallelism = Parallelism()
    pools: Pools | None = None
    features: Features = Features()
    objectives: Objectives | None = None
    scaling: Scaling = Scaling()
    canary: Canary | None = None
    access: Access = Access()

    @model_validator(mode="after")
    def _one_way_to_serve(self) -> Self:
        if self.engine is not None and self.hosted is not None:
            raise ValueError("'engine' and 'hosted' exclude each other; keep one")
        if self.pools is not None and self.features.disaggregation == "none":
            raise ValueError("'pools' needs features.disaggregation, which is 'none'")
        return self
