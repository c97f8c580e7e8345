"""What stands between a vision tower and the language model."""

from collections.abc import Iterator
from itertools import pairwise

from fleet.model_reading.keys import Keys
from fleet.tensors import Part, Split, Tensor

MOST = 256
SHUFFLED = ("idefics3", "smolvlm", "granite_docling", "modernvbert")
UNSHUFFLED = ("internvl", "lfm2_vl", "qianfan")
"""Models that make one token of a square of patches: projected by one matrix, and by two."""


def projector(vision: Keys, config: Keys, width: int, hidden: int) -> Iterator[Tensor]:
    """The matrices that bring patches into the language model, by the configuration's ``model_type``."""
    kind = config.text("model_type") or ""
    merged = _merged(vision)
    if kind.startswith(("glm4v", "glm46v", "glm_ocr")):
        out, inner = vision.size("out_hidden_size") or hidden, vision.need("intermediate_size")
        yield from _chain("merger", (width * merged, out, out))
        yield from _chain("merger.ffn", (out, inner, out, inner))
    elif kind.startswith(("gemma3", "gemma4", "paligemma", "mllama", "step3")):
        yield from _chain("projector", (vision.size("vision_output_dim") or width, hidden))
    elif kind == "llama4":
        inner, wide = vision.need("projector_input_dim"), vision.need("projector_output_dim")
        yield from _chain("adapter", (vision.need("intermediate_size"), inner, wide))
        yield from _chain("projector", (vision.size("vision_output_dim") or wide, hidden))
    elif kind.startswith(("mistral3", "lighton_ocr")):
        merge = config.size("spatial_merge_size") or 2
        yield from _chain("patch_merger", (width * merge * merge, width))
        yield from _chain("projector", (width, hidden, hidden))
    elif kind.startswith((*SHUFFLED, *UNSHUFFLED)):
        yield from _shuffled(kind, config, width, hidden)
    elif merged > 1:
        out = hidden if vision.has("embed_dim") else vision.size("out_hidden_size") or hidden
        for number in range(_mergers(vision)):
            yield from _chain(f"merger.{number}", (width * merged, width * merged, out))
    else:
        yield from _chain("projector", (width, hidden, hidden))


def _shuffled(kind: str, config: Keys, width: int, hidden: int) -> Iterator[Tensor]:
    """One token of a square of patches: projected by one matrix, or by two."""
    if kind.startswith(SHUFFLED):
        factor = config.size("pixel_shuffle_factor") or config.need("scale_factor")
        yield from _chain("projector", (width * factor * factor, hidden))
        return
    factor, inner = config.size("downsample_factor") or 2, config.size("projector_hidden_size") or hidden
    yield from _chain("projector", (width * factor * factor, inner, hidden))


def _mergers(vision: Keys) -> int:
    """One after the last block, and one after each block that is looked at as well (deepstack)."""
    deeper = len(vision.list("deepstack_visual_indexes") or ())
    if deeper >= MOST:
        vision.refuse("deepstack_visual_indexes", f"{deeper} entries are more than any tower's ({MOST})")
    return 1 + deeper


def _merged(vision: Keys) -> int:
    """Patches that become one token."""
    sides = vision.find("merge_kernel_size")[1]
    if isinstance(sides, list):
        first, second = [*(vision.counts("merge_kernel_size") or ()), 1, 1][:2]
        return first * second
    side = vision.size("spatial_merge_size") or 1
    return side * side


def _chain(name: str, sizes: tuple[int, ...]) -> Iterator[Tensor]:
    for number, (inner, out) in enumerate(pairwise(sizes)):
        yield Tensor(f"model.visual.{name}.{number}", out, inner, Part.ENCODER, Split.NONE)
