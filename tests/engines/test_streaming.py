"""Weights out of object storage: engines that can read them are told how, the others refuse and say why."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.catalogue import load
from engines.tables import EngineTable
from fleet.spec import EngineName

URI = "s3://bucket/hub/models--Qwen--Qwen3-32B/snapshots/9216db5781bf21249d130ec9da846c4624c16137"
ADDRESS = {"host": "127.0.0.1", "port": 8000}
KNOWN = [(name, version) for name in EngineName for version in load().books[name].versions]
STREAMS = [("vllm", "0.18.0"), ("vllm", "0.33.0"), ("sglang", "0.5.10.post1"), ("sglang", "0.5.23")]
LOADS_FILES = [("sglang", "0.4.3"), ("sglang", "0.4.10.post2"), ("lmdeploy", "0.18.0"), ("tensorrt-llm", "1.2.1")]


def value_of(argv: tuple[str, ...], flag: str) -> str:
    return argv[argv.index(flag) + 1]


@pytest.mark.parametrize(("name", "version"), STREAMS)
def test_an_engine_that_streams_is_told_the_uri_instead_of_id_and_revision(catalogue, pinned, name, version):
    manifest = pinned(name, version)
    assert catalogue.no_streaming(manifest, EngineName(name), version) is None
    plain = catalogue.command_line(manifest, **ADDRESS).argv
    argv = catalogue.command_line(manifest, **ADDRESS, weights_uri=URI).argv
    assert value_of(argv, "--load-format") == "runai_streamer"
    assert URI in argv
    assert not {"--revision", manifest.spec.model.id} & (set(argv) - {value_of(argv, "--served-model-name")})
    assert set(argv) - set(plain) == {URI, "--load-format", "runai_streamer"}


@pytest.mark.parametrize(("name", "version"), LOADS_FILES)
def test_an_engine_that_does_not_stream_refuses_a_uri(catalogue, pinned, name, version):
    manifest = pinned(name, version)
    assert catalogue.no_streaming(manifest, EngineName(name), version)
    with pytest.raises(ValueError, match="can't be loaded from s3://bucket"):
        catalogue.command_line(manifest, **ADDRESS, weights_uri=URI)


@given(st.sampled_from(KNOWN))
def test_who_says_nothing_against_streaming_has_the_flag_and_its_value(catalogue, pinned, known):
    name, version = known
    table: EngineTable = catalogue.tables[name]
    if catalogue.no_streaming(pinned(name, version), name, version) is None:
        assert table.streaming is not None
        flags = catalogue.books[name].at(version)
        assert flags.has(table.streaming.flag)
        assert table.streaming.value in (flags.choices(table.streaming.flag) or (table.streaming.value,))


@given(st.sampled_from(KNOWN))
def test_where_weights_are_is_no_part_of_what_runs(catalogue, pinned, known):
    name, version = known
    manifest = pinned(name, version)
    before = manifest.identity
    if catalogue.no_streaming(manifest, name, version) is None:
        catalogue.command_line(manifest, **ADDRESS, weights_uri=URI)
    assert manifest.identity == before


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"features": {"lora": ["acme/tone"]}}, "lora loads a second model"),
        ({"features": {"speculative": "draft"}}, "speculative:draft loads a second model"),
        ({"flags": {"--load-format": "dummy"}}, "engine.flags says --load-format dummy"),
    ],
)
def test_a_manifest_may_be_in_the_way_itself(catalogue, pinned, parts, words):
    manifest = pinned("vllm", "0.33.0", **parts)
    assert words in (catalogue.no_streaming(manifest, EngineName.VLLM, "0.33.0") or "")
    with pytest.raises(ValueError, match=words):
        catalogue.command_line(manifest, **ADDRESS, weights_uri=URI)


def test_a_manifest_that_says_the_same_is_not_in_the_way(catalogue, pinned):
    manifest = pinned("vllm", "0.33.0", flags={"--load-format": "runai_streamer"})
    argv = catalogue.command_line(manifest, **ADDRESS, weights_uri=URI).argv
    assert argv.count("--load-format") == 1


def test_a_uri_of_another_kind_is_refused_with_those_that_are_known(catalogue, pinned):
    with pytest.raises(ValueError, match="streams from s3, not from gs"):
        catalogue.command_line(pinned("vllm", "0.33.0"), **ADDRESS, weights_uri="gs://bucket/x")


@pytest.mark.parametrize("name", list(EngineName))
def test_the_table_names_a_setting_and_where_it_was_read(catalogue, name):
    support = catalogue.tables[name].streaming
    assert support is None or (support.flag in catalogue.books[name].flags and support.source and support.needs)
