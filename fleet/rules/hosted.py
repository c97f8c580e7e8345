"""Rules about engines that somebody else runs: known to the catalogue, and their key by reference."""

from collections.abc import Iterator

from fleet.nearest import did_you_mean
from fleet.rules.case import Case
from fleet.rules.credentials import has_credentials, looks_like_key
from fleet.violation import Enforcement, Violation

HOSTED_KNOWN = "hosted-known"
HOSTED_KEY = "hosted-key-by-reference"


def hosted_known(case: Case) -> Iterator[Violation]:
    """The catalogue knows the hosted engine."""
    hosted = case.manifest.spec.hosted
    known = case.catalogue.hosted_names
    if hosted is not None and hosted.name not in known:
        yield Violation(
            rule=HOSTED_KNOWN,
            severity=Enforcement.MANDATORY,
            pointer="/spec/hosted/name",
            message=f"the catalogue does not know the hosted engine {hosted.name}{did_you_mean(hosted.name, known)}",
            remedy=f"take one of {', '.join(known)}" if known else "run an engine of your own",
            evidence={"hosted": hosted.name.value},
        )


def key_by_reference(case: Case) -> Iterator[Violation]:
    """The key is named, not written. What stands there is never repeated."""
    hosted = case.manifest.spec.hosted
    if hosted is None:
        return
    if not hosted.api_key_ref.strip():
        yield _violation("/spec/hosted/api_key_ref", "the name of the secret with the key is empty")
    elif looks_like_key(hosted.api_key_ref):
        yield _violation("/spec/hosted/api_key_ref", "api_key_ref looks like a key; it names the secret that holds it")
    if has_credentials(hosted.endpoint):
        yield _violation("/spec/hosted/endpoint", "the endpoint carries credentials in its address")


def _violation(pointer: str, message: str) -> Violation:
    return Violation(
        rule=HOSTED_KEY,
        severity=Enforcement.MANDATORY,
        pointer=pointer,
        message=message,
        remedy="put the key into a secret, give the secret's name in api_key_ref, and make a key void that stood in "
        "a manifest",
    )
