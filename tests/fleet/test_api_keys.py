"""Keys as text: a minted one is recognised, a mistyped one is told from an unknown one, and rotation overlaps."""

import hashlib

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fleet.api_keys import KEY_MARK, RANDOM_BYTES, TOKEN_MARK, Form, form_of, is_same, mint, rotated, sha256_of
from fleet.snapshot import GatewayKey

RANDOM = st.binary(min_size=RANDOM_BYTES, max_size=RANDOM_BYTES)
LETTER = st.sampled_from("abcdefghijklmnopqrstuvwxyz234567")
NOW = 1_900_000_000


def gateway_key(**fields):
    return GatewayKey(id="ci", sha256="0" * 64, tenant="acme", **fields)


@given(randomness=RANDOM, place=st.integers(len(KEY_MARK), 42), letter=LETTER)
def test_one_wrong_letter_makes_a_mistyped_key(randomness, place, letter):
    text = mint(KEY_MARK, randomness).text
    changed = text[:place] + letter + text[place + 1 :]
    assert form_of(changed, KEY_MARK) is (Form.WHOLE if changed == text else Form.MISTYPED)


@given(randomness=RANDOM, place=st.integers(len(KEY_MARK), 41))
def test_two_letters_in_the_wrong_order_make_a_mistyped_key(randomness, place):
    text = mint(KEY_MARK, randomness).text
    swapped = text[:place] + text[place + 1] + text[place] + text[place + 2 :]
    assume(swapped != text)
    assert form_of(swapped, KEY_MARK) is Form.MISTYPED


@given(randomness=RANDOM, kept=st.integers(len(KEY_MARK), 42))
def test_a_key_cut_short_is_mistyped(randomness, kept):
    assert form_of(mint(KEY_MARK, randomness).text[:kept], KEY_MARK) is Form.MISTYPED


@given(text=st.text())
def test_any_text_has_a_form_and_a_hash(text):
    expected = Form.MISTYPED if text.startswith(KEY_MARK) else Form.OTHER
    assert form_of(text, KEY_MARK) is expected
    assert is_same(text, sha256_of(text).upper())


@pytest.mark.parametrize("text", ["\ud800", KEY_MARK + "\udc80" * 39, KEY_MARK + "é" * 39, ""])
def test_a_text_that_is_no_utf8_is_none_of_ours(text):
    assert form_of(text, KEY_MARK) in (Form.OTHER, Form.MISTYPED)
    assert not is_same(text, "0" * 64)


@given(one=RANDOM, other=RANDOM)
def test_different_randomness_makes_different_keys_that_are_hashed_whole(one, other):
    assume(one != other)
    first, second = mint(KEY_MARK, one), mint(KEY_MARK, other)
    assert first.text != second.text
    assert first.sha256 == hashlib.sha256(first.text.encode()).hexdigest() != second.sha256


def test_a_key_is_no_token():
    key, token = mint(KEY_MARK, bytes(RANDOM_BYTES)), mint(TOKEN_MARK, bytes(RANDOM_BYTES))
    assert form_of(key.text, TOKEN_MARK) is Form.OTHER
    assert form_of(token.text, KEY_MARK) is Form.OTHER
    assert form_of(token.text, TOKEN_MARK) is Form.WHOLE


def test_a_secret_does_not_show_itself():
    minted = mint(KEY_MARK, bytes(range(RANDOM_BYTES)))
    assert minted.text not in repr(minted)
    assert minted.sha256 not in repr(minted)


def test_too_little_randomness_makes_no_key():
    with pytest.raises(ValueError, match="4 random bytes; expected 20"):
        mint(KEY_MARK, b"four")


@given(stated=st.none() | st.integers(NOW, NOW + 10**6), overlap=st.integers(0, 10**6))
def test_rotation_overlaps_and_never_lengthens_a_life(stated, overlap):
    key = gateway_key(expires_unix_seconds=stated, models=("chat",))
    ending, new = rotated(key, "f" * 64, now_unix_seconds=NOW, overlap_seconds=overlap)
    assert ending.expires_unix_seconds <= NOW + overlap
    assert stated is None or ending.expires_unix_seconds <= stated
    assert new.expires_unix_seconds == stated
    assert (ending.id, ending.sha256, ending.generation) == ("ci", "0" * 64, 1)
    assert (new.id, new.sha256, new.generation, new.models) == ("ci", "f" * 64, 2, ("chat",))


def test_a_negative_overlap_is_no_rotation():
    with pytest.raises(ValueError, match="overlap of -1 s"):
        rotated(gateway_key(), "f" * 64, now_unix_seconds=NOW, overlap_seconds=-1)


def test_a_key_without_scopes_admits_every_model_and_one_with_scopes_those_alone():
    assert gateway_key().admits("anything")
    assert gateway_key(models=("chat",)).admits("chat")
    assert not gateway_key(models=("chat",)).admits("chat-large")
