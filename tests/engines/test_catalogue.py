"""The catalogue as a whole: the Protocol, its data, and what versions can't do."""

import inspect
import tomllib
from dataclasses import replace

import pytest

from engines import package_data
from engines.catalogue import Catalogue, load
from engines.wishes import PARALLEL_KINDS
from fleet.codepath import KNOWN_PATHS
from fleet.engine import EngineCatalogue
from fleet.manifest import from_document
from fleet.spec import EngineName, Features, HostedName, Workload

V = EngineName.VLLM
S = EngineName.SGLANG


def unsupported(catalogue: Catalogue, manifest) -> dict[str, str]:
    engine = manifest.spec.engine
    return {item.pointer: item.message for item in catalogue.unsupported(manifest, engine.name, engine.version)}


def test_it_implements_the_whole_protocol(catalogue: Catalogue) -> None:
    members = [name for name in vars(EngineCatalogue) if not name.startswith("_")]
    assert len(members) > 10
    for name in members:
        wanted, found = getattr(EngineCatalogue, name), getattr(Catalogue, name, None)
        if callable(wanted):
            assert inspect.signature(wanted) == inspect.signature(found), name
        else:
            assert hasattr(catalogue, name), name


def test_it_is_read_once_and_its_digest_follows_the_data(catalogue: Catalogue) -> None:
    assert load() is catalogue
    data = package_data.read()
    assert Catalogue.of(data).digest == catalogue.digest
    changed = replace(data, texts={**data.texts, "releases.toml": data.texts["releases.toml"] + "# more\n"})
    assert Catalogue.of(changed).digest != catalogue.digest


def test_every_file_of_the_package_data_is_part_of_the_digest(checkout) -> None:
    folder = checkout / "engines"
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.suffix in (".toml", ".json")}
    assert files == set(package_data.read().texts)


def test_the_tables_speak_only_words_that_a_manifest_can_say(catalogue: Catalogue) -> None:
    def choices(field: str) -> list[str]:
        return [value for value in Features.model_fields[field].annotation.__args__ if value != "none"]

    words = {f"workload:{item}" for item in Workload} | {f"parallel:{kind}" for kind in PARALLEL_KINDS}
    words |= {f"{key}:{item}" for key in ("disaggregation", "kv_offload", "speculative") for item in choices(key)}
    words |= {f"modality:{item}" for item in ("text", "image", "video", "audio")}
    words |= {"lora", "kv_events", "kv_events:process", "kv_events:ranks", "structured_output", "tool_parser"}
    words |= {"trust_remote_code", "trust_remote_code:off", "media"}
    words |= {"prefix_caching", "sequence", "gpus>1", "gpus:unknown", "front:triton", "runtime:image"}
    for table in catalogue.tables.values():
        asked = [ask for item in (*table.exposure, *table.requires, *table.needs_flag) for ask in item.any]
        asked += [ask for limit in table.limits for ask in limit.any]
        asked += [ask for item in table.written for ask in item.when]
        assert set(asked) <= words
        assert {rule.path for rule in table.exposure} <= set(KNOWN_PATHS)
        assert set(table.preference) - {"default"} <= set(Workload)
        assert all(0 <= item.score <= 1 and item.reason for item in table.preference.values())
        # Reasons stand beside a score that is called preference: they don't say the word again, and fit a column.
        assert all("preference" not in item.reason and len(item.reason) <= 70 for item in table.preference.values())


def test_releases_know_when_a_version_came_and_which_never_did(catalogue: Catalogue) -> None:
    assert catalogue.describe(V, "0.33.0").released == "2026-11-02"
    assert catalogue.describe(V, "0.18.2").released is None
    assert catalogue.versions(V)[-1] == "0.33.0"
    assert catalogue.versions(S)[-1] == "0.5.23"
    assert "1.2.1" in catalogue.versions(EngineName.TENSORRT_LLM)
    assert catalogue.versions(EngineName.LMDEPLOY)[-1] == "0.18.0"


def test_what_is_not_maintained_is_refused_with_the_reason_from_the_data(catalogue: Catalogue) -> None:
    assert "2025-03-25" in (catalogue.refusal(EngineName.DEEPSPEED) or "")
    assert [name for name in catalogue.names if catalogue.refusal(name)] == [EngineName.DEEPSPEED]
    assert catalogue.package(EngineName.DEEPSPEED) == "deepspeed"


