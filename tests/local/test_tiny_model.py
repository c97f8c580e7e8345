"""The tiny model: the same files each time, weights as they are announced, a tokenizer that spells everything."""

import hashlib
import json
import struct
from itertools import pairwise

from local.tiny_model import HIDDEN, SPECIAL, UNSAID, documents, make, merges, vocabulary, weights


def header_of(data):
    (size,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8 : 8 + size]), data[8 + size :]


def test_the_same_model_comes_out_each_time_and_one_that_is_there_is_left_alone(tmp_path):
    one, two = make(tmp_path / "one"), make(tmp_path / "two")
    names = {path.name for path in one.iterdir()}
    assert names == {*documents(), "model.safetensors"}
    assert all((one / name).read_bytes() == (two / name).read_bytes() for name in names)
    before = (one / "model.safetensors").stat().st_mtime_ns
    assert make(one) == one
    assert (one / "model.safetensors").stat().st_mtime_ns == before


def test_every_weight_stands_where_the_header_says(tmp_path):
    header, numbers = header_of((make(tmp_path) / "model.safetensors").read_bytes())
    header.pop("__metadata__")
    places = [entry["data_offsets"] for entry in header.values()]
    assert all(end == begin for (_, end), (begin, _) in pairwise(places))
    assert (places[0][0], places[-1][1]) == (0, len(numbers))
    for entry in header.values():
        count = entry["shape"][0] * (entry["shape"][1] if entry["shape"][1:] else 1)
        assert entry["data_offsets"][1] - entry["data_offsets"][0] == 2 * count
    assert header["lm_head.weight"]["shape"] == [len(vocabulary()), HIDDEN]
    begin, end = header["model.norm.weight"]["data_offsets"]
    assert numbers[begin:end] == b"\x80\x3f" * HIDDEN  # 1.0 in bfloat16
    assert len({hashlib.sha256(numbers[begin:end]).digest() for begin, end in places}) > 20


def test_the_tokenizer_knows_every_byte_and_merges_only_what_it_knows():
    pieces = vocabulary()
    assert sorted(pieces.values()) == list(range(len(pieces)))
    assert len({piece for piece in pieces if len(piece) == 1}) == 256
    known = {piece for piece in pieces if len(piece) == 1}
    for one, two in merges():
        assert {one, two} <= known
        assert one + two in pieces
        known.add(one + two)
    assert set(pieces) - known == set(SPECIAL)


def test_the_documents_of_the_model_agree():
    made, pieces = documents(), vocabulary()
    config, tokenizer, own = (made[f"{name}.json"] for name in ("config", "tokenizer", "tokenizer_config"))
    assert config["vocab_size"] == len(pieces)
    assert config["eos_token_id"] == made["generation_config.json"]["eos_token_id"] == pieces[own["eos_token"]]
    assert {entry["content"]: entry["id"] for entry in tokenizer["added_tokens"]} == {
        word: pieces[word] for word in SPECIAL
    }


def test_special_pieces_and_half_characters_are_not_written_by_themselves():
    """Their weight for the number that no layer changes is far below that of all others."""
    header, numbers = header_of(weights(len(vocabulary())))
    begin, end = header["lm_head.weight"]["data_offsets"]
    row = 2 * HIDDEN
    first = [struct.unpack("<f", b"\0\0" + numbers[place : place + 2])[0] for place in range(begin, end, row)]
    assert {number for number, value in enumerate(first) if value} == UNSAID | {vocabulary()[word] for word in SPECIAL}
    assert max(first[-len(SPECIAL) :]) < -3
