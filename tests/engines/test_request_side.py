"""What a gateway needs of the engines: their metrics whatever the version, and who salts its cache."""

import pytest

from engines.request_side import metrics_by_engine, salted_operations
from fleet.spec import EngineName


def test_every_engine_has_an_entry_and_none_has_a_front_in_it():
    found = metrics_by_engine()
    assert set(found) == {name.value for name in EngineName}
    assert {engine for engine, dialects in found.items() if not dialects} == {"deepspeed"}
    assert all(dialect.path and dialect.port is None for dialects in found.values() for dialect in dialects)


@pytest.mark.parametrize(
    ("engine", "cache_info", "cache_tokens"),
    [("vllm", "vllm:cache_config_info", None), ("sglang", None, "sglang:max_total_num_tokens")],
)
def test_the_size_of_the_cache_is_stated_in_one_of_two_ways(engine, cache_info, cache_tokens):
    for dialect in metrics_by_engine()[engine]:
        assert (dialect.cache_info, dialect.cache_tokens) == (cache_info, cache_tokens)


def test_engines_that_salt_their_cache():
    found = salted_operations()
    assert found["vllm"] == {"chat", "completion", "responses", "messages"}
    assert found["tensorrt-llm"] == {"chat"}
    assert found["lmdeploy"] == frozenset()
