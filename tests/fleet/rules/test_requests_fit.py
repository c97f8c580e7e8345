"""Requests that the objectives describe must fit into the context that the batch gives them."""

from hypothesis import given
from hypothesis import strategies as st

from fleet.rules.requests import REQUESTS_FIT_CONTEXT
from fleet.violation import Enforcement

TOKENS = st.none() | st.integers(1, 200_000)


@given(longest=st.integers(1, 200_000), prompt=TOKENS, answer=TOKENS, is_pinned=st.booleans())
def test_requests_are_refused_exactly_where_they_are_longer_than_the_context(world, longest, prompt, answer, is_pinned):
    objectives = {"input_tokens": prompt, "output_tokens": answer}
    make = world.pinned if is_pinned else world.written
    manifest = make(batch={"max_model_len": longest}, objectives=objectives)
    found = [item for item in world.review(manifest) if item.rule == REQUESTS_FIT_CONTEXT]
    needed = (prompt or 0) + (answer or 0)
    assert bool(found) == (needed > longest)
    for item in found:
        assert item.severity is Enforcement.MANDATORY
        assert str(needed) in item.message
        assert str(longest) in item.message
        assert f"at least {needed}" in item.remedy


def test_without_a_context_or_objectives_nothing_is_said(world):
    for changes in ({"batch": None, "objectives": {"input_tokens": 10**6}}, {"batch": {"max_model_len": 1}}):
        assert REQUESTS_FIT_CONTEXT not in {item.rule for item in world.review(world.written(**changes))}
