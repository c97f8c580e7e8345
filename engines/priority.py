"""By which flag an engine is told to serve requests by the priority that they carry."""

from collections.abc import Mapping

_FLAGS: Mapping[str, tuple[str, str | bool]] = {
    "vllm": ("--scheduling-policy", "priority"),
    "sglang": ("--enable-priority-scheduling", True),
}
"""As the flag lists of this room have them, for every version there."""


def takes_priority(engine: str, flags: Mapping[str, object]) -> bool:
    """Whether an engine that is started with these flags heeds priorities."""
    name, value = _FLAGS.get(engine, ("", ""))
    return flags.get(name) == value and bool(name)
