"""The rule that the requests which the objectives describe fit into the context that the batch gives them."""

from collections.abc import Iterator

from fleet.rules.case import Case
from fleet.violation import Enforcement, Violation

REQUESTS_FIT_CONTEXT = "requests-fit-context"


def requests_fit_context(case: Case) -> Iterator[Violation]:
    """Input and output tokens of the objectives, together, are at most the longest request of the batch."""
    wished, batch = case.manifest.spec.objectives, case.manifest.spec.batch
    if wished is None or batch is None:
        return
    parts = {"input_tokens": wished.input_tokens, "output_tokens": wished.output_tokens}
    given = {name: tokens for name, tokens in parts.items() if tokens is not None}
    tokens, longest = sum(given.values()), batch.max_model_len
    if tokens <= longest:
        return
    asked = " + ".join(f"{name} {size}" for name, size in given.items())
    yield Violation(
        rule=REQUESTS_FIT_CONTEXT,
        severity=Enforcement.MANDATORY,
        pointer="/spec/objectives",
        message=f"requests of {tokens} tokens ({asked}) are longer than batch.max_model_len {longest}: "
        "the engine refuses them",
        remedy=f"give batch.max_model_len at least {tokens}, or objectives of at most {longest} tokens together",
        evidence={"tokens": str(tokens), "max_model_len": str(longest)},
    )
