"""What can be wished for: values that can't be read, or that contradict each other, are refused where they come in."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.model_catalogue import find
from fleet.model_reading import read_model
from fleet.plan_speed import request_lengths
from fleet.plan_wish import PlanWish, WishError
from fleet.planner import plan, smallest_gpus

TOKENS = st.none() | st.integers(0, 10**6)


@given(context=st.none() | st.integers(1, 10**6), prompt=TOKENS, answer=TOKENS)
def test_a_context_holds_the_prompt_and_the_answer_or_is_refused_with_all_numbers(context, prompt, answer):
    wish = PlanWish(context_tokens=context, input_tokens=prompt, output_tokens=answer)
    needed = (prompt or 0) + (answer or 0)
    if context is None or needed <= context:
        wish.check()
        return
    with pytest.raises(WishError) as refused:
        wish.check()
    for tokens in (context, needed, *(part for part in (prompt, answer) if part is not None)):
        assert str(tokens) in str(refused.value)
    dataclasses.replace(wish, context_tokens=needed).check()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("concurrency", 0),
        ("gpus", -1),
        ("max_num_seqs", 0),
        ("gpu_memory_utilization", 1.2),
        ("gpu_memory_utilization", 0),
        ("tensor", 0),
        ("output_tokens", -1),
    ],
)
def test_a_wish_below_the_possible_is_refused_with_key_and_value(key, value):
    with pytest.raises(WishError, match=f"{key} is {value}"):
        PlanWish(**{key: value}).check()


@pytest.mark.parametrize(
    "version",
    ["0.33.0", "v0.33.0", "1.3.0 rc17", "0.33.0-cu129", "26.06", "99.1", "nightly-dev", "glm5-hopper", ">=0.12"],
)
def test_every_name_of_a_build_can_be_asked_for(version):
    """Engines are named by branch and by floor in the recipes that people have."""
    PlanWish(engine_version=version).check()


@pytest.mark.parametrize("ask", [plan, smallest_gpus])
def test_the_planner_reads_the_wish_before_it_plans(ask):
    with pytest.raises(WishError, match="kv_dtype is 'banana'"):
        ask(read_model(find("Qwen/Qwen3-8B").config, id="Qwen/Qwen3-8B"), PlanWish(kv_dtype="banana"))


def test_every_whole_number_of_a_wish_has_a_least_value():
    counts = [item.name for item in dataclasses.fields(PlanWish) if "int" in str(item.type) and item.name != "expert"]
    for name in counts:
        with pytest.raises(WishError, match=f"{name} is -1"):
            PlanWish(**{name: -1}).check()


@given(context=st.integers(2, 200_000), share=st.floats(0, 1))
def test_prompt_and_answer_never_take_more_than_the_context(context, share):
    model = read_model(find("Qwen/Qwen3-8B").config, id="Qwen/Qwen3-8B")
    prompt = max(1, int(share * (context - 1)))
    for wish in (
        PlanWish(context_tokens=context, input_tokens=prompt),
        PlanWish(context_tokens=context, output_tokens=prompt),
        PlanWish(context_tokens=context),
    ):
        wish.check()
        assert sum(request_lengths(wish, model)) <= context
