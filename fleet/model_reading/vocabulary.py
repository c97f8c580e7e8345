"""Input embeddings, positions, per-layer embeddings, the final norm and the head."""

from collections.abc import Iterator

from fleet.model_reading.blocks import linear, norms, vector
from fleet.model_reading.keys import Keys, Lacking
from fleet.model_reading.text import Text
from fleet.tensors import Part, Split, Tensor


def vocabulary(text: Text, outer: Keys, *, has_head: bool) -> Iterator[Tensor]:
    """What stands before and after the layers."""
    rows = text.keys.need("vocab_size")
    all_rows = rows + text.family.extra_embeddings
    yield Tensor(f"{text.root}.embed_tokens", all_rows, text.hidden, Part.EMBEDDING, Split.VOCABULARY, is_linear=False)
    if has_head and not is_tied(text, outer):
        yield Tensor("lm_head", rows, text.hidden, Part.LM_HEAD, Split.VOCABULARY)
    if text.family.positions is not None:
        count = text.keys.need("max_position_embeddings") + text.family.positions
        yield Tensor(f"{text.root}.embed_positions", count, text.hidden, Part.EMBEDDING, Split.NONE, is_linear=False)
    if text.family.token_types:
        yield vector(f"{text.root}.token_type_embeddings", 2 * text.hidden, Part.EMBEDDING)
        yield from linear(f"{text.root}.pooler", text.hidden, text.hidden, Part.DENSE_FFN, Split.NONE, bias=True)
    yield from norms(f"{text.root}.norm", text.hidden, 1, bias=text.family.norm_bias)
    yield from _per_layer(text)


def is_tied(text: Text, outer: Keys) -> bool:
    """Whether embedding and head are one matrix; the outer configuration decides for a nested one."""
    for keys in (outer, text.keys):
        if keys.has("tie_word_embeddings"):
            return keys.flag("tie_word_embeddings")
    if text.family.tied is None:
        raise Lacking("tie_word_embeddings")
    return text.family.tied


def _per_layer(text: Text) -> Iterator[Tensor]:
    """Embeddings that every layer adds of its own (Gemma 3n, Gemma 4 E2B)."""
    width = text.keys.count("hidden_size_per_layer_input")
    if not width:
        return
    rows, all_layers = text.keys.need("vocab_size_per_layer_input"), text.layers * width
    at = text.root
    yield Tensor(f"{at}.embed_tokens_per_layer", rows, all_layers, Part.EMBEDDING, Split.NONE, is_linear=False)
    yield from linear(f"{at}.per_layer_model_projection", all_layers, text.hidden, Part.EMBEDDING, Split.NONE)
    yield vector(f"{at}.per_layer_projection_norm", width, Part.NORM)
    for layer in range(text.layers):
        name = text.module(layer, "per_layer")
        yield from linear(f"{name}_input_gate", width, text.hidden, Part.DENSE_FFN, Split.NONE)
        yield from linear(f"{name}_projection", text.hidden, width, Part.DENSE_FFN, Split.NONE)
        yield vector(f"{name}_norm", text.hidden, Part.NORM)
