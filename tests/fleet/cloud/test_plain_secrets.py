"""Secrets in objects are known by name and by look, and words about tokens and keys are none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.cloud.plain_secrets import is_secret_name, secrets_among, secrets_in_words

SECRET = (
    "HF_TOKEN",
    "hf-token",
    "OPENAI_APIKEY",
    "DB_PASSWD",
    "api.key",
    "AWS_SECRET_ACCESS_KEY",
    "DB_PWD",
    "MY_SECRET",
)
HARMLESS = (
    "PAD_TOKEN",
    "eos-token",
    "TOKENIZERS_PARALLELISM",
    "MAX_TOKENS",
    "PWD",
    "HF_TOKEN_PATH",
    "SECRET_NAME",
    "KEY",
)


@pytest.mark.parametrize("name", SECRET)
def test_names_of_secrets_are_known(name):
    assert is_secret_name(name)
    assert list(secrets_among({name: "x"})) == [name]
    assert list(secrets_among({name: "$(OTHER)"})) == []


@pytest.mark.parametrize("name", HARMLESS)
def test_names_that_sound_alike_are_none(name):
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    "value", ["hf_" + "a" * 34, "AKIA" + "A" * 16, "redis://u:p@h.invalid", "-----BEGIN RSA PRIVATE KEY-----"]
)
def test_what_looks_like_a_key_is_one_whatever_its_name(value):
    assert list(secrets_among({"X": value})) == ["X"]
    assert list(secrets_in_words([value])) == ["a key"]


@pytest.mark.parametrize(
    "words",
    [["--api-key=x"], ["--api-key", "x"], ["sh", "-c", "export HF_TOKEN=x; run"], ["serve --api-key 'x' --port 1"]],
)
def test_command_lines_with_a_secret_are_found(words):
    assert len(list(secrets_in_words(words))) == 1


@pytest.mark.parametrize(
    "words",
    [
        ["--api-key=$(KEY)"],
        ["--api-key", "$KEY"],
        ["--enable-token", "--port", "1"],
        ["--private-key", "/etc/tls/key.pem"],
        ["--pad-token=x"],
        ["--max-num-batched-tokens=8192"],
    ],
)
def test_references_paths_and_other_flags_are_none(words):
    assert list(secrets_in_words(words)) == []


@given(st.lists(st.text(max_size=20), max_size=5), st.dictionaries(st.text(max_size=8), st.text(max_size=20)))
def test_any_words_are_read(words, values):
    assert all(isinstance(name, str) for name in (*secrets_in_words(words), *secrets_among(values)))
