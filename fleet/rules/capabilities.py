"""Rules about what engine and version can do, and whether both sides speak of the same catalogue."""

from collections.abc import Iterator

from fleet.rules.case import Case
from fleet.violation import Enforcement, Violation

SUPPORTED = "supported"
CATALOGUE_SAME = "catalogue-same"


def supported(case: Case) -> Iterator[Violation]:
    """Quantisation, parallelism and features are in the version."""
    release = case.release
    if release is None or release.version is None:
        return
    for item in case.catalogue.unsupported(case.manifest, release.engine, release.raw):
        yield Violation(
            rule=SUPPORTED,
            severity=Enforcement.MANDATORY,
            pointer=item.pointer,
            message=item.message,
            remedy="change the setting, or take an engine or version that has it",
            evidence={"engine": release.engine.value, "version": release.raw},
        )


def catalogue_same(case: Case) -> Iterator[Violation]:
    """The facts were made with the catalogue that judges."""
    theirs, ours = case.facts.catalogue_digest, case.catalogue.digest
    if theirs and theirs != ours:
        yield Violation(
            rule=CATALOGUE_SAME,
            severity=Enforcement.ADVISORY,
            pointer="",
            message=f"the facts were made with the engine catalogue {theirs}, this review uses {ours}",
            remedy="use the same release of enginehouse on both sides",
            evidence={"facts": theirs, "review": ours},
        )
