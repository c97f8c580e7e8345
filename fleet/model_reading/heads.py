"""How many heads a layer has and how wide they are."""

from dataclasses import dataclass

from fleet.model_reading.keys import Keys, Lacking
from fleet.model_reading.overrides import has_overrides
from fleet.model_reading.text import Text


@dataclass(frozen=True, slots=True)
class Heads:
    """The shape of grouped-query attention in one layer."""

    queries: int
    keys_values: int
    key_dim: int
    value_dim: int


def heads_of(text: Text, layer: int, kind: str) -> Heads:
    """The heads of a layer; sliding and global layers may differ."""
    other = _of_this_kind(text, kind)
    queries = _first(other, ("num_attention_heads", "num_attention_heads_per_layer"), layer) or _queries(text, layer)
    if not queries:
        raise Lacking(f"{text.keys.path}num_attention_heads", f"layer {layer} has no attention heads")
    given = _first(other, ("num_key_value_heads",), layer) or _kv_heads(text, layer)
    key_dim = _first(other, ("head_dim",), layer) or head_dim(text, queries)
    if given and queries % given:
        spelled, _ = text.keys.find("num_key_value_heads")
        text.keys.refuse(spelled, f"{given} KV heads do not divide {queries} attention heads")
    value_dim = _first(other, ("v_head_dim",), layer) or _value_dim(text, key_dim)
    return Heads(queries, given or queries, key_dim, value_dim)


def head_dim(text: Text, queries: int) -> int:
    """The stated width of a head, else the hidden size divided by the heads."""
    stated = text.keys.size("head_dim") or text.family.head_dim
    if stated:
        return stated
    if text.hidden % queries:
        spelled, _ = text.keys.find("num_attention_heads")
        text.keys.refuse(spelled, f"{queries} does not divide hidden_size {text.hidden}, and head_dim is not stated")
    return text.hidden // queries


def _value_dim(text: Text, key_dim: int) -> int:
    return key_dim if text.keys.has("kv_lora_rank") else text.keys.size("v_head_dim") or key_dim


def _of_this_kind(text: Text, kind: str) -> Keys | None:
    """The keys that hold for this kind of layer alone, under their plain names."""
    keys = text.keys
    if has_overrides(keys):
        return None
    if kind == "sliding" and isinstance(keys.find("attention_other_setting")[1], dict):
        return keys.section("attention_other_setting")
    renamed = {
        "sliding": {
            "num_attention_heads": "swa_num_attention_heads",
            "num_key_value_heads": "swa_num_key_value_heads",
            "head_dim": "swa_head_dim",
            "v_head_dim": "swa_v_head_dim",
        },
        "full": {"num_key_value_heads": "num_global_key_value_heads", "head_dim": "global_head_dim"},
    }.get(kind, {})
    if kind == "full" and not keys.flag(
        "attention_k_eq_v", default=True
    ):  # global layers have fewer KV heads with it alone
        renamed.pop("num_key_value_heads", None)
    found = {plain: keys.find(name)[1] for plain, name in renamed.items() if keys.has(name)}
    return Keys(found, keys.source, keys.path) if found else None


def _first(keys: Keys | None, names: tuple[str, ...], layer: int) -> int | None:
    if keys is None:
        return None
    return next((value for name in names if (value := keys.size_at(name, layer))), None)


def _queries(text: Text, layer: int) -> int:
    per_layer = "num_attention_heads_per_layer"
    return text.keys.need_at(per_layer if text.keys.has(per_layer) else "num_attention_heads", layer)


def _kv_heads(text: Text, layer: int) -> int | None:
    """The stated KV heads; ``multi_query`` (Falcon, GPT-BigCode) means one, whatever else stands there."""
    keys = text.keys
    if keys.find("multi_query")[1] is True and not keys.flag("new_decoder_architecture"):
        return 1
    per_layer = "num_key_value_heads_per_layer"
    return keys.size_at(per_layer, layer) if keys.has(per_layer) else keys.size_at("num_key_value_heads", layer)
