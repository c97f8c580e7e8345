"""Rules about the engine's flags: the version takes them, and none of them carries a secret."""

from collections.abc import Iterator

from fleet.rules.case import Case
from fleet.rules.credentials import carries_secret
from fleet.violation import Enforcement, Violation

FLAGS_VALID = "flags-valid"
FLAGS_WITHOUT_SECRETS = "flags-without-secrets"


def flags_valid(case: Case) -> Iterator[Violation]:
    """The version takes every flag with its value."""
    release, engine = case.release, case.engine
    if release is None or release.version is None or engine is None:
        return
    for problem in case.catalogue.flag_problems(case.manifest, release.engine, release.raw):
        yield Violation(
            rule=FLAGS_VALID,
            severity=Enforcement.MANDATORY,
            pointer=_pointer(problem.flag) if problem.flag in engine.flags else "/spec/engine",
            message=problem.message,
            remedy=f"remove or correct {problem.flag}, or take a version that has it",
            evidence={"flag": problem.flag, "engine": release.engine.value, "version": release.raw},
        )


def without_secrets(case: Case) -> Iterator[Violation]:
    """No flag carries a key, a token or a password: a manifest is read by many. The value is never repeated."""
    for flag, value in sorted((case.engine.flags if case.engine else {}).items()):
        if carries_secret(flag, value):
            yield Violation(
                rule=FLAGS_WITHOUT_SECRETS,
                severity=Enforcement.MANDATORY,
                pointer=_pointer(flag),
                message=f"the flag {flag} carries a secret",
                remedy=f"remove {flag} and make the secret void: whoever read the manifest knows it",
                evidence={"flag": flag},
            )


def _pointer(flag: str) -> str:
    escaped = flag.replace("~", "~0").replace("/", "~1")
    return f"/spec/engine/flags/{escaped}"