def test_a_hosted_engine_is_an_endpoint_and_the_name_of_a_key(catalogue: Catalogue, pinned) -> None:
    hosted = {"name": "groq", "endpoint": "https://inference.example/v1/", "api_key_ref": "groq-key", "model": "m"}
    manifest = from_document(
        {
            "kind": "PinnedInferenceDeployment",
            "metadata": {"name": "fast"},
            "spec": {"workload": "chat", "model": {"id": "m"}, "hosted": hosted},
            "pin": {"source_digest": "x", "facts_digest": "x", "catalogue_digest": "x", "runtime": "image"},
        }
    )
    target = catalogue.hosted(manifest)
    assert target is not None
    assert (target.endpoint, target.api_key_ref) == ("https://inference.example/v1", "groq-key")
    assert set(catalogue.hosted_names) == set(HostedName)
    assert catalogue.hosted(pinned("vllm", "0.33.0")) is None
    with pytest.raises(ValueError, match="hosted"):
        catalogue.command_line(manifest, host="127.0.0.1", port=1)


@pytest.mark.parametrize(
    ("engine", "version", "parts", "pointer", "says"),
    [
        ("sglang", "0.4.3", {"features": {"disaggregation": "prefill-decode"}}, "/spec/features/disaggregation",
         "has no --disaggregation-mode, which this needs; it is from 0.4.10.post2 on"),
        ("sglang", "0.4.3", {}, "/spec/features/trust_remote_code", "trusts remote code by default"),
        ("sglang", "0.4.3", {"features": {"tool_parser": "hermes"}}, "/spec/features/tool_parser",
         "does not take --tool-call-parser hermes; it takes llama3, mistral, qwen25"),
        ("lmdeploy", "0.12.3", {}, "/spec/features/trust_remote_code", "no flag that switches it off"),
        ("lmdeploy", "0.18.0", {"workload": "embedding"}, "/spec/workload", "tagged as unsupported"),
        ("vllm", "0.20.2", {"features": {"kv_offload": "mooncake"}}, "/spec/features/kv_offload", "before 0.22.1"),
        ("sglang", "0.4.3", {"features": {"kv_events": "zmq"}}, "/spec/features/kv_events",
         "has no --kv-events-config, which this needs; it is from 0.4.10.post2 on"),
        ("sglang", "0.5.23", {"features": {"kv_events": "zmq"}, "parallelism": {"data": 2}},
         "/spec/features/kv_events", "only with --enable-dp-attention"),
        ("lmdeploy", "0.18.0", {"features": {"kv_events": "zmq"}}, "/spec/features/kv_events", "no option for events"),
        ("vllm", "0.33.0", {"features": {"speculative": "eagle"}}, "/spec/features/speculative", "a draft model has"),
        ("vllm", "0.33.0", {"parallelism": {"tensor": 4, "expert": 2}}, "/spec/parallelism/expert", "1 or 4, not 2"),
        ("vllm", "0.33.0", {"parallelism": {"sequence": True}}, "/spec/parallelism/sequence", "no flag of its own"),
        ("sglang", "0.4.3", {"parallelism": {"pipeline": 2}}, "/spec/parallelism/pipeline",
         "has no --pp-size, which this needs; it is from 0.4.10.post2 on"),
        ("sglang", "0.5.23", {"parallelism": {"tensor": 4, "expert": 3}}, "/spec/parallelism/expert", "3 does not"),
        ("sglang", "0.4.3", {"model": {"id": "m", "revision": "r", "quantization": "nvfp4"}},
         "/spec/model/quantization", "--quantization has no modelopt_fp4"),
        ("tensorrt-llm", "1.2.1", {"model": {"id": "m", "revision": "r", "quantization": "awq"}},
         "/spec/model/quantization", "it is known for bf16, fp8, nvfp4, mxfp4"),
        ("sglang", "0.4.3", {"batch": {"max_model_len": 8, "kv_cache_dtype": "bf16"}}, "/spec/batch/kv_cache_dtype",
         "no KV cache of type bf16; it has auto, fp8"),
        ("lmdeploy", "0.12.3", {"batch": {"max_model_len": 8, "kv_cache_dtype": "fp8"}}, "/spec/batch/kv_cache_dtype",
         "no KV cache of type fp8; it has auto, bf16"),
        ("tensorrt-llm", "1.2.1", {"batch": {"max_model_len": 8, "kv_cache_dtype": "bf16"}},
         "/spec/batch/kv_cache_dtype", "it has auto, fp8"),
    ],
)  # fmt: skip
def test_what_a_version_cannot_do_is_said_at_its_place(
    catalogue, pinned, engine, version, parts, pointer, says
) -> None:
    assert says in unsupported(catalogue, pinned(engine, version, **parts))[pointer]


