"""The plain transformer as which an architecture is read that is not known by name."""

from fleet.model_reading.families import Family, Windows
from fleet.model_reading.keys import Keys, Lacking

GATED = frozenset({"silu", "swish", "swiglu", "geglu", "reglu"})
NOT_GATED = frozenset({"relu", "relu2", "xielu", "gelu_new", "squared_relu"})
"""Activations that say how many first matrices an FFN has; plain ``gelu`` is used with one and with two."""


def generic_family(keys: Keys) -> Family:
    """A plain transformer with one or two first matrices, as the activation says."""
    return Family(tied=None, windows=Windows.ALL, experts_take_ffn_size=False, gated=_activation(keys) not in NOT_GATED)


def check_generic(keys: Keys) -> None:
    """Raise `Lacking` where a plain transformer would be a guess."""
    if _activation(keys) not in GATED | NOT_GATED:
        raise Lacking("hidden_act", "the architecture is not known, and its activation does not say how many matrices")


def _activation(keys: Keys) -> str:
    for name in ("hidden_act", "hidden_activation", "activation_function", "mlp_hidden_act"):
        value = keys.find(name)[1]
        if isinstance(value, str):
            return value.lower()
    return ""
