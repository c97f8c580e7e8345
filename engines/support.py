"""What a manifest asks and a version can't do."""

from collections.abc import Iterator

from engines.tables import Requirement
from engines.wishes import PARALLEL_KINDS, Wish
from fleet.engine import Unsupported
from fleet.versions import parse_version


def unsupported(wish: Wish) -> Iterator[Unsupported]:
    """Everything that is in the way."""
    yield from _limits(wish)
    for requirement in wish.table.requires:
        if not wish.asks.isdisjoint(requirement.any):
            yield from _missing(wish, requirement)
    yield from _unsaid(wish)
    yield from _quantization(wish)
    yield from _kv_cache(wish)
    yield from _parallelism(wish)


def _title(wish: Wish) -> str:
    return f"{wish.name} {wish.flags.version}"


def _limits(wish: Wish) -> Iterator[Unsupported]:
    version = parse_version(wish.flags.version)
    for limit in wish.table.limits:
        if not wish.asks.isdisjoint(limit.any) and limit.covers(version):
            asked = ", ".join(sorted(wish.asks.intersection(limit.any)))
            yield Unsupported(limit.pointer, f"{_title(wish)} can't do {asked}: {limit.message}")


def _missing(wish: Wish, requirement: Requirement) -> Iterator[Unsupported]:
    flag = next((flag for flag in requirement.flags if wish.flags.has(flag)), None)
    if flag is None:
        lacking = requirement.flags[0]
        where = wish.flags.book.where(lacking)
        yield Unsupported(requirement.pointer, f"{_title(wish)} has no {lacking}, which this needs; {where}")
        return
    choices = wish.flags.choices(flag)
    wanted = wish.spec.features.tool_parser if requirement.choice_of == "tool_parser" else requirement.choice
    if wanted is not None and choices is not None and wanted not in choices:
        message = f"{_title(wish)} does not take {flag} {wanted}; it takes {', '.join(choices)}"
        yield Unsupported(requirement.pointer, message)


def _unsaid(wish: Wish) -> Iterator[Unsupported]:
    given = {wish.flags.name(spelling) for spelling in wish.given}
    for need in wish.table.needs_flag:
        if not wish.asks.isdisjoint(need.any) and given.isdisjoint(need.flags):
            yield Unsupported(need.pointer, f"{_title(wish)}: {need.message}")


def _quantization(wish: Wish) -> Iterator[Unsupported]:
    word = wish.spec.model.quantization
    if word is None:
        return
    pointer = "/spec/model/quantization"
    support = wish.table.quantizations.get(word)
    if support is None:
        known = ", ".join(wish.table.quantizations)
        yield Unsupported(pointer, f"{wish.name} is not known to serve {word}; it is known for {known}")
        return
    choices = wish.flags.choices(support.choices_of) if support.choices_of else None
    if not support.is_met(choices):
        wanted, taken = " or ".join(support.any_of), ", ".join(choices or ())
        message = f"{_title(wish)} can't serve {word}: {support.choices_of} has no {wanted}; it has {taken}"
        yield Unsupported(pointer, message)


def _kv_cache(wish: Wish) -> Iterator[Unsupported]:
    batch, support = wish.spec.batch, wish.table.kv_cache
    if batch is None:
        return
    value = support.values.get(batch.kv_cache_dtype)
    choices = wish.flags.choices(support.flag) if support.flag else None
    taken = [word for word, spelled in support.values.items() if choices is None or spelled in choices]
    if value is None or (choices is not None and value not in choices):
        message = f"{_title(wish)} has no KV cache of type {batch.kv_cache_dtype}; it has {', '.join(taken)}"
        yield Unsupported("/spec/batch/kv_cache_dtype", message)


def _parallelism(wish: Wish) -> Iterator[Unsupported]:
    limited = {ask for limit in wish.table.limits for ask in limit.any}
    for kind in PARALLEL_KINDS:
        size = getattr(wish.parallelism, kind)
        if size == 1 or f"parallel:{kind}" in limited:
            continue
        pointer = f"/spec/parallelism/{kind}"
        support = wish.table.parallelism.get(kind)
        if support is None:
            yield Unsupported(pointer, f"{wish.name} has no {kind} parallelism")
        elif not wish.flags.has(support.flag):
            where = wish.flags.book.where(support.flag)
            yield Unsupported(pointer, f"{_title(wish)} has no {support.flag}, which this needs; {where}")
        else:
            yield from _size(wish, kind, size, support.sizes)


def _size(wish: Wish, kind: str, size: int, sizes: str) -> Iterator[Unsupported]:
    plan, pointer = wish.parallelism, f"/spec/parallelism/{kind}"
    ranks = plan.tensor * plan.data * plan.context
    if sizes == "all-ranks" and size != ranks:
        message = f"{wish.name} spreads experts over all ranks of a stage: {kind} is 1 or {ranks}, not {size}"
        yield Unsupported(pointer, message)
    if sizes == "divides-tensor" and plan.tensor % size:
        yield Unsupported(pointer, f"{wish.name} needs {kind} to divide tensor {plan.tensor}; {size} does not")
