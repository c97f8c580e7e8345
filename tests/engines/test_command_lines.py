"""Command lines: the golden ones, and the laws that hold for every manifest on every known version."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines import package_data
from engines.catalogue import Catalogue, load
from fleet.spec import EngineName

GOLDEN = Path(__file__).parent / "golden"
NAMES = sorted(path.stem for path in GOLDEN.glob("*.json"))
KNOWN = [(name, version) for name in EngineName for version in load().books[name].versions]
AGAIN = Catalogue.of(package_data.read())
ADDRESS = {"host": "127.0.0.1", "port": 8000}


def parts() -> st.SearchStrategy[dict]:
    """Parts of a manifest's spec, whether a version can do them or not."""
    one_of = st.sampled_from
    batch = st.fixed_dictionaries(
        {
            "max_model_len": one_of([2048, 131072]),
            "kv_cache_dtype": one_of(["auto", "bf16", "fp8"]),
            "enable_prefix_caching": st.booleans(),
        }
    )
    sizes = one_of([1, 2, 4])
    parallelism = st.fixed_dictionaries(
        dict.fromkeys(("tensor", "pipeline", "data", "context", "expert"), sizes) | {"sequence": st.booleans()}
    )
    features = st.fixed_dictionaries(
        {
            "modalities": st.lists(one_of(["image", "video", "audio"]), unique=True).map(
                lambda found: ["text", *found]
            ),
            "lora": st.lists(one_of(["acme/tone", "legal=acme/law"]), unique=True),
            "disaggregation": one_of(["none", "prefill-decode", "encoder"]),
            "kv_offload": one_of(["none", "host", "lmcache", "mooncake"]),
            "speculative": one_of(["none", "ngram", "draft", "eagle", "mtp"]),
            "kv_events": one_of([None, "zmq"]),
            "structured_output": st.booleans(),
            "tool_parser": one_of([None, "qwen3_coder"]),
            "trust_remote_code": st.booleans(),
        }
    )
    model = st.fixed_dictionaries(
        {
            "id": one_of(["Qwen/Qwen3-32B", "Qwen/Qwen3-32B-FP8", "Qwen/Qwen3-VL-8B-Instruct", "acme/unknown"]),
            "revision": st.just("9216db5781bf21249d130ec9da846c4624c16137"),
            "quantization": one_of([None, "bf16", "fp8", "nvfp4", "awq", "int8"]),
        }
    )
    return st.fixed_dictionaries(
        {
            "workload": one_of(["chat", "embedding", "rerank", "speech", "batch", "multimodal"]),
            "batch": batch,
            "parallelism": parallelism,
            "features": features,
            "model": model,
        }
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_golden_command_line_is_made_again(name, golden) -> None:
    manifest = golden["cases"]()[name]
    assert golden["render"](manifest) == (GOLDEN / f"{name}.json").read_text(encoding="utf-8")


def test_there_is_a_golden_file_for_each_case(golden) -> None:
    assert sorted(golden["cases"]()) == NAMES
    assert len([name for name in NAMES if name.startswith("vllm")]) >= 3


def spellings(argv: tuple[str, ...]) -> list[str]:
    return [argument.partition("=")[0] for argument in argv if argument.startswith("--")]


@given(st.data(), st.sampled_from(KNOWN), parts(), st.sampled_from(["prefill", "decode"]))
def test_every_rendered_flag_is_in_the_list_of_its_version(catalogue: Catalogue, pinned, data, known, found, pool):
    name, version = known
    argv = catalogue.command_line(pinned(name, version, **found), **ADDRESS, pool=pool).argv
    flags = catalogue.books[name].at(version)
    unknown = [spelling for spelling in spellings(argv) if not flags.has(spelling)]
    assert not unknown
    names = [flags.name(spelling) for spelling in spellings(argv)]
    assert len(names) == len(set(names)), "a setting stands twice"


@given(st.sampled_from(KNOWN), parts())
def test_a_rendered_value_is_a_choice_of_its_version_unless_the_manifest_is_unsupported(
    catalogue: Catalogue, pinned, known, found
):
    name, version = known
    manifest = pinned(name, version, **found)
    argv = catalogue.command_line(manifest, **ADDRESS, pool="decode").argv
    flags = catalogue.books[name].at(version)
    for spelling, value in pairwise(argv):
        choices = flags.choices(spelling) if spelling.startswith("--") else None
        if choices is not None and not value.startswith("--") and value not in choices:
            assert catalogue.unsupported(manifest, name, version)


@given(st.sampled_from([EngineName.VLLM, EngineName.SGLANG, EngineName.LMDEPLOY]), parts(), st.data())
def test_an_upgrade_changes_only_what_one_of_the_two_versions_lacks(catalogue: Catalogue, pinned, name, found, data):
    older, newer = data.draw(st.sampled_from(list(pairwise(catalogue.books[name].versions))))
    before, after = (
        as_settings(catalogue.command_line(pinned(name, version, **found), **ADDRESS, pool="prefill").argv)
        for version in (older, newer)
    )
    takes_both = {
        spelling
        for spelling in before | after
        if all(catalogue.books[name].at(version).has(spelling) for version in (older, newer))
    }
    assert {key: before.get(key) for key in takes_both if key in before} == {
        key: after.get(key) for key in takes_both if key in before
    }
    new = {key for key in takes_both if key in after and key not in before}
    assert new <= {"--grammar-backend"}, "0.4.3 has the flag, but no way to say none"


def as_settings(argv: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for argument in argv:
        if argument.startswith("--"):
            current = found.setdefault(argument, [])
        else:
            current.append(argument)
    return {spelling: tuple(values) for spelling, values in found.items()}


@given(parts())
def test_the_same_manifest_gives_the_same_command(pinned, found):
    manifest = pinned("vllm", "0.33.0", **found)
    first, second = (item.command_line(manifest, **ADDRESS, pool="prefill") for item in (load(), AGAIN))
    assert first == second


@pytest.mark.parametrize("name", list(EngineName))
def test_each_default_that_moved_is_written_out_or_its_reason_is_known(catalogue: Catalogue, name) -> None:
    table = catalogue.tables[name]
    known = {item.flag for item in (*table.written, *table.moved)} | set(table.owned)
    known |= {table.shutdown.flag} if table.shutdown.flag else set()
    moved = {flag.name for flag in catalogue.books[name].flags.values() if len(flag.defaults) > 1}
    assert moved <= known


@pytest.mark.parametrize("name", list(EngineName))
def test_each_flag_that_the_data_names_is_the_name_of_a_setting(catalogue: Catalogue, name) -> None:
    table, book = catalogue.tables[name], catalogue.books[name]
    named = [item.flag for item in (*table.written, *table.moved, *table.closes_media)]
    named += [flag for rule in table.exposure for flag in (*rule.flags, *rule.off)]
    named += [flag for item in (*table.requires, *table.needs_flag) for flag in item.flags]
    named += [*table.owned, *table.refused]
    assert [flag for flag in named if flag not in book.flags] == []
    assert [item.flag for item in table.parallelism.values() if item.flag not in book.spellings] == []


def test_the_manifests_own_flags_win_over_what_was_derived(catalogue: Catalogue, pinned) -> None:
    given_flags = {
        "--gpu-memory-utilization": 0.8,
        "--no-enable-prefix-caching": True,
        "--enforce-eager": True,
        "--disable-cascade-attn": False,
        "--cudagraph-capture-sizes": "1 2",
        "--seed": -1,
    }
    argv = catalogue.command_line(pinned("vllm", "0.33.0", flags=given_flags), **ADDRESS).argv
    settings = as_settings(argv)
    assert settings["--gpu-memory-utilization"] == ("0.8",)
    assert settings["--cudagraph-capture-sizes"] == ("1", "2")
    assert {"--no-enable-prefix-caching", "--enforce-eager", "--no-disable-cascade-attn", "--seed=-1"} <= set(argv)
    assert not {"--enable-prefix-caching", "--disable-cascade-attn"} & set(argv)


def test_an_alias_replaces_the_setting_that_it_stands_for(catalogue: Catalogue, pinned) -> None:
    argv = catalogue.command_line(pinned("sglang", "0.5.23", flags={"--tensor-parallel-size": 8}), **ADDRESS).argv
    assert "--tp-size" not in argv
    assert as_settings(argv)["--tensor-parallel-size"] == ("8",)


def test_flags_meant_for_another_engine_are_left_out(catalogue: Catalogue, pinned) -> None:
    manifest = pinned("vllm", "0.33.0", flags={"--enforce-eager": True})
    assert catalogue.flag_problems(manifest, EngineName.SGLANG, "0.5.23") == ()


def test_a_quantised_checkpoint_speaks_for_itself(catalogue: Catalogue, pinned) -> None:
    model = {"id": "Qwen/Qwen3-32B-FP8", "revision": "abc", "quantization": "fp8"}
    assert "--quantization" not in catalogue.command_line(pinned("vllm", "0.33.0", model=model), **ADDRESS).argv


def test_both_sides_of_a_disaggregated_deployment_are_started_by_name(catalogue: Catalogue, pinned) -> None:
    pool = {"hardware": {"instance_type": "p5.48xlarge", "gpus": 4}, "parallelism": {"tensor": 4}}
    other = {"hardware": {"instance_type": "p5.48xlarge", "gpus": 8}, "parallelism": {"tensor": 8}}
    features = {"disaggregation": "prefill-decode"}
    manifest = pinned("sglang", "0.5.23", pools={"prefill": pool, "decode": other}, features=features)
    with pytest.raises(ValueError, match="prefill or decode"):
        catalogue.command_line(manifest, **ADDRESS)
    prefill, decode = (
        as_settings(catalogue.command_line(manifest, **ADDRESS, pool=side).argv) for side in ("prefill", "decode")
    )
    assert (prefill["--disaggregation-mode"], prefill["--tp-size"]) == (("prefill",), ("4",))
    assert (decode["--disaggregation-mode"], decode["--tp-size"]) == (("decode",), ("8",))


def test_tensorrt_llm_takes_its_options_from_a_file_beside_it(catalogue: Catalogue, pinned) -> None:
    command = catalogue.command_line(pinned("tensorrt-llm", "1.2.1"), **ADDRESS)
    (name,) = command.files
    assert as_settings(command.argv)["--config"] == (name,)
    options = json.loads(command.files[name])
    assert options["kv_cache_config"] == {"enable_block_reuse": True, "dtype": "auto"}
    assert options["guided_decoding_backend"] == "xgrammar"


def test_triton_serves_an_engine_that_was_built_before(catalogue: Catalogue, pinned) -> None:
    manifest = pinned("tensorrt-llm", "1.2.1", choice={"front": "triton"})
    argv = catalogue.command_line(manifest, **ADDRESS).argv
    assert argv == (
        "tritonserver",
        "--model-repository=model-repository",
        "--http-address=127.0.0.1",
        "--http-port=8000",
    )
    need = catalogue.engine_build(manifest, EngineName.TENSORRT_LLM, "1.2.1")
    assert need is not None
    assert "build one" in need.reason
    assert need.refusal is None
    assert need.argv[0] == "trtllm-bench"
    assert not any("{" in word for word in need.argv)
    later = catalogue.engine_build(manifest, EngineName.TENSORRT_LLM, "1.3.0rc0")
    assert later is not None
    assert "removed" in (later.refusal or "")
    assert catalogue.engine_build(pinned("tensorrt-llm", "1.2.1"), EngineName.TENSORRT_LLM, "1.2.1") is None
    assert "grpc" in catalogue.exposure(manifest, EngineName.TENSORRT_LLM, "1.2.1").paths
