"""Fields that no client may send, whatever the route: they are words between engines, or ask for what is kept. Pure.

Names are those of vLLM's, SGLang's and TensorRT-LLM's request models.
"""

from collections.abc import Mapping
from typing import NamedTuple

from gateway.paths import Operation

_BETWEEN_ENGINES = (
    "kv_transfer_params",
    "ec_transfer_params",
    "disaggregated_params",
    "bootstrap_host",
    "bootstrap_port",
    "bootstrap_room",
    "data_parallel_rank",
    "routed_dp_rank",
    "disagg_prefill_dp_rank",
    "session_params",
    "lora_path",
    "lora_request",
)
"""Where an engine fetches computed prompts or adapters from, which of its ranks answers, which session it goes on with:
other tenants' prompts, and any place of the network."""
_NAMES_BETWEEN_ENGINES = frozenset(_BETWEEN_ENGINES)
_KEPT = {
    "background": "an answer that nobody waits for can't be counted",
    "previous_response_id": "no answer is kept; send the input whole",
}
"""Of responses."""


class UnservedField(NamedTuple):
    """A field that is refused, and what its sender is told."""

    name: str
    message: str


def unserved_field(document: Mapping[str, object], operation: Operation) -> UnservedField | None:
    """The first field that can't be served; one that is null asks for nothing."""
    if not _NAMES_BETWEEN_ENGINES.isdisjoint(document):
        for name in _BETWEEN_ENGINES:
            if document.get(name) is not None:
                return UnservedField(name, f"The field '{name}' is for engines among themselves; leave it out.")
    if operation is Operation.RESPONSES:
        for name, reason in _KEPT.items():
            if document.get(name):
                return UnservedField(name, f"The field '{name}' is not served: {reason}.")
    return None
