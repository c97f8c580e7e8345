"""Vision towers and their projectors."""

from collections.abc import Iterator

from fleet.model_reading.blocks import linear, vector
from fleet.model_reading.keys import Keys
from fleet.tensors import Part, Split, Tensor


def tower_tensors(config: Keys, hidden: int) -> Iterator[Tensor]:
    """The towers that the configuration names."""
    vision = config.section("vision_config")
    if vision and vision.values:
        yield from _vit(vision, hidden)


def _vit(vision: Keys, hidden: int) -> Iterator[Tensor]:
    at = "model.visual"
    width = vision.need("hidden_size")
    depth = vision.size("depth") or vision.need("num_hidden_layers")
    inner, patch = vision.need("intermediate_size"), vision.need("patch_size")
    yield vector(
        f"{at}.patch_embed", width * 3 * patch * patch * (vision.size("temporal_patch_size") or 1), Part.ENCODER
    )
    per_layer = 4 * width * width + 2 * width * inner
    yield Tensor(f"{at}.blocks", per_layer, depth, Part.ENCODER, Split.NONE)
    merge = vision.size("spatial_merge_size")
    if merge:
        wide = width * merge * merge
        for number in range(1 + len(vision.list("deepstack_visual_indexes") or ())):
            yield from linear(f"{at}.merger.{number}.fc1", wide, wide, Part.ENCODER, Split.NONE)
            yield from linear(f"{at}.merger.{number}.fc2", hidden, wide, Part.ENCODER, Split.NONE)
    else:
        yield from linear(f"{at}.projector", hidden, width, Part.ENCODER, Split.NONE)
    positions = vision.size("num_position_embeddings") or 0
    if positions:
        yield vector(f"{at}.pos_embed", positions * width, Part.ENCODER)
