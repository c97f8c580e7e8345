"""A language model of a million random weights that a real engine serves on a CPU: made here, nothing is downloaded.

It says nothing of sense and never ends by itself, only where a grammar or a limit ends it. It has all that an engine
wants of a model: a configuration, weights by a fixed seed, a tokenizer and a chat template with tools. The same files
come out each time.
"""

import json
import os
import random
import struct
import sys
from array import array
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

SEED = 0
HIDDEN, LAYERS, HEADS, KV_HEADS, FEED_FORWARD = 128, 4, 4, 2, 384
HEAD = HIDDEN // HEADS
CONTEXT = 32_768
SPREAD = 0.02
"""Of the random weights."""
CONSTANT, AGAINST = 0.2, -4.0
"""The first number of every state, which no layer changes, and by how much it speaks against the special pieces
and the bytes below."""
UNSAID = frozenset(range(256)) - frozenset(range(0x20, 0x7F))
"""Half characters, which are chunks without text, and control characters; a grammar can still ask for them."""
SPACE = "\u0120"
"""How a space is written in the vocabulary of bytes."""
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
END = "<|im_end|>"
MERGED = (
    "th he in er an re on at en nd ti es or te of ed is it al ar st to nt ng se ha as ou io le ve co me de hi ri ro ic "
    "ne ea ra ce li ch ll be ma si om ur 11 41 07 ex am pl the and ing ion ent +t +a +s +w +c +the +of +a +and +its "
    "+for +you +who +are +not +in +one +all +on +at +to +it +is +as +we +be +by +he +or +so +up +if +no +do +go"
).replace("+", SPACE)
"""Pieces of English and of digits, the earlier first; everything else is spelt byte by byte."""
TEMPLATE = (
    "{%- if tools %}{{ '<|im_start|>system\\n' + (tools | tojson) + '<|im_end|>\\n' }}{% endif %}"
    "{%- for message in messages %}"
    "{{ '<|im_start|>' + message.role + '\\n' }}"
    "{%- if message.content is string %}{{ message.content }}"
    "{%- elif message.content %}{% for part in message.content %}{{ part.text }}{% endfor %}{% endif %}"
    "{%- for call in message.tool_calls or [] %}"
    "{{ '<tool_call>' + (call.function | tojson) + '</tool_call>' }}{% endfor %}"
    "{{ '<|im_end|>\\n' }}{% endfor %}"
    "{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def make(folder: Path) -> Path:
    """Write the model into a folder, unless it stands there; the last file comes whole or not at all."""
    if (folder / "model.safetensors").is_file():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, document in documents().items():
        (folder / name).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    unfinished = folder / f"weights.{os.getpid()}.part"
    unfinished.write_bytes(weights(len(vocabulary())))
    unfinished.replace(folder / "model.safetensors")
    return folder


def documents() -> dict[str, dict[str, object]]:
    """Everything of the model but its weights."""
    pieces = vocabulary()
    special = [_special(pieces, word) for word in SPECIAL]
    tokenizer: dict[str, object] = {
        "version": "1.0",
        "added_tokens": special,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "vocab": pieces, "merges": [list(pair) for pair in merges()]},
    }
    own: dict[str, object] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": END,
        "pad_token": SPECIAL[0],
        "model_max_length": CONTEXT,
        "clean_up_tokenization_spaces": False,
        "chat_template": TEMPLATE,
    }
    return {
        "config.json": _configuration(pieces),
        "generation_config.json": {"eos_token_id": pieces[END], "pad_token_id": pieces[SPECIAL[0]]},
        "tokenizer.json": tokenizer,
        "tokenizer_config.json": own,
    }


def vocabulary() -> dict[str, int]:
    """Piece -> number: every byte, the merged pieces, the special ones."""
    words = [*_alphabet(), *("".join(pair) for pair in merges()), *SPECIAL]
    return {word: number for number, word in enumerate(words)}


def merges() -> Iterator[tuple[str, str]]:
    """Which two pieces become one, the first that fits first."""
    ranks: dict[tuple[str, str], int] = {}
    for word in MERGED.split():
        first, *others = _pieces(word, ranks)
        for piece in others:
            yield first, piece
            ranks[first, piece] = len(ranks)
            first += piece


