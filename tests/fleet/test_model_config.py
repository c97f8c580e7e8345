"""The border of configurations: what is no configuration is one clear sentence."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.model_config import MAX_BYTES, ConfigError, read_config


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "not JSON: Expecting value at line 1, column 1"),
        (b"{", "not JSON"),
        (b"[]", "a configuration is a JSON object, this is a list"),
        (b"3", "this is a number"),
        (b"null", "this is null"),
        (b"\xff\xfe\x00", "not"),
        (b'{"a":' * 200_000, "nested too deeply"),
        ('{"n": ' + "9" * 5000 + "}", "a number has more than 4,300 digits"),
        (b'{"architectures": ["\\ud800"]}', "half a character"),
        ('{"\ud800": 1}', "half a character"),
        (b" " * (MAX_BYTES + 1), f"at most {MAX_BYTES:,}"),
    ],
    ids=["empty", "cut", "list", "number", "null", "bytes", "deep", "digits", "half", "half key", "long"],
)
def test_what_is_no_configuration_is_refused_in_one_sentence(text, said):
    with pytest.raises(ConfigError) as refused:
        read_config(text, source="config.json")
    assert said in str(refused.value)
    assert str(refused.value).startswith("config.json: ")
    assert "\n" not in str(refused.value)


def test_infinity_and_nan_may_stand_in_a_configuration():
    assert read_config('{"time_step_limit": [0.0, Infinity], "x": NaN}', source="x")["time_step_limit"][1] == float(
        "inf"
    )


@given(text=st.text(max_size=200) | st.binary(max_size=200))
def test_any_text_is_an_object_or_a_config_error(text):
    with suppress(ConfigError):
        assert isinstance(read_config(text, source="x"), dict)


@given(value=st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5)))
def test_an_object_comes_back_as_it_is(value):
    assert read_config(json.dumps(value), source="x") == value
