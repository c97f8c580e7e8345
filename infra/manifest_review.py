"""The manifests of an environment, judged before anything of them is registered."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from fleet.canary_arm import canary_arm
from fleet.cloud.manifests import is_news
from fleet.engine import EngineCatalogue
from fleet.facts import Facts
from fleet.manifest import NO_MANIFESTS, AnyManifest, Manifest, ManifestError, PinnedManifest
from fleet.rules import review
from fleet.rules.pins import stale
from fleet.violation import Enforcement, Violation
from infra.problem import Problem
from sources import manifest_file
from sources.environment import Adopted
from sources.errors import SourceError

_SUFFIXES = frozenset({".yaml", ".yml"})
_FOLDERS = ("waivers", "triage", "models")
"""What an environment holds beside manifests, see `sources.environment`."""
_PINNED = ".pinned"
_KIND = "InferenceDeployment"


@dataclass(frozen=True, slots=True)
class Judged:
    """What becomes of an environment's manifests."""

    manifests: tuple[PinnedManifest, ...]
    """By name; those with problems are among them."""
    problems: tuple[Problem, ...]
    """Any of them stops the program."""
    warnings: tuple[str, ...]
    """What a newer advisory says about identities that already run here."""
    adopted: frozenset[str] = frozenset()
    """Names of those that run here, whatever their identity."""


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    manifest: AnyManifest


def judged(folder: Path, facts: Facts, catalogue: EngineCatalogue, adopted: Iterable[Adopted]) -> Judged:
    """Every pinned manifest of an environment's folder by the rules, with the written one that it was made from.

    New and changed identities that are refused, stale pins, and manifests without one are problems. What an advisory
    says about an identity of ``adopted.yaml`` is a warning where the policy's ``existing_identities`` says so.
    """
    files, problems = _read(folder)
    written = {item.path: item.manifest for item in files if isinstance(item.manifest, Manifest)}
    pinned = {item.path: item.manifest for item in files if isinstance(item.manifest, PinnedManifest)}
    problems += [*_unpinned(written, pinned), *_twice(pinned)]
    running = {(item.name, item.identity) for item in adopted}
    warnings: list[str] = []
    for path, manifest in pinned.items():
        found = [
            *review(manifest, facts, catalogue, written=_source(path, written)),
            *_stale_arm(path, manifest, written),
        ]
        is_running = (manifest.name, manifest.identity) in running
        may_stay = is_running and facts.policy.existing_identities == "warn"
        for item in found:
            if item.severity is Enforcement.MANDATORY and may_stay and is_news(item):
                warnings.append(f"{path}: {manifest.name} runs as {manifest.identity}, and now: {_words(item)}")
            elif item.severity is Enforcement.MANDATORY:
                problems.append(_refused(path, manifest, item))
    ordered = sorted(pinned.values(), key=lambda item: item.name)
    return Judged(tuple(ordered), tuple(problems), tuple(warnings), frozenset(name for name, _ in running))


def _read(folder: Path) -> tuple[list[_File], list[Problem]]:
    files: list[_File] = []
    problems: list[Problem] = []
    for path in sorted(folder.glob("*")):
        passed_over = _passed_over(path)
        if passed_over is not None:
            problems.append(passed_over)
        if passed_over or path.suffix not in _SUFFIXES or path.stem in NO_MANIFESTS or path.name.startswith("."):
            continue
        try:
            files.append(_File(path, manifest_file.read(path)))
        except (ManifestError, SourceError) as error:
            problems.append(Problem(str(path), "", str(error).removeprefix(f"{path}: "), "correct the file"))
    return files, problems


def _passed_over(path: Path) -> Problem | None:
    """What looks like a manifest and stands where none is read."""
    ending = path.suffix.lower()
    if path.name.startswith(".") or path.name in _FOLDERS:
        return None
    if path.is_dir():
        inside = sorted(item for item in path.rglob("*.[yY]*") if item.suffix.lower() in _SUFFIXES)
        message = f"it holds {inside[0].name}, and manifests in folders are not read" if inside else None
        return Problem(str(path), "", message, f"move it to {path.parent}") if message else None
    if ending in _SUFFIXES and path.suffix not in _SUFFIXES:
        return Problem(str(path), "", "it is not read for its ending", f"call it {path.with_suffix(ending).name}")
    if ending == ".json" and _is_manifest_in_json(path):
        return Problem(str(path), "", "manifests in JSON are not read", f"write it as {path.stem}.yaml")
    return None


def _is_manifest_in_json(path: Path) -> bool:
    try:
        return path.stem.endswith(_PINNED) or _KIND in path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True


def _source(path: Path, written: dict[Path, Manifest]) -> Manifest | None:
    """The written manifest of a pin; that of a canary's pin is another one's arm, see `_stale_arm`."""
    return next((item for place, item in written.items() if manifest_file.pinned_path(place) == path), None)


def _stale_arm(path: Path, pinned: PinnedManifest, written: dict[Path, Manifest]) -> list[Violation]:
    """A canary's pin against the arm that the manifest with the canary asks for."""
    source = next((item for place, item in written.items() if manifest_file.canary_path(place) == path), None)
    return [] if source is None else stale(canary_arm(source), pinned, source_digest=source.source_digest)


def _unpinned(written: dict[Path, Manifest], pinned: dict[Path, PinnedManifest]) -> Iterator[Problem]:
    for path, manifest in written.items():
        beside = manifest_file.pinned_path(path)
        if beside not in pinned and not beside.exists():
            message = f"{manifest.name} is not pinned: {beside.name} is missing"
            yield Problem(str(path), "", message, f"run 'enginehouse pin --write {path}'")


def _twice(pinned: dict[Path, PinnedManifest]) -> Iterator[Problem]:
    places: dict[str, Path] = {}
    for path, manifest in pinned.items():
        first = places.setdefault(manifest.name, path)
        if first != path:
            message = f"the name is taken by {first.name}; names are ids"
            yield Problem(str(path), manifest.name, message, "give one of them another name")


def _refused(path: Path, manifest: PinnedManifest, item: Violation) -> Problem:
    message = (
        f"{manifest.name} ({manifest.identity}) is refused by {item.rule} at {item.pointer or '/'}: {item.message}"
    )
    return Problem(str(path), "", message, item.remedy)


def _words(item: Violation) -> str:
    return f"{item.message} ({item.rule}); {item.remedy}"
