"""The cluster of a stack, as rendering has to know it."""

from collections.abc import Mapping
from typing import Any

from infra.stack_config import LustreWeights, StackConfig
from infra.weights_address import CONFIG_MAP
from infra.weights_volume import CLAIM
from workloads import NodeLocalWeights, RenderGround, SharedWeights

GIB_PER_TIB = 1024


def render_ground(config: StackConfig, model_configs: Mapping[str, Mapping[str, Any]]) -> RenderGround:
    """What pods of its engines are rendered onto."""
    return RenderGround(pools=config.pools, weights=_weights(config), model_configs=model_configs)


def _weights(config: StackConfig) -> SharedWeights | NodeLocalWeights:
    found = config.weights
    if not isinstance(found, LustreWeights):
        return NodeLocalWeights(CONFIG_MAP, found.copy_image)
    rate = found.capacity_gib / GIB_PER_TIB * found.mb_per_second_per_tib
    return SharedWeights(CLAIM, found.bucket_path, rate)
