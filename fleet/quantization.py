"""How weights are stored: encodings with their scales, and which module of a checkpoint has which encoding."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from fleet.quantization_modules import Modules
from fleet.tensors import Part, Tensor

BYTES_PLAIN = 2
"""bf16 and fp16; the few fp32 vectors of a checkpoint do not matter."""


@dataclass(frozen=True, slots=True)
class Encoding:
    """One way to store a matrix."""

    name: str
    bits: int
    """Per element."""
    group_size: int = 0
    """Elements of a row that share a scale; 0 = no groups."""
    scale_bits: int = 0
    zero_bits: int = 0
    """Zero points, one per group."""
    block: tuple[int, int] | None = None
    """Rows and columns that share a scale."""
    min_native_capability: float | None = None
    """CUDA compute capability from which tensor cores take this encoding; below it weights are unpacked first."""
    min_capability: float = 7.0
    """Below this no kernel runs it at all."""

    def bytes_of(self, tensor: Tensor) -> int:
        """Bytes of all copies of a tensor, scales included; never more than plain ones."""
        plain = tensor.parameters * BYTES_PLAIN
        if self.bits == 16 or not tensor.is_linear:
            return plain
        out, inner = tensor.out_features, tensor.in_features
        return min(plain, tensor.copies * (-(-out * inner * self.bits // 8) + self._scales(out, inner)))

    def _scales(self, out: int, inner: int) -> int:
        if self.block:
            return -(-out // self.block[0]) * -(-inner // self.block[1]) * self.scale_bits // 8
        if self.group_size:
            return -(-out * -(-inner // self.group_size) * (self.scale_bits + self.zero_bits) // 8)
        return out * self.scale_bits // 8


_ALL = (
    Encoding("bf16", 16),
    Encoding("fp8", 8, scale_bits=32, block=(128, 128), min_native_capability=8.9, min_capability=7.5),
    Encoding("fp8-channel", 8, scale_bits=32, min_native_capability=8.9, min_capability=7.5),
    Encoding("int8", 8, scale_bits=32, min_native_capability=7.5, min_capability=7.5),
    Encoding("awq", 4, group_size=128, scale_bits=16, zero_bits=4, min_capability=7.5),
    Encoding("gptq", 4, group_size=128, scale_bits=16, zero_bits=4, min_capability=7.0),
    Encoding("int4", 4, group_size=32, scale_bits=16, min_capability=7.5),
    Encoding("mxfp4", 4, group_size=32, scale_bits=8, min_native_capability=10.0, min_capability=7.5),
    Encoding("nvfp4", 4, group_size=16, scale_bits=8, min_native_capability=10.0, min_capability=7.5),
    Encoding("nf4", 4, group_size=64, scale_bits=8, min_capability=7.5),
)
ENCODINGS: Mapping[str, Encoding] = MappingProxyType({encoding.name: encoding for encoding in _ALL})
"""By the name that ``--quantization`` takes."""
PLAIN = ENCODINGS["bf16"]


@lru_cache(maxsize=1024)
def grouped_encoding(name: str, bits: int, group_size: int, zero_bits: int) -> Encoding:
    """A variation of a named encoding with other bits or another group size."""
    base = ENCODINGS[name]
    return Encoding(
        name, bits, group_size, base.scale_bits, zero_bits, None, base.min_native_capability, base.min_capability
    )


UNTOUCHED = frozenset({Part.EMBEDDING, Part.LM_HEAD, Part.ROUTER, Part.NORM, Part.ENCODER})
"""Parts that published checkpoints leave in bf16 unless they name them."""


@dataclass(frozen=True)
class Rule:
    """Modules that have an encoding of their own."""

    modules: Modules
    encoding: Encoding


NONE_OF_THEM = Modules()


@dataclass(frozen=True)
class StoredFormat:
    """A checkpoint's own quantisation: the first rule that names a module decides, else the default."""

    name: str
    """The method as the configuration states it."""
    default: Encoding
    excluded: Modules = NONE_OF_THEM
    rules: tuple[Rule, ...] = ()
    experts: Encoding | None = None
    """Routed experts are stored in this one."""
    kv_cache_dtype: str | None = None
    """``fp8`` where the checkpoint brings scales for the KV cache."""

    def is_like(self, quantization: str) -> bool:
        """Whether the checkpoint is stored in this encoding, whatever its scales cover."""
        used = {self.default, *(rule.encoding for rule in self.rules)} | ({self.experts} if self.experts else set())
        least = min(encoding.bits for encoding in used)
        named = {encoding.name.partition("-")[0] for encoding in used if encoding.bits == least < PLAIN.bits}
        return quantization.partition("-")[0] in named

    def encoding_of(self, tensor: Tensor) -> Encoding:
        """How a tensor is stored."""
        if not tensor.is_linear or self.excluded.names(tensor.module):
            return PLAIN
        for rule in self.rules:
            if rule.modules.names(tensor.module):
                return rule.encoding
        if tensor.part in UNTOUCHED:
            return PLAIN
        return self.experts if self.experts and tensor.copies > 1 else self.default
