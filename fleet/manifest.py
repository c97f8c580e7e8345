"""Manifests: the closed models of both kinds, their identity, and the only YAML code for them."""

import io
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import ValidationError, model_validator

from fleet.canonical import IDENTITY_HEX_DIGITS, canonical_json, digest, sha256_hex
from fleet.nearest import did_you_mean
from fleet.problem_words import YAML_WORDS, words_of
from fleet.spec import EngineName, Metadata, Spec
from fleet.value import Value

if TYPE_CHECKING:  # loaded with the first text: who reads none, as the gateway, does without
    from ruamel.yaml.error import YAMLError

API_VERSION: Literal["enginehouse.dev/v1"] = "enginehouse.dev/v1"
MAX_MANIFEST_BYTES = 1_000_000
MAX_DEPTH = 40
NO_MANIFESTS = ("pools", "images", "adopted", "prices", "waivers", "triage")
"""What other files of an environment hold lists of."""
MAX_PROBLEMS = 100
"""More mistakes than this are counted, not told: a document can hold a million."""


class Manifest(Value):
    """What a person writes: engine, version, hardware and parallelism may be left open."""

    apiVersion: Literal["enginehouse.dev/v1"] = API_VERSION
    kind: Literal["InferenceDeployment"] = "InferenceDeployment"
    metadata: Metadata
    spec: Spec

    @property
    def name(self) -> str:
        """The deployment's name, which is its id."""
        return self.metadata.name

    @property
    def served_name(self) -> str:
        """The public model name."""
        return self.spec.served_name or self.metadata.name

    @property
    def source_digest(self) -> str:
        """The digest of the written manifest, which its pinned manifest holds."""
        return digest(self)


class PinRecord(Value):
    """Where a pinned manifest comes from."""

    source_digest: str
    facts_digest: str
    catalogue_digest: str
    identity: str = ""
    """The identity that was pinned: another one in the same file was changed by hand. Empty = not said."""
    runtime: Literal["image", "process"]
    """``process`` says that no image stands behind the pin."""


class PinnedManifest(Value):
    """Generated from a manifest like a lock file: all four parts are fixed.

    A hosted engine has no batch, hardware or version of its own, so those are required of the others alone.
    """

    apiVersion: Literal["enginehouse.dev/v1"] = API_VERSION
    kind: Literal["PinnedInferenceDeployment"] = "PinnedInferenceDeployment"
    metadata: Metadata
    spec: Spec
    pin: PinRecord

    @model_validator(mode="after")
    def _is_pinned(self) -> Self:
        missing = missing_pins(self.spec)
        if missing:
            raise ValueError("not pinned: " + ", ".join(missing) + "; run 'enginehouse pin' on the written manifest")
        return self

    @property
    def name(self) -> str:
        """The deployment's name, which is its id."""
        return self.metadata.name

    @property
    def served_name(self) -> str:
        """The public model name."""
        return self.spec.served_name or self.metadata.name

    @property
    def engine_name(self) -> EngineName | None:
        """The engine, or ``None`` for a hosted one."""
        return self.spec.engine.name if self.spec.engine else None

    @cached_property
    def identity(self) -> str:
        """32 hex digits over model, engine, batch, hardware, parallelism, pools and features.

        Outside it: served name, alternatives, scaling, access, objectives and canary.
        """
        return identity_of(self.spec)


AnyManifest = Manifest | PinnedManifest


def missing_pins(spec: Spec) -> tuple[str, ...]:
    """The parts that are still open, as JSON pointers below the manifest; empty when all four are pinned."""
    if spec.hosted is not None:
        return ()
    engine = spec.engine
    parts = (
        ("/spec/model/revision", spec.model.revision),
        ("/spec/engine/name", engine and engine.name),
        ("/spec/engine/version", engine and engine.version),
        ("/spec/engine/image", engine and (engine.image or engine.runtime == "process")),
        ("/spec/batch", spec.batch),
        ("/spec/hardware", spec.hardware or spec.pools),
    )
    return tuple(pointer for pointer, value in parts if not value)


def identity_of(spec: Spec) -> str:
    """32 hex digits over the parts of a spec that make a deployment what it is."""
    return sha256_hex(canonical_json(_identified(spec)))[:IDENTITY_HEX_DIGITS]


_IDENTIFIED_PARTS = ("engine", "hosted", "batch", "hardware", "parallelism", "pools", "features")


def _identified(spec: Spec) -> dict[str, object]:
    plain = spec.model_dump(mode="json", exclude_none=True, include={"model", *_IDENTIFIED_PARTS})
    model = {key: plain["model"].get(key) for key in ("id", "revision", "quantization")}
    return {"model": model} | {key: plain.get(key) for key in _IDENTIFIED_PARTS}


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong in a file: where (JSON pointer) and what would be right."""

    pointer: str
    message: str


class ManifestError(Exception):
    """A manifest that can't be read, with every problem found."""

    def __init__(self, source: str, problems: Iterable[Problem]) -> None:
        self.source = source
        self.problems = tuple(problems)
        lines = (f"{problem.pointer or '/'}: {problem.message}" for problem in self.problems)
        super().__init__(f"{source}: " + "; ".join(lines))


