"""Weights read out of object storage while an engine loads them: which versions can, and why one can't."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from engines.span import Span
from fleet.versions import parse_version

if TYPE_CHECKING:
    from engines.wishes import Wish


class Streaming(Span):
    """How an engine is told to stream: the model is named by the URI of its files, and a flag says how it is read."""

    flag: str
    value: str
    schemes: tuple[str, ...]
    """Of the URIs that stand for a model: ``s3``."""
    not_with: tuple[str, ...]
    """What a manifest may ask that loads a second model, which is found by its name and not by the URI."""
    needs: str
    """What the image has to bring."""
    source: str


def streaming_problems(wish: "Wish") -> Iterator[str]:
    """Why the weights of a wish can't be streamed; none = they can."""
    title, support = f"{wish.name} {wish.flags.version}", wish.table.streaming
    if support is None:
        yield f"{wish.name} loads weights from files alone"
        return
    choices = wish.flags.choices(support.flag)
    is_offered = wish.flags.has(support.flag) and (choices is None or support.value in choices)
    if not support.covers(parse_version(wish.flags.version)) or not is_offered:
        yield f"{title} has no {support.flag} {support.value}"
    own = next((flag for flag in wish.given if wish.flags.name(flag) == wish.flags.name(support.flag)), None)
    if own is not None and wish.given[own] != support.value:
        yield f"engine.flags says {own} {wish.given[own]}, and streaming needs {support.value}"
    second = sorted(wish.asks.intersection(support.not_with))
    if second:
        yield f"{', '.join(second)} loads a second model, which {title} looks for among files"


def refuse_uri(wish: "Wish") -> None:
    """Raises `ValueError` when a wish names a URI that its engine can't load."""
    if wish.weights_uri is None:
        return
    problem = next(streaming_problems(wish), None)
    schemes = wish.table.streaming.schemes if wish.table.streaming else ()
    scheme = wish.weights_uri.partition("://")[0]
    if problem is None and scheme not in schemes:
        problem = f"it streams from {', '.join(schemes)}, not from {scheme}"
    if problem is not None:
        raise ValueError(f"weights can't be loaded from {wish.weights_uri}: {problem}")
