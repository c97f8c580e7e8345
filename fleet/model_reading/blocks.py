"""The pieces that every reading builds from: linear layers, vectors, FFNs."""

from collections.abc import Iterator

from fleet.tensors import Part, Split, Tensor


def linear(
    module: str, out: int, inner: int, part: Part, split: Split, *, bias: bool = False, heads: int = 0
) -> Iterator[Tensor]:
    """A matrix and perhaps its bias."""
    yield Tensor(module, out, inner, part, split, heads=heads)
    if bias:
        yield vector(f"{module}.bias", out, part, Split.NONE if split is Split.INPUT else split, heads=heads)


def vector(module: str, size: int, part: Part, split: Split = Split.NONE, *, copies: int = 1, heads: int = 0) -> Tensor:
    """A norm, a bias, a convolution: never quantised."""
    return Tensor(module, size, 1, part, split, is_linear=False, copies=copies, heads=heads)


def norms(module: str, size: int, count: int, part: Part = Part.NORM, *, bias: bool = False) -> Iterator[Tensor]:
    """``count`` norms of one size."""
    if count:
        yield vector(module, size, part, copies=count * (2 if bias else 1))


def ffn(
    module: str, hidden: int, inner: int, part: Part, *, gated: bool, bias: bool = False, out: int = 0
) -> Iterator[Tensor]:
    """A feed-forward network."""
    for name in ("gate_proj", "up_proj") if gated else ("up_proj",):
        yield from linear(f"{module}.{name}", inner, hidden, part, Split.OUTPUT, bias=bias)
    yield from linear(f"{module}.down_proj", out or hidden, inner, part, Split.INPUT, bias=bias)


def experts(module: str, hidden: int, inner: int, count: int, *, gated: bool, bias: bool = False) -> Iterator[Tensor]:
    """``count`` routed experts, alike."""
    sizes = [("gate_proj", inner, hidden)] if gated else []
    sizes += [("up_proj", inner, hidden), ("down_proj", hidden, inner)]
    for name, out, inside in sizes:
        yield Tensor(f"{module}.*.{name}", out, inside, Part.EXPERTS, Split.EXPERTS, copies=count)
        if bias:
            yield Tensor(f"{module}.*.{name}.bias", out, 1, Part.EXPERTS, Split.EXPERTS, is_linear=False, copies=count)