def parse(text: str, *, source: str = "manifest") -> AnyManifest:
    """Read one manifest of either kind.

    Raises:
        ManifestError: not YAML, too large, an alias, a duplicate key, an unknown field, a wrong type or value.
    """
    document = load_yaml(text, source=source)
    if not isinstance(document, dict):
        raise ManifestError(source, [Problem("", f"expected a manifest, found {what_it_is(document)}")])
    return from_document(document, source=source)


def from_document(document: dict[str, Any], *, source: str = "manifest") -> AnyManifest:
    """The manifest that a parsed document holds; raises `ManifestError`."""
    kinds: dict[str, type[Manifest] | type[PinnedManifest]] = {
        "InferenceDeployment": Manifest,
        "PinnedInferenceDeployment": PinnedManifest,
    }
    kind = document.get("kind")
    if not isinstance(kind, str) or kind not in kinds:
        raise ManifestError(source, [_not_a_kind(document, tuple(kinds))])
    try:
        return kinds[kind].model_validate(document)
    except ValidationError as error:
        raise ManifestError(source, problems_of(error, kinds[kind])) from None


def _not_a_kind(document: dict[str, Any], kinds: tuple[str, ...]) -> Problem:
    kind, other = document.get("kind"), next((key for key in NO_MANIFESTS if key in document), None)
    if "kind" not in document and other is not None:
        return Problem("", f"this is a file of {other}, not a manifest; a manifest has the kind {kinds[0]}")
    if "kind" not in document:
        return Problem("/kind", f"'kind' is missing; a manifest has the kind {' or '.join(kinds)}")
    hint = did_you_mean(kind, kinds) if isinstance(kind, str) else ""
    return Problem("/kind", f"'{kind}' is not a kind of manifest; expected {' or '.join(kinds)}{hint}")


def what_it_is(document: object) -> str:
    """What a document is that should have been a mapping, in plain words."""
    if document is None:
        return "an empty file"
    if isinstance(document, list):
        return "a list"
    return f"the text {document[:40]!r}" if isinstance(document, str) else f"the value {document}"


def dump(manifest: AnyManifest) -> str:
    """YAML text that `parse` reads back as an equal value; what is not set is left out."""
    from ruamel.yaml import YAML

    stream = io.StringIO()
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    yaml.width = 120
    plain = manifest.model_dump(mode="json", exclude_none=True, exclude_defaults=False)
    yaml.dump(plain, stream)
    return stream.getvalue()


def load_yaml(text: str, *, source: str) -> object:
    """Plain data from YAML 1.2 text: no aliases (they can grow without bound), no duplicate keys, limited depth.

    Raises:
        ManifestError: with the line where reading stopped.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    size_bytes = len(text.encode())
    if size_bytes > MAX_MANIFEST_BYTES:
        raise ManifestError(source, [Problem("", f"{size_bytes} bytes; at most {MAX_MANIFEST_BYTES} are read")])
    try:
        _refuse_aliases_and_depth(text, source)
        return YAML(typ="safe", pure=True).load(text)
    except YAMLError as error:
        raise ManifestError(source, [Problem("", _yaml_message(error))]) from None
    except ValueError as error:
        raise ManifestError(source, [Problem("", f"a value can't be read: {error}")]) from None


def _refuse_aliases_and_depth(text: str, source: str) -> None:
    from ruamel.yaml import YAML
    from ruamel.yaml.events import AliasEvent

    depth = 0
    for event in YAML(typ="safe", pure=True).parse(text):
        if isinstance(event, AliasEvent):
            line = event.start_mark.line + 1
            message = f"line {line}: the alias '*{event.anchor}' is not allowed; write the value out"
            raise ManifestError(source, [Problem("", message)])
        kind = type(event).__name__
        depth += kind.endswith("StartEvent") - kind.endswith("EndEvent")
        if depth > MAX_DEPTH:
            raise ManifestError(source, [Problem("", f"nested deeper than {MAX_DEPTH} levels")])


def _yaml_message(error: "YAMLError") -> str:
    mark = getattr(error, "problem_mark", None)
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    problem = getattr(error, "problem", None) or str(error)
    words = " ".join(str(problem).split())
    return f"{where}{next((said for found, said in YAML_WORDS.items() if found in words), words)}"


def problems_of(error: ValidationError, model: type[Value]) -> tuple[Problem, ...]:
    """Pydantic's errors as pointers and sentences, with the nearest known name for an unknown field."""
    details = error.errors(include_url=False)
    problems = [
        Problem("".join(f"/{part}" for part in detail["loc"]), words_of(detail, model))
        for detail in details[:MAX_PROBLEMS]
    ]
    if len(details) > MAX_PROBLEMS:
        problems.append(Problem("", f"and {len(details) - MAX_PROBLEMS} more mistakes; correct these first"))
    return tuple(problems)
