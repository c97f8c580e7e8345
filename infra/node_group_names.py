"""The names of a pool's node groups in EKS, and whether they are short enough."""

from collections.abc import Iterator, Sequence

from infra.problem import Problem
from infra.stack_config import PoolConfig, StackConfig
from infra.zone_groups import zone_groups

LONGEST_ENVIRONMENT = 20
"""Names of IAM roles end at 64 characters, and the environment's stands in all of them."""
LONGEST = 63
"""Letters of a node group's name (EKS API, CreateNodegroup)."""
DIGITS_BEHIND = len("-1234567")
"""What Pulumi puts behind the name of what it may have to replace."""


def node_group_names(pool: PoolConfig, environment: str, zones: Sequence[str]) -> tuple[str, ...]:
    """As the program registers them, without what Pulumi puts behind; none for a pool that can't be divided."""
    return tuple(f"enginehouse-{environment}-{pool.name}{suffix}-nodes" for suffix in _suffixes(pool, zones))


def registered_names(pool: PoolConfig, zones: Sequence[str]) -> tuple[str, ...]:
    """The pool's own name and those of its groups."""
    return tuple(dict.fromkeys((pool.name, *(pool.name + suffix for suffix in _suffixes(pool, zones)))))


def name_problems(pool: PoolConfig, config: StackConfig) -> Iterator[Problem]:
    """A name that EKS would refuse; one of the environment that is too long is told of first."""
    if len(config.environment) > LONGEST_ENVIRONMENT:
        return
    longest = max(node_group_names(pool, config.environment, config.network.zones), key=len, default="")
    over = len(longest) + DIGITS_BEHIND - LONGEST
    if over > 0:
        message = f"its node group would be {longest}-…, and EKS takes {LONGEST} letters"
        remedy = _remedy(pool.name, len(pool.name) - over)
        yield Problem(f"pools.{pool.name}.name", pool.name, message, remedy)


def _suffixes(pool: PoolConfig, zones: Sequence[str]) -> tuple[str, ...]:
    """What the pool's groups have behind its name; none where other problems of the pool come first."""
    try:
        return tuple(group.suffix for group in zone_groups(pool, zones))
    except ValueError:
        return ()


def _remedy(name: str, letters: int) -> str:
    shorter = name[: max(letters, 0)].rstrip("-")
    return f"take {letters} letters at most, such as {shorter}" if shorter else "take a shorter environment as well"
