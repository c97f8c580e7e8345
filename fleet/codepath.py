"""Code paths: the part of an engine that a record needs. The set is open; these are the words in use."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

CodePath = str

CORE: CodePath = "core"
API: CodePath = "api"
MODEL_LOAD: CodePath = "model-load"
MULTIMODAL: CodePath = "multimodal"
MEDIA_SSRF: CodePath = "media-ssrf"
DISAGGREGATION: CodePath = "disaggregation"
MULTI_NODE: CodePath = "multi-node"
STRUCTURED_OUTPUT: CodePath = "structured-output"
TOOL_PARSER: CodePath = "tool-parser"
CHAT_TEMPLATE: CodePath = "chat-template"
PROMPT_EMBEDS: CodePath = "prompt-embeds"
WEIGHT_ENDPOINTS: CodePath = "weight-endpoints"
LORA: CodePath = "lora"
SPECULATIVE: CodePath = "speculative"
CACHE: CodePath = "cache"
GRPC: CodePath = "grpc"
DEBUG: CodePath = "debug"
BATCH_RUNNER: CodePath = "batch-runner"
IMAGE_BUILD: CodePath = "image-build"

CLOSABLE_AT_THE_DOOR: frozenset[CodePath] = frozenset(
    {MULTIMODAL, MEDIA_SSRF, STRUCTURED_OUTPUT, TOOL_PARSER, CHAT_TEMPLATE, PROMPT_EMBEDS, WEIGHT_ENDPOINTS}
)
"""Paths that a request reaches by a field of its own: the gateway can refuse it."""

ALWAYS_EXPOSED: frozenset[CodePath] = frozenset({CORE, API, MODEL_LOAD})
"""Paths that no setting switches off."""

KNOWN_PATHS: tuple[CodePath, ...] = (
    CORE,
    API,
    MODEL_LOAD,
    MULTIMODAL,
    MEDIA_SSRF,
    DISAGGREGATION,
    MULTI_NODE,
    STRUCTURED_OUTPUT,
    TOOL_PARSER,
    CHAT_TEMPLATE,
    PROMPT_EMBEDS,
    WEIGHT_ENDPOINTS,
    LORA,
    SPECULATIVE,
    CACHE,
    GRPC,
    DEBUG,
    BATCH_RUNNER,
    IMAGE_BUILD,
)


@dataclass(frozen=True, slots=True)
class Exposure:
    """The code paths that a deployment has switched on, each with what switches it on."""

    reasons: Mapping[CodePath, str]

    @classmethod
    def of(cls, reasons: Mapping[CodePath, str]) -> "Exposure":
        """The given paths and those that are always exposed."""
        return cls(reasons=dict.fromkeys(sorted(ALWAYS_EXPOSED), "always exposed") | dict(reasons))

    @classmethod
    def everything(cls, extra: Iterable[CodePath] = ()) -> "Exposure":
        """Every known path: what is assumed when nothing is known about a deployment."""
        return cls(reasons=dict.fromkeys((*KNOWN_PATHS, *extra), "assumed"))

    @property
    def paths(self) -> frozenset[CodePath]:
        """The paths without their reasons."""
        return frozenset(self.reasons)

    def reaches(self, labels: frozenset[CodePath]) -> bool:
        """Whether a record with these confirmed labels can be reached; no label means every path."""
        return not labels or not labels.isdisjoint(self.reasons)
