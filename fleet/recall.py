"""A bounded memory of what was worked out: many manifests ask the same of one version, one model, one set of facts."""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recall(Generic[K, V]):
    """Answers by key. Full, it forgets everything: keys come from manifests, so nobody bounds how many there are."""

    __slots__ = ("_kept", "_limit")

    def __init__(self, limit: int = 65_536) -> None:
        self._kept: dict[K, V] = {}
        self._limit = limit

    def of(self, key: K, make: Callable[[], V]) -> V:
        """The answer for a key, made on the first question."""
        try:
            return self._kept[key]
        except KeyError:
            pass
        made = make()
        if len(self._kept) >= self._limit:
            self._kept.clear()
        self._kept[key] = made
        return made
