"""How the checkpoint itself is stored: ``quantization_config`` and ``hf_quant_config.json`` in their many forms."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from fleet.model_reading.keys import Keys, Lacking
from fleet.quantization import ENCODINGS, PLAIN, Encoding, Rule, StoredFormat, grouped_encoding
from fleet.quantization_modules import MOST_STEPS, Modules

EXCLUSIONS = (
    "modules_to_not_convert",
    "ignore",
    "ignored_layers",
    "exclude_modules",
    "exclude",
    "llm_int8_skip_modules",
    "skip_modules",
)
ALGORITHMS = {
    "fp8": "fp8-channel",
    "fp8_per_channel_per_token": "fp8-channel",
    "fp8_pb_wo": "fp8",
    "fp8_block_scales": "fp8",
    "nvfp4": "nvfp4",
    "w4a16_nvfp4": "nvfp4",
    "nvfp4_awq": "nvfp4",
    "w4a8_nvfp4_fp8": "nvfp4",
    "mxfp4": "mxfp4",
    "w4a8_mxfp4_fp8": "mxfp4",
    "w4a16_awq": "awq",
    "w4a8_awq": "awq",
    "int4_awq": "awq",
    "int8_sq": "int8",
    "w8a16": "int8",
    "w8a8_sq_per_channel": "int8",
    "mxfp8": "fp8",
}
"""Names of modelopt's algorithms."""


MOST_RULES = 1_000
"""Groups of modules with an encoding of their own; published checkpoints have up to a few dozen."""
BITS = (2, 3, 4, 8)
"""Widths of integers that GPTQ and AWQ checkpoints are stored in."""


class Unreadable(Exception):
    """A quantisation method that is not known: the key and its value."""

    def __init__(self, key: str, value: str) -> None:
        super().__init__(value)
        self.key = key
        self.value = value


def stored_format(config: Keys, text: Keys) -> StoredFormat | None:
    """The checkpoint's own format, or ``None`` for bf16 and fp16. Raises `Unreadable` for an unknown method."""
    beside = config.section("_hf_quant_config")
    inner = beside.section("quantization") if beside else None
    section = config.section("quantization_config") or text.section("quantization_config")
    if inner and inner.has("quant_algo"):
        return _modelopt(inner)
    if section is None or (section.find("quant_method")[1] is None and not section.has("config_groups", "quant_algo")):
        return None
    method = (section.text("quant_method") or "compressed-tensors").lower()
    if section.has("quant_algo"):
        return _modelopt(section)
    if section.has("config_groups"):
        return _compressed(section)
    return _by_method(section, method, text)


def _by_method(section: Keys, method: str, text: Keys) -> StoredFormat | None:
    bits = section.size("bits") or section.size("w_bit")
    excluded = _excluded(section)
    if method in {"fp8", "fbgemm_fp8"}:
        stated = section.find("weight_block_size")[1]
        default = ENCODINGS[
            "fp8" if stated or (method == "fp8" and "weight_block_size" not in section.values) else "fp8-channel"
        ]
        experts = ENCODINGS["mxfp4"] if text.find("expert_dtype")[1] == "fp4" else None
        return StoredFormat(method, default, excluded, experts=experts)
    if method in {"awq", "gptq", "auto-round", "gptq_marlin", "awq_marlin", "intel/auto-round"}:
        return _grouped(section, method, bits or 4, excluded)
    if method == "bitsandbytes":
        default = ENCODINGS["int8" if section.flag("load_in_8bit") else "nf4"]
        return StoredFormat(method, default, excluded)
    if method == "mxfp4":
        return StoredFormat(method, PLAIN, excluded, experts=ENCODINGS["mxfp4"])
    if method in {"experts_int8", "int8"}:
        return StoredFormat(method, ENCODINGS["int8"], excluded)
    raise Unreadable("quantization_config.quant_method", method)


def _grouped(section: Keys, method: str, bits: int, excluded: Modules) -> StoredFormat:
    if bits not in BITS:
        raise Unreadable("quantization_config.bits", str(bits))
    size = section.find("group_size")[1]
    size = size if isinstance(size, int) and size > 0 else 0
    name = "awq" if method.startswith("awq") else "gptq"
    return StoredFormat(
        method,
        grouped_encoding(name, bits, size, bits),
        excluded,
        _few(section, "dynamic", _dynamic(section, name, size)),
    )


def _dynamic(section: Keys, name: str, size: int) -> Iterator[Rule]:
    """GPTQModel's ``dynamic``: ``-:`` leaves modules out, ``+:`` (or nothing) gives them other bits."""
    value = section.find("dynamic")[1]
    if not isinstance(value, Mapping):
        return
    for pattern, wish in value.items():
        modules = Modules.of([f"re:{str(pattern).removeprefix('-:').removeprefix('+:')}"])
        bits = wish.get("bits") if isinstance(wish, Mapping) else None
        if str(pattern).startswith("-:"):
            yield Rule(modules, PLAIN)
        elif bits in BITS:
            yield Rule(modules, grouped_encoding(name, bits, size, bits))


