"""Models with an encoder of their own whose decoder looks at it in every layer (Whisper, BART)."""

from collections.abc import Iterator

from fleet.model import CrossAttention, FullAttention, Layer, Missing, Model
from fleet.model_reading.blocks import ffn, linear, norms, vector
from fleet.model_reading.class_defaults import demanded, never_null
from fleet.model_reading.keys import Keys, Lacking
from fleet.model_reading.text_section import architecture_of
from fleet.tensors import Part, Split, Tensor

UNREAD = "encoder-decoder models other than those with encoder_layers and decoder_layers are not read"


def encoder_decoder(keys: Keys, source: str) -> Model:
    """The model; what a token keeps is the decoder's self-attention, what a request keeps the cross-attention."""
    missing: list[Missing] = []
    layers: tuple[Layer, ...] = ()
    tensors: tuple[Tensor, ...] = ()
    kind = keys.text("model_type")
    inside = Keys(keys.values, keys.source, keys.path, demanded=demanded(kind), never_null=never_null(kind))
    try:
        layers = tuple(_decoder_layer(inside, number) for number in range(_depth(inside, "decoder_layers")))
        tensors = tuple(_outside(inside))
    except Lacking as lack:
        missing = [Missing(figure, lack.key, lack.message) for figure in ("weights", "kv")]
    return Model(
        id=source,
        architecture=architecture_of(keys, keys),
        hidden_size=keys.size("d_model") or 0,
        vocabulary=keys.size("vocab_size") or 0,
        max_context_tokens=keys.size("max_target_positions") or keys.size("max_position_embeddings"),
        layers=layers,
        tensors=tensors,
        modalities=frozenset({"text", "audio"} if keys.has("num_mel_bins") else {"text"}),
        missing=tuple(missing),
    )


def _depth(keys: Keys, name: str) -> int:
    for sized in ("encoder_layers", "decoder_layers"):
        if not keys.has(sized):
            raise Lacking(sized, UNREAD)
    if keys.has("num_experts"):
        raise Lacking(keys.find("num_experts")[0], UNREAD)
    depth = keys.need(name)
    if depth > 1000:
        keys.refuse(name, f"{depth} layers are more than any model's (1000)")
    return depth


def _decoder_layer(keys: Keys, number: int) -> Layer:
    width, heads = keys.need("d_model"), keys.need("decoder_attention_heads")
    if width % heads:
        keys.refuse("decoder_attention_heads", f"{heads} does not divide d_model {width}")
    source = keys.size("max_source_positions") or keys.need("max_position_embeddings")
    sizes = (heads, heads, width // heads, width // heads)
    at = f"model.decoder.layers.{number}"
    tensors = [
        *_projections(f"{at}.self_attn", width, heads),
        *_projections(f"{at}.encoder_attn", width, heads),
        *ffn(at, width, keys.need("decoder_ffn_dim"), Part.DENSE_FFN, gated=False, bias=True),
        *norms(f"{at}.norms", width, 3, bias=True),
    ]
    return Layer((FullAttention(*sizes), CrossAttention(*sizes, source)), tuple(tensors))


def _projections(at: str, width: int, heads: int) -> Iterator[Tensor]:
    yield from linear(f"{at}.q_proj", width, width, Part.ATTENTION, Split.OUTPUT, bias=True)
    yield from linear(f"{at}.k_proj", width, width, Part.ATTENTION, Split.KV_HEADS, heads=heads)
    yield from linear(f"{at}.v_proj", width, width, Part.ATTENTION, Split.KV_HEADS, bias=True, heads=heads)
    yield from linear(f"{at}.out_proj", width, width, Part.ATTENTION, Split.INPUT, bias=True)


def _outside(keys: Keys) -> Iterator[Tensor]:
    width, rows = keys.need("d_model"), keys.need("vocab_size")
    yield Tensor("model.decoder.embed_tokens", rows, width, Part.EMBEDDING, Split.VOCABULARY, is_linear=False)
    if not keys.flag("tie_word_embeddings", default=True):
        yield Tensor("lm_head", rows, width, Part.LM_HEAD, Split.VOCABULARY)
    targets = keys.size("max_target_positions") or keys.need("max_position_embeddings")
    yield Tensor("model.decoder.embed_positions", targets, width, Part.EMBEDDING, Split.NONE, is_linear=False)
    yield from norms("model.decoder.layer_norm", width, 1, bias=True)
    yield from encoder(keys, "model.encoder")


def encoder(keys: Keys, at: str) -> Iterator[Tensor]:
    """An encoder in the shape of Whisper's: convolutions over mel bins where there are some, positions, layers."""
    width = keys.size("d_model") or keys.need("hidden_size")
    depth = keys.size("encoder_layers") or keys.need("num_hidden_layers")
    inner = keys.size("encoder_ffn_dim") or keys.need("intermediate_size")
    bins = keys.size("num_mel_bins")
    if bins:
        yield vector(f"{at}.conv", 3 * width * (bins + width), Part.ENCODER)
    positions = keys.size("max_source_positions") or keys.size("max_position_embeddings") or 0
    if positions:
        yield vector(f"{at}.embed_positions", positions * width, Part.ENCODER)
    one = 4 * width * width + 2 * width * inner + 9 * width + inner
    yield Tensor(f"{at}.layers", one, 1, Part.ENCODER, Split.NONE, copies=depth)
    yield from norms(f"{at}.layer_norm", width, 1, Part.ENCODER, bias=True)