def weights(words: int) -> bytes:
    """The weights as a file of the safetensors format: a header, then bfloat16 numbers."""
    source = random.Random(SEED)  # noqa: S311 - the same numbers each time are the point
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    parts: list[bytes] = []
    place = 0
    for name, shape in _shapes(words).items():
        numbers = _numbers(name, shape, source)
        count = len(numbers)
        parts.append(_bfloat16(numbers))
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [place, place + 2 * count]}
        place += 2 * count
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return b"".join((struct.pack("<Q", len(text)), text, *parts))


def _numbers(name: str, shape: list[int], source: random.Random) -> list[float]:
    if len(shape) == 1:  # what a norm multiplies with
        return [1.0] * shape[0]
    rows, columns = shape
    numbers = [source.gauss(0.0, SPREAD) for _ in range(rows * columns)]
    if name.endswith(("o_proj.weight", "down_proj.weight")):  # what layers add to the state
        numbers[:columns] = [0.0] * columns
    elif name == "model.embed_tokens.weight":
        numbers[::columns] = [CONSTANT] * rows
    elif name == "lm_head.weight":
        numbers[::columns] = [AGAINST if row in UNSAID or row >= rows - len(SPECIAL) else 0.0 for row in range(rows)]
    return numbers


def _shapes(words: int) -> dict[str, list[int]]:
    shapes = {"model.embed_tokens.weight": [words, HIDDEN], "model.norm.weight": [HIDDEN]}
    for number in range(LAYERS):
        layer = f"model.layers.{number}"
        shapes |= {f"{layer}.{norm}_layernorm.weight": [HIDDEN] for norm in ("input", "post_attention")}
        rows = {"q": HIDDEN, "k": KV_HEADS * HEAD, "v": KV_HEADS * HEAD, "o": HIDDEN}
        shapes |= {f"{layer}.self_attn.{part}_proj.weight": [count, HIDDEN] for part, count in rows.items()}
        shapes |= {f"{layer}.mlp.{part}_proj.weight": [FEED_FORWARD, HIDDEN] for part in ("gate", "up")}
        shapes[f"{layer}.mlp.down_proj.weight"] = [HIDDEN, FEED_FORWARD]
    return shapes | {"lm_head.weight": [words, HIDDEN]}


def _bfloat16(numbers: list[float]) -> bytes:
    """The upper halves of 32-bit numbers, lowest byte first."""
    exact = array("f", numbers)
    if sys.byteorder == "big":
        exact.byteswap()
    halves = bytearray(2 * len(numbers))
    halves[0::2], halves[1::2] = exact.tobytes()[2::4], exact.tobytes()[3::4]
    return bytes(halves)


def _configuration(pieces: dict[str, int]) -> dict[str, object]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": HIDDEN,
        "intermediate_size": FEED_FORWARD,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD,
        "vocab_size": len(pieces),
        "max_position_embeddings": CONTEXT,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-5,
        "rope_theta": 10_000.0,
        "tie_word_embeddings": False,
        "attention_bias": False,
        "mlp_bias": False,
        "torch_dtype": "bfloat16",
        "bos_token_id": None,
        "eos_token_id": pieces[END],
        "pad_token_id": pieces[SPECIAL[0]],
    }


def _special(pieces: dict[str, int], word: str) -> dict[str, object]:
    off = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": pieces[word], "content": word, **off, "special": True}


def _alphabet() -> list[str]:
    """A character for each byte, as tokenizers of bytes write them: printable ones as they are, others after U+0100."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in set(shown)]
    character = {byte: chr(byte) for byte in shown} | {byte: chr(256 + place) for place, byte in enumerate(hidden)}
    return [character[byte] for byte in range(256)]


def _pieces(word: str, ranks: dict[tuple[str, str], int]) -> list[str]:
    """A word in the pieces that it has so far."""
    pieces = list(word)
    while found := [(ranks[pair], place) for place, pair in enumerate(pairwise(pieces)) if pair in ranks]:
        _, place = min(found)
        pieces[place : place + 2] = [pieces[place] + pieces[place + 1]]
    return pieces