def _few(section: Keys, key: str, rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """The rules, each of which is compared with each module; raises `Lacking` for more than can be meant."""
    found = tuple(islice(rules, MOST_RULES + 1))
    if len(found) > MOST_RULES or sum(rule.modules.steps for rule in found) > MOST_STEPS:
        raise _too_many(section, key)
    return found


def _too_many(section: Keys, key: str) -> Lacking:
    lacking = f"{section.path}{key}"
    return Lacking(lacking, f"{lacking} holds more rules or expressions than are read (at most {MOST_RULES:,})")


def _modelopt(section: Keys) -> StoredFormat:
    algorithm = (section.text("quant_algo") or "").lower()
    kv = (
        "fp8"
        if section.has("kv_cache_scheme") or (section.text("kv_cache_quant_algo") or "").lower() == "fp8"
        else None
    )
    listed = section.find("quantized_layers")[1]
    if isinstance(listed, Mapping):
        rules = _few(section, "quantized_layers", _listed(listed))
        return StoredFormat(f"modelopt {algorithm}", PLAIN, _excluded(section), rules, kv_cache_dtype=kv)
    default = _algorithm(algorithm, section.find("group_size")[1])
    return StoredFormat(f"modelopt {algorithm}", default, _excluded(section), kv_cache_dtype=kv)


def _listed(layers: Mapping[object, object]) -> Iterator[Rule]:
    """One rule for each algorithm of a list of layers."""
    by_wish: dict[tuple[str, object], list[str]] = {}
    for module, wish in layers.items():
        if isinstance(wish, dict) and isinstance(name := wish.get("quant_algo"), str):
            size = wish.get("group_size")
            by_wish.setdefault((name.lower(), size if isinstance(size, int) else None), []).append(str(module))
    by_encoding: dict[Encoding, list[str]] = {}
    for (name, size), modules in by_wish.items():
        by_encoding.setdefault(_algorithm(name, size), []).extend(modules)
    for encoding, modules in by_encoding.items():
        yield Rule(Modules.of(modules), encoding)


def _algorithm(name: str, size: object) -> Encoding:
    if name not in ALGORITHMS:
        raise Unreadable("quant_algo", name)
    encoding = ENCODINGS[ALGORITHMS[name]]
    if isinstance(size, int) and size > 0 and encoding.group_size and size != encoding.group_size:
        return grouped_encoding(encoding.name, encoding.bits, size, encoding.zero_bits)
    return encoding


def _compressed(section: Keys) -> StoredFormat:
    """compressed-tensors: groups of targets with one scheme each."""
    groups = section.section("config_groups")
    default, rules = PLAIN, list[Rule]()
    if groups and len(groups.values) > MOST_RULES:
        raise _too_many(section, "config_groups")
    for name in groups.values if groups else ():
        group = groups.section(name) if groups else None
        weights = group.section("weights") if group else None
        if group is None or weights is None:
            continue
        encoding = _scheme(weights, group.text("format") or section.text("format") or "")
        targets = [str(target) for target in group.list("targets") or ()]
        if not targets or any(target.endswith("Linear") for target in targets):
            default = encoding
        named = [target for target in targets if not target.endswith("Linear")]
        if named:
            rules.append(Rule(Modules.of(named), encoding))
    kv = "fp8" if section.has("kv_cache_scheme") else None
    few = _few(section, "config_groups", rules)
    return StoredFormat("compressed-tensors", default, _excluded(section), few, kv_cache_dtype=kv)


def _scheme(weights: Keys, form: str) -> Encoding:
    bits, kind = weights.need("num_bits"), weights.text("type") or "int"
    strategy, size = weights.text("strategy") or "", weights.count("group_size") or 0
    if bits == 4 and kind == "float":
        return ENCODINGS["mxfp4" if "mxfp4" in form or size == 32 else "nvfp4"]
    if bits == 8:
        name = "fp8" if strategy == "block" else "fp8-channel"
        return ENCODINGS[name if kind == "float" else "int8"]
    if bits in {2, 3, 4}:
        symmetric = weights.flag("symmetric", default=True)
        return grouped_encoding("int4", bits, size, 0 if symmetric else bits)
    raise Unreadable("quantization_config.config_groups", f"{bits}-bit {kind}")


def _excluded(section: Keys) -> Modules:
    found: list[str] = []
    for key in EXCLUSIONS:
        if isinstance(section.find(key)[1], list):
            found.extend(str(item) for item in section.list(key) or ())
    return Modules.of(found)
