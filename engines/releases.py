"""Which versions of an engine were released, and when."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from packaging.version import Version

from fleet.spec import EngineName
from fleet.versions import parse_version, public


@dataclass(frozen=True, slots=True)
class Releases:
    """Per engine, versions in ascending order with the day of their first upload."""

    dates: Mapping[EngineName, Mapping[Version, date]]

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> "Releases":
        """From the parsed ``releases.toml``; an engine that it does not name has none."""
        found: dict[EngineName, dict[Version, date]] = {}
        for name in EngineName:
            days = {Version(raw): day for raw, day in document.get(name, {}).items()}
            found[name] = {version: days[version] for version in sorted(days)}
        return cls(dates=found)

    def versions(self, name: EngineName) -> tuple[str, ...]:
        """The known versions, ascending."""
        return tuple(map(str, self.dates[name]))

    def released(self, name: EngineName, version: str) -> str | None:
        """The day of a version's upload, ISO 8601, or ``None`` when it is not known."""
        parsed = parse_version(version)
        day = self.dates[name].get(public(parsed)) if parsed else None
        return day.isoformat() if day else None