@pytest.mark.parametrize("version", load().books[V].versions)
def test_the_plain_manifest_is_supported_by_every_known_vllm(catalogue: Catalogue, pinned, version) -> None:
    assert unsupported(catalogue, pinned("vllm", version)) == {}


def test_a_draft_model_named_in_the_flags_is_enough(catalogue: Catalogue, pinned) -> None:
    flags = {"--speculative-config": '{"method":"eagle3","model":"acme/draft","num_speculative_tokens":3}'}
    assert unsupported(catalogue, pinned("vllm", "0.33.0", flags=flags, features={"speculative": "eagle"})) == {}


def test_a_description_names_the_list_that_stands_for_a_version(catalogue: Catalogue) -> None:
    known, between, newer = (catalogue.describe(V, version) for version in ("0.30.0", "0.29.0", "0.99.0"))
    assert (known.flags_of, known.note) == ("0.30.0", None)
    assert between.flags_of == "0.28.0"
    assert "0.28.0, the nearest older" in (between.note or "")
    assert newer.flags_of == "0.33.0"
    assert "fp8" in known.quantizations
    assert any("disaggregation" in item for item in catalogue.describe(S, "0.4.3").cannot)
    assert "disaggregation:prefill-decode" in catalogue.describe(S, "0.5.23").features


def test_metrics_probes_and_shutdown_follow_version_and_front(catalogue: Catalogue) -> None:
    assert catalogue.metrics(V, "0.31.0").rejected is None
    assert catalogue.metrics(V, "0.32.0").rejected == "vllm:admission_rejections_total"
    assert catalogue.metrics(S, "0.5.23").waiting == "sglang:num_queue_reqs"
    assert catalogue.metrics(EngineName.DEEPSPEED, "0.19.8").path is None
    assert catalogue.metrics(EngineName.TENSORRT_LLM, "1.2.1", "triton").port == 8002
    assert catalogue.metrics(EngineName.TENSORRT_LLM, "1.2.1").name == "trtllm-serve"
    assert catalogue.probes(V, "0.33.0").readiness == "/health"
    assert catalogue.probes(EngineName.TENSORRT_LLM, "1.2.1", "triton").liveness == "/v2/health/live"
    stop = catalogue.shutdown(V, "0.33.0")
    assert (stop.signal, stop.flag, stop.drain_seconds) == ("SIGTERM", "--shutdown-timeout", 30)


def test_the_house_prefers_an_engine_by_workload_and_says_that_it_is_a_preference(catalogue, pinned) -> None:
    def best(workload: str) -> EngineName:
        manifest = pinned("vllm", "0.33.0", workload=workload)
        return max(catalogue.names, key=lambda name: catalogue.preference(manifest, name).score)

    assert best("chat") == V
    assert best("latency-critical") == EngineName.TENSORRT_LLM
    assert best("structured-output") == S


@pytest.mark.parametrize(
    ("model_id", "text_only"),
    [
        ("Qwen/Qwen3-32B", True),
        ("qwen/qwen3-32b-fp8", True),
        ("Qwen/Qwen3-VL-8B-Instruct", False),
        ("Qwen/Qwen3-ASR-1.7B", False),
        ("Qwen/Qwen2.5-VL-7B-Instruct", False),
        ("Qwen/Qwen3.5-35B-A3B", False),
        ("zai-org/GLM-4.5V", False),
        ("acme/unknown", False),
    ],
)
def test_a_model_is_text_only_by_name_where_the_data_knows_it(catalogue: Catalogue, model_id, text_only) -> None:
    assert catalogue.models.is_text_only(model_id) is text_only


def test_the_data_is_valid_toml_without_prose_of_others(checkout) -> None:
    for path in (checkout / "engines").rglob("*.toml"):
        text = path.read_text(encoding="utf-8")
        tomllib.loads(text)
        assert text.startswith("#"), f"{path.name} says where its facts come from"


def test_only_versions_that_never_hold_all_weights_in_16_bits_quantise_them_at_load(catalogue: Catalogue) -> None:
    assert catalogue.quantized_at_load(EngineName.VLLM, "0.33.0") == ("fp8",)
    assert catalogue.quantized_at_load(EngineName.VLLM, "0.18.1") == ()
    assert catalogue.quantized_at_load(EngineName.SGLANG, "0.5.9") == ()
