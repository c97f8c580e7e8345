"""Flags that a manifest gives: what is wrong is said with the version that has it or the value that would be right."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.catalogue import Catalogue, load
from fleet.spec import EngineName

VLLM = load().books[EngineName.VLLM]


def message(catalogue: Catalogue, pinned, version: str, flags: dict, engine: str = "vllm") -> str:
    (problem,) = catalogue.flag_problems(pinned(engine, version, flags=flags), EngineName(engine), version)
    assert problem.flag in flags
    return problem.message


@pytest.mark.parametrize(
    ("version", "flag", "value", "says"),
    [
        ("0.26.0", "--max-num-queued-reqs", 8, "is not in vllm 0.26.0; it is from 0.30.0 on"),
        ("0.33.0", "--calculate-kv-scales", True, "is not in vllm 0.33.0; removed; last in 0.26.0"),
        ("0.31.0", "--enable-mamba-fine-grained-prefix-cache", True, "removed; it was in 0.30.0"),
        ("0.33.0", "--max-nun-seqs", 4, "is not a flag of vllm 0.33.0; did you mean --max-num-seqs?"),
        ("0.33.0", "--xyzzy", 4, "is not a flag of vllm 0.33.0"),
        ("0.33.0", "enforce-eager", True, "written with their leading dashes, such as --enforce-eager"),
        ("0.18.1", "--kv-cache-dtype", "nvfp4", "does not take 'nvfp4'; in vllm 0.18.1 it takes auto, bfloat16"),
        ("0.33.0", "--enforce-eager", "yes", "takes no value (found 'yes'); write true for --enforce-eager or --no-"),
        ("0.33.0", "--block-size", True, "needs a value"),
        ("0.33.0", "--max-model-len", "long", "takes a whole number; found 'long'"),
        ("0.33.0", "--gpu-memory-utilization", "high", "takes a number; found 'high'"),
        ("0.33.0", "--trust-remote-code", True, "is set from /spec/features/trust_remote_code"),
        ("0.33.0", "--no-trust-remote-code", True, "is set from /spec/features/trust_remote_code"),
        ("0.33.0", "--port", 9, "is set from the runtime"),
        ("0.33.0", "--config", "x.yaml", "can't be given: settings in a file can't be reviewed"),
        ("0.29.0", "--max-num-queued-reqs", 8, "that of 0.28.0, the nearest older, was taken"),
        ("9.0.0", "--xyzzy", 8, "that of 0.33.0, the nearest older, was taken"),
    ],
)
def test_a_problem_says_what_would_be_right(catalogue: Catalogue, pinned, version, flag, value, says) -> None:
    assert says in message(catalogue, pinned, version, {flag: value})


def test_a_right_flag_is_no_problem(catalogue: Catalogue, pinned) -> None:
    flags = {
        "--max-num-queued-reqs": 8,
        "--kv-cache-dtype": "nvfp4",
        "--enforce-eager": True,
        "--no-async-scheduling": True,
        "--gpu-memory-utilization": 0.8,
        "--cudagraph-capture-sizes": "1 2 4",
    }
    assert catalogue.flag_problems(pinned("vllm", "0.33.0", flags=flags), EngineName.VLLM, "0.33.0") == ()


def test_a_local_version_takes_the_list_of_its_release(catalogue: Catalogue, pinned) -> None:
    flags = {"--max-num-queued-reqs": 8}
    assert catalogue.flag_problems(pinned("vllm", "0.33.0", flags=flags), EngineName.VLLM, "0.33.0+cu129") == ()


def test_the_prefix_of_a_flag_is_not_the_flag(catalogue: Catalogue, pinned) -> None:
    assert "did you mean" in message(catalogue, pinned, "0.33.0", {"--trust-remote": True})


def test_sglang_spellings_come_and_go(catalogue: Catalogue, pinned) -> None:
    said = message(catalogue, pinned, "0.5.23", {"--torchao-config": "x"}, engine="sglang")
    assert "removed; last in 0.5.10.post1" in said


@given(st.sampled_from(sorted(VLLM.spellings)), st.sampled_from(VLLM.versions))
def test_a_flag_is_refused_exactly_where_its_version_lacks_it(catalogue: Catalogue, pinned, spelling, version):
    flag = VLLM.spellings[spelling]
    has = VLLM.versions.index(version) in flag.presence[spelling]
    problems = catalogue.flag_problems(pinned("vllm", version, flags={spelling: True}), EngineName.VLLM, version)
    assert any("is not in vllm" in item.message for item in problems) is not has


PRINTABLE = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=40)


@given(PRINTABLE, st.one_of(PRINTABLE, st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.booleans()))
def test_any_text_gets_an_answer(catalogue: Catalogue, pinned, spelling, value):
    manifest = pinned("vllm", "0.33.0", flags={spelling: value})
    catalogue.flag_problems(manifest, EngineName.VLLM, "0.33.0")
    catalogue.command_line(manifest, host="127.0.0.1", port=1)
