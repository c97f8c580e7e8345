"""The share of a GPU's memory that a manifest grants: each engine is told in its own words, and only once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.catalogue import load
from fleet.spec import EngineName

FLAGS = {
    "vllm": "--gpu-memory-utilization",
    "sglang": "--mem-fraction-static",
    "tensorrt-llm": "--free_gpu_memory_fraction",
    "lmdeploy": "--cache-max-entry-count",
}
NEWEST = {name: load().books[EngineName(name)].versions[-1] for name in FLAGS}


def hardware(share: float | None) -> dict[str, object]:
    return {"instance_type": "g6.xlarge", "gpus": 1, "sharing": "mps", "memory_share": share}


def command(catalogue, pinned, engine: str, **parts: object) -> tuple[str, ...]:
    manifest = pinned(engine, NEWEST[engine], **parts)
    return catalogue.command_line(manifest, host="127.0.0.1", port=8000).argv


@given(engine=st.sampled_from(sorted(FLAGS)), share=st.floats(min_value=0.01, max_value=1))
def test_each_engine_is_told_its_share_exactly_once(catalogue, pinned, engine, share):
    argv = command(catalogue, pinned, engine, hardware=hardware(share))
    assert argv.count(FLAGS[engine]) == 1
    assert argv[argv.index(FLAGS[engine]) + 1] == str(share)


@pytest.mark.parametrize("engine", sorted(FLAGS))
def test_without_a_share_nothing_changes(catalogue, pinned, engine):
    open_one = command(catalogue, pinned, engine, hardware=hardware(None))
    assert str(0.37) not in open_one
    told = command(catalogue, pinned, engine, hardware=hardware(0.37))
    assert [part for part in told if part not in ("0.37", FLAGS[engine])] == [
        part
        for number, part in enumerate(open_one)
        if part != FLAGS[engine] and (not number or open_one[number - 1] != FLAGS[engine])
    ]


def test_a_flag_that_says_another_share_is_a_problem(catalogue, pinned):
    flags = {"--gpu-memory-utilization": 0.9}
    version = NEWEST["vllm"]
    manifest = pinned("vllm", version, flags=flags, hardware=hardware(0.4))
    (problem,) = catalogue.flag_problems(manifest, EngineName.VLLM, version)
    assert problem.message == ("--gpu-memory-utilization is 0.9, but hardware.memory_share is 0.4; keep one of them")
    alike = pinned("vllm", version, flags=flags, hardware=hardware(0.9))
    assert not list(catalogue.flag_problems(alike, EngineName.VLLM, version))
