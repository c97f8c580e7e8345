"""What is wrong in a manifest or an environment's file is said in plain words, with what would be right."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.hardware import gpu_models
from fleet.manifest import ManifestError, parse
from fleet.nearest import did_you_mean, spelled

GOOD = """\
kind: InferenceDeployment
metadata: {name: chat}
spec:
  workload: chat
  model: {id: Qwen/Qwen3-32B}
"""


@given(st.sampled_from(sorted(gpu_models())), st.sampled_from([str.lower, str.upper, str.swapcase]))
def test_capitals_never_hide_a_known_name(name: str, change) -> None:
    assert spelled(change(name), gpu_models()) == name
    assert did_you_mean(change(name), gpu_models()) == f"; did you mean '{name}'?"


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("A100", "; did you mean 'A100-40' or 'A100-80'?"),
        ("a100-4", "; did you mean 'A100-40'?"),
        ("H10", "; did you mean 'H100'?"),
        ("banana", ""),
        ("RTX4090", ""),
    ],
)
def test_a_guess_is_near_or_not_made(word: str, hint: str) -> None:
    assert did_you_mean(word, ("L4", "A10G", "L40S", "A100-40", "A100-80", "H100", "H200", "B200", "B300")) == hint


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected a manifest, found an empty file"),
        ("- a\n", "found a list"),
        ("pools: [{name: a}]\n", "this is a file of pools, not a manifest"),
        ("spec: {}\n", "'kind' is missing"),
        ("kind: InferenceDeploiment\n", "did you mean 'InferenceDeployment'?"),
        (GOOD + "---\n" + GOOD, "a second document begins here"),
        (GOOD + "   batch: {}\n", "not indented like the ones above it"),
        (GOOD.replace("  workload", "    workload"), "not indented like the ones above it"),
        ("kind: a\n  metadata: {}\n", "indented further than the one above it"),
        ("kind: a\n\tmetadata: {}\n", "a tab stands where only blanks may indent"),
        (GOOD.replace("name: chat", "name: Chat_1"), "'Chat_1' is not allowed; a name is 1 to 63 lowercase letters"),
        (GOOD.replace("workload: chat", "workload: chatt"), "one of chat, structured-output"),
        (GOOD.replace("workload: chat", "workload: chatt"), "did you mean 'chat'?"),
        (GOOD.replace("workload: chat", "workload: [chat]"), "a list is not known here"),
        (GOOD.replace("  workload: chat\n", ""), "/spec/workload: 'workload' is missing"),
        (GOOD + "  engine: {name: vllm, engine_args: {a: 1}}\n", "stand under spec.engine.flags"),
        (GOOD + "  batch: {max_model_len: 32k}\n", "expected a whole number (found '32k')"),
        (GOOD + "  engine: vllm\n", "expected a mapping (found 'vllm')"),
    ],
)
def test_a_mistake_is_said_in_plain_words(text: str, said: str) -> None:
    with pytest.raises(ManifestError) as caught:
        parse(text)
    assert said in str(caught.value)
    assert "Input should" not in str(caught.value)
