"""Rules about what must be fixed before anything runs: the four pins, and a pin that has grown stale."""

import re
from collections.abc import Iterator

from fleet.manifest import Manifest, PinnedManifest, missing_pins
from fleet.rules.case import Case
from fleet.violation import Enforcement, Violation

FOUR_PINS = "four-pins"
MODEL_REVISION = "model-revision"
PIN_STALE = "pin-stale"

_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_PARTS = {
    "/spec/model/revision": ("the model's revision is left open", "give the commit of the model repository"),
    "/spec/engine/name": ("the engine is left open", "name an engine, or run 'enginehouse pin'"),
    "/spec/engine/version": ("the engine's version is left open", "give a published version, or run 'enginehouse pin'"),
    "/spec/engine/image": (
        "the engine's image is left open",
        "give repository@sha256:..., as images.yaml of the environment records it for the version",
    ),
    "/spec/batch": ("the batch settings are left open", "give batch with max_model_len, or run 'enginehouse pin'"),
    "/spec/hardware": (
        "the hardware is left open",
        "give hardware with instance_type and gpus, or pools, or run 'enginehouse pin'",
    ),
}


def four_pins(case: Case) -> Iterator[Violation]:
    """Model, engine, batch and hardware are fixed.

    A canary's engine may stay open: the second arm is pinned and judged as a manifest of its own.
    """
    for pointer in missing_pins(case.manifest.spec):
        what, remedy = _PARTS[pointer]
        is_open_canary = case.is_canary and pointer.startswith("/spec/engine/")
        yield Violation(
            rule=FOUR_PINS,
            severity=Enforcement.ADVISORY if is_open_canary else Enforcement.MANDATORY,
            pointer=pointer,
            message=f"not pinned: {what}",
            remedy=remedy,
        )


def model_revision(case: Case) -> Iterator[Violation]:
    """The revision is a commit, since a branch or a tag moves."""
    revision = case.manifest.spec.model.revision
    if case.manifest.spec.hosted is None and revision is not None and not _COMMIT.fullmatch(revision):
        yield Violation(
            rule=MODEL_REVISION,
            severity=Enforcement.MANDATORY,
            pointer="/spec/model/revision",
            message=f"the revision '{revision}' of {case.manifest.spec.model.id} is not a commit and may move",
            remedy="give the full commit of the model repository, 40 hex digits",
            evidence={"model": case.manifest.spec.model.id, "revision": revision},
        )


def pin_stale(case: Case) -> Iterator[Violation]:
    """The pinned manifest was made from the written one as it stands; judged where the caller has both."""
    if case.written is not None and isinstance(case.manifest, PinnedManifest):
        yield from stale(case.written, case.manifest)


def stale(written: Manifest, pinned: PinnedManifest, *, source_digest: str | None = None) -> list[Violation]:
    """Whether the written manifest has changed since it was pinned, or the pin was changed by hand; needs no facts.

    ``source_digest`` is given for a canary's arm (`fleet.canary_arm`), which is pinned from the manifest that has it.
    """
    if written.name != pinned.name:
        message = f"the pin is of '{pinned.name}', the written manifest is '{written.name}'"
        return [_stale("/metadata/name", message, written.name, pinned.name)]
    found, wanted = pinned.pin.source_digest, source_digest or written.source_digest
    if found != wanted:
        message = f"{pinned.name} was pinned from {found}, but the written manifest has changed since and is {wanted}"
        return [_stale("/pin/source_digest", message, wanted, found)]
    differing = _differing(_said(written, pinned), pinned.spec.model_dump(mode="json"), "/spec")
    said_otherwise = [
        _stale(pointer, f"the manifest says {ours!r}, the pin says {theirs!r}", str(ours), str(theirs))
        for pointer, ours, theirs in differing
        if pointer not in _FILLED_BY_PINNING
    ]
    if not said_otherwise and pinned.pin.identity not in ("", pinned.identity):
        message = f"the pin was made as {pinned.pin.identity}, and changed by hand since to {pinned.identity}"
        return [_stale("/pin/identity", message, pinned.pin.identity, pinned.identity)]
    return said_otherwise


_FILLED_BY_PINNING = frozenset({"/spec/engine/runtime", "/spec/canary/engine/runtime"})
"""A pin may say that a process stands for an image that nobody recorded."""


def _said(written: Manifest, pinned: PinnedManifest) -> dict[str, object]:
    """What is written; of batch and parallelism only what stands there, since the rest is left to pinning.

    Where the pin took an alternative, it is that one's id and revision that were written.
    """
    plain = written.spec.model_dump(mode="json")
    for item in written.spec.model.alternatives:
        if item.id == pinned.spec.model.id != written.spec.model.id:
            plain["model"] = {"id": item.id, "revision": item.revision}
    if written.spec.batch is not None:
        plain["batch"] = written.spec.batch.model_dump(mode="json", exclude_unset=True)
    if "parallelism" not in written.spec.model_fields_set:
        plain["parallelism"] = None
    return plain


def _differing(written: object, pinned: object, pointer: str) -> Iterator[tuple[str, object, object]]:
    """Where a pin contradicts what is written; what is left open there may be anything."""
    if isinstance(written, dict) and isinstance(pinned, dict):
        for key, value in written.items():
            yield from _differing(value, pinned.get(key), f"{pointer}/{key}")
    elif written is not None and written != pinned:
        yield pointer, written, pinned


def _stale(pointer: str, message: str, written: str, pinned: str) -> Violation:
    return Violation(
        rule=PIN_STALE,
        severity=Enforcement.MANDATORY,
        pointer=pointer,
        message=message,
        remedy="run 'enginehouse pin' on the written manifest again",
        evidence={"written": written, "pinned": pinned},
    )
