"""How modules of a checkpoint are stored: encodings, lists of modules, every form of quantisation config."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.model_reading import read_model
from fleet.quantization import ENCODINGS, Encoding
from fleet.quantization_modules import Modules, plain_name
from fleet.tensors import Part, Split, Tensor
from fleet.weights import encoding_of, weights_bytes_total

LLAMA = json.loads((Path(__file__).parents[1] / "data" / "models" / "dense.json").read_text(encoding="utf-8"))
SIZES = st.integers(1, 40_000)


def matrix(out: int, inner: int, copies: int = 1) -> Tensor:
    return Tensor("model.layers.0.mlp.up_proj", out, inner, Part.DENSE_FFN, Split.OUTPUT, copies=copies)


@given(out=SIZES, inner=SIZES, copies=st.integers(1, 300), name=st.sampled_from(sorted(ENCODINGS)))
def test_no_encoding_needs_more_than_bf16_or_less_than_its_bits(out, inner, copies, name):
    encoding, tensor = ENCODINGS[name], matrix(out, inner, copies)
    assert tensor.parameters * encoding.bits / 8 <= encoding.bytes_of(tensor) <= tensor.parameters * 2


@given(out=st.integers(64, 40_000), inner=st.integers(64, 40_000))
def test_fewer_bits_need_fewer_bytes(out, inner):
    tensor = matrix(out, inner)
    by_bits = {bits: [e.bytes_of(tensor) for e in ENCODINGS.values() if e.bits == bits] for bits in (4, 8, 16)}
    assert max(by_bits[4]) <= min(by_bits[8])
    assert max(by_bits[8]) <= min(by_bits[16])


@pytest.mark.parametrize(
    ("name", "per_element"),
    [
        ("bf16", 2),
        ("fp8", 1 + 4 / 128**2),
        ("awq", 0.5 + 2.5 / 128),
        ("int4", 0.5625),
        ("mxfp4", 0.53125),
        ("nvfp4", 0.5625),
    ],
)
def test_bytes_per_element_are_those_of_the_format(name, per_element):
    assert ENCODINGS[name].bytes_of(matrix(4096, 4096)) == 4096 * 4096 * per_element


def test_vectors_are_never_quantised():
    norm = Tensor("model.norm", 4096, 1, Part.NORM, Split.NONE, is_linear=False)
    assert {encoding.bytes_of(norm) for encoding in ENCODINGS.values()} == {8192}


@pytest.mark.parametrize(
    ("patterns", "module", "named"),
    [
        (["lm_head"], "lm_head", True),
        (["language_model.lm_head"], "lm_head", True),
        (["gate"], "model.layers.3.mlp.gate", True),
        (["gate"], "model.layers.3.mlp.gate_proj", False),
        (["mlp.gate"], "model.layers.3.mlp.gate", True),
        (["model.layers.1"], "model.layers.1.mlp.up_proj", True),
        (["model.layers.1"], "model.layers.11.mlp.up_proj", False),
        (["model.layers.*.self_attn"], "model.layers.7.self_attn.q_proj", True),
        (["model.language_model.layers.0.self_attn*"], "model.language_model.layers.0.self_attn.q_proj", True),
        (["language_model.model.layers.0.self_attn.q_proj"], "model.language_model.layers.0.self_attn.q_proj", True),
        (["mtp*"], "mtp.layers.0.mlp.up_proj", True),
        (["layers.1*"], "model.layers.12.mlp.up_proj", True),
        (["layers.1*"], "model.layers.2.mlp.up_proj", False),
        (["layers.[12]*"], "model.layers.2.mlp.up_proj", True),
        (["re:.*self_attn.*"], "model.layers.0.self_attn.o_proj", True),
        (["re:.*mlp\\.(gate|up)_proj$"], "model.layers.0.mlp.down_proj", False),
        (["re:(a+)+$", "*a*a*a*a*a*a*a*a*b"], "model.layers.0." + "a" * 60, False),
        (["re:((a|ab)+)+$", "re:(?:a|ab)*c", "re:a*a*a*a*a*a*a*b"], "model.layers.0." + "a" * 60, False),
        (["re:.*.*.*.*.*.*.*down_proj.*.*$"], "model.layers.0.mlp.down_proj", True),
        (["re:^.*down\\.*proj$", "re:down\\.*"], "model.layers.0.mlp.up_proj", False),
        (["re:(unclosed"], "model.layers.0.mlp.down_proj", False),
        (["model.layers.0.mlp.experts"], "model.layers.0.mlp.experts.*.up_proj", True),
        ([], "lm_head", False),
    ],
)
def test_a_list_of_modules_names_what_checkpoints_mean(patterns, module, named):
    assert Modules.of(patterns).names(module) is named


def test_expressions_are_used_only_as_far_as_they_take_no_time():
    patterns = [f"re:m.*o.*d.*{number}$" for number in range(50)] + ["re:proj"]
    modules = Modules.of(patterns)
    assert modules.names("model.layers.0.mlp.down_proj")
    assert len(modules._expressions) == 3
    assert not Modules.of([f"*a{number}*b" for number in range(20_000)]).names("model.layers.0.mlp.down_proj")


NAMES = st.lists(st.sampled_from(("model", "layers", "mlp", "1", "gate", "lm_head")), min_size=1, max_size=5).map(
    ".".join
)


@given(names=st.lists(NAMES, max_size=4), module=NAMES)
def test_a_name_covers_what_it_begins_and_a_part_of_a_path_wherever_it_stands(names, module):
    path = f".{plain_name(module)}."
    plain = [plain_name(name) for name in names]
    begun = [name for name in plain if "." in name and path.startswith(f".{name}.")]
    inside = [name for name in plain if not name.startswith("layers.") and f".{name}." in path]
    assert Modules.of(names).names(module) is bool(begun or inside)


@given(beginnings=st.lists(st.text(alphabet="ab.", max_size=5), max_size=5), module=st.text(alphabet="ab.", max_size=8))
def test_globs_that_leave_the_end_open_name_what_begins_so(beginnings, module):
    named = any(module.startswith(one) for one in beginnings)
    assert Modules.of([f"{one}*" for one in beginnings]).names(module) is named


@given(roots=st.lists(st.sampled_from(("model", "language_model", "thinker")), max_size=4), name=NAMES)
def test_wrappers_of_the_language_model_do_not_count_in_a_list_or_alone(roots, name):
    wrapped = ".".join((*roots, name, "end"))
    assert plain_name(wrapped) == plain_name(f"{name}.end")
    assert Modules.of([wrapped, "other"]).names(f"{name}.end")


def stored(config: dict[str, object], module: str, **beside: object) -> Encoding:
    model = read_model({**LLAMA, "quantization_config": config, **beside}, id="x")
    assert not model.missing
    return next(encoding_of(one, model) for one in model.all_tensors if one.module == module)


UP, QUERY = "model.layers.0.mlp.up_proj", "model.layers.0.self_attn.q_proj"
WEIGHTS = {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32, "symmetric": True}


@pytest.mark.parametrize(
    ("config", "module", "expected"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, UP, ("fp8", 0)),
        ({"quant_method": "fp8", "weight_block_size": None}, UP, ("fp8-channel", 0)),
        ({"quant_method": "fp8"}, "lm_head", ("bf16", 0)),
        ({"quant_method": "fp8", "ignored_layers": ["model.layers.0.self_attn"]}, QUERY, ("bf16", 0)),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, UP, ("awq", 128)),
        ({"quant_method": "gptq", "bits": 4, "group_size": 32}, UP, ("gptq", 32)),
        (
            {"quant_method": "gptq", "bits": 4, "group_size": 128, "dynamic": {"-:.*self_attn.*": {}}},
            QUERY,
            ("bf16", 0),
        ),
        ({"quant_method": "gptq", "bits": 4, "group_size": 64, "dynamic": {"+:.*up.*": {"bits": 8}}}, UP, ("gptq", 64)),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, UP, ("nf4", 64)),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, UP, ("int8", 0)),
        ({"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}, UP, ("bf16", 0)),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["*self_attn*"]}, UP, ("nvfp4", 16)),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["*self_attn*"]}, QUERY, ("bf16", 0)),
        (
            {"quant_method": "compressed-tensors", "config_groups": {"a": {"targets": ["Linear"], "weights": WEIGHTS}}},
            UP,
            ("int4", 32),
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"a": {"targets": ["re:.*mlp.*"], "weights": WEIGHTS}},
            },
            QUERY,
            ("bf16", 0),
        ),
        (
            {
                "quant_method": "modelopt",
                "quant_algo": "MIXED_PRECISION",
                "quantized_layers": {"lm_head": {"quant_algo": "W4A16_NVFP4", "group_size": 16}},
            },
            "lm_head",
            ("nvfp4", 16),
        ),
    ],
)
def test_every_form_of_a_quantisation_config_is_understood(config, module, expected):
    encoding = stored(config, module)
    assert (encoding.name, encoding.group_size) == expected


MANY = range(100_000)


@pytest.mark.parametrize(
    ("key", "config"),
    [
        ("dynamic", {"quant_method": "gptq", "bits": 4, "dynamic": {f"-:gate_{number}": {} for number in MANY}}),
        (
            "dynamic",
            {"quant_method": "gptq", "bits": 4, "dynamic": {f"-:m.*o.*d.*{number}$": {} for number in range(900)}},
        ),
        (
            "config_groups",
            {
                "quant_method": "compressed-tensors",
                "config_groups": {str(number): {"targets": ["a.b"], "weights": WEIGHTS} for number in MANY},
            },
        ),
        (
            "quantized_layers",
            {
                "quant_method": "modelopt",
                "quant_algo": "MIXED_PRECISION",
                "quantized_layers": {str(size): {"quant_algo": "NVFP4", "group_size": size} for size in MANY},
            },
        ),
    ],
)
def test_more_rules_than_can_be_meant_make_the_stored_weights_unknown_with_the_key(key, config):
    model = read_model({**LLAMA, "quantization_config": config}, id="x")
    lacking = weights_bytes_total(model)
    assert lacking.key == f"quantization_config.{key}"
    assert "more rules or expressions than are read" in lacking.message
    assert weights_bytes_total(model, "fp8") > 0


@pytest.mark.parametrize("name", ["gate_{}", "mlp.gate_{}", "model.layers.{}.mlp.up_proj", "layers.{}.*", "a.*.{}.b"])
def test_a_list_of_a_hundred_thousand_modules_costs_no_more_than_reading_it(name):
    listed = [name.format(number) for number in MANY]
    model = read_model({**LLAMA, "quantization_config": {"quant_method": "fp8", "ignore": listed}}, id="x")
    assert weights_bytes_total(model) > 0


def test_the_file_beside_the_configuration_counts_as_well():
    beside = {"_hf_quant_config": {"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}}
    model = read_model({**LLAMA, **beside}, id="x")
    assert model.stored is not None
    assert model.stored.default.name == "fp8-channel"
    assert model.stored.kv_cache_dtype == "fp8"


def test_an_unknown_method_makes_the_stored_weights_unknown_but_not_those_asked_for():
    model = read_model({**LLAMA, "quantization_config": {"quant_method": "wonder"}}, id="x")
    lacking = weights_bytes_total(model)
    assert "wonder" in lacking.message
    assert weights_bytes_total(model, "fp8") > 0


def test_a_checkpoint_that_is_stored_as_asked_keeps_its_own_exclusions():
    config = {"quant_method": "fp8", "weight_block_size": None, "modules_to_not_convert": ["model.layers.0"]}
    model = read_model({**LLAMA, "quantization_config": config}, id="x")
    assert weights_bytes_total(model, "fp8") == weights_bytes_total(model)
    assert weights_bytes_total(model, "int8") < weights_bytes_total(model)
