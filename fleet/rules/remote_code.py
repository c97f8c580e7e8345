"""The rule about code that comes with a model: it runs only where somebody answers for it."""

from collections.abc import Iterator

from fleet.rules.case import Case
from fleet.violation import Enforcement, Violation

REMOTE_CODE = "remote-code"


def remote_code(case: Case) -> Iterator[Violation]:
    """The engine does not run code from the model repository, or a waiver of this rule says who answers for it."""
    spec = case.manifest.spec
    pointers = ["/spec/features/trust_remote_code"] if spec.features.trust_remote_code and spec.hosted is None else []
    flags = spec.engine.flags if spec.engine else {}
    pointers += [f"/spec/engine/flags/{flag}" for flag, value in flags.items() if _trusts(flag, value)]
    for pointer in sorted(pointers):
        yield Violation(
            rule=REMOTE_CODE,
            severity=Enforcement.MANDATORY,
            pointer=pointer,
            message=f"{spec.model.id} may run its own code on the engine (trust_remote_code)",
            remedy="take a model that the engine knows by itself, or a waiver of the rule 'remote-code' for this "
            "identity, with owner, reason and end",
            evidence={"model": spec.model.id, "revision": spec.model.revision or "open"},
        )


def _trusts(flag: str, value: object) -> bool:
    return flag.lstrip("-").replace("_", "-") == "trust-remote-code" and str(value).lower() not in ("false", "0")
