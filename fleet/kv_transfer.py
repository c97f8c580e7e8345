"""Moving the KV cache of a prompt from the replica that read it to the one that answers: bytes over the network.

Every rank of the prefill plan sends what it keeps of the prompt, every rank of the decode plan takes what it will keep;
the slower of both ends decides. A rank has its part of its instance's network, at the rate that the cloud states
(`fleet/data/instances.json`). How much of that rate a transfer reaches was not measured, and what goes out while the
prompt is still read is not taken off.
"""

from dataclasses import dataclass

from fleet.hardware import InstanceType
from fleet.kv_cache import sequence_bytes_of_rank
from fleet.model import Missing, Model
from fleet.parallel_plan import ParallelPlan
from fleet.serving import Serving

BITS_PER_BYTE = 8
GIGA = 1e9


@dataclass(frozen=True, slots=True)
class Uplink:
    """What one GPU, or one slice of it, has of the network of its instance."""

    instance_type: str
    bytes_per_second: float
    has_efa: bool
    is_burst: bool
    """The rate is an upper bound ("up to")."""

    @classmethod
    def of(cls, shape: InstanceType, slices_per_gpu: int = 1) -> "Uplink":
        """Of an instance whose GPUs are cut into so many slices."""
        whole = shape.network_gigabits_per_second * GIGA / BITS_PER_BYTE
        part = whole / (shape.gpus * slices_per_gpu)
        return cls(shape.name, part, shape.supports_efa, shape.network_is_burst)

    @property
    def doubt(self) -> str | None:
        """Why the stated rate may not be had."""
        if self.is_burst:
            return f"{self.instance_type} has its network rate in bursts alone"
        return None if self.has_efa else f"{self.instance_type} has no EFA: the cache goes over TCP"


@dataclass(frozen=True, slots=True)
class Transfer:
    """Of one prompt's cache between two plans."""

    seconds: float
    sent_per_second: float
    """Caches that one prefill replica can send."""
    taken_per_second: float
    """Caches that one decode replica can take."""
    doubts: tuple[str, ...]


def prompt_cache_bytes(model: Model, kv_dtype: str, input_tokens: int) -> int | Missing:
    """What a prompt leaves in the cache, over all layers: windows, latents and states as they are kept."""
    return sequence_bytes_of_rank(model, ParallelPlan(), kv_dtype, input_tokens)


def transfer_of(prefill: Serving, decode: Serving, sender: Uplink, taker: Uplink) -> Transfer | Missing:
    """The transfer of one prompt, or which figure of the model is missing."""
    sent, taken = _rank_seconds(prefill, sender), _rank_seconds(decode, taker)
    if isinstance(sent, Missing):
        return sent
    if isinstance(taken, Missing):
        return taken
    doubts = dict.fromkeys(doubt for doubt in (sender.doubt, taker.doubt) if doubt)
    return Transfer(max(sent, taken), _per_second(prefill, sent), _per_second(decode, taken), tuple(doubts))


def _rank_seconds(serving: Serving, link: Uplink) -> float | Missing:
    """How long the fullest rank's part takes; all ranks of a sequence go at once."""
    held = sequence_bytes_of_rank(serving.model, serving.plan, serving.kv_dtype, serving.input_tokens)
    return held if isinstance(held, Missing) else held / link.bytes_per_second


def _per_second(serving: Serving, seconds: float) -> float:
    """Data-parallel ranks each have sequences of their own."""
    return serving.plan.data / seconds if seconds else float("inf")
