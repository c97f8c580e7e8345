"""Typed access to the keys of a configuration: a value is right, absent, or an error that names it."""

from collections.abc import Collection, Mapping, Sequence
from typing import NoReturn

from fleet.model_config import ConfigError
from fleet.model_reading.names import ALIASES

LARGEST = 10**9
"""No size of a model is larger; a larger one is a mistake."""
LONGEST = 10_000
"""No list of layers is longer."""


class Lacking(Exception):
    """A figure needs a key that the configuration does not have."""

    def __init__(self, key: str, message: str = "") -> None:
        super().__init__(key)
        self.key = key
        self.message = message or f"the configuration does not state {key}"


class Keys:
    """A section of a configuration. A key that is null counts as absent, but takes no default either."""

    def __init__(
        self,
        values: Mapping[str, object],
        source: str,
        path: str = "",
        defaults: Mapping[str, object] | None = None,
        demanded: Mapping[str, str] | None = None,
        spelled: Mapping[str, str] | None = None,
        never_null: Collection[str] = (),
    ) -> None:
        self.values = values
        self.source = source
        self.path = path
        self.defaults = defaults or {}
        self.demanded = demanded or {}
        """Figures without which the architecture is another one, under the architecture's own spelling."""
        self.spelled = spelled or {}
        """How the architecture spells a figure, where that is not the usual name."""
        self.never_null = never_null
        """Figures for which null is no value either."""

    def named(self, name: str) -> str:
        """The key by which the architecture's configurations state a figure, with the section that it stands in."""
        return self.path + self.demanded.get(name, self.spelled.get(name, name))

    def find(self, name: str) -> tuple[str, object]:
        """The spelling under which the figure stands and its value, or the name and ``None``.

        Raises `Lacking` for a figure that the architecture demands.
        """
        for spelled in (name, *ALIASES.get(name, ())):
            value = self.values.get(spelled)
            if value is not None:
                return spelled, value
        if name in self.values:
            if name in self.never_null:
                raise Lacking(self.named(name))
            return name, None
        default = self.defaults.get(name)
        if name in self.never_null and not self.values.keys().isdisjoint(ALIASES.get(name, ())):
            raise Lacking(self.named(name))
        if default is None and name in self.demanded:
            self.demand(name)
        return name, default

    def demand(self, name: str) -> None:
        """Raise `Lacking` where the architecture demands a figure that stands nowhere, not even as null."""
        if name in self.demanded and self.values.keys().isdisjoint((name, *ALIASES.get(name, ()))):
            raise Lacking(self.named(name))

    def with_values(self, values: Mapping[str, object]) -> "Keys":
        """The same section with other values."""
        return Keys(values, self.source, self.path, self.defaults, self.demanded, self.spelled, self.never_null)

    def has(self, *names: str) -> bool:
        """Whether one of the keys is stated."""
        return any(self.find(name)[1] is not None for name in names)

    def refuse(self, name: str, message: str) -> NoReturn:
        """Raise the error of a key."""
        raise ConfigError(self.source, f"{self.path}{name}", message)

    def count(self, name: str, default: int | None = None) -> int | None:
        """A whole number that may be zero."""
        spelled, value = self.find(name)
        return default if value is None else self._whole(spelled, value, 0)

    def size(self, name: str, default: int | None = None) -> int | None:
        """A positive whole number."""
        spelled, value = self.find(name)
        return default if value is None else self._whole(spelled, value, 1)

    def need(self, name: str) -> int:
        """A positive whole number that a figure can't do without."""
        value = self.size(name)
        if value is None:
            raise Lacking(self.named(name))
        return value

    def size_at(self, name: str, layer: int) -> int | None:
        """A size that may be one number for all layers or a list with one for each."""
        spelled, value = self.find(name)
        if not isinstance(value, list):
            return self.size(name)  # one number for all of them is a size, never zero
        if layer >= len(value):
            self.refuse(spelled, f"a list of {len(value)} has no entry for layer {layer}")
        return None if value[layer] is None else self._whole(f"{spelled}[{layer}]", value[layer], 0)

    def need_at(self, name: str, layer: int) -> int:
        """`size_at` of a key that a figure can't do without."""
        value = self.size_at(name, layer)
        if value is None:
            raise Lacking(self.named(name))
        return value

    def flag(self, name: str, *, default: bool = False) -> bool:
        """A truth value."""
        spelled, value = self.find(name)
        if value is None:
            return default
        if not isinstance(value, bool | int):
            self.refuse(spelled, f"{_shown(value)} is not true or false")
        return bool(value)

    def text(self, name: str) -> str | None:
        """A text."""
        spelled, value = self.find(name)
        if value is not None and not isinstance(value, str):
            self.refuse(spelled, f"{_shown(value)} is not a text")
        return value

    def list(self, name: str) -> Sequence[object] | None:
        """A list of anything."""
        spelled, value = self.find(name)
        if value is not None and not isinstance(value, list):
            self.refuse(spelled, f"{_shown(value)} is not a list")
        return value

    def counts(self, name: str) -> tuple[int, ...] | None:
        """A list of whole numbers."""
        values = self.list(name)
        if values is None:
            return None
        if len(values) > LONGEST:
            self.refuse(name, f"a list of {len(values):,} entries is longer than any model's (at most {LONGEST:,})")
        return tuple(self._whole(f"{name}[{at}]", value, 0) for at, value in enumerate(values))

    def section(self, name: str, defaults: Mapping[str, object] | None = None) -> "Keys | None":
        """A nested object."""
        spelled, value = self.find(name)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            self.refuse(spelled, f"{_shown(value)} is not an object")
        return Keys(value, self.source, f"{self.path}{spelled}.", defaults)

    def _whole(self, spelled: str, value: object, least: int) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        kind = "a positive whole number" if least else "a whole number of at least 0"
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            self.refuse(spelled, f"{_shown(value)} is not {kind}")
        if value > LARGEST:
            self.refuse(spelled, f"{_shown(value)} is larger than any model's (at most {LARGEST:,})")
        return value


def _shown(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 10**20:
        return "a number of more than 20 digits"
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
