"""A command line in the making: settings by name, each with a spelling that the version takes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from engines.flags import BOTH, LIST, NEGATIVE, SWITCH, FlagList, positive
from fleet.spec import FlagValue

Setting = str | int | float | bool | tuple[str, ...]
_OFF = frozenset({"", "null", "none", "false", "[]", "{}"})
"""Values that leave a feature off."""


@dataclass
class Draft:
    """Settings in the order in which they were made; a flag that the version lacks is left out."""

    flags: FlagList
    settings: dict[str, tuple[str, Setting]] = field(default_factory=dict)
    """Name of the setting -> spelling and value."""
    options: dict[str, object] = field(default_factory=dict)
    """For engines that take a file of options: its content."""

    def put(self, spelling: str, value: Setting | None) -> None:
        """Set a flag, unless the version lacks it or there is nothing to set."""
        flag = self.flags.spellings.get(spelling) if value is not None else None
        if flag is not None and value is not None:
            self.settings[flag.name] = (spelling, value)

    def put_json(self, spelling: str, value: object) -> None:
        """Set a flag whose value is JSON."""
        self.put(spelling, compact(value))

    def give(self, given: Mapping[str, FlagValue]) -> None:
        """The manifest's own flags: they win over what was derived, and are kept even when the version lacks them."""
        for spelling, value in given.items():
            flag = self.flags.flag(spelling)
            name = self.flags.name(spelling)
            self.settings.pop(name, None)
            if flag is not None and spelling.startswith(NEGATIVE) and flag.kind == BOTH:
                self.settings[name] = (positive(spelling), value is False)
            elif flag is not None and flag.kind == LIST and isinstance(value, str):
                self.settings[name] = (spelling, tuple(value.split()))
            else:
                self.settings[name] = (spelling, value)

    def value(self, spelling: str) -> Setting | None:
        """What a flag is set to, or ``None``."""
        found = self.settings.get(self.flags.name(spelling))
        return found[1] if found else None

    def on(self) -> dict[str, str]:
        """The settings that switch a feature on: name -> spelling."""
        return {name: spelling for name, (spelling, value) in self.settings.items() if _is_on(value)}

    def argv(self) -> list[str]:
        """The settings as arguments."""
        found: list[str] = []
        for spelling, value in self.settings.values():
            found += _arguments(spelling, value, self.flags)
        return found


def _is_on(value: Setting) -> bool:
    if isinstance(value, bool | tuple):
        return bool(value)
    return not isinstance(value, str) or value.strip().lower() not in _OFF


def compact(value: object) -> str:
    """JSON without blanks, keys in the given order."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _arguments(spelling: str, value: Setting, flags: FlagList) -> list[str]:
    flag = flags.flag(spelling)
    if isinstance(value, bool):
        if value:
            return [spelling]
        return [f"{NEGATIVE}{spelling.removeprefix('--')}"] if flag is not None and flag.kind == BOTH else []
    if isinstance(value, tuple):
        return [spelling, *value]
    text = str(value)
    return [f"{spelling}={text}"] if text.startswith("-") else [spelling, text]


def takes_no_value(kind: str) -> bool:
    """Whether a kind of flag stands alone."""
    return kind in (BOTH, SWITCH)
